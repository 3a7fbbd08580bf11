"""What the commands share: options, tables for people, JSON for programs, errors in one sentence."""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console

if TYPE_CHECKING:
    from lightdxml.model.model import Label, Model

# Everything but the tab and the line feed that can command a terminal or reorder what it shows.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)

Source = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file (CSV, TSV, JSON Lines or Parquet with `text` and `labels`, or XC), a folder of such files, or a"
        " name from `lightdxml data list`.",
        show_default=False,
    ),
]
ModelFolder = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a trained model.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing model.")]
NJobs = Annotated[int | None, typer.Option("--n-jobs", help="Number of threads. Default: all cores.")]
RandomState = Annotated[
    int,
    typer.Option(
        "--random-state",
        help="Random seed. The same seed gives the same result.",
        min=0,
        max=2**32 - 1,
    ),
]
Tail = Annotated[
    float, typer.Option("--tail", help="Preference for rare labels, from 0 (highest precision) to 1 (rare labels).")
]
Cutoff = Annotated[
    int,
    typer.Option("-k", help="Largest k of metrics such as P@k. Smaller ones of 1, 3, 5 and 10 are shown, too.", min=1),
]
Encoding = Annotated[str, typer.Option("--encoding", help="Encoding of text files.", rich_help_panel="Reading data")]

_BARS = "▁▂▃▄▅▆▇█"
# Characters of the widest cell that is not broken: three numbers, as in `lightdxml info`.
_WIDEST_NUMBER = 24


def printable(text: str) -> str:
    r"""Return a text whose control characters are shown as escapes: anyone may have written labels and texts.

    >>> printable("a \x1b[2J label")
    'a \\x1b[2J label'
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class _PrintableConsole(Console):
    """A console on which texts can print anything but control characters."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(printable(one) if isinstance(one, str) else one for one in objects), **options)


# No emoji: `:x:` may be part of a URI.
console = _PrintableConsole(highlight=False, emoji=False)
errors = _PrintableConsole(stderr=True, highlight=False, emoji=False)


def say(message: str) -> None:
    """Print a line of plain text."""
    console.print(message, markup=False, soft_wrap=True)


def note(message: str) -> None:
    """Print a line of plain text to standard error."""
    errors.print(message, markup=False, soft_wrap=True)


def note_connection(address: str) -> None:
    """Say that a Ray cluster is started or connected to, which takes some seconds."""
    note("starting Ray on this machine" if address == "local" else f"connecting to the Ray cluster at {address}")


def warn(message: str) -> None:
    """Print a warning to standard error, in color on a terminal."""
    errors.print("[bold yellow]warning:[/] ", end="")
    note(message)


def json_line(content: Any, indent: int | None = None) -> str:
    r"""Return JSON in which control characters are escaped, as JSON allows; it reads back the same.

    >>> json_line(["\x9b2J"])
    '["\\u009b2J"]'
    """
    text = json.dumps(content, ensure_ascii=False, indent=indent)
    return _CONTROL.sub(lambda found: _json_escape(found[0]), text)


def _json_escape(character: str) -> str:
    """Return a character as JSON escapes it: as two UTF-16 units beyond the first 65,536."""
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def print_json(content: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(json_line(content, indent=2) + "\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of plain text; all columns but the first and the last are right-aligned.

    On a narrow terminal, titles of columns and texts are broken into several lines, but numbers are not.
    """
    from rich.table import Table
    from rich.text import Text

    console.print(title, style="bold", markup=False, soft_wrap=True)
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(len(columns))]
    natural = sum(max(len(name), width) for name, width in zip(columns, widths, strict=True)) + 2 * len(columns)
    table = Table(header_style="bold", box=None, pad_edge=False, show_header=any(columns))
    for i, (name, width) in enumerate(zip(columns, widths, strict=True)):
        is_text = i in (0, len(columns) - 1)
        # A title above numbers has a line per word if there is not enough room.
        shown = name.replace(" ", "\n") if natural > console.width and not is_text else name
        is_number = not is_text and width <= _WIDEST_NUMBER
        table.add_column(
            Text(printable(shown)), justify="left" if is_text else "right", no_wrap=is_number, overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console.print(table)


def fail(message: str) -> NoReturn:
    """Print an error and exit with code 1. No line ends are added: commands in it can be copied."""
    errors.print("[bold red]error:[/] ", end="")
    note(message)
    sys.exit(1)


def seconds_of(text: str, option: str) -> float:
    """Return the seconds of a time such as 30s, 5m or 1h.

    >>> seconds_of("5m", "--every"), seconds_of("90", "--every")
    (300.0, 90.0)
    """
    number, unit = (text[:-1], text[-1]) if text[-1:] in ("s", "m", "h") else (text, "s")
    try:
        seconds = float(number) * {"s": 1, "m": 60, "h": 3600}[unit]
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{option} {text} is not a time: write 30s, 5m or 1h")
    return seconds


def sparkline(counts: Sequence[int]) -> str:
    """Draw counts as a row of bars of logarithmic height.

    >>> sparkline([1000, 100, 10, 1])
    '█▆▃▂'
    """
    heights = [math.log1p(count) for count in counts]
    top = max([*heights, 1e-9])
    return "".join(_BARS[round(height / top * (len(_BARS) - 1))] for height in heights)


def require_plots() -> None:
    """Raise an `ImportError` that says how to install matplotlib, if it is missing."""
    if find_spec("matplotlib") is None:
        raise ImportError('plots need matplotlib: pip install "lightdxml[plots]"')


@contextmanager
def download_bar(title: str) -> Iterator[Any]:
    """Show a progress bar during a download; yield a function of the bytes so far and in total."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = ("{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, disable=not errors.is_terminal) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def label_as_json(model: Model, j: int) -> dict[str, object]:
    """Return a label for JSON: with a vocabulary its URI, name and notation, else its name or id."""
    if model.vocabulary is None:
        return {"label": model.given_label(j)}
    label = model.label(j)
    return {"uri": label.id, "label": label.name, "notation": label.notation or None}


def distinct_names(labels: Sequence[Label]) -> list[str]:
    """Return the names of labels; concepts of one name are told apart by their URIs.

    >>> from lightdxml.model.model import Label
    >>> distinct_names([Label("urn:1", "bank"), Label("urn:2", "bank"), Label("urn:3", "money")])
    ['bank <urn:1>', 'bank <urn:2>', 'money']
    """
    repeated = {name for name, count in Counter(label.name for label in labels).items() if count > 1}
    return [f"{one.name} <{one.id}>" if one.name in repeated else one.name for one in labels]
