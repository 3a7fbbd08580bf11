"""The paper's main table: its methods by class, measured on one machine, with the published rows beside them."""

from __future__ import annotations

from collections.abc import Sequence
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
    "† Published, and not measured here. Times per query are in the column test ms.",
)


def write_reports(cells: Sequence[Cell], out: Path, command: str = "") -> list[Path]:
    """Write what `lightdxml bench` writes, and the paper's table as `paper.md`; return the files."""
    return [*grid.write_reports(cells, out, command), write_text(page(cells, command), out / "paper.md")]


def page(cells: Sequence[Cell], command: str = "") -> str:
    """Return a Markdown page with the paper's table of each data set, the command that made it, and the settings."""
    parts = ["# The paper's main table"]
    for data, groups in grouped(cells).items():
        parts += [f"## {escaped(data)}", _table(groups)]
        notes = [f"✗ {escaped(cell['method'])}, {cell['status']}: {escaped(cell['message'])}"
                 for group in groups for cell in group.rest]  # fmt: skip
        sources = dict.fromkeys(one.origin for one in _published(data) if _is_shown(one))
        notes += [f"† {escaped(origin)}" for origin in sources]
        parts += ["  \n".join(notes)] if notes else []
    parts += ["\n".join(f"- {line}" for line in _LEGEND), conditions(cells)]
    parts += [f"```sh\n{command}\n```"] if command else []
    return "\n\n".join((*parts, settings_list(cells)))


def _is_shown(one: Published) -> bool:
    """Return whether the table has a row of this method."""
    return plain(one.method) in (_PUBLISHED_AS.get(method, method) for method in METHODS)


def _table(groups: Sequence[Group]) -> str:
    """Return the table of a data set: rows of each class, a published row below the measured one."""
    rows = dict(zip((group.method for group in groups), measured_rows(_COLUMNS, groups), strict=True))
    known = {plain(one.method): one for one in _published(groups[0].data)}
    lines = []
    for kind, methods in CLASSES.items():
        of_class = [line for method in methods for line in _lines(method, rows, known)]
        lines += [[kind if i == 0 else "", *line] for i, line in enumerate(of_class)]
    return table(("Class", "Method", *(column.title for column in _COLUMNS)), lines)


def _published(data: str) -> list[Published]:
    """Return the rows that the paper has published; those of others for data that the paper does not have."""
    rows = published.rows(data)
    return [one for one in rows if one.source == _SOURCE] or rows


def _lines(method: str, rows: dict[str, list[str]], known: dict[str, Published]) -> list[list[str]]:
    """Return the measured row of a method and its published one, as far as there are any."""
    lines = [rows[method]] if method in rows else []
    one = known.get(_PUBLISHED_AS.get(method, method))
    if one is not None:
        values = (as_published(column, one.values.get(column.name)) for column in _COLUMNS)
        lines.append([f"{escaped(one.method)} †", *values])
    return lines
