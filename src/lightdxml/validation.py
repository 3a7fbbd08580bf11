"""Data is checked here, once, at the boundary: everything behind it relies on canonical matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.config import Config

_MIN_TO_SPLIT = 20
_ROWS = 1 << 16


def check_features(X: Any, n_features: int | None = None) -> csr_matrix:
    """Return features as canonical CSR float32 with int32 indices and unit rows.

    Parameters
    ----------
    X
        A matrix of features, sparse or dense, documents × features. It is not changed.
    n_features
        The expected number of features, or None.

    Raises
    ------
    ValueError
        If X is not a valid matrix of finite numbers from 0, or has another number of features.

    Examples
    --------
    >>> check_features([[3, 4], [0, 0]]).toarray().round(1).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    X = _valid_copy(X, "X")
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, but LightDXML is expecting {n_features} features as input")
    if not np.all(np.isfinite(X.data)):
        raise ValueError("X holds NaN or infinite values: every feature must be a finite number")
    if X.nnz and X.data.min() < 0:
        raise ValueError("Negative values in data passed as X: features are weights of words, from 0")
    _canonical(X)
    # In blocks, and in float64: the square of a large float32 overflows, that of a small one vanishes.
    for start in range(0, X.shape[0], _ROWS):
        first, last = X.indptr[start], X.indptr[min(start + _ROWS, X.shape[0])]
        counts = np.diff(X.indptr[start : start + _ROWS + 1])
        rows = np.repeat(np.arange(len(counts)), counts)
        values = X.data[first:last].astype(np.float64)
        norms = np.sqrt(np.bincount(rows, weights=values**2, minlength=len(counts)))
        norms[norms == 0] = 1
        X.data[first:last] = values / norms[rows]
    return X


def check_labels(Y: Any) -> csr_matrix:
    """Return labels as CSR float32 of ones with sorted int32 indices; raise a `ValueError` if they are invalid."""
    Y = _valid_copy(Y, "Y")
    if not np.all(np.isfinite(Y.data)) or (Y.data < 0).any():
        raise ValueError("Y holds NaN, infinite or negative values: labels are 0 or 1")
    _canonical(Y)
    Y.data[:] = 1
    return Y


def check_training_data(X: Any, Y: Any) -> tuple[csr_matrix, csr_matrix]:
    """Return checked features and labels that can be trained on."""
    X, Y = check_features(X), check_labels(Y)
    check_lengths(X.shape[0], Y.shape[0], "X and Y")
    if X.shape[1] == 0:
        raise ValueError(f"X has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if Y.nnz == 0:
        raise ValueError("Y has no labels at all: at least one document must have one")
    return X, Y


def check_dev(dev: tuple[Any, Any], X: csr_matrix, Y: csr_matrix) -> tuple[csr_matrix, csr_matrix]:
    """Return a checked dev part that fits the training data."""
    X_dev, Y_dev = check_features(dev[0], X.shape[1]), check_labels(dev[1])
    check_lengths(X_dev.shape[0], Y_dev.shape[0], "X and Y of dev")
    if Y_dev.shape[1] != Y.shape[1]:
        raise ValueError(f"dev has {Y_dev.shape[1]} labels and Y {Y.shape[1]}: they must agree")
    return X_dev, Y_dev


def check_vectors(vectors: Any, n_features: int, dim: int) -> NDArray[np.float32]:
    """Return word vectors as float32, one row per feature."""
    checked = np.asarray(vectors, dtype=np.float32)
    if checked.shape != (n_features, dim):
        raise ValueError(f"word_vectors have shape {checked.shape}: it must be features × dim, {(n_features, dim)}")
    if not np.all(np.isfinite(checked)):
        raise ValueError("word_vectors hold NaN or infinite values: every number must be finite")
    return checked


def check_lengths(n_documents: int, n_labels: int, what: str = "X and Y") -> None:
    """Raise a `ValueError` if there are no documents, or not one row of labels per document."""
    if n_documents == n_labels == 0:
        raise ValueError(f"{what} have no rows: there is nothing to learn from")
    if n_documents != n_labels:
        raise ValueError(f"{what} have {n_documents} and {n_labels} rows: they must have one row per document")


def validation_size(n_documents: int, config: Config) -> int:
    """Return how many documents are held out for validation; 0 if there are too few to split.

    >>> validation_size(1000, Config()), validation_size(10, Config())
    (50, 0)
    """
    if n_documents < _MIN_TO_SPLIT:
        return 0
    return min(round(config.validation_fraction * n_documents), config.validation_limit)


def split(X: csr_matrix, Y: csr_matrix, config: Config) -> tuple[csr_matrix, csr_matrix, csr_matrix, csr_matrix]:
    """Return X and Y to train on, and X and Y to validate on: all of it for both if there is too little to split."""
    n = X.shape[0]
    size = validation_size(n, config)
    if size == 0:
        return X, Y, X, Y
    order = np.random.default_rng(config.random_state).permutation(n)
    held, kept = np.sort(order[:size]), np.sort(order[size:])
    if Y[kept].nnz == 0:
        return X, Y, X, Y
    return X[kept], Y[kept], X[held], Y[held]


def _valid_copy(matrix: Any, name: str) -> csr_matrix:
    """Return a copy as CSR float32 with consistent parts: compiled code trusts them, and SciPy does not check."""
    copy = csr_matrix(matrix, dtype=np.float32, copy=True)
    try:
        copy.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{name} is not a valid sparse matrix ({error}): build it again") from error
    return copy


def _canonical(matrix: csr_matrix) -> None:
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.indices = matrix.indices.astype(np.int32, copy=False)
