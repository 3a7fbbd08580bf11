"""`lightdxml demo`."""

from __future__ import annotations

import os
import shlex
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from lightdxml.cli import evaluate, explain, report, train
from lightdxml.cli.output import Force, console, require_plots, say

_DATA, _MODEL = "see-also", Path("demo-model")
_TEXT = "draw random samples from a normal distribution"


def run(
    model: Annotated[Path, typer.Option("--model", help="Folder to write the model to.")] = _MODEL,
    force: Force = False,
) -> None:
    """Run the main commands on built-in data: train, evaluate, explain, report.

    The documents are the docstrings of NumPy, SciPy and, if installed, scikit-learn. The labels of a function are the
    functions that its "See Also" section names. The first run takes up to a minute on two cores, because it compiles
    the package for this machine. The model of an earlier demo is replaced.

    Example: `lightdxml demo`
    """
    # Commands are shown as they work when they are run again.
    _show("train", _DATA, "--model", str(model), "--force")
    train.run(_DATA, model, force=force or model == _MODEL)
    _show("evaluate", str(model), _DATA)
    evaluate.run(model, _DATA)
    _show("explain", str(model), _TEXT)
    explain.run(model, _TEXT)
    _show("report", str(model), "--data", _DATA)
    try:
        require_plots()
    except ImportError as error:
        say(str(error))
    else:
        report.run(model, _DATA)
        _open(report.default_target(model))
    command = shlex.join(["lightdxml", "predict", str(model), "-"])
    say(f"\nTry a text of your own: echo {shlex.quote(_TEXT)} | {command}")


def _show(*command: str) -> None:
    console.print(f"\n$ {shlex.join(['lightdxml', *command])}", style="bold cyan", markup=False, soft_wrap=True)


def _open(page: Path) -> None:
    """Open a page in the browser if a person sits at a desktop."""
    has_display = sys.platform in ("darwin", "win32") or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    if sys.stdout.isatty() and has_display:
        webbrowser.open(page.resolve().as_uri())
