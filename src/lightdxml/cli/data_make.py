"""`lightdxml data make`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from lightdxml.cli.data_convert import Force, Target
from lightdxml.cli.output import console
from lightdxml.data.generator import Recipe, like, make
from lightdxml.progress import Progress

_SMALL = Recipe(10_000, 2_000, 2_000, 10_000)


_OPTIONS = {
    "documents": "--docs",
    "test_documents": "--test",
    "labels_per_document": "--labels-per-doc",
    "words_per_document": "--words-per-doc",
}


def run(
    target: Target,
    docs: Annotated[int | None, typer.Option("--docs", help="Documents to train on.", show_default="10000")] = None,
    test: Annotated[int | None, typer.Option("--test", help="Documents to test with.", show_default="2000")] = None,
    labels: Annotated[int | None, typer.Option("--labels", help="Labels.", show_default="2000")] = None,
    words: Annotated[int | None, typer.Option("--words", help="Words.", show_default="10000")] = None,
    labels_per_doc: Annotated[
        float | None, typer.Option("--labels-per-doc", help="On average.", show_default="5")
    ] = None,
    words_per_doc: Annotated[
        float | None, typer.Option("--words-per-doc", help="On average.", show_default="7")
    ] = None,
    noise: Annotated[
        float | None, typer.Option("--noise", help="The share of words that say nothing.", show_default="0.3")
    ] = None,
    like_set: Annotated[
        str | None,
        typer.Option("--like", help="The sizes of this data set, but for those given.", metavar="NAME"),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same data.")] = 0,
    force: Force = False,
) -> None:
    """Make up a data set that can be learnt, of any size, for trials of time and memory.

    Example: `lightdxml data make made --like AmazonTitles-670K`
    """
    given: dict[str, Any] = {
        "documents": docs,
        "test_documents": test,
        "labels": labels,
        "words": words,
        "labels_per_document": labels_per_doc,
        "words_per_document": words_per_doc,
        "noise": noise,
    }
    base = _SMALL if like_set is None else like(like_set)
    try:
        recipe = replace(base, **{name: value for name, value in given.items() if value is not None}, seed=seed)
    except ValueError as error:
        raise ValueError(_in_options(str(error))) from error
    make(recipe, target, Progress(), overwrite=force)
    console.print(
        f"{recipe.documents:,} training and {recipe.test_documents:,} test documents with {recipe.labels:,} labels and"
        f" {recipe.words:,} words written to {target}",
        markup=False,
        soft_wrap=True,
    )


def _in_options(message: str) -> str:
    """Return what is wrong with a recipe in the words of the command line.

    >>> _in_options("documents is -5: it must be a whole number from 1")
    '--docs is -5: it must be a whole number from 1'
    """
    name, rest = message.split(" ", 1)
    return f"{_OPTIONS.get(name, '--' + name)} {rest}"
