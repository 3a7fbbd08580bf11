"""The command line: `lightdxml COMMAND`."""

from __future__ import annotations

import io
import os
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from lightdxml import __version__
from lightdxml.cli import bench, compress, data, demo, evaluate, explain, info, predict, report, settings, train
from lightdxml.cli.output import fail, note, printable

app = typer.Typer(
    help="Extreme multi-label classification: find the few labels that fit a document among very many.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.run)
app.command("train", cls=settings.CommandWithSettings)(train.run)
app.command("predict")(predict.run)
app.command("explain")(explain.run)
app.command("evaluate")(evaluate.run)
app.command("report")(report.run)
app.command("info")(info.run)
app.command("compress")(compress.run)
app.add_typer(bench.app, name="bench")
app.add_typer(data.app, name="data")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lightdxml {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options before the command."""


def run() -> None:
    """Run the command line; errors are one sentence and a nonzero exit code."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    if sys.stdout is None:
        fail("standard output is closed: redirect it to a file or to /dev/null")
    # A terminal that cannot show a character shows a question mark instead of failing.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    warnings.showwarning = lambda message, *_, **__: note(f"warning: {message}")
    try:
        app()
    except BrokenPipeError:
        # The reader has closed the pipe, as `head` does. The interpreter's last flush must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MemoryError as error:
        # NumPy's error is a subclass, whose message names the shape of an array.
        own = str(error) if type(error) is MemoryError else ""
        more = "there is not enough memory for data of this size: use a larger machine or fewer documents"
        # Without the console, which would need memory.
        sys.stderr.write(f"error: {printable(own) or more}\n")
        sys.exit(1)
    except (ValueError, OSError, ImportError) as error:
        fail(str(error))
