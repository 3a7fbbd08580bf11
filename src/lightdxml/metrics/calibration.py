"""Calibration: whether labels with a score of p are right in a share p of cases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predictions in bins of equal width by their score, from 0 to 1: the points of a reliability diagram.

    Attributes
    ----------
    score
        The mean score of each bin; the middle of the bin if it is empty.
    right
        The share of predictions that are right, from 0 to 1; 0 if the bin is empty.
    count
        The number of predictions.
    """

    score: NDArray[np.float64]
    right: NDArray[np.float64]
    count: NDArray[np.int64]

    @property
    def error(self) -> float:
        """The expected calibration error (ECE), from 0 to 1."""
        gaps = self.count * np.abs(self.right - self.score)
        return float(gaps.sum() / max(1, self.count.sum()))


def reliability(scores: ArrayLike, is_right: ArrayLike, bins: int = 15) -> Reliability:
    """Return how often predictions are right, by their score.

    Parameters
    ----------
    scores
        The score of each prediction, from 0 to 1.
    is_right
        Whether each prediction is right.
    bins
        The number of bins of equal width. A score on the edge of two bins belongs to the upper one.

    Examples
    --------
    >>> found = reliability([0.2, 0.4, 0.9, 0.7], [False, True, True, True], bins=2)
    >>> found.score.round(2).tolist(), found.right.tolist(), found.count.tolist()
    ([0.3, 0.8], [0.5, 1.0], [2, 2])
    """
    values, right = np.asarray(scores, dtype=np.float64).ravel(), np.asarray(is_right, dtype=np.bool_).ravel()
    if len(values) != len(right):
        raise ValueError(f"there are {len(values)} scores and {len(right)} answers: there must be one each")
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("a score is not from 0 to 1: give probabilities")
    if bins < 1:
        raise ValueError(f"bins is {bins}: there must be at least one")
    bin_of = np.minimum((values * bins).astype(np.int64), bins - 1)
    count = np.bincount(bin_of, minlength=bins)
    middles = (np.arange(bins) + 0.5) / bins
    score = np.divide(np.bincount(bin_of, values, bins), count, out=middles, where=count > 0)
    share = np.divide(np.bincount(bin_of[right], minlength=bins), count, out=np.zeros(bins), where=count > 0)
    return Reliability(score, share, count)


def expected_calibration_error(scores: ArrayLike, is_right: ArrayLike, bins: int = 15) -> float:
    """Return the mean distance between score and share of right predictions over bins of equal width, from 0 to 1.

    Bins count by their number of predictions (Guo et al. 2017). The parameters are those of `reliability`.

    Examples
    --------
    >>> round(expected_calibration_error([0.2, 0.4, 0.9, 0.7], [False, True, True, True], bins=2), 3)
    0.2
    """
    return reliability(scores, is_right, bins).error
