"""Benchmark tables: CSV with everything, and Markdown in the layout of the paper's tables."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lightdxml.data.files import writing_text
from lightdxml.experiments.bench.published import Published, same_name
from lightdxml.experiments.bench.results import Group, check_comparable, grouped, machine, unique, write_json

# The last columns of the CSV: long, and less interesting than the measured values.
_LAST = ("phases", "sizes", "settings", "held_settings", "versions", "machine", "along")
_NONE = "–"
_MODULES = ("M1", "M2", "M3+M4", "re-ranker")


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


def percent(value: float) -> str:
    """Format a metric.

    >>> percent(63.2)
    '63.20'
    """
    return f"{value:.2f}"


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
    """A table column: title, name of the value, how to format it, and whether higher is better."""

    title: str
    name: str
    write: Callable[[float], str]
    higher_is_better: bool


def _metric_columns(metrics: Sequence[str], cutoffs: Sequence[int]) -> Iterator[Column]:
    for name in (f"{metric}@{k}" for metric in metrics for k in cutoffs):
        yield Column(name, name, percent, True)


_MAIN = (
    *_metric_columns(("P", "PSP"), (1, 3, 5)),
    Column("training time", "train_seconds", seconds, False),
    Column("model size", "size_mb", megabytes, False),
    Column("batch ms", "batch_ms", number, False),
    Column("single ms", "single_ms.p50", number, False),
    Column("peak memory", "peak_mb", megabytes, False),
)
_NDCG = tuple(_metric_columns(("nDCG", "PSnDCG"), (3, 5)))


def write_files(cells: Sequence[dict[str, Any]], text: str, stem: Path) -> list[Path]:
    """Write cells as JSON and CSV, and a text as Markdown; return the three files."""
    check_comparable(cells)
    paths = [stem.with_suffix(suffix) for suffix in (".json", ".csv", ".md")]
    write_json(paths[0], list(cells))
    write_csv(cells, paths[1])
    with writing_text(paths[2]) as stream:
        stream.write(text)
    return paths


def write_csv(cells: Sequence[dict[str, Any]], path: Path) -> None:
    """Write a CSV file with one row per cell and one column per value, such as `metrics.P@1`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "cells.csv")
    ...     write_csv([{"data": "bibtex", "method": "knn", "metrics": {"P@1": 60.5}}], path)
    ...     print(path.read_text().strip())
    data,method,metrics.P@1
    bibtex,knn,60.5
    """
    rows = [dict(_flat("", cell)) for cell in cells]
    names = dict.fromkeys(name for values in rows for name in values)
    columns = sorted(names, key=lambda name: name.partition(".")[0] in _LAST)
    with writing_text(path) as stream:
        writer = csv.DictWriter(stream, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _flat(prefix: str, values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{name}.", value)
        else:
            yield f"{prefix}{name}", json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


def markdown(cells: Sequence[dict[str, Any]], published: Sequence[Published] = ()) -> str:
    """Return one Markdown table per data set, in the layout of the paper's main table.

    Parameters
    ----------
    cells
        Comparable cells.
    published
        Published rows, shown below the measured rows of the data set with the same name and marked with †.

    Examples
    --------
    >>> markdown([])
    ''
    """
    check_comparable(cells)
    if not cells:
        return ""
    groups = grouped(cells)
    sections = [
        _section(data, [group for group in groups if group.data == data], published) for data in unique(cells, "data")
    ]
    return "\n\n".join((_preamble(cells, groups), *sections)) + "\n"


def _preamble(cells: Sequence[dict[str, Any]], groups: Sequence[Group]) -> str:
    versions = {package: version for cell in cells for package, version in cell["versions"].items()}
    threads = f" (threads: {cells[0]['threads']})" if "threads" in cells[0] else ""
    lines = [
        f"Measured on {_text(machine(cells[0]))}{threads}, with {_text(_versions(versions))}.",
        "batch ms, single ms: prediction time per document, for all test documents at once and for one document at a "
        "time (median).",
        "Peak memory covers training and prediction, and all processes of a method.",
        "The best measured value is in bold.",
    ]
    if any(len(group.done) > 1 for group in groups):
        lines.append("Values are means over repeats, with the minimum and maximum in parentheses.")
    return "  \n".join(lines)


def _versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{package} {version}" for package, version in versions.items())


def _section(data: str, groups: Sequence[Group], published: Sequence[Published]) -> str:
    known = [one for one in published if same_name(one.data, data)]
    marks = {origin: f"†{i}" for i, origin in enumerate(dict.fromkeys(map(_origin, known)), start=1)}
    table = _table(_MAIN, groups)
    for one in known:
        values = (_published(column, one) for column in _MAIN)
        table.append(row(f"{_text(one.method)} {marks[_origin(one)]}", *values))
    notes = [_failure(group, cell) for group in groups for cell in group.rest]
    notes += [f"{mark} {_text(origin)}" for origin, mark in marks.items()]
    if any("batch_ms" in one.values for one in known):
        notes.append("† Published times per query are in the column batch ms.")
    parts = [f"## {_text(data)}", _sizes((*groups[0].done, *groups[0].rest)[0]["sizes"]), "\n".join(table)]
    if notes:
        parts.append("  \n".join(notes))
    if any(column.name in group.values for group in groups for column in _NDCG):
        parts.append("\n".join(_table(_NDCG, [group for group in groups if group.done])))
    return "\n\n".join(parts)


def _sizes(sizes: dict[str, int]) -> str:
    words = {"train": "training documents", "test": "test documents"}
    return ", ".join(f"{count:,} {words.get(name, _text(name))}" for name, count in sizes.items()) + "."


def _table(columns: Sequence[Column], groups: Sequence[Group]) -> list[str]:
    """Return the lines of a table of measured rows."""
    best = [_best(column, groups) for column in columns]
    lines = head("Method", *(column.title for column in columns))
    for group in groups:
        values = (_measured(column, group, top) for column, top in zip(columns, best, strict=True))
        lines.append(row(_text(group.title), *values))
    return lines


def _best(column: Column, groups: Sequence[Group]) -> str | None:
    """Return the best mean as printed, so that rows that look equal are equally bold; None for a single row."""
    means = [group.values[column.name].mean for group in groups if column.name in group.values]
    if len(means) < 2:
        return None
    return column.write(max(means) if column.higher_is_better else min(means))


def _measured(column: Column, group: Group, best: str | None) -> str:
    value = group.values.get(column.name)
    if value is None:
        return _NONE
    mean = column.write(value.mean)
    shown = f"**{mean}**" if mean == best else mean
    return shown if len(group.done) == 1 else f"{shown} ({column.write(value.low)}–{column.write(value.high)})"


def _published(column: Column, published: Published) -> str:
    value = published.values.get(column.name)
    if value is None or column.write is percent:
        return _NONE if value is None else percent(value)
    return _trimmed(column.write(value))


def _trimmed(text: str) -> str:
    """Remove digits that were not published.

    >>> _trimmed("75.0 s"), _trimmed("0.420"), _trimmed("1,600 s")
    ('75 s', '0.42', '1,600 s')
    """
    digits, space, unit = text.partition(" ")
    return (digits.rstrip("0").rstrip(".") if "." in digits else digits) + space + unit


def _origin(published: Published) -> str:
    """Return the footnote of a published row."""
    return "; ".join((published.source, published.hardware or "hardware unknown", *published.notes))


def _failure(group: Group, cell: dict[str, Any]) -> str:
    repeat = f", repeat {cell['repeat']}," if len(group.done) + len(group.rest) > 1 else ""
    verb = {"failed": "failed", "timeout": "timed out", "skipped": "was skipped"}[cell["status"]]
    message = f": {_text(cell['message'])}" if cell.get("message") else ""
    return f"✗ {_text(cell['method'])}{repeat} {verb}{message}"


def module_table(cells: Sequence[dict[str, Any]], published: Sequence[Published] = ()) -> str:
    """Return the training seconds per module of Astec and LightDXML, measured and published, as a Markdown table.

    The column `other` sums the phases that are not modules of the paper, such as validation. The result is empty if
    neither method was measured.

    Examples
    --------
    >>> cell = {"data": "bibtex", "method": "astec", "repeat": 0, "status": "done", "metrics": {}, "settings": {}}
    >>> cell |= {"versions": {}, "machine": {}, "sizes": {}, "phases": {"M1": 3.0, "M2": 0.5, "validation": 0.1}}
    >>> print(module_table([cell]).splitlines()[4])
    | bibtex | astec | 3.00 | 0.500 | – | – | 0.100 |
    """
    check_comparable(cells)
    measured = [
        row(_text(group.data), _text(group.title), *_modules({name: v.mean for name, v in group.values.items()}))
        for group in grouped(cells)
        if group.done and group.method.lower().startswith(("astec", "lightdxml"))
    ]
    if not measured:
        return ""
    known = [one for one in published if "phases.M1" in one.values]
    lines = ["## Training seconds per module", "", *head("Data set", "Method", *_MODULES, "other"), *measured]
    lines += [row(one.data, f"{one.method} †", *map(_trimmed, _modules(one.values))) for one in known]
    lines += ["", "other: phases that are not modules of the paper  "]
    lines += dict.fromkeys(f"† {one.source}; {one.hardware or 'hardware unknown'}" for one in known)
    return "\n".join(lines) + "\n"


def _modules(values: dict[str, float]) -> list[str]:
    """Return the seconds per module and the sum of all other phases."""
    phases = {name.removeprefix("phases."): value for name, value in values.items() if name.startswith("phases.")}
    other = [value for name, value in phases.items() if name not in _MODULES]
    known = [phases.get(name) for name in _MODULES] + [math.fsum(other) if other else None]
    return [_NONE if value is None else number(value) for value in known]


def settings_table(cells: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown list of the settings and versions per method, split by data set where they differ.

    Examples
    --------
    >>> cell = {"data": "bibtex", "method": "knn", "settings": {"neighbors": 5}, "versions": {"numpy": "2.1"}}
    >>> print(settings_table([cell]), end="")
    ## Settings
    <BLANKLINE>
    - **knn**: `neighbors=5`; numpy 2.1
    """
    lines = ["## Settings", ""]
    for method in unique(cells, "method"):
        data_sets: dict[str, list[str]] = {}
        for cell in cells:
            if cell["method"] == method:
                data_sets.setdefault(_settings(cell), []).append(cell["data"])
        for settings, data in data_sets.items():
            where = f" ({_text(', '.join(dict.fromkeys(data)))})" if len(data_sets) > 1 else ""
            lines.append(f"- **{_text(method)}**{where}: {settings}")
    return "\n".join(lines) + "\n"


def _settings(cell: dict[str, Any]) -> str:
    # None means that the method chooses.
    given = {name: value for name, value in cell["settings"].items() if value is not None}
    parts = [_assignments(given) or "no settings"]
    if "held_settings" in cell:
        parts.append(f"adjusted during training: {_assignments(cell['held_settings'])}")
    return "; ".join((*parts, _text(_versions(cell["versions"]))))


def _assignments(settings: dict[str, Any]) -> str:
    return ", ".join(f"`{' '.join(f'{name}={value}'.replace('`', '').split())}`" for name, value in settings.items())


def head(*titles: str) -> list[str]:
    """Return the first two lines of a Markdown table.

    >>> head("Method", "P@1")
    ['| Method | P@1 |', '|---|--:|']
    """
    rules = ("---" if title in ("Method", "Data set", "Variant") else "--:" for title in titles)
    return [row(*titles), f"|{'|'.join(rules)}|"]


def row(*values: str) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(values)} |"


def _text(words: str) -> str:
    """Return words on one line, with Markdown characters escaped."""
    line = " ".join(str(words).split())
    for sign in ("\\", "|", "*", "_", "`", "[", "]"):
        line = line.replace(sign, f"\\{sign}")
    return line.replace("<", "&lt;")
