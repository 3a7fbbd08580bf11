"""The charts of a report, as SVG. No text from data is drawn: names appear in the tables of the page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lightdxml.metrics import Counts, Reliability
from lightdxml.plotting import BLUE, GRAY, GREEN, ORANGE, style
from lightdxml.report.analysis import Bin
from lightdxml.report.history import Curve

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",  # the style sheet of the page sets the color of text
    "grid.linewidth": 0.6,
    "xtick.color": GRAY,
    "ytick.color": GRAY,
    "legend.handlelength": 1.4,
    "lines.linewidth": 1.8,
    "lines.markersize": 4,
}
_SIZE = (4.7, 2.9)
_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))

Line = tuple[Sequence[float], Sequence[float], str]


def lines(
    name: str, title: str, curves: Mapping[str, Line], axes_names: tuple[str, str], kept: int | None = None, **axis: Any
) -> str:
    """Draw lines over integers.

    Parameters
    ----------
    name, title
        A unique name for ids, and what the chart shows.
    curves
        x, y and color of each line by its name in the legend.
    axes_names
        What the axes show.
    kept
        Where to draw a vertical line named "kept".
    axis
        Further properties of the axes.
    """

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for label, (x, y, color) in curves.items():
            axes.plot(x, y, "o-", color=color, label=label)
        if kept is not None:
            axes.axvline(kept, color=GRAY, linestyle=":", label="kept")
        axes.set(xlabel=axes_names[0], ylabel=axes_names[1], **axis)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if len(curves) > 1 or kept is not None:
            _legend(axes)

    return _svg(name, title, draw)


def trade_off(name: str, curve: Curve, axis: str, chosen: tuple[str, float] | None = None) -> str:
    """Draw P and PSP over a value, each on its own scale; `chosen` is the symbol and value of a vertical line."""
    values = [value for value, _ in curve]

    def draw(figure: Figure) -> None:
        pair = figure.subplots(2, sharex=True)
        for axes, measure, color in zip(pair, ("P", "PSP"), (BLUE, ORANGE), strict=True):
            first = [metrics[f"{measure}@1"] for _, metrics in curve]
            means = [sum(metrics[f"{measure}@{k}"] for k in (1, 3, 5)) / 3 for _, metrics in curve]
            axes.plot(values, first, "o-", color=color, markersize=3, label=f"{measure}@1")
            axes.plot(values, means, "--", color=color, alpha=0.75, label=f"mean of {measure}@1, 3, 5")
            if chosen is not None:
                axes.axvline(chosen[1], color=GRAY, linestyle=":", label=f"{chosen[0]} = {chosen[1]:g}")
            axes.set(ylabel="%")
            axes.margins(y=0.15)
            _legend(axes)
        pair[-1].set(xlabel=axis)

    return _svg(name, f"P and PSP by {name}", draw, (4.7, 3.7))


def frequency(bins: Sequence[Bin], k: int) -> str:
    """Draw recall and precision of the first k labels, from the rarest to the most frequent labels."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for name, color, shift in (("recall", BLUE, -0.2), ("precision", ORANGE, 0.2)):
            known = [(i, value) for i, part in enumerate(bins) if (value := getattr(part, name)) is not None]
            axes.bar([i + shift for i, _ in known], [v for _, v in known], 0.38, color=color, label=f"{name} @{k}")
        axes.set(xlabel="training documents per label", ylabel="%", ylim=(0, 100))
        slant: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if len(bins) > 5 else {}
        axes.set_xticks(range(len(bins)), [part.name for part in bins], fontsize=8, **slant)
        axes.grid(axis="x", visible=False)
        _legend(axes)

    return _svg("frequency", "Recall and precision by label frequency", draw, (4.7, 3.3))


def reliability(found: Reliability) -> str:
    """Draw how often predictions are right by their score, and how many have such a score."""
    n = len(found.count)
    bins = [i for i in range(n) if found.count[i]]
    middles = [(i + 0.5) / n for i in bins]

    def draw(figure: Figure) -> None:
        top, bottom = figure.subplots(2, sharex=True, height_ratios=(3, 1))
        top.plot((0, 1), (0, 100), ":", color=GRAY, label="score")
        top.bar(middles, 100 * found.right[bins], 0.9 / n, color=BLUE, alpha=0.35)
        top.plot(found.score[bins], 100 * found.right[bins], "o-", color=BLUE, label="right")
        top.set(ylabel="%", ylim=(0, 100), xlim=(0, 1))
        _legend(top)
        bottom.bar(middles, found.count[bins], 0.9 / n, color=GRAY)
        bottom.set(xlabel="score", ylabel="labels", yscale="log", ylim=(0.8, None))
        bottom.yaxis.set_major_formatter("{x:,.0f}")
        bottom.grid(axis="x", visible=False)

    return _svg("reliability", "Share of right labels by score", draw, (4.7, 3.7))


def thresholds(values: Sequence[float], counts: Counts) -> str:
    """Draw precision, recall and F1 by threshold; there is no precision where no label is kept."""
    best = values[int(counts.f1.argmax())]
    kept = int((counts.predicted > 0).sum())

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot(values[:kept], counts.precision[:kept], color=BLUE, label="precision")
        axes.plot(values, counts.recall, color=ORANGE, label="recall")
        axes.plot(values, counts.f1, color=GREEN, label="F1")
        axes.axvline(best, color=GRAY, linestyle=":", label="highest F1")
        axes.set(xlabel="threshold", ylabel="%", xlim=(0, 1), ylim=(0, 100))
        _legend(axes)

    return _svg("thresholds", "Precision, recall and F1 by threshold", draw, (4.7, 3.7))


def _legend(axes: Axes) -> None:
    """Put the legend above the plot, where it covers nothing."""
    handles = len(axes.get_legend_handles_labels()[0])
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=min(handles, 4), columnspacing=1.2, fontsize=8)


def _svg(name: str, title: str, draw: Callable[[Figure], None], size: tuple[float, float] = _SIZE) -> str:
    """Return a chart as an SVG element for the page."""
    # A different salt per chart, so that ids are unique in the page.
    with style(_STYLE | {"svg.hashsalt": f"lightdxml-{name}"}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata=_NO_METADATA)
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    # Groups have the same ids in every chart, and the style sheet of a chart would apply to the whole page.
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, count=1, flags=re.DOTALL)
    return svg.replace("<svg", f'<svg role="img" aria-label="{title}"', 1).strip()
