"""The figures of a report, as SVG. No text from outside is drawn: names stand in the page's tables."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lightdxml.report.analysis import Bin

# Mid-tones: as_bits on white and on black. The page's style sheet sets the colour of text.
BLUE, ORANGE, GREEN, PURPLE, RED, TEAL, BROWN, OLIVE, SAND, GREY = (
    "#3b82c4",
    "#d9772b",
    "#3f9b62",
    "#9a6cc0",
    "#cf5566",
    "#2a9d9d",
    "#9c7a4d",
    "#7d8f3a",
    "#b9a06a",
    "#888888",
)
COLOURS = {"P": BLUE, "nDCG": GREEN, "PSP": ORANGE, "R": PURPLE}
PHASES = {
    "vectorize": RED,
    "compile": GREY,
    "label encoder": PURPLE,
    "index": TEAL,
    "shortlist": GREEN,
    "classifier": BLUE,
    "sparse view": BROWN,
    "label tree": OLIVE,
    "documents set aside": SAND,
    "validation": ORANGE,
    "other": GREY,
}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GREY,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "lines.linewidth": 1.8,
    "lines.markersize": 4,
}
_SIZE = (4.7, 2.9)
_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


def metrics(figures: dict[str, float], depth: int) -> str:
    """Draw P, nDCG, PSP and R against k."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        cuts = range(1, depth + 1)
        for name, colour in COLOURS.items():
            if f"{name}@1" in figures:
                axes.plot(cuts, [figures[f"{name}@{k}"] for k in cuts], "o-", color=colour, label=f"{name}@k")
        axes.set(xlabel="k", ylabel="%", ylim=(0, None))
        axes.set_xticks(list(cuts))
        _legend(axes)

    return _svg("metrics", "P, nDCG, PSP and R against k", draw)


def loss(epochs: Sequence[int], values: Sequence[float]) -> str:
    """Draw the classifier's loss after each epoch."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot(epochs, values, "o-", color=BLUE)
        axes.set(xlabel="classifier epochs", ylabel="loss per document", ylim=(0, None))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))

    return _svg("loss", "Training loss by epoch", draw)


def validation(lines: dict[str, tuple[list[int], list[float]]], kept: int) -> str:
    """Draw measures on the validation documents at every refresh; `kept` is when the model was best."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for (name, (epochs, values)), colour in zip(lines.items(), (BLUE, ORANGE), strict=False):
            axes.plot(epochs, values, "o-", color=colour, label=name)
        axes.axvline(kept, color=GREY, linestyle=":", label="kept")
        axes.set(xlabel="classifier epochs", ylabel="%")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _legend(axes)

    return _svg("validation", "Validation P@1 and PSP@1 by epoch", draw)


def shortlist(epochs: Sequence[int], shares: Sequence[float]) -> str:
    """Draw which share of the exact shortlists the index finds."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot(epochs, [100 * share for share in shares], "o-", color=GREEN)
        axes.set(xlabel="classifier epochs", ylabel="% of the exact shortlist", ylim=(None, 100.5))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))

    return _svg("shortlist", "Recall of the shortlist by epoch", draw)


def share(curve: Sequence[tuple[float, dict[str, float]]], chosen: float, symbol: str, ends: tuple[str, str]) -> str:
    """Draw P and PSP against β or γ, each with a scale of its own: their changes are what matters.

    `ends` says what stands alone where it is 0 and where it is 1.
    """
    values = [one for one, _ in curve]

    def draw(figure: Figure) -> None:
        pair = figure.subplots(2, sharex=True)
        for axes, name, colour in zip(pair, ("P", "PSP"), (BLUE, ORANGE), strict=True):
            first = [measured[f"{name}@1"] for _, measured in curve]
            means = [sum(measured[f"{name}@{k}"] for k in (1, 3, 5)) / 3 for _, measured in curve]
            axes.plot(values, first, "o-", color=colour, markersize=3, label=f"{name}@1")
            axes.plot(values, means, "--", color=colour, alpha=0.75, label="mean @1, 3, 5")
            axes.axvline(chosen, color=GREY, linestyle=":", label=f"{symbol} = {chosen:g}")
            axes.set(ylabel="%")
            axes.margins(y=0.15)
            _legend(axes)
        pair[-1].set(xlabel=f"{symbol}: 0 {ends[0]}, 1 {ends[1]}")

    return _svg("share", f"P and PSP against {symbol}", draw, (4.7, 3.7))


def tail(curve: Sequence[tuple[float, dict[str, float]]]) -> str:
    """Draw P and PSP at 1 and 5 against `tail`: what one gives for the other."""
    values = [one for one, _ in curve]

    def draw(figure: Figure) -> None:
        pair = figure.subplots(2, sharex=True)
        for axes, name, colour in zip(pair, ("P", "PSP"), (BLUE, ORANGE), strict=True):
            for k, line in ((1, "o-"), (5, "s--")):
                found = [measured[f"{name}@{k}"] for _, measured in curve]
                axes.plot(values, found, line, color=colour, markersize=3, label=f"{name}@{k}")
            axes.set(ylabel="%")
            axes.margins(y=0.15)
            _legend(axes)
        pair[-1].set(xlabel="tail: 0 for precision, 1 for rare labels")

    return _svg("tail", "P and PSP against tail", draw, (4.7, 3.7))


def frequency(bins: Sequence[Bin]) -> str:
    """Draw recall and precision from the rarest to the most frequent labels."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for name, colour, shift in (("recall", BLUE, -0.2), ("precision", ORANGE, 0.2)):
            known = [(i, value) for i, part in enumerate(bins) if (value := getattr(part, name)) is not None]
            axes.bar([i + shift for i, _ in known], [v for _, v in known], 0.38, color=colour, label=f"{name} @5")
        axes.set(xlabel="training documents of a label", ylabel="%", ylim=(0, 100))
        slant: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if len(bins) > 5 else {}
        axes.set_xticks(range(len(bins)), [part.name for part in bins], fontsize=8, **slant)
        axes.grid(axis="x", visible=False)
        _legend(axes)

    return _svg("frequency", "Recall and precision by label frequency", draw, (4.7, 3.3))


def time(cycles: Sequence[dict[str, float]], first: int) -> str:
    """Draw the seconds of every cycle by phase; phases are those of `PHASES`."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        numbers = range(first, first + len(cycles))
        done = [0.0] * len(cycles)
        for phase, colour in PHASES.items():
            seconds = [cycle.get(phase, 0.0) for cycle in cycles]
            if any(seconds):
                axes.barh(numbers, seconds, 0.7, left=done, color=colour, label=phase)
                done = [a + b for a, b in zip(done, seconds, strict=True)]
        axes.set(xlabel="seconds", ylabel="cycle")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        _legend(axes)

    return _svg("time", "Seconds of every cycle by phase", draw)


def _legend(axes: Axes) -> None:
    """Put the legend above the plot, where it covers nothing."""
    handles = len(axes.get_legend_handles_labels()[0])
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=min(handles, 4), columnspacing=1.2, fontsize=8)


@contextmanager
def _style(name: str) -> Iterator[None]:
    """Draw in the style of the report, whatever the user's own settings are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        # Each figure has a salt of its own, so that no id occurs twice in a page.
        matplotlib.rcParams.update(_STYLE | {"svg.hashsalt": f"lightdxml-{name}"})
        yield


def _svg(name: str, title: str, draw: Callable[[Figure], None], size: tuple[float, float] = _SIZE) -> str:
    """Return a figure as an SVG element to stand in a page."""
    with _style(name):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata=_NO_METADATA)
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    # The ids of groups are the same in every figure, and its style sheet would hold for the whole page.
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, count=1, flags=re.DOTALL)
    return svg.replace("<svg", f'<svg role="img" aria-label="{title}"', 1).strip()
