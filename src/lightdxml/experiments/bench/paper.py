"""The paper's main table: its methods by class, measured on one machine, with the published rows beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lightdxml.experiments.bench import grid, published
from lightdxml.experiments.bench.published import Published, plain
from lightdxml.experiments.bench.results import Cell, Group, grouped
from lightdxml.experiments.bench.tables import (
    COSTS,
    METRICS,
    Column,
    as_published,
    conditions,
    escaped,
    marks_of,
    measured_rows,
    number,
    settings_list,
    table,
    write_text,
)

# The classes of the paper, in its order: embeddings, trees, deep learning. Our default comes last.
CLASSES = {
    "Embd": ("annexml", "sleec"),
    "Tree": ("pfastrexml", "fastxml", "parabel", "bonsai"),
    "DL": ("astec", "lightdxml-paper", "lightdxml"),
}
METHODS = tuple(method for methods in CLASSES.values() for method in methods)
# Names in published rows, where they are not those of our methods in other letters.
_PUBLISHED_AS = {"lightdxml-paper": "lightdxml", "lightdxml": ""}
_SOURCE = "LightDXML paper"
_COLUMNS = (*METRICS, *COSTS, Column("test ms", "batch_ms", number))
_LEGEND = (
    "Embd, Tree and DL are the paper's classes: embeddings, trees and deep learning.",
    "lightdxml-paper has the paper's two views and settings, lightdxml is our default.",
)
_HOW_TO_READ = ("test ms: prediction time per document, for all test documents at once. If published: time per query.",)


def write_reports(cells: Sequence[Cell], out: Path, command: str = "") -> list[Path]:
    """Write what `lightdxml bench` writes, and the paper's table as `paper.md`; return the files."""
    return [*grid.write_reports(cells, out, command), write_text(page(cells, command), out / "paper.md")]


def page(cells: Sequence[Cell], command: str = "") -> str:
    """Return a Markdown page with the paper's table of each data set, the command that made it, and the settings."""
    parts = ["# The paper's main table"]
    for data, groups in grouped(cells).items():
        parts += [f"## {escaped(data)}", section(groups)]
    parts += ["\n".join(f"- {line}" for line in _LEGEND), conditions(cells, _HOW_TO_READ)]
    parts += [f"```sh\n{command}\n```"] if command else []
    return "\n\n".join((*parts, settings_list(cells)))


def section(groups: Sequence[Group]) -> str:
    """Return the paper's table of one data set, with its footnotes."""
    known = _published(groups[0].data)
    marks = marks_of(known.values())
    notes = [f"✗ {escaped(cell['method'])}, {cell['status']}: {escaped(cell['message'])}"
             for group in groups for cell in group.rest]  # fmt: skip
    notes += [f"{mark} Published, not measured here: {escaped(origin)}" for origin, mark in marks.items()]
    return "\n\n".join((_table(groups, known, marks), *(["  \n".join(notes)] if notes else [])))


def _published(data: str) -> dict[str, Published]:
    """Return the published rows of the table's methods, in its order: the paper's, or others for other data."""
    found = published.rows(data)
    chosen = {plain(one.method): one for one in [one for one in found if one.source == _SOURCE] or found}
    names = (_PUBLISHED_AS.get(method, method) for method in METHODS)
    return {name: chosen[name] for name in names if name in chosen}


def _table(groups: Sequence[Group], known: Mapping[str, Published], marks: Mapping[str, str]) -> str:
    """Return the table of a data set: rows of each class, a published row below the measured one."""
    rows = dict(zip((group.method for group in groups), measured_rows(_COLUMNS, groups), strict=True))
    lines = []
    for kind, methods in CLASSES.items():
        of_class = [line for method in methods for line in _lines(method, rows, known, marks)]
        lines += [[kind if i == 0 else "", *line] for i, line in enumerate(of_class)]
    return table(("Class", "Method", *(column.title for column in _COLUMNS)), lines)


def _lines(
    method: str, rows: Mapping[str, list[str]], known: Mapping[str, Published], marks: Mapping[str, str]
) -> list[list[str]]:
    """Return the measured row of a method and its published one, as far as there are any."""
    lines = [rows[method]] if method in rows else []
    one = known.get(_PUBLISHED_AS.get(method, method))
    if one is not None:
        values = (as_published(column, one.values.get(column.name)) for column in _COLUMNS)
        lines.append([f"{escaped(one.method)} {marks[one.origin]}", *values])
    return lines
