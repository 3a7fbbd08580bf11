"""True labels next to predictions: what all metrics start from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import parallel, ranking
from lightdxml.kernels.sparse import Csr, Pattern

Predictions: TypeAlias = "csr_matrix | NDArray[Any] | Sequence[Sequence[int]]"
Ignore: TypeAlias = "csr_matrix | NDArray[Any] | Sequence[Sequence[int]] | None"
Cutoffs: TypeAlias = "int | Iterable[int]"
T = TypeVar("T")


@dataclass(frozen=True)
class Compared:
    """True labels, ranked labels, and which of the ranked labels are true."""

    Y: csr_matrix
    ranked: NDArray[np.int32]
    hits: NDArray[np.bool_]


def compare(Y_true: csr_matrix, predicted: Predictions, cutoffs: list[int], ignore: Ignore) -> Compared:
    """Return the first labels of every document, up to the highest cut-off, next to the true ones."""
    Y = binary_labels(Y_true, "Y_true")
    if 0 in Y.shape:
        raise ValueError(f"Y_true has shape {Y.shape}: there is nothing to evaluate")
    ignored = _ignored_labels(ignore, Y.shape)
    # Beyond the number of labels, only the divisor of P@k changes.
    ranked = _rank(predicted, Y.shape, min(max(cutoffs), Y.shape[1]), ignored)
    if ignored is not None:
        Y = binary_labels(Y - Y.multiply(ignored), "Y_true")
    hits = np.empty(ranked.shape, dtype=np.bool_)
    truth = Pattern.of(Y)
    found = _over_rows(lambda bounds: ranking.find_hits(*bounds, truth, ranked, hits), Y.shape[0])
    repeated = [row for row in found if row >= 0]
    if repeated:
        raise ValueError(f"the ranking of document {repeated[0]} contains a label twice: each label may occur once")
    return Compared(Y, ranked, hits)


def _over_rows(function: Callable[[tuple[int, int]], T], n: int) -> list[T]:
    """Return what a function of a range of rows gives, for ranges that threads share."""
    return parallel.run(function, parallel.ranges(n, parallel.thread_count()))


def binary_labels(Y: csr_matrix, name: str) -> csr_matrix:
    """Return a canonical 0/1 matrix with int32 indices."""
    if isinstance(Y, Sequence) or np.ndim(Y) not in (0, 2):
        raise ValueError(f"{name} is not a matrix of documents × labels: give a sparse matrix or a 2-d array")
    Y = csr_matrix(Y)
    if not Y.has_canonical_format or not np.all(Y.data):
        Y = Y.copy()
        Y.sum_duplicates()
        Y.eliminate_zeros()
    return csr_matrix((np.ones(Y.nnz, dtype=np.int8), Y.indices.astype(np.int32, copy=False), Y.indptr), shape=Y.shape)


def check_cutoffs(k: Cutoffs) -> list[int]:
    """Return cut-offs in ascending order, each once."""
    given = list(k) if isinstance(k, Iterable) else [k]
    if not given or any(isinstance(c, bool) or not isinstance(c, int | np.integer) or c < 1 for c in given):
        raise ValueError(f"k is {k!r}: it must be an integer of at least 1, or several")
    return sorted({int(cut) for cut in given})


def _ignored_labels(ignore: Ignore, shape: tuple[int, int]) -> csr_matrix | None:
    if ignore is None:
        return None
    if isinstance(ignore, scipy.sparse.sparray | scipy.sparse.spmatrix):
        if ignore.shape != shape:
            raise ValueError(f"ignore has shape {ignore.shape}: it must have that of Y_true, {shape}")
        return binary_labels(ignore, "ignore")
    pairs = np.asarray(ignore)
    if pairs.size == 0:
        return None
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError("ignore is not a list of pairs: give an integer array of shape (n, 2) of documents and labels")
    if (pairs < 0).any() or (pairs >= np.array(shape)).any():
        raise ValueError(f"ignore has a document or label outside of Y_true, which has shape {shape}")
    ones = np.ones(len(pairs), dtype=np.int64)
    return binary_labels(csr_matrix((ones, (pairs[:, 0], pairs[:, 1])), shape=shape), "ignore")


def without_ignored(
    ranked: NDArray[np.int32], scores: NDArray[np.float32], ignore: Ignore, shape: tuple[int, int]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return ranked labels and their scores without ignored ones: later ones move up, -1 and 0 follow.

    >>> ranked, scores = np.array([[4, 2, 3]], dtype=np.int32), np.array([[0.75, 0.5, 0.25]], dtype=np.float32)
    >>> ranked, scores = without_ignored(ranked, scores, [[0, 2]], (1, 5))
    >>> ranked.tolist(), scores.tolist()
    ([[4, 3, -1]], [[0.75, 0.25, 0.0]])
    """
    left_out = ranked < 0
    ignored = _ignored_labels(ignore, shape)
    if ignored is not None:
        is_ignored, pattern, labels = np.zeros_like(left_out), Pattern.of(ignored), ranked.astype(np.int32, copy=False)
        _over_rows(lambda bounds: ranking.find_hits(*bounds, pattern, labels, is_ignored), len(ranked))
        left_out |= is_ignored
    rows = np.flatnonzero((left_out[:, :-1] & ~left_out[:, 1:]).any(axis=1) | (left_out & (ranked >= 0)).any(axis=1))
    if not len(rows):
        return ranked, scores
    order = np.argsort(left_out[rows], axis=1, kind="stable")
    gone = np.take_along_axis(left_out[rows], order, axis=1)
    ranked, scores = ranked.copy(), scores.copy()
    ranked[rows] = np.where(gone, -1, np.take_along_axis(ranked[rows], order, axis=1))
    scores[rows] = np.where(gone, 0, np.take_along_axis(scores[rows], order, axis=1))
    return ranked, scores


def _rank(predicted: Predictions, shape: tuple[int, int], k: int, ignored: csr_matrix | None) -> NDArray[np.int32]:
    """Return the first k labels of every document, padded with -1."""
    if scipy.sparse.issparse(predicted):
        return _rank_scores(csr_matrix(predicted), shape, k, ignored)
    array = _pad(predicted) if isinstance(predicted, Sequence) else np.asarray(predicted)
    if array.ndim != 2 or array.shape[0] != shape[0]:
        raise ValueError(f"predictions have shape {array.shape}: they must have one row per document, {shape[0]}")
    if array.dtype.kind == "f":
        if array.shape != shape:
            raise ValueError(
                f"dense scores have shape {array.shape}: they must have that of Y_true, {shape}; "
                "ranked labels must be integers"
            )
        columns = np.tile(np.arange(shape[1], dtype=np.int32), shape[0])
        indptr = np.arange(shape[0] + 1, dtype=np.int64) * shape[1]
        return _rank_scores(csr_matrix((array.ravel(), columns, indptr), shape=shape), shape, k, ignored)
    if array.dtype.kind not in "iu":
        raise ValueError(f"predictions have type {array.dtype}: give scores, or integers as ranked labels")
    if array.size and (array.min() < -1 or array.max() >= shape[1]):
        raise ValueError(f"a ranked label is outside of -1 … {shape[1] - 1}: Y_true has {shape[1]} labels")
    return _cut_ranking(array, k, ignored)


def _pad(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    width = max((len(row) for row in rows), default=0)
    padded = np.full((len(rows), width), -1, dtype=np.int64)
    for i, row in enumerate(rows):
        given = np.asarray(row)
        if given.size and given.dtype.kind not in "iu":
            raise ValueError(f"the ranking of document {i} is {row!r}: give label ids, which are integers")
        padded[i, : len(row)] = given
    return padded


def _cut_ranking(array: NDArray[Any], k: int, ignored: csr_matrix | None) -> NDArray[np.int32]:
    """Return the first k ranked labels that are not ignored."""
    keep = array.shape[1] if ignored is not None else min(k, array.shape[1])
    ranked = np.full((array.shape[0], max(k, keep)), -1, dtype=np.int32)
    ranked[:, :keep] = array[:, :keep]
    if ignored is not None:
        pattern = Pattern.of(ignored)
        _over_rows(lambda bounds: ranking.drop_ignored(*bounds, pattern, ranked), len(ranked))
    return np.ascontiguousarray(ranked[:, :k])


def _rank_scores(scores: csr_matrix, shape: tuple[int, int], k: int, ignored: csr_matrix | None) -> NDArray[np.int32]:
    """Return the k labels with the highest scores."""
    if scores.shape != shape:
        raise ValueError(f"scores have shape {scores.shape}: they must have that of Y_true, {shape}")
    if not scores.has_canonical_format:
        scores = scores.copy()
        scores.sum_duplicates()
    values = scores.data if scores.dtype in (np.float32, np.float64) else scores.data.astype(np.float64)
    given = Csr(scores.indptr.astype(np.int64), scores.indices.astype(np.int32, copy=False), values)
    pattern = Pattern.of(csr_matrix(shape, dtype=np.int8) if ignored is None else ignored)
    ranked = np.empty((shape[0], k), dtype=np.int32)
    bad = [row for row in _over_rows(lambda rows: ranking.top_k(*rows, given, pattern, ranked), shape[0]) if row >= 0]
    if bad:
        raise ValueError(f"the scores of document {bad[0]} contain NaN: it has no rank")
    return ranked
