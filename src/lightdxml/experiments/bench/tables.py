"""Measured cells as tables: CSV with everything, and Markdown in the layout of the paper's tables."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lightdxml.experiments.bench import published as library
from lightdxml.experiments.bench.published import Published, same_name
from lightdxml.experiments.bench.results import Group, Value, check_alike, grouped, machine, names_of
from lightdxml.data.files import writing_text

# The order of a cell's parts in the CSV.
_PARTS = (
    "data", "method", "repeat", "seed", "threads", "status", "message", "train_seconds", "size_mb", "batch_ms",
    "single_ms", "peak_mb", "metrics", "phases", "sizes", "settings", "held_settings",
    "versions", "machine", "limit",
)  # fmt: skip
_NONE = "–"
MODULES = ("M1", "M2", "M3+M4", "re-ranker")


def seconds(value: float) -> str:
    """Write a time as the paper does: always in seconds.

    >>> seconds(0.0421), seconds(75.0), seconds(1614.2)
    ('0.042 s', '75.0 s', '1,614 s')
    """
    return f"{_short(value)} s"


def megabytes(value: float) -> str:
    """Write a size in MB, or in GB where it is one or more.

    >>> megabytes(0.0312), megabytes(23.2), megabytes(2840)
    ('0.031 MB', '23.2 MB', '2.84 GB')
    """
    return f"{value / 1000:,.2f} GB" if value >= 1000 else f"{_short(value)} MB"


def milliseconds(value: float) -> str:
    """Write a time per query without its unit, which the column has.

    >>> milliseconds(0.0421), milliseconds(1.234), milliseconds(12.34)
    ('0.042', '1.23', '12.3')
    """
    return _short(value)


def percent(value: float) -> str:
    """Write a measure as published ones are written.

    >>> percent(63.2)
    '63.20'
    """
    return f"{value:.2f}"


def _short(value: float) -> str:
    """Write a number with about three digits."""
    if value == 0:
        return "0"
    if abs(value) < 0.1:
        return f"{value:#.2g}"
    # Rounded first: 9.996 is 10.0, not 10.00.
    digits = max(0, 2 - math.floor(math.log10(abs(float(f"{value:.3g}")))))
    return f"{value:,.{digits}f}"


class Column(NamedTuple):
    """A column of a table: its heading, what stands in it, how it is written, and whether more is better."""

    title: str
    name: str
    write: Callable[[float], str]
    more: bool


_MAIN = (
    *(Column(f"{measure}@{k}", f"{measure}@{k}", percent, True) for measure in ("P", "PSP") for k in (1, 3, 5)),
    Column("train", "train_seconds", seconds, False),
    Column("size", "size_mb", megabytes, False),
    Column("batch ms", "batch_ms", milliseconds, False),
    Column("single ms p50", "single_ms.p50", milliseconds, False),
    Column("peak memory", "peak_mb", megabytes, False),
)
_MORE = tuple(
    Column(f"{measure}@{k}", f"{measure}@{k}", percent, True) for measure in ("nDCG", "PSnDCG") for k in (3, 5)
)


def write_csv(cells: Sequence[dict[str, Any]], path: Path) -> None:
    """Write all cells to a CSV file, one row a cell, all that a cell holds in columns as `metrics.P@1`.

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
    found = dict.fromkeys(name for row in rows for name in row)
    place = {part: i for i, part in enumerate(_PARTS)}
    columns = sorted(found, key=lambda name: place.get(name.partition(".")[0], len(place)))
    with writing_text(path) as stream:
        writer = csv.DictWriter(stream, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _flat(prefix: str, values: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{name}.", value)
        elif isinstance(value, list):
            yield f"{prefix}{name}", json.dumps(value, ensure_ascii=False)
        else:
            yield f"{prefix}{name}", value


def markdown(
    cells: Sequence[dict[str, Any]], published: Sequence[Published] = (), *, all_published: bool = False
) -> str:
    """Return the results in Markdown: one table a data set, in the layout of the paper's main table.

    Parameters
    ----------
    cells
        What was measured, all alike (`results.check_alike`).
    published
        Published rows; they stand below the measured ones of the data set of the same name, marked with †.
    all_published
        Also give tables to the data sets that have published rows only.

    Raises
    ------
    ValueError
        Where cells come from different machines or versions.

    Examples
    --------
    >>> print(markdown([], library.rows("Bibtex"), all_published=True).splitlines()[4][:40])
    | SLEEC †1 | 65.08 | 39.64 | 28.87 | – |
    """
    check_alike(cells)
    groups = grouped(cells)
    names = names_of(cells, "data")
    sections = [_preamble(cells)] if cells else []
    sections += [_section(name, [group for group in groups if group.data == name], published) for name in names]
    if all_published:
        others = dict.fromkeys(row.data for row in published)
        sections += [_section(name, [], published) for name in others if not any(same_name(name, n) for n in names)]
    return "\n\n".join(sections) + "\n"


def _preamble(cells: Sequence[dict[str, Any]]) -> str:
    versions = {package: version for cell in cells for package, version in cell["versions"].items()}
    threads = cells[0].get("threads")
    used = "" if threads is None else f" ({threads} thread{'s' * (threads != 1)} used)"
    lines = [f"Measured on {_text(machine(cells[0]))}{used}, with {_text(_versions(versions))}."]
    if any(len(group.done) > 1 for group in grouped(cells)):
        lines.append("Numbers are means of repeats, with the lowest and the highest in brackets.")
    lines.append("Peak memory is that of training and prediction, all processes of a method together.")
    lines.append("The best of what was measured is in bold.")
    return "  \n".join(lines)


def _versions(versions: dict[str, str]) -> str:
    """List versions, this package and Python first."""
    order = sorted(versions, key=lambda name: ({"lightdxml": 0, "python": 1}.get(name, 2), name))
    return ", ".join(f"{name} {versions[name]}" for name in order)


def _section(name: str, groups: Sequence[Group], published: Sequence[Published]) -> str:
    rows = [row for row in published if same_name(row.data, name)]
    marks = {key: f"†{i}" for i, key in enumerate(dict.fromkeys(map(_origin, rows)), start=1)}
    lines = _table(_MAIN, groups)
    lines += [
        _row(f"{_text(row.method)} {marks[_origin(row)]}", [_as_published(c, row) for c in _MAIN]) for row in rows
    ]
    parts = [f"## {_text(name)}"]
    if groups:
        parts.append(_sizes((*groups[0].done, *groups[0].rest)[0]["sizes"]))
    parts.append("\n".join(lines))
    notes = [_failure(group, cell) for group in groups for cell in group.rest]
    notes += [f"{mark} {_text(key)}" for key, mark in marks.items()]
    if any(row.query_ms is not None for row in rows):
        notes.append("† Published times per query stand under batch ms.")
    if notes:
        parts.append("  \n".join(notes))
    if any(column.name in group.values for group in groups for column in _MORE):
        parts.append("\n".join(_table(_MORE, [group for group in groups if group.done])))
    return "\n\n".join(parts)


def _sizes(sizes: dict[str, int]) -> str:
    words = {"train": "training documents", "test": "test documents"}
    return ", ".join(f"{number:,} {words.get(name, _text(name))}" for name, number in sizes.items()) + "."


def _table(columns: Sequence[Column], groups: Sequence[Group]) -> list[str]:
    """Return the lines of a table of measured rows, the best in bold."""
    written = [[_measured(column, group) for group in groups] for column in columns]
    written = [_with_best(column, texts, groups) for column, texts in zip(columns, written, strict=True)]
    lines = _head(["Method", *(column.title for column in columns)])
    for i, group in enumerate(groups):
        lines.append(_row(_method(group), [texts[i] for texts in written]))
    return lines


def _method(group: Group) -> str:
    """Name a method, marked where not all of its repeats are done."""
    name = _text(group.method)
    if not group.rest:
        return name
    if group.done:
        return f"{name} ✗ ({len(group.done)} of {len(group.done) + len(group.rest)})"
    return f"{name} ✗ {group.rest[0]['status']}"


def _failure(group: Group, cell: dict[str, Any]) -> str:
    which = f", repeat {cell['repeat']}," if len(group.done) + len(group.rest) > 1 else ""
    words = {"failed": "failed", "timeout": "ran out of time", "skipped": "was skipped"}
    message = f": {_text(cell['message'])}" if cell.get("message") else ""
    return f"✗ {_text(cell['method'])}{which} {words[cell['status']]}{message}"


def _measured(column: Column, group: Group) -> str:
    value = group.values.get(column.name)
    if value is None:
        return _NONE
    if len(group.done) == 1:
        return column.write(value.mean)
    return f"{column.write(value.mean)} ({_range(column, value)})"


def _range(column: Column, value: Value) -> str:
    low, high = column.write(value.low), column.write(value.high)
    unit = high.partition(" ")[2]
    # A unit that both have is said once.
    return f"{low.removesuffix(f' {unit}') if unit else low}–{high}"


def _with_best(column: Column, texts: list[str], groups: Sequence[Group]) -> list[str]:
    """Put the best mean in bold, as written: what a reader cannot tell apart is equal. One row alone beats nothing."""
    means = [group.mean(column.name) for group in groups]
    known = [mean for mean in means if mean is not None]
    if len(known) < 2:
        return texts
    best = column.write(max(known) if column.more else min(known))
    return [
        text.replace(best, f"**{best}**", 1) if mean is not None and column.write(mean) == best else text
        for text, mean in zip(texts, means, strict=True)
    ]


def _as_published(column: Column, row: Published) -> str:
    """Write a published value without digits that were not published."""
    text = _maybe(row.value(column.name), column.write)
    return (
        text if column.write is percent else re.sub(r"\.(\d*?)0+(?=\D|$)", lambda m: f".{m[1]}" if m[1] else "", text)
    )


def _origin(row: Published) -> str:
    """Return what a published row's footnote says."""
    return "; ".join((row.source, row.hardware or "hardware unknown", *row.notes))


def module_table(cells: Sequence[dict[str, Any]]) -> str:
    """Return the seconds of Astec's and LightDXML's modules, with the paper's below, as the paper's table has them.

    Seconds of phases that are no module of the paper's, as `validation`, stand under `other`. Nothing is returned
    where neither method was measured.

    Examples
    --------
    >>> cell = {"data": "bibtex", "method": "astec", "repeat": 0, "status": "done", "metrics": {}, "settings": {}}
    >>> cell |= {"versions": {}, "machine": {}, "sizes": {}, "phases": {"M1": 3.0, "M2": 0.5, "validation": 0.1}}
    >>> for line in module_table([cell]).splitlines()[4:6]:
    ...     print(line)
    | bibtex | astec | 3.00 | 0.500 | – | – | 0.100 |
    | EURLex-4K | Astec † | 67.6 | 4.1 | 43.0 | 24.0 | – |
    """
    check_alike(cells)
    columns = (*MODULES, "other")
    measured = []
    for group in grouped(cells):
        if group.done and group.method.lower().startswith(("astec", "lightdxml")):
            spent = _by_module(group)
            measured.append(_row(_text(group.data), [_method(group), *(_maybe(spent.get(c), _short) for c in columns)]))
    if not measured:
        return ""
    known = []
    for times in library.module_times():
        written = [_maybe(times.seconds.get(column), lambda value: f"{value:,}") for column in columns]
        known.append(_row(times.data, [f"{times.method} †", *written]))
    origins = dict.fromkeys(f"{one.source}; {one.hardware or 'hardware unknown'}" for one in library.module_times())
    lines = ["## Seconds of each module", "", *_head(["Data set", "Method", *columns]), *measured, *known, ""]
    return "\n".join((*lines, "other: phases that are no module of the paper  ", *(f"† {o}" for o in origins))) + "\n"


def _by_module(group: Group) -> dict[str, float]:
    spent: dict[str, float] = {}
    for name, value in group.values.items():
        part, _, phase = name.partition(".")
        if part == "phases":
            module = phase if phase in MODULES else "other"
            spent[module] = spent.get(module, 0.0) + value.mean
    return spent


def settings_table(cells: Sequence[dict[str, Any]]) -> str:
    """Return a list of each method's settings and versions, with the data sets where settings differ among them.

    Examples
    --------
    >>> cell = {"data": "bibtex", "method": "knn", "settings": {"k": 5}, "versions": {"numpy": "2.1"}}
    >>> print(settings_table([cell]), end="")
    ## Settings
    <BLANKLINE>
    - **knn**: `k=5`; numpy 2.1
    """
    lines = ["## Settings", ""]
    for method in names_of(cells, "method"):
        # Equal choices are found by how they are written, which keeps the order of their first data set.
        choices: dict[str, list[str]] = {}
        for cell in (cell for cell in cells if cell["method"] == method):
            # None leaves the choice to the method.
            given = [f"{key}={value}" for key, value in cell["settings"].items() if value is not None]
            settings = ", ".join(f"`{_code(one)}`" for one in given)
            # What a method had to change by itself.
            held = ", ".join(f"`{_code(f'{key}={value}')}`" for key, value in cell.get("held_settings", {}).items())
            held = held and f"held with {held}"
            words = "; ".join(filter(None, (settings or "no settings", held, _text(_versions(cell["versions"])))))
            choices.setdefault(words, []).append(cell["data"])
        for words, data in choices.items():
            where = f" ({_text(', '.join(dict.fromkeys(data)))})" if len(choices) > 1 else ""
            lines.append(f"- **{_text(method)}**{where}: {words}")
    return "\n".join(lines) + "\n"


def _head(titles: Sequence[str]) -> list[str]:
    rules = ("---" if title in ("Method", "Data set") else "--:" for title in titles)
    return [_row(titles[0], titles[1:]), f"|{'|'.join(rules)}|"]


def _row(first: str, others: Iterable[str]) -> str:
    return f"| {' | '.join((first, *others))} |"


def _maybe(value: float | None, write: Callable[[float], str]) -> str:
    return _NONE if value is None else write(value)


def _text(words: str) -> str:
    """Return words on one line, with what means something in Markdown made harmless."""
    line = " ".join(str(words).split())
    for sign in ("\\", "|", "*", "_", "`", "[", "]"):
        line = line.replace(sign, f"\\{sign}")
    return line.replace("<", "&lt;")


def _code(words: str) -> str:
    return " ".join(words.replace("`", "'").split())
