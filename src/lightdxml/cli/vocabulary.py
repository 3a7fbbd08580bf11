"""`lightdxml vocabulary`: inspect vocabularies, and give a trained model another one."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lightdxml.cli.changes import Out, target_of
from lightdxml.cli.output import Encoding, Force, Json, ModelFolder, print_json, print_table, say

if TYPE_CHECKING:
    from lightdxml.model.model import Model
    from lightdxml.vocabulary_update import Changes

app = typer.Typer(
    help="Inspect vocabularies, and update the vocabulary of a trained model.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A vocabulary: TSV, CSV or SKOS.", show_default=False)]
_SHOWN = 3


@app.command()
def info(file: File, json: Json = False, encoding: Encoding = "utf-8") -> None:
    """Show what a vocabulary contains: concepts, languages, names, hierarchy.

    Example: `lightdxml vocabulary info stw.ttl.gz`
    """
    from lightdxml.data.vocabulary import Vocabulary
    from lightdxml.data.vocabulary_statistics import describe

    vocabulary = Vocabulary.load(file, encoding=encoding)
    figures = describe(vocabulary)
    if json:
        print_json(asdict(figures))
        return
    languages = ", ".join(f"{language or 'unknown'} {count:,}" for language, count in figures.languages.items())
    branches = "branches can be included and excluded" if figures.narrower else "there is no hierarchy"
    first = vocabulary.concepts[0]
    rows = [
        ("concepts", f"{figures.concepts:,}", ""),
        ("names", f"{figures.names:,}", "preferred and alternative ones"),
        ("languages", f"{len(figures.languages)}", f"concepts by language: {languages}"),
        ("with a notation", f"{figures.notations:,}", ""),
        ("below another concept", f"{figures.narrower:,}", branches),
        ("sharing a name", f"{figures.ambiguous:,}", "in data, only URIs tell them apart"),
        ("first concept", "", f"{first.uri} {vocabulary.name(first.uri)}"),
    ]
    print_table(str(file), ("", "", ""), rows)


@app.command()
def update(
    model: ModelFolder,
    file: File,
    out: Out = None,
    retire: Annotated[
        bool, typer.Option("--retire", help="Allow retiring labels that have training documents.")
    ] = False,
    force: Force = False,
    json: Json = False,
    encoding: Encoding = "utf-8",
) -> None:
    """Rename, retire and add the labels of a trained model, without training.

    FILE is the whole new vocabulary. New concepts become labels, which are suggested where texts contain their names.
    Labels that FILE no longer contains, or that are deprecated in it, are retired: never suggested again. Labels keep
    their ids.

    Example: `lightdxml vocabulary update my-model vocabulary.ttl`
    """
    from lightdxml.data.vocabulary import Vocabulary
    from lightdxml.learning import folder
    from lightdxml.persistence.lock import writing
    from lightdxml.vocabulary_update import update_learner

    target = target_of(model, out, force)
    vocabulary = Vocabulary.load(file, encoding=encoding)
    start = time.perf_counter()
    with writing(model, target):
        opened = folder.read(model)
        learner, changes = update_learner(opened.learner, vocabulary, retire=retire)
        counts = {name: found if isinstance(found, int) else len(found) for name, found in asdict(changes).items()}
        entry = {"refresh": 0, "phase": "vocabulary", "seconds": time.perf_counter() - start, **counts}
        folder.save(target, learner, opened.journal, [*opened.history, entry])
    updated = learner.model
    if json:
        print_json({"model": str(target), "labels": updated.n_labels, **asdict(changes)})
        return
    print_table(f"{model} → {target}", ("", "labels", ""), _rows(changes, updated))
    say(f"The model is in {target}. It has {updated.n_labels:,} labels, {len(updated.retired):,} of them retired.")


def _rows(changes: Changes, model: Model) -> list[tuple[str, str, str]]:
    def row(what: str, uris: list[str]) -> tuple[str, str, str]:
        labels = [model.label(model.label_ids[uri]) for uri in uris[:_SHOWN]]
        some = [f"{one.name} <{one.id}>" for one in labels]
        return what, f"{len(uris):,}", ", ".join([*some, "…"] if len(uris) > _SHOWN else some)

    rows = [row(what, getattr(changes, what)) for what in ("added", "renamed", "retired")]
    if changes.restored:
        rows.append(row("restored", changes.restored))
    rows.append(("unchanged", f"{changes.unchanged:,}", ""))
    if changes.new_words:
        rows.append(
            ("with unknown words", f"{changes.new_words:,}", "added labels; the model knew no word of their names")
        )
    if changes.outside:
        rows.append(("not in the vocabulary", f"{changes.outside:,}", "labels of the data: they stay as they are"))
    return rows
