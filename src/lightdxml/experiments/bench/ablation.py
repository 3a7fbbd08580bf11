"""Ablation: LightDXML with one setting changed at a time, as in the paper's figure and beyond."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from lightdxml.experiments.baselines.ours import Ours
from lightdxml.experiments.bench import figures, tables
from lightdxml.experiments.bench.grid import Variant
from lightdxml.experiments.bench.results import Cell, Group, grouped
from lightdxml.plotting import BLUE, GRAY, ORANGE

# Values of a setting, numbers or words such as `with`, and the metrics at each.
Curve = Sequence[tuple[Any, Mapping[str, float]]]

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
_COLORS = {"P@1": BLUE, "PSP@1": ORANGE}


def variants(names: Sequence[str] | None = None) -> tuple[Variant, ...]:
    """Return the variants of LightDXML to run: all, or those with these names.

    β is varied on "without linear view", which needs no new training.

    >>> [variant.name for variant in variants(["shortlist_size=25", "default"])]
    ['default', 'shortlist_size=25']
    """
    changes: dict[str, dict[str, Any]] = {
        _DEFAULT: {},
        _NO_TREE: {"tree": False},
        _NO_REFIT: {"refit": False},
        _NO_LINEAR: {**_DENSE, "other_betas": [i / 10 for i in range(11)]},
        _RERANKER: {**_DENSE, "reranker": True},
        _NO_REFRESH: {**_DENSE, "dense.refresh_every": _NEVER},
    }
    changes |= {_name(setting, value): {**_DENSE, setting: value} for _, setting, values in _SWEEPS for value in values}
    chosen = changes if names is None else names
    for name in chosen:
        if name not in changes:
            raise ValueError(f"unknown variant {name!r}: choose from {', '.join(changes)}")
    return tuple(Variant(name, Ours.name, settings) for name, settings in changes.items() if name in chosen)


def _name(setting: str, value: int) -> str:
    return f"{setting.rpartition('.')[2]}={value}"


def curves(groups: Sequence[Group]) -> dict[str, Curve]:
    """Return the metrics for every value of every varied setting on one data set, as means over repeats."""
    done = {group.method: group for group in groups if group.done}
    means = {name: {metric: group.values[metric].mean for metric in _COLORS} for name, group in done.items()}
    found: dict[str, Curve] = {}
    if _NO_LINEAR in done:
        found["β"] = _beta_curve(done[_NO_LINEAR].done)
    for title, setting, values in _SWEEPS:
        if points := [(value, means[name]) for value in values if (name := _name(setting, value)) in means]:
            found[title] = points
    for title, without, with_it, _ in _COMPONENTS:
        if without in means and with_it in means:
            found[title] = [("without", means[without]), ("with", means[with_it])]
    return found


def _beta_curve(repeats: Sequence[Cell]) -> Curve:
    """Return the mean metrics for each β."""
    values: dict[float, list[Mapping[str, float]]] = {}
    for beta, metrics in (point for cell in repeats for point in cell["beta_curve"]):
        values.setdefault(beta, []).append(metrics)
    return [
        (beta, {name: math.fsum(one[name] for one in some) / len(some) for name in _COLORS})
        for beta, some in sorted(values.items())
    ]


def _defaults(sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return the default value per curve, for a data set of these sizes."""
    dense = Ours().config(sizes["train"], sizes["labels"], 0).dense
    components = {title: default for title, _, _, default in _COMPONENTS}
    return components | {title: getattr(dense, setting.rpartition(".")[2]) for title, setting, _ in _SWEEPS}


def write_reports(cells: Sequence[Cell], out: Path, command: str = "") -> list[Path]:
    """Write all cells as JSON and CSV, a table as Markdown, and one figure per data set; return the files."""
    by_data = grouped(cells)
    parts = [f"## {data}\n\n{section(groups)}" for data, groups in by_data.items()]
    parts += [f"```sh\n{command}\n```"] if command else []
    written = tables.write_files(cells, "\n\n".join(("# Ablation", *parts)) + "\n", out / "ablation")
    drawn = [draw(groups, out / f"ablation-{data}.png") for data, groups in by_data.items()]
    return [*written, *filter(None, drawn)]


def draw(groups: Sequence[Group], path: Path) -> Path | None:
    """Write the figure of one data set, if there is anything to draw."""
    found = curves(groups)
    return plot(found, path, _defaults(groups[0].cells[0]["sizes"])) if found else None


def section(groups: Sequence[Group]) -> str:
    """Return a Markdown table of the variants, with the differences from what they change in parentheses."""
    done = {group.method: group for group in groups if group.done}
    rows = [
        [
            group.title,
            *(_value(group, done.get(_base(group.method)), column) for column in tables.METRICS),
            *(column.text(group.mean(column.name)) for column in tables.COSTS),
        ]
        for group in groups
    ]
    return tables.table(("Variant", *(column.title for column in (*tables.METRICS, *tables.COSTS))), rows)


def _base(variant: str) -> str:
    """Return the variant that another one changes: the default, or the paper's two views."""
    return _DEFAULT if variant in (_DEFAULT, _NO_TREE, _NO_REFIT, _NO_LINEAR) else _NO_LINEAR


def _value(group: Group, base: Group | None, column: tables.Column) -> str:
    value, default = group.mean(column.name), None if base is None or base is group else base.mean(column.name)
    difference = "" if value is None or default is None else f" ({value - default:+.2f})"
    return column.text(value) + difference


def plot(curves: Mapping[str, Curve], path: Path, defaults: Mapping[str, Any]) -> Path:
    """Write a PNG file with two panels per setting: P@1 above, PSP@1 below. Default values are marked."""
    with figures.style():
        columns = min(3, len(curves))
        rows = math.ceil(len(curves) / columns)
        figure = figures.new_figure(3.3 * columns + 0.4, 3.4 * rows + 0.5)
        parts = figure.subfigures(rows, columns, squeeze=False).flat
        for part, (name, curve) in zip(parts, curves.items(), strict=False):
            _panels(part.subplots(2, sharex=True), name, curve, defaults.get(name))
        handles = [Line2D([], [], color=color, marker="o", label=metric) for metric, color in _COLORS.items()]
        handles.append(Line2D([], [], color=GRAY, linestyle=":", marker="o", markerfacecolor="white", label="default"))
        figures.add_legend(figure, handles)
        return figures.save(figure, path)


def _panels(pair: Sequence[Axes], title: str, curve: Curve, default: Any) -> None:
    """Draw the values of a setting at equal distances: most of them are powers of two, β is linear."""
    values = [value for value, _ in curve]
    numeric = not isinstance(values[0], str)
    marked = None
    if default is not None:
        # A numeric default may lie between the values that were tried.
        marked = float(np.interp(default, values, range(len(values)))) if numeric else values.index(default)
    for axes, (metric, color) in zip(pair, _COLORS.items(), strict=True):
        points = [metrics[metric] for _, metrics in curve]
        axes.set(ylabel=f"{metric} (%)", ylim=figures.percent_limits(points))
        axes.plot(points, "o-" if numeric else "o", color=color, markersize=5)
        if marked is not None:
            axes.axvline(marked, color=GRAY, linestyle=":", linewidth=1.2, zorder=1)
        for x, y in enumerate(points):
            if x == marked:
                axes.plot(x, y, "o", color=color, markersize=8, markerfacecolor="white", markeredgewidth=1.8)
            if not numeric:
                figures.write_beside(axes, x, y, f"{y:.2f}", offset=8)
    step = 2 if len(values) > 6 else 1
    pair[0].set_title(title)
    pair[1].set_xlim(-0.6, len(values) - 0.4)
    pair[1].set_xticks(range(0, len(values), step), [f"{value}" for value in values[::step]])
