"""Inverted indexes with more classes and features than they were trained with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import inverted_index as kernels
from lightdxml.kernels import parallel
from lightdxml.kernels.precision import as_bits
from lightdxml.views.base import Batch, NewLabels
from lightdxml.views.linear.inverted import InvertedIndex, margins_of, n_blocks
from lightdxml.views.linear.model import LinearView
from lightdxml.views.linear.options import SOLVER
from lightdxml.views.linear.solver import Weights, inverted

# What a name is worth if no label can tell.
_DEFAULT_SCALE = 1.0


def with_labels(view: LinearView, new: NewLabels) -> LinearView:
    """Return the view with weights of untrained labels: their names, scaled as training did with names like them."""
    names = new.names.by_label(new.n_labels)
    rows = csr_matrix(names[new.untrained] * np.float32(_scale(view.index, names, new)))
    usual = view.index.biases[new.examples].mean(dtype=np.float64) if len(new.examples) else SOLVER.bias
    biases = np.full(len(new.untrained), usual, dtype=np.float32)
    counts = np.diff(rows.indptr).astype(np.int64)
    weights = Weights(new.untrained, counts, rows.indices.astype(np.int32), rows.data, biases)
    return replace(view, index=grown(view.index, new.n_features, new.n_labels, SOLVER.bias, weights))


def _scale(index: InvertedIndex, names: csr_matrix, new: NewLabels) -> float:
    """Return the multiple of their names that comes nearest to the weights of examples, by least squares."""
    rows = csr_matrix(names[new.examples])
    squares = float(rows.multiply(rows).sum())
    if not squares:
        return _DEFAULT_SCALE
    wide = _with_features(index, new.n_features)
    margins = margins_of(wide, Batch(rows), new.examples[:, None]).ravel() - index.biases[new.examples]
    return max(0.0, float(margins.sum(dtype=np.float64)) / squares)


def _with_features(index: InvertedIndex, n_features: int) -> InvertedIndex:
    """Return an index of more features, for which no class has a weight."""
    more = n_features + 1 - index.indptr.shape[1]
    ends = np.repeat(index.indptr[:, -1:], more, axis=1)
    indptr = np.concatenate([index.indptr, ends], axis=1)
    return InvertedIndex(indptr, index.classes, index.weights, index.biases, index.dense)


def grown(
    index: InvertedIndex, n_features: int, n_classes: int, bias: float, added: Weights | None = None
) -> InvertedIndex:
    """Return an index with more features and classes: with these weights, or with this bias alone.

    Weights of a class that the index has replace those that it had.

    Examples
    --------
    >>> classes, no = np.array([0], dtype=np.uint16), np.empty(0, dtype=np.int32)
    >>> index = InvertedIndex(np.array([[0, 1]]), classes, np.ones(1, np.float32), np.zeros(1, np.float32), no)
    >>> more = grown(index, 2, 3, -1.0)
    >>> more.indptr.tolist(), more.biases.tolist()
    ([[0, 1, 1]], [0.0, -1.0, -1.0])
    """
    dense = index.dense if added is None else np.setdiff1d(index.dense, added.classes).astype(np.int32)
    none = np.empty(0, dtype=np.int32)
    other = inverted([] if added is None else [added], n_features, n_classes, index.weights.dtype.name, bias, none)
    is_replaced = np.zeros(n_classes, dtype=np.uint8)
    biases = np.append(index.biases, other.biases[len(index.biases) :])
    if added is not None:
        is_replaced[added.classes] = 1
        biases[added.classes] = added.biases
    # In float32 if the new weights would overflow in float16.
    kind = np.result_type(index.weights.dtype, other.weights.dtype)
    old, new = (replace(one, weights=one.weights.astype(kind, copy=False)).postings for one in (index, other))
    counts = np.empty((n_blocks(n_classes), n_features), dtype=np.int64)
    parallel.over(lambda first, last: kernels.count_merged(first, last, old, new, is_replaced, counts), n_features)
    indptr = np.zeros((len(counts), n_features + 1), dtype=np.int64)
    indptr[:, 1:] = np.cumsum(counts).reshape(counts.shape)
    indptr[1:, 0] = indptr[:-1, -1]
    classes, weights = np.empty(indptr[-1, -1], dtype=np.uint16), np.empty(indptr[-1, -1], dtype=kind)
    out = indptr, classes, as_bits(weights)
    parallel.over(lambda first, last: kernels.merge(first, last, old, new, is_replaced, *out), n_features)
    return InvertedIndex(indptr, classes, weights, biases, dense)


def weights_of(index: InvertedIndex, classes: NDArray[np.int32]) -> csr_matrix:
    """Return the weights of some classes, ascending: all classes × features, in which other rows are empty.

    Classes that the index does not have are empty, too, but the matrix has rows up to the last one.

    Examples
    --------
    >>> of_classes, no = np.array([0, 1], dtype=np.uint16), np.empty(0, dtype=np.int32)
    >>> index = InvertedIndex(np.array([[0, 2]]), of_classes, np.ones(2, np.float32), np.zeros(2, np.float32), no)
    >>> weights_of(index, np.array([1, 2], dtype=np.int32)).toarray().tolist()
    [[0.0], [1.0], [0.0]]
    """
    n_classes, n_features = len(index.biases), index.indptr.shape[1] - 1
    known = classes[classes < n_classes]
    slots = np.full(n_classes, -1, dtype=np.int32)
    slots[known] = np.arange(len(known), dtype=np.int32)
    counts = np.zeros(len(known), dtype=np.int64)
    kernels.count_entries(index.postings, slots, counts)
    columns, weights = np.empty(counts.sum(), dtype=np.int32), np.empty(counts.sum(), dtype=np.float32)
    kernels.collect_entries(index.postings, slots, np.cumsum(counts) - counts, columns, weights)
    per_row = np.zeros(max(n_classes, int(classes.max(initial=-1)) + 1), dtype=np.int64)
    per_row[known] = counts
    found = csr_matrix((weights, columns, np.append(0, np.cumsum(per_row))), shape=(len(per_row), n_features))
    # The index of an untrusted model may have a class twice for a feature: compiled code has no room for that.
    found.sum_duplicates()
    return found
