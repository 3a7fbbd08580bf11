"""The command line: `lightdxml COMMAND`."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from lightdxml import __version__
from lightdxml.cli import (
    bench,
    compress,
    data_convert,
    data_get,
    data_info,
    data_list,
    data_make,
    data_split,
    demo,
    evaluate,
    explain,
    info,
    predict,
    report,
    train,
)
from lightdxml.cli.output import fail

app = typer.Typer(
    help="Extreme multi-label classification: from documents to the few right ones of very many labels.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
data = typer.Typer(
    help="List, describe, fetch, convert, split and make up data sets.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
app.command("demo")(demo.run)
app.command("train")(train.run)
app.command("predict")(predict.run)
app.command("explain")(explain.run)
app.command("evaluate")(evaluate.run)
app.command("report")(report.run)
app.command("info")(info.run)
app.command("compress")(compress.run)
app.add_typer(bench.app, name="bench")
app.add_typer(data, name="data")
data.command("list")(data_list.run)
data.command("info")(data_info.run)
data.command("get")(data_get.run)
data.command("convert")(data_convert.run)
data.command("split")(data_split.run)
data.command("make")(data_make.run)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lightdxml {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def main() -> None:
    """Run the command line; what goes wrong is one sentence and a non-zero exit code."""
    # A terminal that cannot show a character shows a question mark rather than nothing at all.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
    except BrokenPipeError:
        # Whoever reads the output has seen enough, as in `| head`; keep the interpreter's last flush quiet as well.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MemoryError:
        fail("there is not enough memory for data of this size: try it on a larger machine, or on a part of the data")
    except (ValueError, OSError, ImportError) as error:
        fail(str(error))
