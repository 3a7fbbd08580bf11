"""The fit of probabilities to validation documents, and what every threshold gives there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import newton
from lightdxml.model.blend import N_GROUPS, sigmoid
from lightdxml.model.calibration import Calibration
from lightdxml.model.thresholds import DEPTH, LEVELS, ThresholdTable
from lightdxml.training.logistic import Judged

# The first labels of a document that probabilities are fitted to, and those whose log-odds place the knots.
_FITTED, _FIRST = 20, 5
_KNOTS = 9
# How strongly the map is drawn to no change at all. A few documents hardly move it.
_RIDGE = 1.0
# Knots are further apart than this.
_SMALLEST_GAP = 1e-3


class Ranked(NamedTuple):
    """The first labels of documents by their log-odds, documents × ranks.

    Attributes
    ----------
    labels, log_odds, is_right
        The labels, -1 for none, their log-odds, and whether documents have them.
    """

    labels: NDArray[np.int32]
    log_odds: NDArray[np.float64]
    is_right: NDArray[np.bool_]


def rank(labels: NDArray[np.int32], log_odds: NDArray[np.float64], judged: Judged) -> Ranked:
    """Return the first `DEPTH` candidates of each document."""
    order = np.lexsort((labels, -log_odds, ~judged.is_candidate), axis=1)[:, :DEPTH]
    shown = np.where(judged.is_candidate, labels, np.int32(-1))
    return Ranked(*(np.take_along_axis(one, order, axis=1) for one in (shown, log_odds, judged.is_right)))


def fit(ranked: Ranked) -> Calibration:
    """Fit the probabilities of labels by logistic regression with slopes that are never negative.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> log_odds = np.sort(rng.normal(0, 2, (2000, 5)))[:, ::-1]
    >>> is_right = rng.random((2000, 5)) < 1 / (1 + np.exp(-log_odds / 2))
    >>> found = fit(Ranked(np.zeros((2000, 5), np.int32), log_odds, is_right))
    >>> found.probability(np.array([2.0]), np.array([0])).round(1).tolist()  # 1 / (1 + 1 / e)
    [0.7]
    """
    log_odds, is_right = ranked.log_odds[:, :_FITTED], ranked.is_right[:, :_FITTED]
    is_label = ranked.labels[:, :_FITTED] >= 0
    knots = _knots(log_odds[:, :_FIRST][is_label[:, :_FIRST]])
    if knots is None:
        return Calibration()
    ranks = np.broadcast_to(np.arange(log_odds.shape[1]), log_odds.shape)
    features = _features(log_odds[is_label], ranks[is_label], knots)
    start = np.array([knots[0], *np.ones(len(knots) - 1), 0.0])
    weights = _nonnegative_fit(features, is_right[is_label].astype(np.float64), start)
    values = weights[0] + np.concatenate([[0.0], np.cumsum(weights[1:-1] * np.diff(knots))])
    return Calibration(tuple(knots.tolist()), tuple(values.tolist()), float(weights[-1]))


def _knots(log_odds: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the knots: quantiles of log-odds that are apart; None if there are not two of them."""
    if not len(log_odds):
        return None
    found: list[float] = []
    for value in np.quantile(log_odds, np.linspace(0.02, 0.98, _KNOTS)).tolist():
        if not found or value > found[-1] + _SMALLEST_GAP:
            found.append(value)
    return np.array(found) if len(found) > 1 else None


def _features(
    log_odds: NDArray[np.float64], ranks: NDArray[np.integer], knots: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what each weight is multiplied with: 1, the way that lies between each two knots, and the rank."""
    low, high = knots[:-1].copy(), knots[1:].copy()
    low[0], high[-1] = -np.inf, np.inf
    ways = np.clip(log_odds[:, None], low, high) - knots[:-1]
    return np.column_stack([np.ones(len(log_odds)), ways, -np.log1p(ranks)])


def _nonnegative_fit(X: NDArray[np.float64], y: NDArray[np.float64], start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights of a ridge logistic regression; none but the first is negative."""
    is_free = np.ones(len(start), dtype=np.bool_)
    while True:
        weights = _fit(X, y, start, is_free)
        is_negative = weights < 0
        is_negative[0] = False
        if not is_negative.any():
            return weights
        is_free &= ~is_negative


def _fit(
    X: NDArray[np.float64], y: NDArray[np.float64], start: NDArray[np.float64], is_free: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the weights of a ridge logistic regression; those that are not free are 0."""

    def loss(weights: NDArray[np.float64]) -> float:
        log_odds = X @ weights
        fit = (np.logaddexp(0, log_odds) - y * log_odds).sum()
        return float(fit + 0.5 * _RIDGE * np.square(weights - start).sum())

    def slopes(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        chance: NDArray[np.float64] = sigmoid(X @ weights)
        hessian = (X.T * (chance * (1 - chance))) @ X + _RIDGE * np.eye(len(start))
        return X.T @ (chance - y) + _RIDGE * (weights - start), hessian

    return newton.minimize(loss, slopes, np.where(is_free, start, 0), is_free)


def tabulate(
    ranked: Ranked, calibration: Calibration, label_groups: NDArray[np.uint8], Y: csr_matrix
) -> ThresholdTable:
    """Return what every threshold gives on documents, of which Y are the labels."""
    is_label = ranked.labels >= 0
    ranks = np.broadcast_to(np.arange(ranked.labels.shape[1]), ranked.labels.shape)
    probability = calibration.probability(ranked.log_odds, ranks)
    # How many levels a prediction reaches.
    reached = np.searchsorted(LEVELS, probability[is_label], side="right")
    labels, right = ranked.labels[is_label], ranked.is_right[is_label]
    groups = label_groups[labels]
    documents = np.broadcast_to(np.arange(len(is_label))[:, None], is_label.shape)[is_label]
    true_of_label = np.bincount(Y.indices, minlength=Y.shape[1])
    predicted, hits = (_at_least(groups[some], reached[some], N_GROUPS) for some in (slice(None), right))
    return ThresholdTable(
        predicted.astype(np.int32),
        hits.astype(np.int32),
        np.bincount(label_groups[Y.indices], minlength=N_GROUPS).astype(np.int32),
        _summed_f1(labels, reached, right, true_of_label, label_groups, N_GROUPS),
        _summed_f1(documents, reached, right, np.diff(Y.indptr), np.zeros(Y.shape[0], np.uint8), 1)[0],
    )


def _at_least(owners: NDArray[np.integer], reached: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return how many predictions of each owner reach each level."""
    width = len(LEVELS) + 1
    counts = np.bincount(owners.astype(np.int64) * width + reached, minlength=n * width).reshape(n, width)
    at_least: NDArray[np.int64] = counts[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
    return at_least


def _summed_f1(
    owners: NDArray[np.integer],
    reached: NDArray[np.int64],
    right: NDArray[np.bool_],
    true: NDArray[np.integer],
    groups: NDArray[np.uint8],
    n_groups: int,
) -> NDArray[np.float32]:
    """Return the sum of the F1 of all owners (labels or documents) of each group at each level."""
    sums = np.zeros((n_groups, len(LEVELS)))
    # Only owners with a right prediction have an F1 above 0. Some at a time: each has a row of levels.
    for some in _some_at_a_time(np.unique(owners[right])):
        place = np.full(len(true), -1, dtype=np.int64)
        place[some] = np.arange(len(some))
        own = place[owners]
        predicted, hits = (_at_least(own[kept], reached[kept], len(some)) for kept in (own >= 0, (own >= 0) & right))
        f1 = 2 * hits / np.maximum(predicted + true[some][:, None], 1)
        np.add.at(sums, groups[some], f1)
    return sums.astype(np.float32)


def _some_at_a_time(numbers: NDArray[np.int64], size: int = 10_000) -> Sequence[NDArray[np.int64]]:
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]
