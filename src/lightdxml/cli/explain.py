"""`lightdxml explain`."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from lightdxml.cli.output import Json, ModelFolder, Tail, console, print_json

_WIDTH = 24
_BASE, _TAIL = "(without words)", "(being frequent)"


def run(
    model: ModelFolder,
    text: Annotated[str, typer.Argument(help="A text; `-` reads it from standard input.", show_default=False)],
    k: Annotated[int, typer.Option("-k", help="How many labels to explain.", min=1)] = 3,
    words: Annotated[int, typer.Option("--words", help="How many words to show for each.", min=1)] = 8,
    tail: Tail = 0.0,
    json: Json = False,
) -> None:
    """Show which words spoke for and against each label, and how much: base and words add up to the score.

    With --tail, what the label loses by being frequent is one more part.

    Example: `lightdxml explain my-model "solve a linear system of equations"`
    """
    from lightdxml.estimator import load
    from lightdxml.model import check_tail

    check_tail(tail)
    estimator = load(model)
    if estimator.model_.vectorizer is None:
        raise ValueError(f"{model} was trained on features, not on texts: explain such documents from Python")
    found = estimator.explain(sys.stdin.read() if text == "-" else text, k, tail=tail)
    if json:
        print_json(
            [
                {
                    "label": explanation.label,
                    "score": explanation.score,
                    "base": explanation.base,
                    "tail": explanation.tail,
                    "words": [{"word": word, "adds": value} for word, value in explanation.parts],
                }
                for explanation in found
            ]
        )
        return
    if not any(explanation.parts for explanation in found):
        console.print("The model knows none of these words, and gives no labels.")
    for explanation in found:
        _show(explanation, words, tail)


def _show(explanation: Any, words: int, tail: float) -> None:
    console.print(f"\n{' '.join(str(explanation.label).split())}  {explanation.score:.3f}", style="bold", markup=False)
    shown, rest = explanation.parts[:words], explanation.parts[words:]
    rows = [*shown]
    if rest:
        rows.append((f"({len(rest)} other words)", sum(value for _, value in rest)))
    if tail > 0:
        rows.append((_TAIL, explanation.tail))
    widest = max([len(str(word)) for word, _ in rows] + [len(_BASE)])
    largest = max([abs(value) for _, value in rows] + [1e-9])
    console.print(f"  {_BASE:{widest}}  {explanation.base:+.3f}", markup=False)
    for word, value in rows:
        bar = "█" * round(_WIDTH * abs(value) / largest)
        console.print(f"  {word!s:{widest}}  {value:+.3f}  ", end="", markup=False)
        console.print(bar, style="green" if value >= 0 else "red")
