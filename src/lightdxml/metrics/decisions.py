"""Metrics of decisions: which labels a document gets, by a threshold of the score, by a limit of labels, or by both.

Predictions are `ranked` label ids (documents × depth, best first, -1 for none) and their `scores`. A label is kept if
its score is at least the threshold, compared as 32-bit numbers, and it is among the first `k`. Values agree with
`sklearn.metrics.precision_recall_fscore_support(…, zero_division=0)`, in percent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from lightdxml.metrics.compare import Compared, Ignore, compare, without_ignored

THRESHOLDS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
LIMITS = (1, 3, 5, 10, None)


@dataclass(frozen=True, eq=False)
class Counts:
    """How many labels are true, predicted, and both: per label, per document or per threshold.

    Attributes
    ----------
    true, predicted, right
        Counts: arrays of one shape.

    Examples
    --------
    >>> counts = Counts(np.array([4, 0]), np.array([2, 1]), np.array([2, 0]))
    >>> counts.precision.tolist(), counts.recall.tolist(), counts.f1.round(1).tolist()
    ([100.0, 0.0], [50.0, 0.0], [66.7, 0.0])
    """

    true: NDArray[np.int64]
    predicted: NDArray[np.int64]
    right: NDArray[np.int64]

    @property
    def precision(self) -> NDArray[np.float64]:
        """The percentage of predicted labels that are true; 0 without predictions."""
        return _percent(self.right, self.predicted)

    @property
    def recall(self) -> NDArray[np.float64]:
        """The percentage of true labels that are predicted; 0 without true labels."""
        return _percent(self.right, self.true)

    @property
    def f1(self) -> NDArray[np.float64]:
        """The harmonic mean of precision and recall."""
        return _percent(2 * self.right, self.true + self.predicted)


def _percent(part: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    percent: NDArray[np.float64] = 100.0 * part / np.maximum(whole, 1)
    return percent


def decision_measures(
    Y_true: csr_matrix,
    ranked: NDArray[np.int32],
    scores: NDArray[np.float32],
    threshold: ArrayLike = 0.0,
    k: int | None = None,
    ignore: Ignore = None,
) -> dict[str, float]:
    """Return precision, recall and F1 of the labels that are kept, in percent.

    Parameters
    ----------
    Y_true
        The true labels, documents × labels; nonzero entries are true.
    ranked, scores
        Label ids, best first, -1 for none, and their scores. Labels that are not ranked are not kept.
    threshold
        The lowest score of a label that is kept: a number, or one per label.
    k
        The number of labels of a document that are kept at most; None for no limit. It is applied before thresholds.
    ignore
        Pairs (document, label) that do not count, as in `evaluate`.

    Returns
    -------
    dict
        `micro-P`, `micro-R` and `micro-F1` over all pairs of document and label, `macro-…` in the mean over all labels,
        `samples-…` in the mean over all documents.

    Examples
    --------
    >>> ranked, scores = np.array([[0, 1], [2, 1]], dtype=np.int32), np.array([[0.9, 0.2], [0.8, 0.6]])
    >>> found = decision_measures(csr_matrix([[1, 0, 0], [0, 1, 0]]), ranked, scores, threshold=0.5)
    >>> round(found["micro-P"], 1), round(found["macro-R"], 1), found["samples-P"]
    (66.7, 66.7, 75.0)
    """
    compared, values = _compare(Y_true, ranked, scores, ignore)
    kept = _kept(compared, values, threshold, k)
    by_label, by_document = _by_label(compared, kept), _by_document(compared, kept)
    averages = {"micro": _total(by_document), "macro": by_label, "samples": by_document}
    return {
        f"{average}-{name}": float(shares.mean())
        for average, counts in averages.items()
        for name, shares in (("P", counts.precision), ("R", counts.recall), ("F1", counts.f1))
    }


def label_counts(
    Y_true: csr_matrix,
    ranked: NDArray[np.int32],
    scores: NDArray[np.float32],
    threshold: ArrayLike = 0.0,
    k: int | None = None,
    ignore: Ignore = None,
) -> Counts:
    """Return in how many documents each label is true, kept, and both; parameters as in `decision_measures`.

    >>> ranked, scores = np.array([[0, 1], [0, 1]], dtype=np.int32), np.array([[0.9, 0.2], [0.8, 0.6]])
    >>> found = label_counts(csr_matrix([[1, 0], [0, 1]]), ranked, scores, threshold=0.5)
    >>> found.true.tolist(), found.predicted.tolist(), found.right.tolist()
    ([1, 1], [2, 1], [1, 1])
    """
    compared, values = _compare(Y_true, ranked, scores, ignore)
    return _by_label(compared, _kept(compared, values, threshold, k))


def threshold_counts(
    Y_true: csr_matrix,
    ranked: NDArray[np.int32],
    scores: NDArray[np.float32],
    thresholds: ArrayLike = THRESHOLDS,
    ignore: Ignore = None,
) -> Counts:
    """Return how many pairs of document and label are true, kept, and both at each of some ascending thresholds.

    The counts of parts of the documents add up. The other parameters are those of `decision_measures`.

    >>> ranked, scores = np.array([[0, 1], [2, 1]], dtype=np.int32), np.array([[0.9, 0.2], [0.8, 0.6]])
    >>> found = threshold_counts(csr_matrix([[1, 0, 0], [0, 1, 0]]), ranked, scores, [0, 0.5, 0.9])
    >>> found.precision.round(1).tolist(), found.recall.tolist()
    ([50.0, 66.7, 100.0], [100.0, 100.0, 50.0])
    """
    limits = np.asarray(thresholds, dtype=np.float32)
    if limits.ndim != 1 or (np.diff(limits) < 0).any():
        raise ValueError("thresholds are not a list in ascending order")
    compared, values = _compare(Y_true, ranked, scores, ignore)
    given = compared.ranked >= 0
    predicted, right = (_at_least(limits, values[some]) for some in (given, compared.hits))
    return Counts(np.full(len(limits), compared.Y.nnz), predicted, right)


def threshold_grid(
    Y_true: csr_matrix,
    ranked: NDArray[np.int32],
    scores: NDArray[np.float32],
    thresholds: Sequence[float] = THRESHOLDS,
    limits: Sequence[int | None] = LIMITS,
    ignore: Ignore = None,
) -> dict[str, NDArray[np.float64]]:
    """Return `micro-F1` and `samples-F1` for each threshold (rows) and each limit of labels (columns).

    A limit of None is none. The other parameters are those of `decision_measures`.

    Examples
    --------
    >>> ranked, scores = np.array([[0, 1], [2, 1]], dtype=np.int32), np.array([[0.9, 0.2], [0.8, 0.6]])
    >>> found = threshold_grid(csr_matrix([[1, 0, 0], [0, 1, 0]]), ranked, scores, [0, 0.5], [1, None])
    >>> found["micro-F1"].round(1).tolist()
    [[50.0, 66.7], [50.0, 80.0]]
    """
    compared, values = _compare(Y_true, ranked, scores, ignore)
    shape = len(thresholds), len(limits)
    found = {"micro-F1": np.zeros(shape), "samples-F1": np.zeros(shape)}
    for i, threshold in enumerate(thresholds):
        for j, limit in enumerate(limits):
            counts = _by_document(compared, _kept(compared, values, threshold, limit))
            found["micro-F1"][i, j] = _total(counts).f1.mean()
            found["samples-F1"][i, j] = counts.f1.mean()
    return found


def first_labels(
    Y_true: csr_matrix,
    ranked: NDArray[np.int32],
    scores: NDArray[np.float32],
    k: int | None = None,
    ignore: Ignore = None,
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the scores of the first k labels of all documents, and whether they are true, as `reliability` takes them.

    >>> ranked, scores = np.array([[0, 1], [2, -1]], dtype=np.int32), np.array([[0.75, 0.25], [0.5, 0]])
    >>> first, is_right = first_labels(csr_matrix([[1, 0, 0], [0, 1, 0]]), ranked, scores, k=2)
    >>> first.tolist(), is_right.tolist()
    ([0.75, 0.25, 0.5], [True, False, False])
    """
    compared, values = _compare(Y_true, ranked, scores, ignore)
    kept = _kept(compared, values, 0.0, k)
    return values[kept], compared.hits[kept]


def _compare(
    Y_true: csr_matrix, ranked: NDArray[np.int32], scores: NDArray[np.float32], ignore: Ignore
) -> tuple[Compared, NDArray[np.float32]]:
    """Return true and ranked labels without ignored ones, and the scores of the latter."""
    labels, values = np.asarray(ranked), np.asarray(scores, dtype=np.float32)
    if labels.ndim != 2 or labels.shape != values.shape:
        raise ValueError(f"ranked has shape {labels.shape} and scores {values.shape}: give a score per ranked label")
    if not labels.shape[1]:
        labels, values = np.full((len(labels), 1), -1, dtype=np.int32), np.zeros((len(labels), 1), dtype=np.float32)
    if (np.isnan(values) & (labels >= 0)).any():
        raise ValueError("the scores contain NaN: it is neither above nor below a threshold")
    labels, values = without_ignored(labels, values, ignore, Y_true.shape)
    compared = compare(Y_true, labels, [labels.shape[1]], ignore)
    return compared, values[:, : compared.ranked.shape[1]]


def _kept(compared: Compared, scores: NDArray[np.float32], threshold: ArrayLike, k: int | None) -> NDArray[np.bool_]:
    """Return which of the ranked labels are kept."""
    limit = np.asarray(threshold, dtype=np.float32)
    n_labels = compared.Y.shape[1]
    if limit.shape not in ((), (n_labels,)) or np.isnan(limit).any():
        raise ValueError(f"the threshold is {threshold!r}: it must be a number, or one per label, {n_labels}")
    if k is not None and k < 1:
        raise ValueError(f"k is {k}: it must be at least 1, or None")
    # Where there is no label, any threshold does.
    kept: NDArray[np.bool_] = scores >= (limit if limit.ndim == 0 else limit[compared.ranked])
    kept &= compared.ranked >= 0
    if k is not None:
        kept[:, k:] = False
    return kept


def _by_label(compared: Compared, kept: NDArray[np.bool_]) -> Counts:
    labels = (compared.Y.indices, compared.ranked[kept], compared.ranked[kept & compared.hits])
    return Counts(*(np.bincount(some, minlength=compared.Y.shape[1]) for some in labels))


def _by_document(compared: Compared, kept: NDArray[np.bool_]) -> Counts:
    true = np.diff(compared.Y.indptr).astype(np.int64)
    return Counts(true, kept.sum(axis=1), (kept & compared.hits).sum(axis=1))


def _total(counts: Counts) -> Counts:
    return Counts(*(np.atleast_1d(some.sum()) for some in (counts.true, counts.predicted, counts.right)))


def _at_least(limits: NDArray[np.float32], scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return how many scores reach each limit; limits ascend."""
    reached = np.bincount(np.searchsorted(limits, scores, side="right"), minlength=len(limits) + 1)
    at_least: NDArray[np.int64] = reached[:0:-1].cumsum()[::-1]
    return at_least
