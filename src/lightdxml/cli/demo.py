"""`lightdxml demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lightdxml.cli import evaluate, explain, report, train
from lightdxml.cli.output import console, require_plots, say

_TEXT = "draw random samples from a normal distribution"


def run(
    model: Annotated[Path, typer.Option("--model", help="Folder to write the model to.")] = Path("demo-model"),
) -> None:
    """Run the main commands on built-in data: train, evaluate, explain, report.

    The documents are the docstrings of NumPy, SciPy and, if it is installed, scikit-learn. The labels of a function are
    the functions that its "See Also" section names.

    Example: `lightdxml demo`
    """
    _show(f"lightdxml train see-also --model {model}")
    train.run("see-also", model)
    _show(f"lightdxml evaluate {model} see-also")
    evaluate.run(model, "see-also")
    _show(f'lightdxml explain {model} "{_TEXT}"')
    explain.run(model, _TEXT)
    _show(f"lightdxml report {model} --data see-also")
    try:
        require_plots()
    except ImportError as error:
        say(str(error))
    else:
        report.run(model, "see-also")
    say(f"\nTry it with your own texts, one per line: lightdxml predict {model} FILE")


def _show(command: str) -> None:
    console.print(f"\n$ {command}", style="bold cyan", markup=False, soft_wrap=True)
