"""The ablation figure: P@1 and PSP@1 against the values of each setting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from lightdxml.experiments.bench import figures
from lightdxml.experiments.bench.figures import BLUE, GREY, ORANGE

Curve = Sequence[tuple[Any, Mapping[str, float]]]

_COLORS = {"P@1": BLUE, "PSP@1": ORANGE}


def write(curves: Mapping[str, Curve], path: Path, defaults: Mapping[str, Any] | None = None) -> None:
    """Write a PNG file with two panels per setting: P@1 above, PSP@1 below.

    Parameters
    ----------
    curves
        Per setting, its values and the metrics at each. Values may be numbers or words such as `with`.
    path
        The file to write.
    defaults
        Per setting, the default value, which is marked.

    Raises
    ------
    ValueError
        If there are no curves.
    """
    if not curves:
        raise ValueError("nothing to plot: no setting was varied")
    defaults = defaults or {}
    with figures.style():
        columns = min(3, len(curves))
        rows = math.ceil(len(curves) / columns)
        figure = figures.new_figure(3.3 * columns + 0.4, 3.4 * rows + 0.5)
        parts = figure.subfigures(rows, columns, squeeze=False).flat
        for part, (name, curve) in zip(parts, curves.items(), strict=False):
            _panels(part.subplots(2, sharex=True), name, curve, defaults.get(name))
        handles = [Line2D([], [], color=color, marker="o", label=metric) for metric, color in _COLORS.items()]
        if defaults:
            handles.append(
                Line2D([], [], color=GREY, linestyle=":", marker="o", markerfacecolor="white", label="default")
            )
        figures.add_legend(figure, handles)
        figures.save(figure, path)


def _panels(pair: Sequence[Axes], title: str, curve: Curve, default: Any) -> None:
    values = [value for value, _ in curve]
    numeric = all(map(_is_number, values))
    positions = {value: float(value if numeric else i) for i, value in enumerate(values)}
    # A numeric default may lie between the values that were tried.
    marked = positions.get(default, float(default) if numeric and _is_number(default) else None)
    for axes, (metric, color) in zip(pair, _COLORS.items(), strict=True):
        points = [(positions[value], metrics[metric]) for value, metrics in curve if metrics.get(metric) is not None]
        axes.set(ylabel=f"{metric} (%)")
        if points:
            _draw(axes, points, color, marked, numeric=numeric)
        else:
            figures.write_no_results(axes)
    pair[0].set_title(title)
    if numeric:
        _number_axis(pair[1], list(positions.values()))
    else:
        pair[1].set_xlim(-0.6, len(values) - 0.4)
        pair[1].set_xticks(list(positions.values()), [figures.wrap(str(value), 12) for value in values])


def _draw(
    axes: Axes, points: Sequence[tuple[float, float]], color: str, marked: float | None, *, numeric: bool
) -> None:
    axes.plot(*zip(*points, strict=True), "o-" if numeric else "o", color=color, markersize=5)
    axes.set_ylim(*figures.percent_limits([y for _, y in points]))
    if marked is not None:
        axes.axvline(marked, color=GREY, linestyle=":", linewidth=1.2, zorder=1)
    for x, y in points:
        if x == marked:
            axes.plot(x, y, "o", color=color, markersize=8, markerfacecolor="white", markeredgewidth=1.8)
        if not numeric:
            figures.write_beside(axes, x, y, f"{y:.2f}", offset=8)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number_axis(axes: Axes, positions: Sequence[float]) -> None:
    """Use a logarithmic axis if the values span a factor of eight or more."""
    if min(positions) > 0 and max(positions) / min(positions) >= 8:
        axes.set_xscale("log")
        figures.set_ticks(axes.xaxis, positions)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=all(x.is_integer() for x in positions)))
