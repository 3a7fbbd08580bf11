"""How good a ranking of labels is, as the Extreme Classification repository defines it, in percent.

Every function takes the true labels and, as predictions, either sparse scores (what is not stored is not predicted),
dense scores, or ranked label numbers (whole numbers, best first, -1 for none). Documents without labels count, with
a value of 0, in every mean over documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import parallel, ranking

Predictions: TypeAlias = "csr_matrix | NDArray[Any] | Sequence[Sequence[int]]"
Ignore: TypeAlias = "csr_matrix | NDArray[Any] | Sequence[Sequence[int]] | None"
Cutoffs: TypeAlias = "int | Iterable[int]"

_CHUNK_ROWS = 1 << 14


def inverse_propensity(Y_train: csr_matrix, A: float = 0.55, B: float = 1.5) -> NDArray[np.float64]:
    """Return 1/p for each label: how much more a rare label counts (Jain, Prabhu and Varma, 2016).

    Parameters
    ----------
    Y_train
        The training labels, documents × labels.
    A, B
        The data set's constants; .55 and 1.5 unless the repository gives others.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> inverse_propensity(csr_matrix([[1, 0], [1, 0], [1, 1]])).round(3).tolist()
    [1.071, 1.099]
    """
    Y = _labels(Y_train, "Y_train")
    return inverse_propensity_of(np.bincount(Y.indices, minlength=Y.shape[1]), Y.shape[0], A, B)


def inverse_propensity_of(
    counts: NDArray[np.integer[Any]], n_documents: int, A: float = 0.55, B: float = 1.5
) -> NDArray[np.float64]:
    """Return 1/p for each label from its number of training documents and the number of all.

    >>> inverse_propensity_of(np.array([3, 1]), 3).round(3).tolist()
    [1.071, 1.099]
    """
    # With fewer than three documents the constant would be negative and a propensity above one.
    C = max(np.log(max(n_documents, 1)) - 1.0, 0.0) * (B + 1.0) ** A
    return np.asarray(1.0 + C * (counts + B) ** -A, dtype=np.float64)


def evaluate(
    Y_true: csr_matrix,
    predicted: Predictions,
    k: Cutoffs = (1, 3, 5),
    inv_propensity: ArrayLike | None = None,
    ignore: Ignore = None,
) -> dict[str, float]:
    """Return all measures at every k, in percent.

    Parameters
    ----------
    Y_true
        The true labels, documents × labels; what is stored and not zero is true.
    predicted
        Sparse or dense scores, or ranked label numbers.
    k
        One cut-off or several.
    inv_propensity
        What `inverse_propensity` returns for the training labels; without it there is no PSP and no PSnDCG.
    ignore
        Pairs (document, label) that count neither as right nor as wrong nor as missing: an array of shape (n, 2) or
        a sparse matrix. What is ranked below an ignored label moves up.

    Returns
    -------
    dict
        `P@k`, `R@k`, `nDCG@k`, `PSP@k`, `PSnDCG@k`, `coverage@k` and `macro-F1@k`.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> Y = csr_matrix([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> evaluate(Y, [[0, 1], [2, 1]], k=[1, 2])["P@1"]
    50.0
    """
    cutoffs = _cutoffs(k)
    judged = _judge(Y_true, predicted, cutoffs, ignore)
    means = _mean_gains(judged, inv_propensity)
    places = judged.ranked.shape[1]
    result = {f"{name}@{cut}": float(values[min(cut, places) - 1]) for name, values in means.items() for cut in cutoffs}
    result |= {f"P@{cut}": result[f"P@{cut}"] * min(cut, places) / cut for cut in cutoffs}
    return result | _label_means(judged, cutoffs)


def precision_at_k(Y_true: csr_matrix, predicted: Predictions, k: int = 5, ignore: Ignore = None) -> float:
    """P@k: the share of the first k that is true; places without a prediction count as wrong.

    >>> from scipy.sparse import csr_matrix
    >>> precision_at_k(csr_matrix([[1, 0, 1]]), [[0, 1]], k=2)
    50.0
    """
    return evaluate(Y_true, predicted, k, ignore=ignore)[f"P@{k}"]


def recall_at_k(Y_true: csr_matrix, predicted: Predictions, k: int = 5, ignore: Ignore = None) -> float:
    """R@k: the share of a document's labels that is among the first k.

    >>> from scipy.sparse import csr_matrix
    >>> recall_at_k(csr_matrix([[1, 0, 1]]), [[0, 1]], k=1)
    50.0
    """
    return evaluate(Y_true, predicted, k, ignore=ignore)[f"R@{k}"]


def ndcg_at_k(Y_true: csr_matrix, predicted: Predictions, k: int = 5, ignore: Ignore = None) -> float:
    """nDCG@k: gains discounted by log₂(rank + 1), over the best that the document's labels allow.

    >>> from scipy.sparse import csr_matrix
    >>> round(ndcg_at_k(csr_matrix([[1, 0, 0]]), [[1, 0]], k=2), 3)
    63.093
    """
    return evaluate(Y_true, predicted, k, ignore=ignore)[f"nDCG@{k}"]


def psp_at_k(
    Y_true: csr_matrix, predicted: Predictions, inv_propensity: ArrayLike, k: int = 5, ignore: Ignore = None
) -> float:
    """PSP@k: the summed propensity-weighted gain of all documents over the best possible summed gain.

    >>> from scipy.sparse import csr_matrix
    >>> psp_at_k(csr_matrix([[1, 0], [0, 1]]), [[0], [0]], [1.0, 3.0], k=1)
    25.0
    """
    return evaluate(Y_true, predicted, k, inv_propensity, ignore)[f"PSP@{k}"]


def psndcg_at_k(
    Y_true: csr_matrix, predicted: Predictions, inv_propensity: ArrayLike, k: int = 5, ignore: Ignore = None
) -> float:
    """PSnDCG@k: as PSP@k, with each document's gains discounted and normalised as in nDCG@k.

    >>> from scipy.sparse import csr_matrix
    >>> psndcg_at_k(csr_matrix([[1, 0], [0, 1]]), [[0], [0]], [1.0, 3.0], k=1)
    25.0
    """
    return evaluate(Y_true, predicted, k, inv_propensity, ignore)[f"PSnDCG@{k}"]


def coverage_at_k(Y_true: csr_matrix, predicted: Predictions, k: int = 5, ignore: Ignore = None) -> float:
    """coverage@k: the share of the labels that occur for which at least one document is got right.

    >>> from scipy.sparse import csr_matrix
    >>> coverage_at_k(csr_matrix([[1, 0], [0, 1]]), [[0], [0]], k=1)
    50.0
    """
    return evaluate(Y_true, predicted, k, ignore=ignore)[f"coverage@{k}"]


def macro_f1_at_k(Y_true: csr_matrix, predicted: Predictions, k: int = 5, ignore: Ignore = None) -> float:
    """macro-F1@k: the mean over all labels of the F1 of predicting the first k; 0 for labels never seen.

    >>> from scipy.sparse import csr_matrix
    >>> round(macro_f1_at_k(csr_matrix([[1, 0], [0, 1]]), [[0], [0]], k=1), 3)
    33.333
    """
    return evaluate(Y_true, predicted, k, ignore=ignore)[f"macro-F1@{k}"]


@dataclass(frozen=True)
class _Judged:
    """Ranked labels of every document, and which of them are true."""

    Y: csr_matrix
    ranked: NDArray[np.int32]
    hits: NDArray[np.bool_]


def _judge(Y_true: csr_matrix, predicted: Predictions, cutoffs: list[int], ignore: Ignore) -> _Judged:
    Y = _labels(Y_true, "Y_true")
    if 0 in Y.shape:
        raise ValueError(f"Y_true has shape {Y.shape}: there is nothing to measure")
    ignored = _ignored(ignore, Y.shape)
    # There are no more places than labels: beyond them nothing changes but what P@k divides by.
    ranked = _rank(predicted, Y.shape, min(max(cutoffs), Y.shape[1]), ignored)
    if ignored is not None:
        Y = Y - Y.multiply(ignored)
        Y = _labels(Y, "Y_true")
    hits = np.empty(ranked.shape, dtype=np.bool_)
    pointers = Y.indptr.astype(np.int64)

    def find(bounds: tuple[int, int]) -> int:
        return ranking.find_hits(*bounds, pointers, Y.indices, ranked, hits)

    repeated = [row for row in _over_rows(find, Y.shape[0]) if row >= 0]
    if repeated:
        raise ValueError(f"document {repeated[0]} has a label twice in its ranking: each label may stand once")
    return _Judged(Y, ranked, hits)


def _over_rows(function: Any, n: int) -> list[Any]:
    return parallel.run(function, parallel.ranges(n, parallel.thread_count()))


def _labels(Y: csr_matrix, name: str) -> csr_matrix:
    """Return a 0/1 matrix with sorted int32 columns."""
    if isinstance(Y, Sequence) or np.ndim(Y) not in (0, 2):
        raise ValueError(f"{name} is no matrix of documents × labels: give a sparse matrix or a 2-d array")
    Y = csr_matrix(Y)
    if not Y.has_canonical_format or not np.all(Y.data):
        Y = Y.copy()
        Y.sum_duplicates()
        Y.eliminate_zeros()
    return csr_matrix((np.ones(Y.nnz, dtype=np.int8), Y.indices.astype(np.int32, copy=False), Y.indptr), shape=Y.shape)


def _cutoffs(k: Cutoffs) -> list[int]:
    given = list(k) if isinstance(k, Iterable) else [k]
    if not given or any(isinstance(c, bool) or not isinstance(c, int | np.integer) or c < 1 for c in given):
        raise ValueError(f"k is {k!r}: it must be a whole number from 1, or several")
    return sorted({int(cut) for cut in given})


def _ignored(ignore: Ignore, shape: tuple[int, int]) -> csr_matrix | None:
    if ignore is None:
        return None
    if isinstance(ignore, scipy.sparse.sparray | scipy.sparse.spmatrix):
        if ignore.shape != shape:
            raise ValueError(f"ignore has shape {ignore.shape}: it must be that of Y_true, {shape}")
        return _labels(ignore, "ignore")
    pairs = np.asarray(ignore)
    if pairs.size == 0:
        return None
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError("ignore is no list of pairs: give an array of shape (n, 2) of documents and labels")
    if (pairs < 0).any() or (pairs >= np.array(shape)).any():
        raise ValueError(f"ignore names a document or label outside of Y_true, which has shape {shape}")
    ones = np.ones(len(pairs), dtype=np.int8)
    return _labels(csr_matrix((ones, (pairs[:, 0], pairs[:, 1])), shape=shape, dtype=np.int64), "ignore")


def _rank(predicted: Predictions, shape: tuple[int, int], k: int, ignored: csr_matrix | None) -> NDArray[np.int32]:
    """Return the first k labels of every document, -1 where there are fewer."""
    if scipy.sparse.issparse(predicted):
        return _rank_scores(csr_matrix(predicted), shape, k, ignored)
    array = _pad(predicted) if isinstance(predicted, Sequence) else np.asarray(predicted)
    if array.ndim != 2 or array.shape[0] != shape[0]:
        raise ValueError(
            f"predictions have shape {array.shape}: there must be one row for each of {shape[0]} documents"
        )
    if array.dtype.kind == "f":
        if array.shape != shape:
            raise ValueError(
                f"dense scores have shape {array.shape}: they must have that of Y_true, {shape}; "
                "ranked labels must be whole numbers"
            )
        every = np.tile(np.arange(shape[1], dtype=np.int32), shape[0])
        pointers = np.arange(shape[0] + 1, dtype=np.int64) * shape[1]
        return _rank_scores(csr_matrix((array.ravel(), every, pointers), shape=shape), shape, k, ignored)
    if array.dtype.kind not in "iu":
        raise ValueError(f"predictions are of type {array.dtype}: give scores, or whole numbers that rank labels")
    if array.size and (array.min() < -1 or array.max() >= shape[1]):
        raise ValueError(f"a ranked label is outside of -1 … {shape[1] - 1}: Y_true has {shape[1]} labels")
    return _rank_given(array, k, ignored)


def _pad(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    width = max((len(row) for row in rows), default=0)
    padded = np.full((len(rows), width), -1, dtype=np.int64)
    for i, row in enumerate(rows):
        given = np.asarray(row)
        if given.size and given.dtype.kind not in "iu":
            raise ValueError(f"the ranking of document {i} holds something else than label numbers: {row!r}")
        padded[i, : len(row)] = given
    return padded


def _rank_given(array: NDArray[Any], k: int, ignored: csr_matrix | None) -> NDArray[np.int32]:
    keep = array.shape[1] if ignored is not None else min(k, array.shape[1])
    ranked = np.full((array.shape[0], max(k, keep)), -1, dtype=np.int32)
    ranked[:, :keep] = array[:, :keep]
    if ignored is not None:
        pointers = ignored.indptr.astype(np.int64)

        def drop(bounds: tuple[int, int]) -> None:
            ranking.drop_ignored(*bounds, pointers, ignored.indices, ranked)

        _over_rows(drop, len(ranked))
    return np.ascontiguousarray(ranked[:, :k])


def _rank_scores(scores: csr_matrix, shape: tuple[int, int], k: int, ignored: csr_matrix | None) -> NDArray[np.int32]:
    if scores.shape != shape:
        raise ValueError(f"scores have shape {scores.shape}: they must have that of Y_true, {shape}")
    if not scores.has_canonical_format:
        scores = scores.copy()
        scores.sum_duplicates()
    values = scores.data if scores.dtype in (np.float32, np.float64) else scores.data.astype(np.float64)
    columns = scores.indices.astype(np.int32, copy=False)
    pointers = scores.indptr.astype(np.int64)
    if ignored is None:
        ignored = csr_matrix(shape, dtype=np.int8)
    ignore_pointers, ignore_columns = (
        ignored.indptr.astype(np.int64),
        ignored.indices.astype(np.int32, copy=False),
    )
    ranked = np.empty((shape[0], k), dtype=np.int32)

    def rank(bounds: tuple[int, int]) -> int:
        return ranking.top_k(*bounds, pointers, columns, values, ignore_pointers, ignore_columns, ranked)

    bad = [row for row in _over_rows(rank, shape[0]) if row >= 0]
    if bad:
        raise ValueError(f"the scores of document {bad[0]} hold NaN: it has no place in a ranking")
    return ranked


def _mean_gains(judged: _Judged, inv_propensity: ArrayLike | None) -> dict[str, NDArray[np.float64]]:
    """Return P, R, nDCG, and with propensities PSP and PSnDCG, at 1 … k."""
    n, k = judged.ranked.shape
    n_labels = judged.Y.shape[1]
    weights = np.ones(n_labels) if inv_propensity is None else _weights(inv_propensity, n_labels)
    pointers = judged.Y.indptr.astype(np.int64)

    def gains(bounds: tuple[int, int]) -> NDArray[np.float64]:
        sums = np.empty((7, k))
        ranking.sum_gains(*bounds, pointers, judged.Y.indices, judged.ranked, judged.hits, weights, sums)
        return sums

    # Chunks of a fixed size, added in order: the same bits at any number of threads.
    chunks = [(start, min(start + _CHUNK_ROWS, n)) for start in range(0, n, _CHUNK_ROWS)]
    sums = np.sum(parallel.run(gains, chunks), axis=0)
    result = {"P": sums[0] / np.arange(1, k + 1) / n, "R": sums[1] / n, "nDCG": sums[2] / n}
    if inv_propensity is not None:
        result["PSP"] = np.divide(sums[3], sums[4], out=np.zeros(k), where=sums[4] > 0)
        result["PSnDCG"] = np.divide(sums[5], sums[6], out=np.zeros(k), where=sums[6] > 0)
    return {name: 100.0 * values for name, values in result.items()}


def _weights(inv_propensity: ArrayLike, n_labels: int) -> NDArray[np.float64]:
    weights = np.ascontiguousarray(inv_propensity, dtype=np.float64)
    if weights.shape != (n_labels,):
        raise ValueError(
            f"inv_propensity has shape {weights.shape}: it must have one entry for each of {n_labels} labels"
        )
    if not np.all(np.isfinite(weights)) or (weights < 0).any():
        raise ValueError("inv_propensity holds negative or infinite values: use inverse_propensity(Y_train)")
    return weights


def _label_means(judged: _Judged, cutoffs: list[int]) -> dict[str, float]:
    """Return coverage and macro-F1 at each cut-off."""
    n_labels = judged.Y.shape[1]
    predicted = np.zeros((len(cutoffs), n_labels), dtype=np.int64)
    right = np.zeros_like(predicted)
    cut_of_place = np.searchsorted(cutoffs, np.arange(1, judged.ranked.shape[1] + 1))
    ranking.count_labels(judged.ranked, judged.hits, cut_of_place, predicted, right)
    true = np.bincount(judged.Y.indices, minlength=n_labels)
    occurring = max(1, int(np.count_nonzero(true)))
    coverage, macro_f1 = {}, {}
    for cut, n_predicted, n_right in zip(cutoffs, predicted.cumsum(axis=0), right.cumsum(axis=0), strict=True):
        either = true + n_predicted
        f1 = np.divide(2.0 * n_right, either, out=np.zeros(n_labels), where=either > 0)
        coverage[f"coverage@{cut}"] = 100.0 * float(np.count_nonzero(n_right)) / occurring
        macro_f1[f"macro-F1@{cut}"] = 100.0 * float(f1.mean())
    return coverage | macro_f1
