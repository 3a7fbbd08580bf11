"""`lightdxml demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lightdxml.cli import evaluate, explain, report, train
from lightdxml.cli.output import console

_TEXT = "solve a linear system of equations with a sparse matrix"


def run(
    model: Annotated[Path, typer.Option("--model", help="The folder to write the model into.")] = Path("demo-model"),
) -> None:
    """Show all of it on the embedded data: train, evaluate, predict and explain, and write a report.

    The data is made from the docstrings of the installed NumPy, SciPy and scikit-learn: which function refers to which
    other ones.

    Example: `lightdxml demo`
    """
    _say(f"lightdxml train see-also --model {model}")
    train.run("see-also", model)
    _say(f"lightdxml evaluate {model} see-also")
    evaluate.run(model, "see-also")
    _say(f'lightdxml explain {model} "{_TEXT}"')
    explain.run(model, _TEXT)
    _say(f"lightdxml report {model} --data see-also")
    report.run(model, "see-also")
    console.print(
        f"\nNow with texts of your own, one a line: lightdxml predict {model} FILE", markup=False, soft_wrap=True
    )


def _say(command: str) -> None:
    console.print(f"\n$ {command}", style="bold cyan", markup=False, soft_wrap=True)
