"""The fit of the logistic blend to validation documents, of which it is known which candidates are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import newton
from lightdxml.model.blend import N_GROUPS, LogisticBlend, Slopes, features_of, sigmoid
from lightdxml.model.candidates import Candidates

# About the weights that were fitted on data sets of all sizes. A few documents hardly move weights away from them.
_USUAL_LOW, _OTHERS_LOW = {"linear": 1.0, "nearness": 1.0}, 0.3
_USUAL_HIGH, _USUAL_BIAS = 0.3, 1.0
# How strongly mean weights are drawn to the usual ones, and the weights of a group of labels to the mean.
_RIDGE, _GROUP_RIDGE = 1.0, 10.0

Design = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Judged:
    """Candidates of documents, and which of them are right.

    Attributes
    ----------
    log_scores
        What each view says, by name, documents × candidates.
    groups
        The group of each candidate's label by its number of training documents.
    is_candidate
        False where a document has fewer candidates than others.
    is_right
        Whether the document has the label.
    """

    log_scores: Mapping[str, NDArray[np.float32]]
    groups: NDArray[np.uint8]
    is_candidate: NDArray[np.bool_]
    is_right: NDArray[np.bool_]

    def rows(self, chosen: slice) -> Judged:
        """Return some of the documents."""
        scores = {name: one[chosen] for name, one in self.log_scores.items()}
        return Judged(scores, self.groups[chosen], self.is_candidate[chosen], self.is_right[chosen])


def judge(candidates: Candidates, label_groups: NDArray[np.uint8], Y: csr_matrix) -> Judged:
    """Return candidates with what is known about them; Y are the labels of the documents.

    >>> found = Candidates(np.array([[1, 0], [1, -1]], dtype=np.int32), {})
    >>> judge(found, np.zeros(2, np.uint8), csr_matrix([[0, 1], [1, 0]])).is_right.tolist()
    [[True, False], [False, False]]
    """
    labels, width = candidates.labels, Y.shape[1]
    true = np.repeat(np.arange(len(labels), dtype=np.int64), np.diff(Y.indptr)) * width + Y.indices
    pairs = np.arange(len(labels), dtype=np.int64)[:, None] * width + labels
    is_candidate = labels >= 0
    return Judged(candidates.log_scores, label_groups[labels], is_candidate, np.isin(pairs, true) & is_candidate)


def usual(views: Sequence[str]) -> LogisticBlend:
    """Return the blend of views that is used without validation documents."""
    return _blend(views, np.tile(_start(views), (N_GROUPS, 1)))


def fit(judged: Judged, views: Sequence[str]) -> LogisticBlend:
    """Fit the weights of these views by ridge logistic regression.

    No weight is negative, so that a higher score of a view never makes a label less likely. The weights of a group are
    drawn to the mean of all groups, and this mean to the usual weights.
    """
    parts = [_design(judged, views, group) for group in range(N_GROUPS)]
    start = _start(views)
    is_free = np.ones((N_GROUPS, len(start)), dtype=np.bool_)
    while True:
        weights = _newton(parts, start, is_free)
        is_negative = weights[:, :-1] < 0
        if not is_negative.any():
            return _blend(views, weights)
        is_free[:, :-1] &= ~is_negative


def cross_fitted(judged: Judged, views: Sequence[str]) -> NDArray[np.float64]:
    """Return log-odds of candidates by weights that were fitted to the other half of the documents."""
    log_odds = np.empty(judged.groups.shape)
    halves = slice(0, None, 2), slice(1, None, 2)
    for fitted, scored in (halves, halves[::-1]):
        part = judged.rows(scored)
        log_odds[scored] = fit(judged.rows(fitted), views).log_odds(part.log_scores, part.groups)
    return log_odds


def _start(views: Sequence[str]) -> NDArray[np.float64]:
    """Return the usual weights: low and high of each view, and the bias."""
    return np.array([*(w for name in views for w in (_USUAL_LOW.get(name, _OTHERS_LOW), _USUAL_HIGH)), _USUAL_BIAS])


def _blend(views: Sequence[str], weights: NDArray[np.float64]) -> LogisticBlend:
    """Return the blend with these weights, groups × weights, without views that have none.

    If no view has a weight, all of them have the usual ones: something must rank the labels.
    """
    if not weights[:, :-1].any():
        return usual(views)
    rows = [tuple(row) for row in weights.T.tolist()]
    slopes = {name: Slopes(rows[2 * i], rows[2 * i + 1]) for i, name in enumerate(views)}
    return LogisticBlend({name: own for name, own in slopes.items() if any(own.low + own.high)}, rows[-1])


def _newton(parts: Sequence[Design], start: NDArray[np.float64], is_free: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the weights, groups × weights, by Newton's method; those that are not free are 0."""
    size = len(start)
    # The mean weights and then those of each group. All of them but the free ones stay as they are.
    weights = np.concatenate([start, np.where(is_free, start, 0).ravel()])
    free = np.concatenate([np.ones(size, dtype=np.bool_), is_free.ravel()])
    found = newton.minimize(partial(_loss, parts, start), partial(_slopes, parts, start), weights, free)
    return found[size:].reshape(N_GROUPS, size)


def _loss(parts: Sequence[Design], start: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the cross-entropy and the ridge penalties."""
    mean, own = weights[: len(start)], weights[len(start) :].reshape(N_GROUPS, -1)
    penalty = _RIDGE * np.square(mean - start).sum() + _GROUP_RIDGE * np.square(own - mean).sum()
    loss = 0.5 * float(penalty)
    for (features, is_right), row in zip(parts, own, strict=True):
        log_odds = features @ row
        loss += float((np.logaddexp(0, log_odds) - is_right * log_odds).sum())
    return loss


def _slopes(
    parts: Sequence[Design], start: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return gradient and Hessian of the loss."""
    size = len(start)
    mean, own = weights[:size], weights[size:].reshape(N_GROUPS, size)
    gradient = np.zeros_like(weights)
    gradient[:size] = _RIDGE * (mean - start) - _GROUP_RIDGE * (own - mean).sum(axis=0)
    hessian = np.diag(np.repeat([_RIDGE + N_GROUPS * _GROUP_RIDGE, _GROUP_RIDGE], [size, N_GROUPS * size]))
    for group, (features, is_right) in enumerate(parts):
        chance: NDArray[np.float64] = sigmoid(features @ own[group])
        at = slice((group + 1) * size, (group + 2) * size)
        gradient[at] = features.T @ (chance - is_right) + _GROUP_RIDGE * (own[group] - mean)
        hessian[at, at] += (features.T * (chance * (1 - chance))) @ features
        hessian[:size, at] = hessian[at, :size] = -_GROUP_RIDGE * np.eye(size)
    return gradient, hessian


def _design(judged: Judged, views: Sequence[str], group: int) -> Design:
    """Return what the weights of a group are multiplied with, and which candidates are right."""
    chosen = judged.is_candidate & (judged.groups == group)
    columns = [column for name in views for column in features_of(judged.log_scores[name][chosen])]
    columns.append(np.ones(int(chosen.sum())))
    return np.stack(columns, axis=1), judged.is_right[chosen].astype(np.float64)
