"""The command line: `lightdxml COMMAND`."""

from __future__ import annotations

import io
import logging
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from lightdxml import __version__
from lightdxml.cli.output import fail, note, printable

# Each is a module of this folder, with a function `run`, or with an `app` of its own.
_COMMANDS = (
    "demo", "train", "tune", "predict", "explain", "serve", "evaluate", "weigh", "report", "info", "compress", "learn",
    "forget", "history", "rollback", "push", "pull", "card", "bench", "data", "vocabulary",
)  # fmt: skip


def application(commands: Sequence[str] = _COMMANDS) -> typer.Typer:
    """Return the command line with these commands; only their modules are imported."""
    app = typer.Typer(
        help="Extreme multi-label classification: find the few right labels of a document among thousands to millions.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name in commands:
        module = import_module(f"lightdxml.cli.{name}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name, cls=getattr(module, "COMMAND", None))(module.run)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lightdxml {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options before the command."""


class _Notes(logging.Handler):
    """Shows what the package logs."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message, above a progress bar if there is one: rich redirects standard error meanwhile."""
        print(printable(record.getMessage()), file=sys.stderr)


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
    logger = logging.getLogger("lightdxml")
    logger.setLevel(logging.INFO)
    logger.handlers = [_Notes()]
    warnings.showwarning = lambda message, *_, **__: note(f"warning: {message}")
    # A command that is named needs no other one, and the version needs none: this saves half a second.
    wanted = [{"--version": "info"}.get(argument, argument) for argument in sys.argv[1:2]]
    try:
        application(wanted if wanted and wanted[0] in _COMMANDS else _COMMANDS)()
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
