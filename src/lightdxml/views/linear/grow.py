"""Inverted indexes with more classes and features than they were trained with."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.kernels.inverted_index import BLOCK
from lightdxml.views.base import Batch, NewLabels
from lightdxml.views.linear.inverted import InvertedIndex, margins_of
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
    return LinearView(grown(view.index, new.n_features, new.n_labels, SOLVER.bias, weights), view.proposals)


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
    old, parts = _by_class(index), []
    dense = index.dense
    if added is not None:
        parts, dense = [added], np.setdiff1d(dense, added.classes).astype(np.int32)
    return inverted([old, *parts], n_features, n_classes, index.weights.dtype.name, bias, dense)


def _by_class(index: InvertedIndex) -> Weights:
    """Return the weights of an index, one class after the other."""
    n_blocks, n_features = index.indptr.shape[0], index.indptr.shape[1] - 1
    per_feature = np.diff(index.indptr, axis=1)
    features = np.repeat(np.tile(np.arange(n_features, dtype=np.int32), n_blocks), per_feature.ravel())
    firsts = np.repeat(BLOCK * np.arange(n_blocks), per_feature.sum(axis=1))
    classes = index.classes + firsts
    order = np.argsort(classes, kind="stable")
    counts = np.bincount(classes, minlength=len(index.biases))
    every = np.arange(len(index.biases), dtype=np.int32)
    return Weights(every, counts, features[order], index.weights[order].astype(np.float32), index.biases)
