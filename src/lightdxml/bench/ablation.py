"""What each part adds: LightDXML with one setting changed at a time, as in the paper's figure and further."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightdxml.baselines.ours import Ours
from lightdxml.bench import plots, tables
from lightdxml.bench.grid import Variant
from lightdxml.config import Config
from lightdxml.data.files import writing_text
from lightdxml.training.blend import GRID

# The paper's names, as the figure shows them, and the values to try.
_TRIED: dict[str, tuple[str, tuple[int, ...]]] = {
    "e_model": ("e_model", (2, 4, 8, 16, 24)),
    "k": ("k", (25, 50, 100, 200, 400)),
    "ê_label": ("e_hat_label", (1, 2, 4, 8)),
}
_NEVER = 1_000_000
_BASE = "as it is"
_RERANKED = "with re-ranker"
_ONE_SHORTLIST = "without refresh"

Curve = list[tuple[Any, dict[str, float]]]


def variants() -> tuple[Variant, ...]:
    """Return the variants of LightDXML to run; β is varied on the first, which needs no new training.

    >>> [variant.name for variant in variants()][:3]
    ['as it is', 'with re-ranker', 'without refresh']
    """
    changed = [
        Variant(_name(setting, value), "lightdxml", {setting: value})
        for setting, values in _TRIED.values()
        for value in values
    ]
    return (
        Variant(_BASE, "lightdxml", along={"beta": list(GRID[::2])}),
        Variant(_RERANKED, "lightdxml", {"reranker": True}),
        Variant(_ONE_SHORTLIST, "lightdxml", {"e_hat_label": _NEVER}),
        *changed,
    )


def _name(setting: str, value: Any) -> str:
    return f"{setting}={value}"


def chosen(cell: dict[str, Any]) -> Config:
    """Return the settings of LightDXML as it is on the data of a cell."""
    return Ours().config(cell["sizes"]["train"], cell["sizes"]["labels"], 0)


def curves(cells: Sequence[dict[str, Any]], data: str) -> dict[str, Curve]:
    """Return for each thing that was varied its values with what was measured."""
    done = {cell["method"]: cell for cell in cells if cell["data"] == data and cell["status"] == "done"}
    found: dict[str, Curve] = {}
    if _BASE in done:
        found["β"] = [(value, measures) for value, measures in done[_BASE]["along"]["beta"]]
    for shown, (setting, values) in _TRIED.items():
        measured = [(value, done[name]["metrics"]) for value in values if (name := _name(setting, value)) in done]
        if measured:
            found[shown] = measured
    for shown, without, with_it in (("re-ranker", _BASE, _RERANKED), ("refresh", _ONE_SHORTLIST, _BASE)):
        if without in done and with_it in done:
            found[shown] = [("without", done[without]["metrics"]), ("with", done[with_it]["metrics"])]
    return found


def write_reports(cells: Sequence[dict[str, Any]], out: Path) -> list[Path]:
    """Write a figure a data set, a table of all, and the cells as JSON and CSV."""
    written = []
    text = []
    for data in dict.fromkeys(cell["data"] for cell in cells):
        found = curves(cells, data)
        if not found:
            continue
        config = chosen(next(cell for cell in cells if cell["data"] == data))
        marks: dict[str, Any] = {"e_model": config.e_model, "k": config.k, "ê_label": config.e_hat_label}
        marks |= {"re-ranker": "without", "refresh": "with"}
        path = out / f"ablation-{data}.png"
        plots.ablation(found, path, marks)
        written.append(path)
        text.append(_table(cells, data))
    with writing_text(out / "ablation.json") as stream:
        json.dump(list(cells), stream, indent=1, ensure_ascii=False)
    tables.write_csv(cells, out / "ablation.csv")
    with writing_text(out / "ablation.md") as stream:
        stream.write("\n\n".join(text) + "\n")
    return [*written, *(out / name for name in ("ablation.md", "ablation.json", "ablation.csv"))]


def _table(cells: Sequence[dict[str, Any]], data: str) -> str:
    """Return a Markdown table: each variant, and what it changes against LightDXML as it is."""
    rows = [cell for cell in cells if cell["data"] == data]
    base = next((cell for cell in rows if cell["method"] == _BASE and cell["status"] == "done"), None)
    names = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")
    lines = [f"### {data}", "", f"| Variant | {' | '.join(names)} | train | size |", "|---" + "|---:" * 8 + "|"]
    for cell in rows:
        if cell["status"] != "done":
            lines.append(f"| {cell['method']} | {cell['status']}: {cell['message']} |" + " |" * 7)
            continue
        figures = [_figure(cell, base, name) for name in names]
        costs = [tables.seconds(cell["train_seconds"]), tables.megabytes(cell["size_mb"])]
        lines.append(f"| {cell['method']} | {' | '.join([*figures, *costs])} |")
    return "\n".join(lines)


def _figure(cell: dict[str, Any], base: dict[str, Any] | None, name: str) -> str:
    value = cell["metrics"][name]
    if base is None or cell is base:
        return f"{value:.2f}"
    return f"{value:.2f} ({value - base['metrics'][name]:+.2f})"
