"""`lightdxml explain`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from lightdxml.cli.output import Json, ModelFolder, Tail, console, distinct_names, label_as_json, print_json, say
from lightdxml.cli.rules import Exclude, ExcludeBranch, Include, IncludeBranch, rules_of

if TYPE_CHECKING:
    from lightdxml.model.explain import Explanation
    from lightdxml.model.model import Model

_WIDTH = 24
_BASE = "(base score)"


def run(
    model: ModelFolder,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="Text to explain; `-` reads standard input.", show_default=False)
    ],
    k: Annotated[int, typer.Option("-k", help="Number of labels to explain.", min=1)] = 3,
    words: Annotated[int, typer.Option("--words", help="Number of words to show per label.", min=1)] = 8,
    tail: Tail = 0.0,
    include: Include = None,
    exclude: Exclude = None,
    include_branch: IncludeBranch = None,
    exclude_branch: ExcludeBranch = None,
    json: Json = False,
) -> None:
    """Show how much each word of a text adds to the scores of its best labels.

    A score is the probability that the label is right. It is the sum of a base score, which a text without words would
    get, and the contribution of each word.

    Example: `lightdxml explain my-model "solve a linear system of equations"`
    """
    from lightdxml.model.model import check_tail
    from lightdxml.predictor import Predictor

    check_tail(tail)
    predictor = Predictor.load(model)
    if predictor.model.vectorizer is None:
        raise ValueError(f"{model} was trained on features, not on texts: use LightDXML.explain in Python")
    if text == "-" and sys.stdin is None:
        raise ValueError("standard input is closed: give a text, or pipe one into the command")
    rules = rules_of(predictor.model, include, exclude, include_branch, exclude_branch)
    found = predictor.explain(sys.stdin.read() if text == "-" else text, k, tail=tail, **rules)
    if json:
        print_json([_as_json(predictor.model, explanation) for explanation in found])
        return
    if not found:
        say("The model knows none of these words, so it predicts no labels.")
    names = distinct_names([predictor.model.label(predictor.model.column(one.label)) for one in found])
    for name, explanation in zip(names, found, strict=True):
        _show(explanation, name, words)


def _as_json(model: Model, one: Explanation) -> dict[str, object]:
    words = [{"word": word, "adds": value} for word, value in one.parts]
    numbers = {"score": one.score, "base": one.base}
    return {**label_as_json(model, model.column(one.label)), **numbers, "name_match": one.name_match, "words": words}


def _show(explanation: Explanation, name: str, words: int) -> None:
    notation = f"{explanation.notation}  " if explanation.notation else ""
    title = f"{' '.join(name.split())}  {notation}{explanation.score:.3f}"
    console.print(f"\n{title}", style="bold", markup=False)
    if explanation.name_match is not None:
        say(f"  the label's name occurs in the text: {' '.join(explanation.name_match.split())}")
    rows, rest = list(explanation.parts[:words]), explanation.parts[words:]
    if rest:
        rows.append((f"({len(rest)} more)", sum(value for _, value in rest)))
    widest = max([len(str(word)) for word, _ in rows] + [len(_BASE)])
    largest = max([abs(value) for _, value in rows] + [1e-9])
    say(f"  {_BASE:{widest}}  {explanation.base:+.3f}")
    for word, value in rows:
        bar = "█" * round(_WIDTH * abs(value) / largest)
        console.print(f"  {word!s:{widest}}  {value:+.3f}  ", end="", markup=False)
        console.print(bar, style="green" if value >= 0 else "red")
