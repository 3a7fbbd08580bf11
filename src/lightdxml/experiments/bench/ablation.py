"""What each part adds: LightDXML with one setting changed at a time, as in the paper's figure and further."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightdxml.experiments.baselines.ours import Ours
from lightdxml.experiments.bench import plots, results, tables
from lightdxml.experiments.bench.grid import Variant
from lightdxml.experiments.bench.results import Group
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
_NO_TREE = "without label tree"
_KEPT_ASIDE = "without documents set aside"
_DENSE = "without sparse view"
_RERANKED = "without sparse view but with re-ranker"
_ONE_SHORTLIST = "without sparse view and refresh"

Curve = list[tuple[Any, dict[str, float]]]


def variants() -> tuple[Variant, ...]:
    """Return the variants of LightDXML to run; β is varied on the fourth, which needs no new training.

    All but the first three are the paper's two views: what the cycle does shows best without the third.

    >>> [variant.name for variant in variants()][:4]
    ['as it is', 'without label tree', 'without documents set aside', 'without sparse view']
    """
    dense = {"sparse": False}
    changed = [
        Variant(_name(setting, value), "lightdxml", {**dense, setting: value})
        for setting, values in _TRIED.values()
        for value in values
    ]
    return (
        Variant(_BASE, "lightdxml"),
        Variant(_NO_TREE, "lightdxml", {"label_tree": False}),
        Variant(_KEPT_ASIDE, "lightdxml", {"learn_validation": False}),
        Variant(_DENSE, "lightdxml", dense, {"beta": list(GRID[::2])}),
        Variant(_RERANKED, "lightdxml", {**dense, "reranker": True}),
        Variant(_ONE_SHORTLIST, "lightdxml", {**dense, "e_hat_label": _NEVER}),
        *changed,
    )


def only(names: Sequence[str]) -> tuple[Variant, ...]:
    """Return the variants of these names, in the usual order.

    >>> [variant.name for variant in only(["k=25", "as it is"])]
    ['as it is', 'k=25']
    """
    known = variants()
    unknown = [name for name in names if name not in {variant.name for variant in known}]
    if unknown:
        listed = ", ".join(variant.name for variant in known)
        raise ValueError(f"there is no variant {unknown[0]!r}: known are {listed}")
    return tuple(variant for variant in known if variant.name in names)


def _name(setting: str, value: Any) -> str:
    return f"{setting}={value}"


def chosen(cell: dict[str, Any]) -> Config:
    """Return the settings of LightDXML as it is on the data of a cell."""
    return Ours().config(cell["sizes"]["train"], cell["sizes"]["labels"], 0)


def curves(cells: Sequence[dict[str, Any]], data: str) -> dict[str, Curve]:
    """Return for each thing that was varied its values with what was measured, the mean of all repeats."""
    groups = [group for group in results.grouped(cells) if group.data == data and group.done]
    done = {group.method: _mean([cell["metrics"] for cell in group.done]) for group in groups}
    found: dict[str, Curve] = {}
    for group in groups:
        if group.method == _DENSE:
            found["β"] = _mean_curve([cell["along"]["beta"] for cell in group.done])
    for shown, (setting, values) in _TRIED.items():
        measured = [(value, done[name]) for value in values if (name := _name(setting, value)) in done]
        if measured:
            found[shown] = measured
    pairs = (
        ("label tree", _NO_TREE, _BASE),
        ("documents set aside", _KEPT_ASIDE, _BASE),
        ("sparse view", _DENSE, _BASE),
        ("re-ranker", _DENSE, _RERANKED),
        ("refresh", _ONE_SHORTLIST, _DENSE),
    )
    for shown, without, with_it in pairs:
        if without in done and with_it in done:
            found[shown] = [("without", done[without]), ("with", done[with_it])]
    return found


def _mean(measures: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the means of what all repeats have measured.

    >>> _mean([{"P@1": 50.0}, {"P@1": 60.0}])
    {'P@1': 55.0}
    """
    return {name: sum(some[name] for some in measures) / len(measures) for name in measures[0]}


def _mean_curve(repeats: Sequence[Curve]) -> Curve:
    # All repeats have tried the same values, in one order.
    return [(points[0][0], _mean([measures for _, measures in points])) for points in zip(*repeats, strict=True)]


def write_reports(cells: Sequence[dict[str, Any]], out: Path) -> list[Path]:
    """Write a figure a data set, a table of all, and the cells as JSON and CSV."""
    results.check_alike(cells)
    written = []
    text = []
    for data in dict.fromkeys(cell["data"] for cell in cells):
        text.append(_table(cells, data))
        found = curves(cells, data)
        if not found:
            continue
        config = chosen(next(cell for cell in cells if cell["data"] == data))
        marks: dict[str, Any] = {"e_model": config.e_model, "k": config.k, "ê_label": config.e_hat_label}
        marks |= dict.fromkeys(("label tree", "documents set aside", "sparse view", "refresh"), "with")
        marks |= {"re-ranker": "without"}
        path = out / f"ablation-{data}.png"
        plots.ablation(found, path, marks)
        written.append(path)
    with writing_text(out / "ablation.json") as stream:
        json.dump(list(cells), stream, indent=1, ensure_ascii=False)
    tables.write_csv(cells, out / "ablation.csv")
    with writing_text(out / "ablation.md") as stream:
        stream.write("\n\n".join(text) + "\n")
    return [*written, *(out / name for name in ("ablation.md", "ablation.json", "ablation.csv"))]


def _table(cells: Sequence[dict[str, Any]], data: str) -> str:
    """Return a Markdown table: each variant, in the mean, and what it changes against LightDXML as it is."""
    groups = [group for group in results.grouped(cells) if group.data == data]
    base = next((group for group in groups if group.method == _BASE and group.done), None)
    names = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")
    lines = [f"### {data}", "", f"| Variant | {' | '.join(names)} | train | size |", "|---" + "|---:" * 8 + "|"]
    for group in groups:
        if not group.done:
            first = group.rest[0]
            lines.append(f"| {group.method} | {first['status']}: {first['message']} |" + " |" * 7)
            continue
        some = f" ({len(group.done)} of {len(group.done) + len(group.rest)} runs)" if group.rest else ""
        figures = [_figure(group, base, name) for name in names]
        costs = [tables.seconds(group.values["train_seconds"].mean), tables.megabytes(group.values["size_mb"].mean)]
        lines.append(f"| {group.method}{some} | {' | '.join([*figures, *costs])} |")
    return "\n".join(lines)


def _figure(group: Group, base: Group | None, name: str) -> str:
    value = group.values[name].mean
    if base is None or group is base:
        return f"{value:.2f}"
    return f"{value:.2f} ({value - base.values[name].mean:+.2f})"
