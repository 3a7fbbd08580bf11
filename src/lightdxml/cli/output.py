"""How the commands speak: tables and bars to people, JSON to machines, errors in one sentence."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table

console = Console()
errors = Console(stderr=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Source = Annotated[str, typer.Argument(help="A file, a folder, or the name of a data set.", show_default=False)]
Separator = Annotated[str, typer.Option("--separator", help="Between the labels in a cell of a CSV or TSV.")]
Encoding = Annotated[str, typer.Option("--encoding", help="The encoding of text files.")]
OldSplit = Annotated[int, typer.Option("--old-split", help="Which column of the old form's split files.")]

_BARS = "▁▂▃▄▅▆▇█"


def print_json(content: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(json.dumps(content, ensure_ascii=False, indent=2) + "\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; all columns but the first and the last are numbers."""
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for i, name in enumerate(columns):
        table.add_column(name, justify="left" if i in (0, len(columns) - 1) else "right", no_wrap=i == 0)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def fail(message: str) -> NoReturn:
    """Say what is wrong and end with exit code 1."""
    errors.print("[bold red]error:[/] ", end="")
    errors.print(message, markup=False, highlight=False, soft_wrap=True)
    sys.exit(1)


def sparkline(frequencies: NDArray[np.int64], width: int = 40) -> str:
    """Draw frequencies, most frequent first, over their rank; both axes are logarithmic.

    >>> sparkline(np.array([1000, 100, 10, 1]), width=4)
    '█▆▃▁'
    """
    ranks = np.unique(np.geomspace(1, max(1, len(frequencies)), width).round().astype(int)) - 1
    heights = np.log1p(frequencies[ranks]) if len(frequencies) else np.zeros(1)
    scaled = heights / max(heights.max(), 1e-9) * (len(_BARS) - 1)
    return "".join(_BARS[int(height)] for height in scaled.round())


@contextmanager
def download_bar(title: str) -> Iterator[Any]:
    """Show a bar while something is fetched; yields what to call with the bytes so far and in all."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, disable=not errors.is_terminal) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
