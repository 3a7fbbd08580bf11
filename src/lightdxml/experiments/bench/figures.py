"""What all benchmark plots share: style, layout, legend, axes and files."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from lightdxml import plotting
from lightdxml.data.files import writing

_DPI = 150


def style() -> AbstractContextManager[None]:
    """Draw in the style of the benchmark."""
    # A $ in a name is not a formula.
    return plotting.style({"text.parse_math": False, "axes.titlesize": 10})


def save(figure: Figure, path: Path) -> Path:
    """Write a PNG file atomically. The same figure gives the same bytes."""
    with writing(path) as stream:
        figure.savefig(stream, format="png", dpi=_DPI, metadata={"Software": None})
    return path


def new_figure(width: float, height: float) -> Figure:
    """Return a figure whose panels and texts do not overlap."""
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.09, h_pad=0.07))


def add_legend(figure: Figure, handles: Sequence[Any]) -> None:
    """Put one legend below all panels and make the figure higher by as much."""
    labels = [handle.get_label().splitlines() for handle in handles]
    width = 0.075 * max(len(line) for lines in labels for line in lines) + 0.5  # inches per entry
    rows = math.ceil(len(handles) / max(1, int(figure.get_figwidth() / width)))
    figure.set_figheight(figure.get_figheight() + 0.18 * rows * max(map(len, labels)))
    figure.legend(handles=list(handles), loc="outside lower center", ncols=math.ceil(len(handles) / rows), fontsize=8.5)


def write_beside(axes: Axes, x: float, y: float, text: str, *, offset: float = 3, **options: Any) -> None:
    """Write a small text to the right of a point."""
    axes.annotate(text, (x, y), xytext=(offset, 0), textcoords="offset points", va="center", fontsize=7, **options)


def wrap(text: str, width: int = 26) -> str:
    """Break a text into lines."""
    return textwrap.fill(text, width)


def percent_limits(values: Sequence[float]) -> tuple[float, float]:
    """Return axis limits with a margin. They span at least one point, so that noise does not look like an effect.

    >>> percent_limits([50.0, 50.2]), percent_limits([50.0, 60.0])
    ((49.6, 50.6), (48.5, 61.5))
    """
    middle, span = (min(values) + max(values)) / 2, max(values) - min(values)
    half = max(1.0, 1.3 * span) / 2
    return middle - half, middle + half


def set_log_ticks(axis: Axis, low: float, high: float) -> None:
    """Put at most five round numbers on a logarithmic axis."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps, stride in (((1, 2, 5), 1), ((1, 3), 1), ((1,), 1), ((1,), 2), ((1,), 3)):
        ticks = [step * 10.0**power for power in powers[::stride] for step in steps]
        ticks = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(ticks) <= 5:
            break
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1000 else f"{value:g}"))
