"""The style that the figures of reports and benchmarks share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib

# Mid-tones: legible on white and on black.
BLUE, ORANGE, GREEN, PURPLE, GRAY = "#3b82c4", "#d9772b", "#3f9b62", "#9a6cc0", "#888888"
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.edgecolor": GRAY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRAY,
    "grid.alpha": 0.25,
    "legend.frameon": False,
}


@contextmanager
def style(more: dict[str, Any]) -> Iterator[None]:
    """Draw in our style and these further settings, whatever the user's own settings of matplotlib are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE | more)
        yield
