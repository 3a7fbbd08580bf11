"""Ablation: LightDXML with one setting changed at a time, as in the paper's figure and beyond."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightdxml.experiments.baselines.ours import Ours
from lightdxml.experiments.bench import ablation_plot, results, tables
from lightdxml.experiments.bench.ablation_plot import Curve
from lightdxml.experiments.bench.grid import Variant
from lightdxml.experiments.bench.results import Group

_DEFAULT = "default"
_NO_TREE = "without label tree"
_NO_REFIT = "without refit"
_NO_LINEAR = "without linear view"
_RERANKER = "without linear view but with re-ranker"
_NO_REFRESH = "without linear view and refresh"
_NEVER = 1_000_000
# The paper's two views: the effect of the training cycle shows best without the others.
_DENSE = {"linear": False, "tree": False}
# Title in the figure, setting, values to try.
_SWEEPS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("epochs", "epochs", (2, 4, 8, 16, 24)),
    ("shortlist size", "shortlist_size", (25, 50, 100, 200, 400)),
    ("epochs between refreshes", "dense.refresh_every", (1, 2, 4, 8)),
)
# Title in the figure, variant without the component, variant with it, which of them is the default.
_COMPONENTS = (
    ("label tree", _NO_TREE, _DEFAULT, "with"),
    ("refit", _NO_REFIT, _DEFAULT, "with"),
    ("linear view", _NO_LINEAR, _DEFAULT, "with"),
    ("re-ranker", _NO_LINEAR, _RERANKER, "without"),
    ("refresh", _NO_REFRESH, _NO_LINEAR, "with"),
)
_METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")


def variants() -> tuple[Variant, ...]:
    """Return the variants of LightDXML to run. β is varied on "without linear view", which needs no new training.

    >>> [variant.name for variant in variants()][:4]
    ['default', 'without label tree', 'without refit', 'without linear view']
    """
    changed = (
        Variant(_name(setting, value), "lightdxml", {**_DENSE, setting: value})
        for _, setting, values in _SWEEPS
        for value in values
    )
    return (
        Variant(_DEFAULT, "lightdxml"),
        Variant(_NO_TREE, "lightdxml", {"tree": False}),
        Variant(_NO_REFIT, "lightdxml", {"refit": False}),
        Variant(_NO_LINEAR, "lightdxml", _DENSE, {"beta": [i / 10 for i in range(11)]}),
        Variant(_RERANKER, "lightdxml", {**_DENSE, "reranker": True}),
        Variant(_NO_REFRESH, "lightdxml", {**_DENSE, "dense.refresh_every": _NEVER}),
        *changed,
    )


def only(names: Sequence[str]) -> tuple[Variant, ...]:
    """Return the variants with these names, in the usual order.

    >>> [variant.name for variant in only(["shortlist_size=25", "default"])]
    ['default', 'shortlist_size=25']
    """
    known = [variant.name for variant in variants()]
    for name in names:
        if name not in known:
            raise ValueError(f"unknown variant {name!r}: choose from {', '.join(known)}")
    return tuple(variant for variant in variants() if variant.name in names)


def _name(setting: str, value: int) -> str:
    return f"{setting.rpartition('.')[2]}={value}"


def curves(cells: Sequence[dict[str, Any]], data: str) -> dict[str, Curve]:
    """Return the metrics for every value of every varied setting on a data set, as means over repeats."""
    groups = {group.method: group for group in results.grouped(cells) if group.data == data and group.done}
    means = {name: {metric: group.values[metric].mean for metric in _METRICS} for name, group in groups.items()}
    found: dict[str, Curve] = {}
    if _NO_LINEAR in groups:
        found["β"] = _mean_curve([cell["along"]["beta"] for cell in groups[_NO_LINEAR].done])
    for title, setting, values in _SWEEPS:
        if points := [(value, means[name]) for value in values if (name := _name(setting, value)) in means]:
            found[title] = points
    for title, without, with_it, _ in _COMPONENTS:
        if without in means and with_it in means:
            found[title] = [("without", means[without]), ("with", means[with_it])]
    return found


def _mean_curve(repeats: Sequence[Curve]) -> Curve:
    """Average curves over the same values."""
    return [
        (points[0][0], {name: sum(metrics[name] for _, metrics in points) / len(points) for name in points[0][1]})
        for points in zip(*repeats, strict=True)
    ]


def _defaults(cell: dict[str, Any]) -> dict[str, Any]:
    """Return the default value per curve, for the data set of a cell."""
    dense = Ours().config(cell["sizes"]["train"], cell["sizes"]["labels"], 0).dense
    components = {title: default for title, _, _, default in _COMPONENTS}
    return components | {title: getattr(dense, setting.rpartition(".")[2]) for title, setting, _ in _SWEEPS}


def write_reports(cells: Sequence[dict[str, Any]], out: Path) -> list[Path]:
    """Write all cells as JSON and CSV, a table as Markdown, and one figure per data set; return the files."""
    names = results.unique(cells, "data")
    written = tables.write_files(cells, "\n\n".join(_table(cells, data) for data in names) + "\n", out / "ablation")
    for data in names:
        if found := curves(cells, data):
            path = out / f"ablation-{data}.png"
            ablation_plot.write(found, path, _defaults(next(cell for cell in cells if cell["data"] == data)))
            written.append(path)
    return written


def _table(cells: Sequence[dict[str, Any]], data: str) -> str:
    """Return a Markdown table of the variants, with the differences from the default in parentheses."""
    groups = [group for group in results.grouped(cells) if group.data == data]
    base = next((group for group in groups if group.method == _DEFAULT and group.done), None)
    lines = [f"### {data}", "", *tables.head("Variant", *_METRICS, "training time", "model size")]
    for group in groups:
        if group.done:
            values = [_value(group, base, name) for name in _METRICS]
            values.append(tables.seconds(group.values["train_seconds"].mean))
            values.append(tables.megabytes(group.values["size_mb"].mean))
        else:
            values = [group.rest[0]["message"], *[""] * 7]
        lines.append(tables.row(group.title, *values))
    return "\n".join(lines)


def _value(group: Group, base: Group | None, name: str) -> str:
    value = group.values[name].mean
    difference = "" if base is None or group is base else f" ({value - base.values[name].mean:+.2f})"
    return f"{value:.2f}{difference}"
