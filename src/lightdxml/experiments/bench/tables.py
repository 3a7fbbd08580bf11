"""Benchmark tables: CSV with everything, and Markdown in the layout of the paper's tables."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from lightdxml.data.files import writing_text
from lightdxml.experiments.bench import published
from lightdxml.experiments.bench.published import Published
from lightdxml.experiments.bench.results import MODULES, Cell, Group, flat, grouped, write_json

# The fields of a cell that the CSV has. The JSON has all of them.
_NAMES = ("data", "method", "repeat", "seed", "threads", "status", "message")
_NUMBERS = ("metrics", "train_seconds", "size_mb", "batch_ms", "single_ms", "peak_mb", "phases")


def seconds(value: float) -> str:
    """Format a time in seconds, as the paper does.

    >>> seconds(0.0421), seconds(75.0), seconds(1614.2)
    ('0.042 s', '75.0 s', '1,614 s')
    """
    return f"{number(value)} s"


def megabytes(value: float) -> str:
    """Format a size given in MB.

    >>> megabytes(0.0312), megabytes(23.2), megabytes(2840)
    ('0.031 MB', '23.2 MB', '2.84 GB')
    """
    return f"{value / 1000:,.2f} GB" if value >= 1000 else f"{number(value)} MB"


def number(value: float) -> str:
    """Format a number with about three significant digits.

    >>> number(0.0421), number(1.234), number(12.34), number(0)
    ('0.042', '1.23', '12.3', '0')
    """
    if value == 0:
        return "0"
    if abs(value) < 0.1:
        return f"{value:#.2g}"
    # Round first: 9.996 becomes 10.0, not 10.00.
    digits = max(0, 2 - math.floor(math.log10(abs(float(f"{value:.3g}")))))
    return f"{value:,.{digits}f}"


class Column(NamedTuple):
    """A table column: title, name of the value, how to format it, and which value is the best."""

    title: str
    name: str
    write: Callable[[float], str]
    best: Callable[[Iterable[float]], float] = min

    def text(self, value: float | None) -> str:
        """Return a value as text; a dash for None."""
        return "–" if value is None else self.write(value)


def _percentages(metrics: Sequence[str], cutoffs: Sequence[int]) -> tuple[Column, ...]:
    names = [f"{metric}@{k}" for metric in metrics for k in cutoffs]
    return tuple(Column(name, name, "{:.2f}".format, max) for name in names)


METRICS = _percentages(("P", "PSP"), (1, 3, 5))
COSTS = (Column("training time", "train_seconds", seconds), Column("model size", "size_mb", megabytes))
_MAIN = (
    *METRICS,
    *COSTS,
    Column("batch ms", "batch_ms", number),
    Column("single ms", "single_ms.p50", number),
    Column("peak memory", "peak_mb", megabytes),
)
_SUMMARY = (*METRICS, *COSTS, Column("ms per document", "batch_ms", number))
_OTHERS = (
    *_percentages(("nDCG", "PSnDCG"), (3, 5)),
    *(Column(name, name, "{:.2f}".format, max) for name in ("RP@5", "R-precision")),
)
_HOW_TO_READ = (
    "ms per document, batch ms: prediction time per document, for all test documents at once.",
    "single ms: prediction time for one document at a time (median).",
    "Peak memory covers training and prediction, and all processes of a method.",
)
_SECONDS = tuple(Column(name, f"phases.{name}", number) for name in (*MODULES, "other"))


def write_files(cells: Sequence[Cell], text: str, stem: Path) -> list[Path]:
    """Write cells as JSON and CSV, and a text as Markdown; return the three files."""
    paths = [stem.with_suffix(suffix) for suffix in (".json", ".csv", ".md")]
    write_json(paths[0], list(cells))
    write_csv(cells, paths[1])
    write_text(text, paths[2])
    return paths


def write_text(text: str, path: Path) -> Path:
    """Write a text file atomically and return its path."""
    with writing_text(path) as stream:
        stream.write(text)
    return path


def write_csv(cells: Sequence[Cell], path: Path) -> None:
    """Write a CSV file with one row per cell and one column per measured value, such as `metrics.P@1`."""
    rows = [dict(flat({name: cell[name] for name in (*_NAMES, *_NUMBERS) if name in cell})) for cell in cells]
    columns = dict.fromkeys(name for row in rows for name in row)
    with writing_text(path) as stream:
        writer = csv.DictWriter(stream, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def summary(cells: Sequence[Cell], command: str = "") -> str:
    """Return a Markdown page: one table of all data sets and methods, the command that made it, and the settings."""
    lines = []
    for data, groups in grouped(cells).items():
        first = f"[{escaped(data)}]({quote(f'results/{data}.md')})"
        lines += [[first if i == 0 else "", *values] for i, values in enumerate(measured_rows(_SUMMARY, groups))]
    titles = ("Data set", "Method", *(column.title for column in _SUMMARY))
    parts = ["# Results", table(titles, lines), *([f"```sh\n{command}\n```"] if command else [])]
    return "\n\n".join((*parts, conditions(cells), settings_list(cells)))


def page(groups: Sequence[Group]) -> str:
    """Return a Markdown page of one data set."""
    cells = [cell for group in groups for cell in group.cells]
    sizes = {"train": "training documents", "test": "test documents"}
    listed = (f"{count:,} {sizes.get(name, escaped(name))}" for name, count in cells[0]["sizes"].items())
    title = f"# {escaped(groups[0].data)}"
    return "\n\n".join((title, ", ".join(listed) + ".", measurements(groups), conditions(cells))) + "\n"


def measurements(groups: Sequence[Group]) -> str:
    """Return the Markdown tables of one data set.

    The main table has the layout of the paper's. Published rows are below the measured ones and marked with †.
    """
    known = published.rows(groups[0].data)
    marks = marks_of(known)
    rows = [(f"{escaped(one.method)} {marks[one.origin]}", one.values) for one in known]
    notes = [
        f"✗ {escaped(cell['method'])}, run {cell['repeat'] + 1}, {cell['status']}: {escaped(cell['message'])}"
        for group in groups
        for cell in group.rest
    ]
    notes += [f"{mark} {escaped(origin)}" for origin, mark in marks.items()]
    if any("batch_ms" in one.values for one in known):
        notes.append("† Published times per query are in the column batch ms.")
    parts = [_table(_MAIN, groups, rows)]
    parts += ["  \n".join(notes)] if notes else []
    done = [group for group in groups if group.done]
    if done:
        others = {column.name for column in _OTHERS}
        parts.append(_table(_OTHERS, done, [(name, values) for name, values in rows if others & values.keys()]))
    modular = [group for group in done if any(f"phases.{name}" in group.values for name in MODULES)]
    if modular:
        timed = [(name, values) for name, values in rows if "phases.M1" in values]
        parts += ["### Training seconds per module", _table(_SECONDS, modular, timed)]
        parts.append("M1 to M4 are the modules of the paper; other: phases that the paper does not have.")
    return "\n\n".join(parts)


def marks_of(known: Iterable[Published]) -> dict[str, str]:
    """Return a mark for each footnote of published rows, in the order of the rows."""
    return {origin: f"†{i}" for i, origin in enumerate(dict.fromkeys(one.origin for one in known), start=1)}


def conditions(cells: Sequence[Cell], columns: Sequence[str] = _HOW_TO_READ) -> str:
    """Return a Markdown list: where and with what cells were measured, and how to read these columns."""
    versions = {package: version for cell in cells for package, version in cell["versions"].items()}
    listed = ", ".join(f"{package} {version}" for package, version in versions.items())
    lines = [
        f"Measured on {escaped(cells[0]['machine'])} (threads: {cells[0]['threads']}), with {escaped(listed)}.",
        "The best measured value per data set is in bold.",
        *columns,
    ]
    if any(cell["repeat"] for cell in cells):
        lines.append("Values are means over repeats, with the minimum and maximum in parentheses.")
    return "\n".join(f"- {line}" for line in lines)


def _table(
    columns: Sequence[Column], groups: Sequence[Group], known: Sequence[tuple[str, Mapping[str, float]]] = ()
) -> str:
    """Return a table of measured rows and, below them, names and values of published ones."""
    rows = measured_rows(columns, groups)
    rows += [[name, *(as_published(column, values.get(column.name)) for column in columns)] for name, values in known]
    return table(("Method", *(column.title for column in columns)), rows)


def as_published(column: Column, value: float | None) -> str:
    """Return a published value with its unit, without digits that were not published."""
    if value is None or column in (*METRICS, *_OTHERS):
        return column.text(value)
    unit = column.write(value).partition(" ")[2]
    return f"{value / 1000 if unit == 'GB' else value:,g} {unit}".strip()


def measured_rows(columns: Sequence[Column], groups: Sequence[Group]) -> list[list[str]]:
    """Return the cells of measured rows, the best of several in bold; rows that look equal are equally bold."""
    rows = [[escaped(group.title)] for group in groups]
    for column in columns:
        means = [mean for group in groups if (mean := group.mean(column.name)) is not None]
        best = column.write(column.best(means)) if len(means) > 1 else None
        for row, group in zip(rows, groups, strict=True):
            text = column.text(group.mean(column.name))
            shown = f"**{text}**" if text == best else text
            if len(group.done) > 1 and column.name in group.values:
                _, low, high = group.values[column.name]
                shown += f" ({column.write(low)}–{column.write(high)})"
            row.append(shown)
    return rows


def settings_list(cells: Sequence[Cell]) -> str:
    """Return a Markdown list of the settings per method, split by data set where they differ.

    Examples
    --------
    >>> cell = {"data": "bibtex", "method": "knn", "settings": {"neighbors": 5}}
    >>> print(settings_list([cell]), end="")
    ## Settings
    <BLANKLINE>
    - **knn**: `neighbors=5`
    """
    methods: dict[str, dict[str, list[str]]] = {}
    for cell in cells:
        methods.setdefault(cell["method"], {}).setdefault(_settings(cell), []).append(cell["data"])
    lines = ["## Settings", ""]
    for method, data_sets in methods.items():
        for settings, data in data_sets.items():
            where = f" ({escaped(', '.join(dict.fromkeys(data)))})" if len(data_sets) > 1 else ""
            lines.append(f"- **{escaped(method)}**{where}: {settings}")
    return "\n".join(lines) + "\n"


def _settings(cell: Cell) -> str:
    # None means that the method chooses.
    given = {name: value for name, value in cell["settings"].items() if value is not None}
    parts = [_assignments(given)] if given else []
    if "held_settings" in cell:
        parts.append(f"set in training: {_assignments(cell['held_settings'])}")
    return "; ".join(parts) or "no settings"


def _assignments(settings: dict[str, Any]) -> str:
    return ", ".join(f"`{' '.join(f'{name}={value}'.replace('`', '').split())}`" for name, value in settings.items())


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but those of names are aligned to the right.

    >>> print(table(["Method", "P@1"], [["knn", "60.50"]]))
    | Method | P@1 |
    |---|--:|
    | knn | 60.50 |
    """
    rules = ("---" if title in ("Class", "Method", "Data set", "Variant") else "--:" for title in titles)
    lines = [f"| {' | '.join(row)} |" for row in (titles, *rows)]
    return "\n".join((lines[0], f"|{'|'.join(rules)}|", *lines[1:]))


def escaped(words: str) -> str:
    """Return words on one line, with Markdown characters escaped."""
    line = " ".join(str(words).split())
    for sign in ("\\", "|", "*", "_", "`", "[", "]"):
        line = line.replace(sign, f"\\{sign}")
    return line.replace("<", "&lt;")
