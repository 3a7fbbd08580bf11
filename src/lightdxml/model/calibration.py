"""From the log-odds of a label to the probability that it is right, as validation documents show it.

The map depends on the log-odds of the blend, before `tail` shifts them, and on the label's rank by them: next to better
labels, a label is less likely than its own log-odds say. How often a label is right does not depend on the order that
the caller wishes, so `tail` changes no probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels import parallel, ranking
from lightdxml.model.blend import sigmoid

_LARGEST, _MAX_KNOTS, _SMALLEST_GAP = 1e6, 100, 1e-6


@dataclass(frozen=True)
class Calibration:
    """A piecewise linear function of the log-odds that never falls, less a multiple of log(1 + rank).

    Attributes
    ----------
    knots
        Log-odds at which the slope changes, ascending. The first and the last slope go on beyond them.
    values
        Calibrated log-odds at the knots, for the first label.
    rank
        What each unit of log(1 + rank) takes away, at least 0. Ranks are counted from 0.

    Examples
    --------
    >>> Calibration((-1.0, 1.0), (-2.0, 2.0), 1.0).probability(np.array([0.0, 0.0]), np.array([0, 1])).round(3).tolist()
    [0.5, 0.333]
    """

    knots: tuple[float, ...] = (-1.0, 1.0)
    values: tuple[float, ...] = (-1.0, 1.0)
    rank: float = 0.0

    def log_odds(self, log_odds: Any, ranks: Any) -> Any:
        """Return the calibrated log-odds of labels with these log-odds and ranks."""
        knots, values = np.array(self.knots), np.array(self.values)
        inside = np.interp(log_odds, knots, values)
        first, last = (np.diff(values) / np.diff(knots))[[0, -1]]
        beyond = first * np.minimum(log_odds - knots[0], 0) + last * np.maximum(log_odds - knots[-1], 0)
        return inside + beyond - self.rank * np.log1p(ranks)

    def probability(self, log_odds: Any, ranks: Any) -> Any:
        """Return the probability that labels with these log-odds and ranks are right."""
        return sigmoid(self.log_odds(log_odds, ranks))

    def to_json(self) -> dict[str, Any]:
        """Return what a manifest says about it; `restore_calibration` reads it."""
        return {"knots": self.knots, "values": self.values, "rank": self.rank}


def restore_calibration(content: Any) -> Calibration:
    """Return the calibration that a manifest describes; raise a `ValueError` if it describes none."""
    knots, values, rank = content["knots"], content["values"], content["rank"]
    numbers = [*knots, *values, rank]
    are_numbers = all(type(one) in (int, float) and abs(one) <= _LARGEST for one in numbers)
    if not are_numbers or not 2 <= len(knots) <= _MAX_KNOTS or len(values) != len(knots) or rank < 0:
        raise ValueError(f"its manifest has a calibration {content!r:.80}")
    if min(np.diff(knots)) < _SMALLEST_GAP or min(np.diff(values)) < 0:
        raise ValueError(f"its manifest has a calibration that falls: {content!r:.80}")
    return Calibration(tuple(map(float, knots)), tuple(map(float, values)), float(rank))


def ranked_among(
    labels: NDArray[np.int32], log_odds: NDArray[np.float64], wanted: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the log-odds of wanted labels and their ranks by it among all candidates; 0 where none is wanted.

    >>> labels, wanted = np.array([[7, 5, 6]], dtype=np.int32), np.array([[6, -1]], dtype=np.int32)
    >>> [one.tolist() for one in ranked_among(labels, np.array([[0.5, 2.0, 1.0]]), wanted)]
    [[[1.0, 0.0]], [[1, 0]]]
    """
    found, ranks = np.zeros(wanted.shape, dtype=np.float64), np.zeros(wanted.shape, dtype=np.int64)

    def fill(first: int, last: int) -> None:
        ranking.ranks_of(first, last, labels, log_odds, wanted, found, ranks)

    parallel.over(fill, len(labels))
    return found, ranks
