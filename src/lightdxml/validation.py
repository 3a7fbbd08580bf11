"""Data is checked here, once, at the boundary: everything behind it relies on canonical matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.config import Config
from lightdxml.data import frames
from lightdxml.data.dataset import Texts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# No more than one in this many documents is held out to reach the minimum.
_LARGEST_PART = 5
_MIN_TO_SPLIT = 20
_BLOCK_ENTRIES = 1 << 20


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
        If X is not a valid matrix of finite numbers, or has another number of features.

    Examples
    --------
    >>> check_features([[3, 4], [0, 0]]).toarray().round(1).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    X = check_values(X, n_features)
    # In blocks, and in float64: the square of a large float32 overflows, that of a small one vanishes.
    for start, stop in _row_blocks(X.indptr):
        first, last = X.indptr[start], X.indptr[stop]
        counts = np.diff(X.indptr[start : stop + 1])
        rows = np.repeat(np.arange(len(counts)), counts)
        values = X.data[first:last].astype(np.float64)
        norms = np.sqrt(np.bincount(rows, weights=values**2, minlength=len(counts)))
        norms[norms == 0] = 1
        X.data[first:last] = values / norms[rows]
    return X


def check_values(X: Any, n_features: int | None = None) -> csr_matrix:
    """Return features as `check_features` does, but with rows of the length that they have.

    >>> check_values([[3, 4], [0, 0]]).toarray().tolist()
    [[3.0, 4.0], [0.0, 0.0]]
    """
    X = _valid_copy(X, "X")
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, but LightDXML is expecting {n_features} features as input")
    if not np.all(np.isfinite(X.data)):
        raise ValueError("X holds NaN or infinite values: every feature must be a finite number")
    _canonical(X)
    return X


def check_sample_weight(weights: Any, n_documents: int) -> NDArray[np.float32]:
    """Return how much each document counts; raise a `ValueError` if these are not numbers from 0, one per document.

    >>> check_sample_weight([1, 0], 2).tolist()
    [1.0, 0.0]
    """
    checked = np.asarray(weights, dtype=np.float32)
    if checked.shape != (n_documents,):
        raise ValueError(f"sample_weight has shape {checked.shape}: give one number per document, {n_documents}")
    if not np.isfinite(checked).all() or (checked < 0).any() or not checked.any():
        raise ValueError("sample_weight has negative, infinite or only zero values: give numbers from 0, some above it")
    return checked


def rows_of(values: Any, rows: NDArray[np.int64]) -> Any:
    """Return some rows of texts, ids, a matrix or None.

    >>> rows_of(["a", "b", "c"], np.array([0, 2]))
    ['a', 'c']
    """
    if values is None or isinstance(values, np.ndarray) or hasattr(values, "nnz"):
        return None if values is None else values[rows]
    if isinstance(values, Texts):
        return values.take(rows)
    each = frames.values(values)
    return [each[i] for i in rows.tolist()]


def check_bytes(X: Any) -> int:
    """Return about how much memory `check_features` takes: a copy, and workspace for a block of rows.

    >>> check_bytes(np.eye(3)) - check_bytes(np.zeros((3, 3)))
    27
    """
    entries = X.nnz if hasattr(X, "nnz") else np.count_nonzero(X) if isinstance(X, np.ndarray) else 0
    return 9 * int(entries) + 64 * _BLOCK_ENTRIES


def _row_blocks(indptr: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that hold about a million entries each."""
    start, n = 0, len(indptr) - 1
    while start < n:
        stop = max(start + 1, int(np.searchsorted(indptr, int(indptr[start]) + _BLOCK_ENTRIES, side="right")) - 1)
        yield start, stop
        start = stop


def check_labels(Y: Any) -> csr_matrix:
    """Return labels as CSR float32 of ones with sorted int32 indices; raise a `ValueError` if they are invalid."""
    Y = _valid_copy(Y, "Y")
    if not np.all(np.isfinite(Y.data)) or (Y.data < 0).any():
        raise ValueError("Y holds NaN, infinite or negative values: labels are 0 or 1")
    _canonical(Y)
    Y.data[:] = 1
    return Y


def check_trainable(X: csr_matrix, Y: csr_matrix) -> None:
    """Raise a `ValueError` if there is nothing to learn from these features and labels."""
    check_lengths(X.shape[0], Y.shape[0])
    if X.shape[1] == 0:
        raise ValueError(f"X has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if Y.nnz == 0:
        raise ValueError("Y has no labels at all: at least one document must have one")


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


def texts_of(X: Any) -> Sequence[str] | None:
    """Return X as texts, None if it is a matrix. Of a frame, the columns `text` and `title` are used."""
    if isinstance(X, str):
        raise ValueError("X is a single text: give a list of texts")
    if isinstance(X, Texts):
        return X  # a sequence of strings that joins title and body when asked
    if (columns := frames.column_names(X)) is not None:
        return frames.texts_of_frame(X, columns)
    if is_matrix(X) or _is_array_like(X):
        return None
    documents = frames.values(X)
    odd = next((i for i, document in enumerate(documents) if not isinstance(document, str)), None)
    if odd is None:
        return documents
    value = documents[odd]
    if frames.is_missing(value) and (value is None or any(isinstance(one, str) for one in documents)):
        raise frames.missing_text(odd, value)
    if any(isinstance(document, str) for document in documents):
        raise ValueError(f"document {odd} is {value!r:.50} among texts: give a text for each document")
    return None


def matrix_of(X: Any) -> Any:
    """Return features as a matrix: a frame of numbers becomes an array, anything else stays as it is."""
    columns = frames.column_names(X)
    if columns is not None:
        return frames.matrix(X, columns)
    return np.asarray(X) if _is_array_like(X) else X


def _is_array_like(data: Any) -> bool:
    """Return whether data can only be converted to an array: it can neither be iterated over nor indexed."""
    return hasattr(data, "__array__") and not hasattr(data, "__iter__") and not hasattr(data, "nnz")


def is_matrix(data: Any) -> bool:
    """Return whether data are a matrix, sparse or dense, and not a list or column."""
    return hasattr(data, "nnz") or getattr(data, "ndim", 1) == 2


def validation_size(n_documents: int, config: Config) -> int:
    """Return how many documents are held out for validation; 0 if there are too few to split.

    Dense views do not learn held-out documents later. So with dense views there is no minimum.

    >>> [validation_size(n, Config()) for n in (10, 1000, 10_000, 50_000, 1_000_000)]
    [0, 200, 500, 2500, 5000]
    """
    if n_documents < _MIN_TO_SPLIT or not config.validation_fraction:
        return 0
    least = 0 if config.dense.enabled else min(config.validation_minimum, n_documents // _LARGEST_PART)
    return min(max(round(config.validation_fraction * n_documents), least), config.validation_limit)


def split_rows(Y: csr_matrix, config: Config) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return the rows to train on and those to validate on; None if there are too few to split."""
    n = Y.shape[0]
    size = validation_size(n, config)
    if size == 0:
        return None
    order = np.random.default_rng(config.random_state).permutation(n)
    held, kept = np.sort(order[:size]), np.sort(order[size:])
    return None if Y[kept].nnz == 0 else (kept, held)


def split(X: csr_matrix, Y: csr_matrix, config: Config) -> tuple[csr_matrix, csr_matrix, csr_matrix, csr_matrix]:
    """Return X and Y to train on, and X and Y to validate on: all of it for both if there is too little to split."""
    rows = split_rows(Y, config)
    if rows is None:
        return X, Y, X, Y
    kept, held = rows
    return X[kept], Y[kept], X[held], Y[held]


def _valid_copy(matrix: Any, name: str) -> csr_matrix:
    """Return a copy as CSR float32 with consistent parts: compiled code trusts them, and SciPy does not check."""
    from scipy.sparse import csr_matrix

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
