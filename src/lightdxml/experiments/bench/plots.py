"""Measured cells as pictures: one panel a data set, one colour and marker a method in all of them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from lightdxml.experiments.bench.results import Group, check_alike, grouped, names_of
from lightdxml.experiments.bench.tables import megabytes, milliseconds
from lightdxml.data.files import writing
from lightdxml.report.figures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, TEAL

Point = tuple[Any, Mapping[str, float]]

_DPI = 150
_INK = "#333333"
_COLOURS = (
    BLUE, ORANGE, GREEN, RED, PURPLE, TEAL, "#a8832c", "#d46fa8", "#5b6b7a", "#7a9e2f", "#8c5a3c", "#3d3d8f", "#e0a83a",
)  # fmt: skip
# Their number and that of the colours have no divisor in common: 130 pairs come before the first comes again.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "text.color": _INK,
    # A $ in a name is no formula.
    "text.parse_math": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": _INK,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": False,
    "grid.color": GREY,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "xtick.color": GREY,
    "xtick.labelcolor": _INK,
    "ytick.color": GREY,
    "ytick.labelcolor": _INK,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}
# What cannot stand on a logarithmic axis, as a time of 0, stands here.
_SMALLEST = 1e-3
# Methods whose P@1 is below this share of the best would press all others together: they are named, not drawn.
_FAR = 0.5


class Look(NamedTuple):
    """How a method is drawn."""

    colour: str
    marker: str


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """Give each method a colour and a marker; LightDXML comes first, the others by name.

    >>> {method: look.marker for method, look in looks(["parabel", "bonsai", "lightdxml"]).items()}
    {'lightdxml': 'o', 'bonsai': 's', 'parabel': '^'}
    """
    order = sorted(set(methods), key=lambda name: (not name.lower().startswith("lightdxml"), name))
    return {method: Look(_COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)]) for i, method in enumerate(order)}


def write_all(cells: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """Draw the four plots of a benchmark and return their files.

    Parameters
    ----------
    cells
        What was measured, all alike (`results.check_alike`).
    folder
        Where `accuracy-time.png`, `head-tail.png`, `size.png` and `latency.png` go.

    Raises
    ------
    ValueError
        Where there are no cells, or cells from different machines or versions.
    """
    if not cells:
        raise ValueError("there is nothing to draw: the benchmark has no cells yet")
    check_alike(cells)
    drawn: dict[str, Callable[[Sequence[dict[str, Any]]], Figure]] = {
        "accuracy-time": _accuracy_time,
        "head-tail": _head_tail,
        "size": _size,
        "latency": _latency,
    }
    for name, draw in drawn.items():
        with _style():
            _save(draw(cells), folder / f"{name}.png")
    return [folder / f"{name}.png" for name in drawn]


def _accuracy_time(cells: Sequence[dict[str, Any]]) -> Figure:
    """Draw P@1 against the time to train."""
    return _scatter(cells, ("train_seconds", "training, seconds"), ("P@1", "P@1, %"), log_x=True)


def _head_tail(cells: Sequence[dict[str, Any]]) -> Figure:
    """Draw P@1, which frequent labels decide, against PSP@1, where rare labels count more."""
    return _scatter(cells, ("P@1", "P@1, %"), ("PSP@1", "PSP@1, %"), log_x=False)


def _size(cells: Sequence[dict[str, Any]]) -> Figure:
    """Draw the sizes of the models."""
    return _bars(cells, (_Series("size_mb", "", 1.0),), "model on disk, MB", megabytes)


def _latency(cells: Sequence[dict[str, Any]]) -> Figure:
    """Draw the time that a query takes, alone and among all of the test documents."""
    series = (_Series("single_ms.p50", "one query at a time (median)", 1.0), _Series("batch_ms", "all at once", 0.45))
    return _bars(cells, series, "milliseconds per query", milliseconds)


def _scatter(cells: Sequence[dict[str, Any]], x: tuple[str, str], y: tuple[str, str], *, log_x: bool) -> Figure:
    look = looks(names_of(cells, "method"))
    figure, panels = _panels(names_of(cells, "data"), (3.5, 2.9))
    for name, axes in panels.items():
        groups = [group for group in grouped(cells) if group.data == name]
        known = [group for group in groups if x[0] in group.values and y[0] in group.values]
        shown = _near(known)
        for group in shown:
            _point(axes, group, x[0], y[0], look[group.method])
        far = [f"{group.method} (P@1 {group.mean('P@1'):.1f})" for group in known if group not in shown]
        missing = [f"{group.method} ({_why(group)})" for group in groups if group not in known]
        axes.set(xlabel="\n".join((x[1], *_listed("far below", far), *_listed("without", missing))), ylabel=y[1])
        axes.margins(0.1)
        if not shown:
            _nothing(axes)
        else:
            _widen(axes.yaxis)
            if log_x:
                _log(axes.xaxis, [_above_zero(group.values[x[0]].mean) for group in shown])
            else:
                _widen(axes.xaxis)
    handles = [
        Line2D([], [], linestyle="", color=one.colour, marker=one.marker, markersize=7, label=_wrapped(method))
        for method, one in look.items()
    ]
    _shared_legend(figure, handles)
    return figure


def _near(groups: Sequence[Group]) -> list[Group]:
    """Return the groups that are not far below the best."""
    best = max((group.values["P@1"].mean for group in groups), default=0.0)
    return [group for group in groups if group.values["P@1"].mean >= _FAR * best]


def _point(axes: Axes, group: Group, x: str, y: str, look: Look) -> None:
    """Draw a method's mean, and the range of its repeats where there is more than one."""
    across, up = group.values[x], group.values[y]
    at = _above_zero(across.mean)
    if len(group.done) > 1:
        sides = ([at - _above_zero(across.low)], [_above_zero(across.high) - at])
        ends = ([up.mean - up.low], [up.high - up.mean])
        axes.errorbar([at], [up.mean], xerr=sides, yerr=ends, color=look.colour, linewidth=1)
    # The larger ones lie below: nothing is hidden.
    leading = group.method.lower().startswith("lightdxml")
    axes.scatter(
        [at],
        [up.mean],
        s=95 if leading else 60,
        color=look.colour,
        marker=look.marker,
        edgecolors="white",
        linewidths=0.8,
        alpha=0.9,
        zorder=3 if leading else 4,
    )


class _Series(NamedTuple):
    """Bars of one kind: what they show, what the legend says, how strong their colour is."""

    name: str
    title: str
    alpha: float


def _bars(
    cells: Sequence[dict[str, Any]], series: Sequence[_Series], label: str, write: Callable[[float], str]
) -> Figure:
    methods = list(looks(names_of(cells, "method")))
    # A row has room for its bars and for the lines of the longest name.
    lines = max(_wrapped(method).count("\n") + 1 for method in methods)
    height = len(methods) * max(0.14 + 0.15 * len(series), 0.05 + 0.155 * lines) + 0.9
    figure, panels = _panels(names_of(cells, "data"), (3.3, height), share_y=True)
    groups = {(group.data, group.method): group for group in grouped(cells)}
    for name, axes in panels.items():
        here = {method: groups[name, method] for method in methods if (name, method) in groups}
        _bar_panel(axes, methods, here, series, write)
        axes.set(xlabel=label)
    if len(series) > 1:
        _shared_legend(figure, [Patch(color=GREY, alpha=one.alpha, label=one.title) for one in series])
    return figure


def _bar_panel(
    axes: Axes,
    methods: Sequence[str],
    groups: Mapping[str, Group],
    series: Sequence[_Series],
    write: Callable[[float], str],
) -> None:
    look = looks(methods)
    means = [group.mean(one.name) or 0.0 for group in groups.values() for one in series]
    low, high = _decades([mean for mean in means if mean > 0])
    thick = 0.8 / len(series)
    for row, method in enumerate(methods):
        group = groups.get(method)
        present = (
            {}
            if group is None
            else {one.name: group.values[one.name].mean for one in series if one.name in group.values}
        )
        if not present:
            _beside(axes, low, row, _why(group), color=GREY)
        for i, one in enumerate(series):
            place = row + (i - (len(series) - 1) / 2) * thick
            if one.name not in present:
                continue
            mean = present[one.name]
            end = max(mean, low)
            axes.barh(place, end - low, thick * 0.9, left=low, color=look[method].colour, alpha=one.alpha)
            _beside(axes, end, place, write(mean))
    axes.set_yticks(range(len(methods)), [_wrapped(method) for method in methods])
    axes.set_ylim(len(methods) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set_xscale("log")
    # Room for the numbers at the ends of the bars: a third of what the bars have.
    axes.set_xlim(low, high * (high / low) ** 0.33)
    _ticks(axes.xaxis, low, high)


def _beside(axes: Axes, x: float, y: float, words: str, *, away: float = 3, **style: Any) -> None:
    """Write to the right of a place."""
    axes.annotate(words, (x, y), xytext=(away, 0), textcoords="offset points", va="center", fontsize=7, **style)


def _why(group: Group | None) -> str:
    """Say in a word why there is no bar."""
    if group is None:
        return "not run"
    return group.rest[0]["status"] if group.rest else "not measured"


def ablation(
    curves: Mapping[str, Sequence[Point]], path: Path, chosen: Mapping[str, Any] | None = None, title: str = ""
) -> None:
    """Draw what each parameter does to P@1 and PSP@1, each with a scale of its own.

    Parameters
    ----------
    curves
        By parameter, its values with what was measured at each; values that are words, as `with`, stand side by side.
    path
        The PNG file to write.
    chosen
        By parameter, the value that is the default; it is marked.
    title
        What to write above, as the name of the data set.

    Raises
    ------
    ValueError
        Where there are no curves.
    """
    if not curves:
        raise ValueError("there is nothing to draw: no parameter was varied")
    chosen = chosen or {}
    with _style():
        columns = min(3, len(curves))
        rows = math.ceil(len(curves) / columns)
        figure = Figure(figsize=(3.3 * columns + 0.4, 3.4 * rows + 0.5), layout=_layout())
        parts = figure.subfigures(rows, columns, squeeze=False).flat
        for part, (name, curve) in zip(parts, curves.items(), strict=False):
            _ablation_panel(part.subplots(2, sharex=True), name, curve, chosen.get(name))
        if title:
            figure.suptitle(title, fontsize=11)
        handles = [
            Line2D([], [], color=BLUE, marker="o", label="P@1"),
            Line2D([], [], color=ORANGE, marker="o", label="PSP@1"),
        ]
        if chosen:
            handles.append(
                Line2D([], [], color=GREY, linestyle=":", marker="o", markerfacecolor="white", label="default")
            )
        _shared_legend(figure, handles)
        _save(figure, path)


def _ablation_panel(pair: Sequence[Axes], name: str, curve: Sequence[Point], default: Any) -> None:
    values = [value for value, _ in curve]
    numbers = all(map(_is_number, values))
    places = [float(value) for value in values] if numbers else [float(i) for i in range(len(values))]
    for axes, measure, colour in zip(pair, ("P@1", "PSP@1"), (BLUE, ORANGE), strict=True):
        known = [(x, got[measure]) for x, (_, got) in zip(places, curve, strict=True) if got.get(measure) is not None]
        axes.plot([x for x, _ in known], [y for _, y in known], "o-" if numbers else "o", color=colour, markersize=5)
        at = _place(default, values, places, numbers)
        if at is not None:
            axes.axvline(at, color=GREY, linestyle=":", linewidth=1.2, zorder=1)
            ring = [(x, y) for x, y in known if x == at]
            axes.plot(
                [x for x, _ in ring], [y for _, y in ring], "o", color=colour, markersize=8,
                markerfacecolor="white", markeredgewidth=1.8,
            )  # fmt: skip
        axes.set(ylabel=f"{measure}, %")
        axes.margins(y=0.2)
        _widen(axes.yaxis)
        if not known:
            _nothing(axes)
        elif not numbers:
            axes.set_xlim(-0.6, len(values) - 0.4)
            for x, y in known:
                _beside(axes, x, y, f"{y:.2f}", away=8)
    pair[0].set_title(name)
    _value_axis(pair[1], places, values if not numbers else None)


def _place(default: Any, values: Sequence[Any], places: Sequence[float], numbers: bool) -> float | None:
    """Return where the default stands; among numbers that may be between those that were tried."""
    if default in values:
        return places[values.index(default)]
    return float(default) if numbers and _is_number(default) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _value_axis(axes: Axes, places: Sequence[float], words: Sequence[Any] | None) -> None:
    """Label the values of a parameter: words as they are, numbers on a logarithmic axis where they span much."""
    if words is not None:
        axes.set_xticks(list(places), [_wrapped(str(word), 12) for word in words])
    elif min(places) > 0 and max(places) / min(places) >= 8:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_locator(FixedLocator(list(places)))
        axes.xaxis.set_major_formatter(FuncFormatter(_plain))
    else:
        whole = all(place.is_integer() for place in places)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=whole))


def _panels(
    names: Sequence[str], each: tuple[float, float], *, share_y: bool = False
) -> tuple[Figure, dict[str, Axes]]:
    """Return a figure with one panel a data set, up to three in a row."""
    columns = 2 if len(names) == 4 else min(3, len(names))
    rows = math.ceil(len(names) / columns)
    # One panel alone still has to hold the legend.
    width, height = max(each[0] * columns, 5.0) + 0.8 * share_y, each[1] * rows + 0.5
    figure = Figure(figsize=(width, height), layout=_layout())
    grid = figure.subplots(rows, columns, squeeze=False, sharey="row" if share_y else False)
    panels = dict(zip(names, grid.flat, strict=False))
    for axes in grid.flat[len(names) :]:
        axes.remove()
    for name, axes in panels.items():
        axes.set_title(_wrapped(name, 34))
    return figure, panels


def _layout() -> ConstrainedLayoutEngine:
    """Return what keeps panels and their words apart, and from the edges."""
    return ConstrainedLayoutEngine(w_pad=0.09, h_pad=0.07)


def _shared_legend(figure: Figure, handles: Sequence[Any]) -> None:
    """Put one legend below all panels, in as many columns as its longest name leaves room for."""
    longest = max(len(line) for handle in handles for line in handle.get_label().splitlines())
    # Inches that a name of this length takes, marker and space included.
    columns = max(1, int(figure.get_figwidth() / (0.075 * longest + 0.5)))
    rows = math.ceil(len(handles) / columns)
    # The panels keep their height.
    lines = max(handle.get_label().count("\n") + 1 for handle in handles)
    figure.set_figheight(figure.get_figheight() + 0.18 * rows * lines)
    figure.legend(handles=list(handles), loc="outside lower center", ncols=math.ceil(len(handles) / rows), fontsize=8.5)


def _listed(word: str, names: Sequence[str]) -> list[str]:
    """Return lines that name what a panel does not show."""
    return [_wrapped(f"{word}: {', '.join(names)}", 44)] if names else []


def _wrapped(name: str, width: int = 26) -> str:
    return textwrap.fill(name, width)


def _nothing(axes: Axes) -> None:
    axes.text(0.5, 0.5, "no results", transform=axes.transAxes, ha="center", va="center", color=GREY)
    axes.set_xticks([])
    axes.set_yticks([])


def _above_zero(value: float) -> float:
    return max(value, _SMALLEST)


def _widen(axis: Axis, least: float = 1.0) -> None:
    """Keep an axis from showing less than one point of percent: what differs by less would look as if it mattered."""
    low, high = axis.get_view_interval()
    if high - low < least:
        middle = (low + high) / 2
        low, high = middle - least / 2, middle + least / 2
        (axis.axes.set_xlim if isinstance(axis, XAxis) else axis.axes.set_ylim)(low, high)


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """Return a power of ten clearly below all values, where bars begin, and the highest value."""
    if not values:
        return 0.1, 1.0
    return 10.0 ** math.floor(math.log10(min(values) / 1.5)), max(values)


def _log(axis: Axis, values: Sequence[float]) -> None:
    """Make the x axis logarithmic, around values."""
    spread = max(values) / min(values)
    # At least a factor of ten in all, so that some round number is in sight.
    room = max(spread**0.1, 1.3, (10 / spread) ** 0.5)
    low, high = min(values) / room, max(values) * room
    axis.axes.set_xscale("log")
    axis.axes.set_xlim(low, high)
    _ticks(axis, low, high, most=6)


def _ticks(axis: Axis, low: float, high: float, most: int = 5) -> None:
    """Put few and round numbers at a logarithmic axis."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps, every in (((1, 2, 5), 1), ((1, 3), 1), ((1,), 1), ((1,), 2), ((1,), 3)):
        ticks = [step * 10.0**power for power in powers[::every] for step in steps]
        ticks = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(ticks) <= most:
            break
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(_plain))


def _plain(value: float, _: int | None = None) -> str:
    """Write a number without powers of ten.

    >>> _plain(0.01), _plain(20000.0)
    ('0.01', '20,000')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


@contextmanager
def _style() -> Iterator[None]:
    """Draw in this style, whatever the user's own settings are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def _save(figure: Figure, path: Path) -> None:
    """Write a PNG, whole or not at all; the same figure gives the same bytes."""
    with writing(path) as stream:
        figure.savefig(stream, format="png", dpi=_DPI, metadata={"Software": None})
