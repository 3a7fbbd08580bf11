"""Metrics of rankings, in percent, as the Extreme Classification repository defines them.

Predictions are sparse scores (labels that are not stored are not predicted), dense scores, or ranked label ids
(integers, best first, -1 for none). Documents without labels count as 0 in every mean over documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import parallel, ranking
from lightdxml.kernels.sparse import Pattern
from lightdxml.metrics.compare import Compared, Cutoffs, Ignore, Predictions, binary_labels, check_cutoffs, compare
from lightdxml.propensity import inverse_propensity_of

_CHUNK_ROWS = 1 << 14
# Labels by their number of training documents: the first number of each group.
_GROUPS = {"0": 0, "1 to 5": 1, "more than 5": 6}


def inverse_propensity(Y_train: csr_matrix, A: float = 0.55, B: float = 1.5) -> NDArray[np.float64]:
    """Return the inverse propensity 1/p of each label, which is larger for rare labels (Jain, Prabhu and Varma, 2016).

    Parameters
    ----------
    Y_train
        The training labels, documents × labels.
    A, B
        The constants of the data set. The defaults are .55 and 1.5; the repository states others for some data sets.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> inverse_propensity(csr_matrix([[1, 0], [1, 0], [1, 1]])).round(3).tolist()
    [1.071, 1.099]
    """
    Y = binary_labels(Y_train, "Y_train")
    return inverse_propensity_of(np.bincount(Y.indices, minlength=Y.shape[1]), Y.shape[0], A, B)


def evaluate(
    Y_true: csr_matrix,
    predicted: Predictions,
    k: Cutoffs = (1, 3, 5),
    inv_propensity: ArrayLike | None = None,
    ignore: Ignore = None,
) -> dict[str, float]:
    """Return all metrics at every cutoff, in percent.

    P@k is the share of the first k labels that are true; missing predictions count as wrong. R@k is the share of a
    document's labels among the first k. RP@k is R@k where a document with more than k labels counts as one
    with k, so that it can reach 100 (Chalkidis et al. 2019). nDCG@k discounts gains by log₂(rank + 1) and divides by
    the best value for the document. PSP@k and PSnDCG@k weight gains by inverse propensity and divide the sum over all
    documents by the best possible sum. coverage@k is the share of occurring labels that are right for at least one
    document. macro-F1@k is the mean over all labels of the F1 score of the first k.

    Parameters
    ----------
    Y_true
        The true labels, documents × labels; nonzero entries are true.
    predicted
        Sparse or dense scores, or ranked label ids.
    k
        One cutoff or several.
    inv_propensity
        The result of `inverse_propensity` for the training labels; without it there are no PSP and PSnDCG.
    ignore
        Pairs (document, label) that count as neither right, wrong nor missing: an array of shape (n, 2) or a sparse
        matrix. Labels that are ranked below an ignored label move up.

    Returns
    -------
    dict
        `P@k`, `R@k`, `RP@k`, `nDCG@k`, `PSP@k`, `PSnDCG@k`, `coverage@k` and `macro-F1@k`.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> Y = csr_matrix([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> evaluate(Y, [[0, 1], [2, 1]], k=[1, 2])["P@1"]
    50.0
    """
    cutoffs = check_cutoffs(k)
    compared = compare(Y_true, predicted, cutoffs, ignore)
    means = _document_means(compared, inv_propensity)
    depth = compared.ranked.shape[1]
    result = {f"{name}@{cut}": float(values[min(cut, depth) - 1]) for name, values in means.items() for cut in cutoffs}
    result |= {f"P@{cut}": result[f"P@{cut}"] * min(cut, depth) / cut for cut in cutoffs}
    return result | _label_means(compared, cutoffs)


def r_precision(Y_true: csr_matrix, predicted: Predictions, ignore: Ignore = None) -> float:
    """Return R-precision in percent: precision at the number of true labels, in the mean over all documents.

    Rank at least as many labels as a document has: missing predictions count as wrong. Parameters as in `evaluate`.

    >>> r_precision(csr_matrix([[1, 1, 0], [0, 1, 0]]), [[0, 2, 1], [1, 0]])
    75.0
    """
    n_true = int(np.diff(binary_labels(Y_true, "Y_true").indptr).max(initial=0))
    if isinstance(predicted, np.ndarray) and predicted.ndim == 2 and predicted.dtype.kind in "iu":
        # One document with very many labels must not make the table of ranked labels as wide.
        n_true = min(n_true, predicted.shape[1])
    compared = compare(Y_true, predicted, [max(1, n_true)], ignore)
    true = np.diff(compared.Y.indptr)
    ranks = np.arange(compared.ranked.shape[1])
    right = (compared.hits & (ranks < true[:, None])).sum(axis=1)
    return float(100 * (right / np.maximum(true, 1)).mean())


def document_precision(
    Y_true: csr_matrix, predicted: Predictions, k: Sequence[int] = (1, 3, 5), ignore: Ignore = None
) -> NDArray[np.float64]:
    """Return the precision of each document in percent, in the mean over these cut-offs; `ignore` as in `evaluate`.

    >>> from scipy.sparse import csr_matrix
    >>> document_precision(csr_matrix([[1, 0, 1], [0, 1, 0]]), [[0, 1], [0, 1]], k=(1, 2)).tolist()
    [75.0, 25.0]
    """
    hits = compare(Y_true, predicted, check_cutoffs(k), ignore).hits
    precision: NDArray[np.float64] = 100 * np.mean([hits[:, :cut].sum(axis=1) / cut for cut in k], axis=0)
    return precision


@dataclass(frozen=True)
class FrequencyGroup:
    """Labels with about as many training documents, and how many of their occurrences are found.

    Attributes
    ----------
    documents
        The numbers of training documents, such as `1 to 5`.
    labels, pairs
        Labels that occur, and their occurrences: pairs of document and label.
    recall
        The percentage of occurrences among the first k predictions of their documents, as `R@k`.
    """

    documents: str
    labels: int
    pairs: int
    recall: dict[str, float]


def recall_by_frequency(
    Y_true: csr_matrix,
    predicted: Predictions,
    frequency: NDArray[np.integer[Any]],
    k: Cutoffs = (5, 10),
    ignore: Ignore = None,
) -> list[FrequencyGroup]:
    """Return the recall of labels by their number of training documents: 0, 1 to 5, and more.

    Parameters
    ----------
    Y_true, predicted, k, ignore
        As in `evaluate`.
    frequency
        Training documents per label.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> groups = recall_by_frequency(csr_matrix([[1, 1], [0, 1]]), [[1], [1]], np.array([0, 7]), k=5)
    >>> [(one.documents, one.pairs, one.recall) for one in groups]
    [('0', 1, {'R@5': 0.0}), ('1 to 5', 0, {'R@5': 0.0}), ('more than 5', 2, {'R@5': 100.0})]
    """
    cutoffs = check_cutoffs(k)
    compared = compare(Y_true, predicted, cutoffs, ignore)
    group_of = np.searchsorted(list(_GROUPS.values()), frequency, side="right") - 1
    true = np.bincount(compared.Y.indices, minlength=compared.Y.shape[1])
    pairs = np.bincount(group_of, weights=true, minlength=len(_GROUPS))
    labels = np.bincount(group_of[true > 0], minlength=len(_GROUPS))
    recall: dict[str, NDArray[np.float64]] = {}
    for cut in cutoffs:
        found = compared.ranked[:, :cut][compared.hits[:, :cut]]
        recall[f"R@{cut}"] = 100 * np.bincount(group_of[found], minlength=len(_GROUPS)) / np.maximum(pairs, 1)
    return [
        FrequencyGroup(name, int(labels[i]), int(pairs[i]), {cut: float(values[i]) for cut, values in recall.items()})
        for i, name in enumerate(_GROUPS)
    ]


def _document_means(compared: Compared, inv_propensity: ArrayLike | None) -> dict[str, NDArray[np.float64]]:
    """Return P, R, RP, nDCG and, with propensities, PSP and PSnDCG at 1 … k."""
    n, k = compared.ranked.shape
    n_labels = compared.Y.shape[1]
    weights = np.ones(n_labels) if inv_propensity is None else _check_weights(inv_propensity, n_labels)
    truth = Pattern.of(compared.Y)

    def gains(bounds: tuple[int, int]) -> NDArray[np.float64]:
        sums = np.empty((8, k))
        ranking.sum_gains(*bounds, truth, compared.ranked, compared.hits, weights, sums)
        return sums

    # Chunks of a fixed size, added in order: the same bits at any number of threads.
    sums = np.sum(parallel.run(gains, parallel.fixed_chunks(n, _CHUNK_ROWS)), axis=0)
    result = {"P": sums[0] / np.arange(1, k + 1) / n, "R": sums[1] / n, "nDCG": sums[2] / n, "RP": sums[7] / n}
    if inv_propensity is not None:
        result["PSP"] = np.divide(sums[3], sums[4], out=np.zeros(k), where=sums[4] > 0)
        result["PSnDCG"] = np.divide(sums[5], sums[6], out=np.zeros(k), where=sums[6] > 0)
    return {name: 100.0 * values for name, values in result.items()}


def _check_weights(inv_propensity: ArrayLike, n_labels: int) -> NDArray[np.float64]:
    weights = np.ascontiguousarray(inv_propensity, dtype=np.float64)
    if weights.shape != (n_labels,):
        raise ValueError(f"inv_propensity has shape {weights.shape}: it must have one entry per label, {n_labels}")
    if not np.all(np.isfinite(weights)) or (weights < 0).any():
        raise ValueError("inv_propensity has negative or infinite values: use inverse_propensity(Y_train)")
    return weights


def _label_means(compared: Compared, cutoffs: list[int]) -> dict[str, float]:
    """Return coverage and macro-F1 at each cutoff."""
    n_labels = compared.Y.shape[1]
    predicted = np.zeros((len(cutoffs), n_labels), dtype=np.int64)
    right = np.zeros_like(predicted)
    cutoff_of_rank = np.searchsorted(cutoffs, np.arange(1, compared.ranked.shape[1] + 1))
    ranking.count_labels(compared.ranked, compared.hits, cutoff_of_rank, predicted, right)
    true = np.bincount(compared.Y.indices, minlength=n_labels)
    occurring = max(1, int(np.count_nonzero(true)))
    coverage, macro_f1 = {}, {}
    for cut, n_predicted, n_right in zip(cutoffs, predicted.cumsum(axis=0), right.cumsum(axis=0), strict=True):
        either = true + n_predicted
        f1 = np.divide(2.0 * n_right, either, out=np.zeros(n_labels), where=either > 0)
        coverage[f"coverage@{cut}"] = 100.0 * float(np.count_nonzero(n_right)) / occurring
        macro_f1[f"macro-F1@{cut}"] = 100.0 * float(f1.mean())
    return coverage | macro_f1


def confidence_interval(percent: float, n: int) -> tuple[float, float]:
    """Return the 95% confidence interval of a percentage of n documents, such as P@1 (Wilson's score interval).

    Examples
    --------
    >>> [round(bound, 1) for bound in confidence_interval(60.0, 100)]
    [50.2, 69.1]
    """
    z, share = 1.959964, percent / 100
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5 / (1 + z * z / n)
    return 100 * max(0.0, middle - half), 100 * min(1.0, middle + half)
