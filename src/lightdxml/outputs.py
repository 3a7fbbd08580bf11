"""Predictions in the form in which labels were given to training: lists, a matrix, or one class per document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.model.blend import logit
from lightdxml.model.model import Model

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# What training was given: such predictions are matrices too.
MATRICES = ("dense", "sparse")
# A matrix of more cells is sparse, unless a dense one is asked for.
_CELLS = 10_000_000


def as_lists(model: Model, labels: NDArray[np.int32]) -> list[list[Any]]:
    """Return the labels of each document, as training got them."""
    return [[model.given_label(j) for j in row if j >= 0] for row in labels.tolist()]


def as_matrix(model: Model, labels: NDArray[np.int32], values: NDArray[np.float32]) -> csr_matrix:
    """Return values of labels as a sparse matrix, documents × labels."""
    from scipy.sparse import csr_matrix

    rows, found = np.repeat(np.arange(len(labels)), labels.shape[1]), labels.ravel() >= 0
    entries = values.ravel()[found], (rows[found], labels.ravel()[found])
    return csr_matrix(entries, shape=(len(labels), model.n_labels), dtype=np.float32)


def as_indicators(model: Model, labels: NDArray[np.int32]) -> Any:
    """Return a 0/1 matrix, documents × labels: dense if that of training was dense."""
    found = as_matrix(model, labels, np.ones(labels.shape, dtype=np.float32)).astype(np.int64)
    return found.toarray() if model.output == "dense" else found


def classes_of(model: Model) -> NDArray[Any]:
    """Return the labels in the order of the columns of a matrix."""
    return np.array([model.given_label(j) for j in range(model.n_labels)])


def as_classes(model: Model, labels: NDArray[np.int32], scores: NDArray[np.float32]) -> NDArray[Any]:
    """Return the most likely class of each document; the most frequent one if nothing is known about a document."""
    usual = int(np.argmax(model.label_frequency))
    first = np.take_along_axis(labels, scores.argmax(axis=1)[:, None], axis=1)[:, 0]
    best = np.where(first >= 0, first, usual)
    found: NDArray[Any] = classes_of(model)[best]
    return found


def probabilities(model: Model, found: csr_matrix, dense: bool | None) -> Any:
    """Return probabilities, documents × labels, given those of the best labels; 0 for the others.

    If each document has one class, those of a document sum to 1.
    """
    if dense is None:
        dense = found.shape[0] * found.shape[1] <= _CELLS
    if model.output == "classes":
        return _class_shares(model, found.toarray()) if dense else _sparse_shares(found)
    return found.toarray() if dense else found


def _sparse_shares(found: csr_matrix) -> csr_matrix:
    totals = np.maximum(np.asarray(found.sum(axis=1)).ravel(), 1e-9)
    found.data /= np.repeat(totals, np.diff(found.indptr)).astype(np.float32)
    return found


def _class_shares(model: Model, found: NDArray[np.float32]) -> NDArray[np.float64]:
    shares = found.astype(np.float64)
    # Where nothing is known, classes are as likely as in training.
    shares[shares.sum(axis=1) == 0] = model.label_frequency
    # The best class stays the best one, and every class possible.
    shares += 1e-9
    normalized: NDArray[np.float64] = shares / shares.sum(axis=1, keepdims=True)
    return normalized


def decisions(model: Model, found: csr_matrix, dense: bool | None) -> Any:
    """Return the log-odds of `probabilities`; in a sparse matrix only those of the best labels."""
    shares = probabilities(model, found, dense)
    if hasattr(shares, "nnz"):
        shares.data = logit(shares.data)
        return shares
    log_odds = logit(shares)
    # Scikit-learn expects one column for two classes.
    return log_odds[:, 1] if model.output == "classes" and model.n_labels == 2 else log_odds
