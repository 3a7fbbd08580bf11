"""Benchmark plots: one panel per data set; each method has the same color and marker in all panels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from lightdxml.experiments.bench import figures
from lightdxml.experiments.bench.figures import wrap
from lightdxml.experiments.bench.results import Cell, Group, grouped
from lightdxml.experiments.bench.tables import megabytes, number
from lightdxml.plotting import GRAY

_COLORS = [f"C{i}" for i in range(10)]
# As many as have no common divisor with the number of colors: 90 pairs before one repeats.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_SMALLEST = 1e-3  # stands in for 0 on a logarithmic axis

# Groups per data set.
Groups = Mapping[str, Sequence[Group]]


class Look(NamedTuple):
    """Color and marker of a method."""

    color: str
    marker: str


class Bar(NamedTuple):
    """A kind of bar: name of the value, legend, opacity."""

    name: str
    title: str
    alpha: float


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """Assign a color and a marker to each method; LightDXML comes first, the others by name.

    >>> {method: look.marker for method, look in looks(["parabel", "bonsai", "lightdxml"]).items()}
    {'lightdxml': 'o', 'bonsai': 's', 'parabel': '^'}
    """
    order = sorted(set(methods), key=lambda name: (not name.startswith("lightdxml"), name))
    return {method: Look(_COLORS[i % len(_COLORS)], _MARKERS[i % len(_MARKERS)]) for i, method in enumerate(order)}


def write_all(cells: Sequence[Cell], folder: Path) -> list[Path]:
    """Write `accuracy-time.png`, `head-tail.png`, `size.png` and `latency.png` and return their paths."""
    groups, look = grouped(cells), looks(cell["method"] for cell in cells)
    prediction = (Bar("single_ms.p50", "single document (median)", 1.0), Bar("batch_ms", "batch", 0.45))
    with figures.style():
        drawn = {
            "accuracy-time": _scatter(groups, look, "train_seconds", "training time (s, log scale)", "P@1"),
            "head-tail": _scatter(groups, look, "P@1", "P@1 (%)", "PSP@1"),
            "size": _bars(groups, look, [Bar("size_mb", "", 1.0)], "model size (MB, log scale)", megabytes),
            "latency": _bars(groups, look, prediction, "ms per document (log scale)", number),
        }
        return [figures.save(figure, folder / f"{name}.png") for name, figure in drawn.items()]


def _panels(names: Sequence[str], width: float, height: float, *, share_y: bool) -> tuple[Figure, dict[str, Axes]]:
    """Return a figure with one panel per data set, up to three in a row."""
    columns = 2 if len(names) == 4 else min(3, len(names))
    rows = math.ceil(len(names) / columns)
    # A single panel must still be wide enough for the legend.
    figure = figures.new_figure(max(width * columns, 5.0) + 0.8 * share_y, height * rows + 0.5)
    grid = figure.subplots(rows, columns, squeeze=False, sharey="row" if share_y else False)
    for axes in grid.flat[len(names) :]:
        axes.remove()
    panels = dict(zip(names, grid.flat, strict=False))
    for name, axes in panels.items():
        axes.set_title(wrap(name, 34))
    return figure, panels


def _scatter(by_data: Groups, look: Mapping[str, Look], x: str, label: str, y: str) -> Figure:
    """Draw one point per method; x and y are names of values."""
    figure, panels = _panels(list(by_data), 3.5, 2.9, share_y=False)
    for name, axes in panels.items():
        shown = [group for group in by_data[name] if x in group.values and y in group.values]
        missing = [f"{group.method} ({_why(group)})" for group in by_data[name] if group not in shown]
        note = [wrap(f"no result: {', '.join(missing)}", 44)] if missing else []
        axes.set(xlabel="\n".join((label, *note)), ylabel=f"{y} (%)")
        if shown:
            _points(axes, shown, x, y, look)
        else:
            axes.text(0.5, 0.5, "no results", transform=axes.transAxes, ha="center", va="center", color=GRAY)
            axes.set(xticks=[], yticks=[])
    handles = [
        Line2D([], [], linestyle="", color=one.color, marker=one.marker, markersize=7, label=wrap(method))
        for method, one in look.items()
    ]
    figures.add_legend(figure, handles)
    return figure


def _points(axes: Axes, groups: Sequence[Group], x: str, y: str, look: Mapping[str, Look]) -> None:
    """Draw the mean of each method, and the range of its repeats if there are several."""
    log_x = x == "train_seconds"
    across: list[float] = []
    up: list[float] = []
    for group in groups:
        color, marker = look[group.method]
        xs = [max(value, _SMALLEST) if log_x else value for value in group.values[x]]
        ys = group.values[y]
        axes.hlines(ys.mean, xs[1], xs[2], color=color, linewidth=1)
        axes.vlines(xs[0], ys.low, ys.high, color=color, linewidth=1)
        # Larger markers lie below smaller ones, so that none is hidden.
        size, zorder = (95, 3) if group.method.startswith("lightdxml") else (60, 4)
        axes.scatter(
            xs[:1], [ys.mean], s=size, zorder=zorder, color=color, marker=marker, edgecolors="white", linewidths=0.8
        )
        across += xs
        up += ys
    axes.set_ylim(*figures.percent_limits(up))
    if not log_x:
        axes.set_xlim(*figures.percent_limits(across))
        return
    spread = max(across) / min(across)
    # At least a factor of ten in all, so that the axis has a round number.
    margin = max(spread**0.1, 1.3, (10 / spread) ** 0.5)
    axes.set_xscale("log")
    axes.set_xlim(min(across) / margin, max(across) * margin)
    figures.set_log_ticks(axes.xaxis, *axes.get_xlim())


def _bars(
    by_data: Groups, look: Mapping[str, Look], kinds: Sequence[Bar], label: str, write: Callable[[float], str]
) -> Figure:
    """Draw a row of bars per method."""
    # A row must hold its bars and the lines of the longest name.
    lines = max(wrap(method).count("\n") + 1 for method in look)
    height = len(look) * max(0.14 + 0.15 * len(kinds), 0.05 + 0.155 * lines) + 0.9
    figure, panels = _panels(list(by_data), 3.3, height, share_y=True)
    for name, axes in panels.items():
        _bar_panel(axes, {group.method: group for group in by_data[name]}, look, kinds, write)
        axes.set(xlabel=label)
    if len(kinds) > 1:
        figures.add_legend(figure, [Patch(color=GRAY, alpha=kind.alpha, label=kind.title) for kind in kinds])
    return figure


def _bar_panel(
    axes: Axes,
    groups: Mapping[str, Group],
    look: Mapping[str, Look],
    kinds: Sequence[Bar],
    write: Callable[[float], str],
) -> None:
    means = [mean for group in groups.values() for kind in kinds if (mean := group.mean(kind.name))]
    # Bars start at a power of ten clearly below all values.
    low = 10.0 ** math.floor(math.log10(min(means) / 1.5)) if means else 0.1
    high = max(means, default=1.0)
    thickness = 0.8 / len(kinds)
    for row, (method, one) in enumerate(look.items()):
        group = groups.get(method)
        if group is None or not any(kind.name in group.values for kind in kinds):
            figures.write_beside(axes, low, row, _why(group), color=GRAY)
            continue
        for i, kind in enumerate(kinds):
            if (mean := group.mean(kind.name)) is not None:
                y, end = row + (i - (len(kinds) - 1) / 2) * thickness, max(mean, low)
                axes.barh(y, end - low, thickness * 0.9, left=low, color=one.color, alpha=kind.alpha)
                figures.write_beside(axes, end, y, write(mean))
    axes.set_yticks(range(len(look)), [wrap(method) for method in look])
    axes.set_ylim(len(look) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set_xscale("log")
    # A third more width for the numbers at the ends of the bars.
    axes.set_xlim(low, high * (high / low) ** 0.33)
    figures.set_log_ticks(axes.xaxis, low, high)


def _why(group: Group | None) -> str:
    """Return why there is no value."""
    if group is None:
        return "not run"
    return str(group.rest[0]["status"]) if group.rest else "not measured"
