"""How the commands speak: tables and bars to people, JSON to machines, errors in one sentence."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table

console = Console(highlight=False)
errors = Console(stderr=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Source = Annotated[str, typer.Argument(help="A file, a folder, or the name of a data set.", show_default=False)]
Separator = Annotated[str, typer.Option("--separator", help="Between the labels in a cell of a CSV or TSV.")]
Encoding = Annotated[str, typer.Option("--encoding", help="The encoding of text files.")]
Threads = Annotated[int | None, typer.Option("--threads", help="All cores unless given.")]
ModelFolder = Annotated[Path, typer.Argument(help="A folder that `lightdxml train` wrote.", show_default=False)]
Tail = Annotated[float, typer.Option("--tail", help="From 0, for precision, to 1, for rare labels.")]
OldSplit = Annotated[int, typer.Option("--old-split", help="Which column of the old form's split files.")]

_BARS = "▁▂▃▄▅▆▇█"


def print_json(content: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(json.dumps(content, ensure_ascii=False, indent=2) + "\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; all columns but the first and the last are numbers."""
    console.print(f"[bold]{title}[/]", soft_wrap=True)
    table = Table(header_style="bold", box=None, pad_edge=False, show_header=any(columns))
    for i, name in enumerate(columns):
        table.add_column(name, justify="left" if i in (0, len(columns) - 1) else "right", no_wrap=i == 0)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def fail(message: str) -> NoReturn:
    """Say what is wrong and end with exit code 1."""
    errors.print("[bold red]error:[/] ", end="")
    errors.print(message, markup=False, highlight=False, soft_wrap=not errors.is_terminal)
    sys.exit(1)


def seconds_of(text: str, option: str) -> float:
    """Return how long a time such as 30s, 5m or 1h is.

    >>> seconds_of("5m", "--every"), seconds_of("90", "--every")
    (300.0, 90.0)
    """
    number, unit = (text[:-1], text[-1]) if text[-1:] in ("s", "m", "h") else (text, "s")
    try:
        seconds = float(number) * {"s": 1, "m": 60, "h": 3600}[unit]
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{option} {text} is no time: write 30s, 5m or 1h")
    return seconds


def sparkline(counts: Sequence[int]) -> str:
    """Draw counts as a row of bars of logarithmic height.

    >>> sparkline([1000, 100, 10, 1])
    '█▆▃▂'
    """
    heights = [math.log1p(count) for count in counts]
    top = max([*heights, 1e-9])
    return "".join(_BARS[round(height / top * (len(_BARS) - 1))] for height in heights)


@contextmanager
def download_bar(title: str) -> Iterator[Any]:
    """Show a bar while something is fetched; yields what to call with the bytes so far and in all."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors, disable=not errors.is_terminal) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
