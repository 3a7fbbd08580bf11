"""Data is checked here, once, at the boundary: everything behind it relies on canonical matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from lightdxml.config import Config
from lightdxml.data import frames
from lightdxml.data.cells import likely_separator, listed
from lightdxml.data.dataset import Texts
from lightdxml.data.labels import LabelIndex, label_matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# No more than one in this many documents is held out to reach the minimum.
_LARGEST_PART = 5
_MIN_TO_SPLIT = 20
# What may separate several labels in a string.
_MARKS = "|;,"
_BLOCK_ENTRIES = 1 << 20
_LARGEST_ID = 2**63 - 1


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
    X = _valid_copy(X, "X")
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, but LightDXML is expecting {n_features} features as input")
    if not np.all(np.isfinite(X.data)):
        raise ValueError("X holds NaN or infinite values: every feature must be a finite number")
    _canonical(X)
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
    return values.take(rows) if isinstance(values, Texts) else [values[i] for i in rows.tolist()]


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
    if _is_matrix(X) or _is_array_like(X):
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


def _is_matrix(data: Any) -> bool:
    return hasattr(data, "nnz") or getattr(data, "ndim", 1) == 2


class LabelColumns(NamedTuple):
    """A label matrix, the names of its columns, if they have names, and whether these are integer ids.

    `output` is the form in which labels were given, and are returned: `lists`, `dense`, `sparse` or `classes`.
    """

    matrix: Any
    names: list[str] | None
    are_integers: bool = False
    output: str = "lists"


def label_rows(Y: Any) -> list[list[Any]] | None:
    """Return Y as a list of labels for each document, None if it is a matrix, or a frame of 0 and 1."""
    if (columns := frames.column_names(Y)) is not None:
        Y = frames.label_column(Y, columns)
        if Y is None:
            return None
    elif _is_matrix(Y):
        return None
    if Y is None:
        raise ValueError(
            "LightDXML requires y to be passed, but the target y is None: give the labels of each document"
        )
    rows = frames.values(Y)
    if strings := [row for row in rows if isinstance(row, str)]:
        lists = [listed(row) for row in strings]
        if any(found is None for found in lists):
            _ask_for_lists(rows, strings)
        parsed = iter(lists)
        rows = [next(parsed) if isinstance(row, str) else row for row in rows]
    # Plain integers, scikit-learn's classes, are one label each.
    return [[row] if isinstance(row, int | np.integer) else _row(i, row) for i, row in enumerate(rows)]


def _ask_for_lists(rows: list[Any], strings: list[str]) -> NoReturn:
    """Raise a `ValueError`: strings most often hold several labels that were not split, and so they are not guessed."""
    if (mark := likely_separator(strings)) is not None:
        example = next(one for one in strings if mark in one)
        raise ValueError(
            f"labels are strings such as {example!r:.50}, in which {mark!r} seems to separate them: give lists of"
            f" labels, as [cell.split({mark!r}) for cell in Y]"
        )
    i = next(i for i, row in enumerate(rows) if isinstance(row, str) and listed(row) is None)
    remedy = "if these are single labels, as [[label] for label in Y]"
    raise ValueError(f"the labels of document {i} are {rows[i]!r:.50}: give a list of them, {remedy}")


def _row(i: int, row: Any) -> list[Any]:
    if frames.is_missing(row):
        raise ValueError(f"the labels of document {i} are {row!r}: give a list of them, [] for none")
    if not isinstance(row, Iterable):
        raise ValueError(f"the labels of document {i} are {row!r}: give a list of them")
    # The order of a set differs from process to process.
    return sorted(row, key=str) if isinstance(row, set | frozenset) else list(row)


def _are_ids(rows: list[list[Any]]) -> bool:
    """Return whether labels are ids and not names; negative ids are refused."""
    if not all(isinstance(label, int | np.integer) and not isinstance(label, bool) for row in rows for label in row):
        return False
    for i, row in enumerate(rows):
        for label in row:
            if not 0 <= label <= _LARGEST_ID:
                raise ValueError(f"document {i} has label {label}: label ids go from 0 to {_LARGEST_ID}")
    return True


def labels_of(Y: Any, label_names: Sequence[str] | None) -> LabelColumns:
    """Return a label matrix, and names if labels have names. Integers are ids; with names, they are numbers of names.

    >>> labels_of([[7], [999999, 7]], None).names
    ['7', '999999']
    """
    if label_names is None and (found := _classes(Y)) is not None:
        return found
    rows = label_rows(Y)
    if rows is not None and _are_indicators(rows):
        Y, rows = np.array(rows), None
    if rows is None:
        columns = frames.column_names(Y)
        # Whoever names the columns expects names.
        output = "lists" if label_names is not None else "sparse" if hasattr(Y, "nnz") else "dense"
        Y, label_names = matrix_of(Y), columns if label_names is None else label_names
    names = None if label_names is None else [str(name) for name in label_names]
    if rows is None:
        Y = check_labels(Y)
        if names is not None and len(names) != Y.shape[1]:
            raise ValueError(f"{len(names)} label names for {Y.shape[1]} labels: there must be one each")
        return LabelColumns(Y, names, output=output)
    if _are_ids(rows):
        return _id_columns(rows) if names is None else _numbered_columns(rows, names)
    for i, row in enumerate(rows):
        if odd := [label for label in row if not isinstance(label, str)]:
            raise ValueError(f"document {i} has label {odd[0]!r} among names: labels must be all names or all ids")
    index = LabelIndex(names or ())
    numbered = [index.ids(str(label) for label in row) for row in rows]
    return LabelColumns(label_matrix(numbered, len(index.names)), index.names)


def _are_indicators(rows: list[list[Any]]) -> bool:
    """Return whether rows are those of a 0/1 matrix, and not lists of labels: these do not have a label twice.

    >>> _are_indicators([[0, 1, 1], [1, 0, 0]]), _are_indicators([[0, 1], [1]])
    (True, False)
    """
    same_length = len({len(row) for row in rows}) == 1 and len(rows[0]) > 2
    return same_length and all(isinstance(one, int | np.integer) and one in (0, 1) for row in rows for one in row)


def _classes(y: Any) -> LabelColumns | None:
    """Return one class per document as a label matrix, if y is an array or column of classes, or a list of integers."""
    values = _one_per_document(y)
    if values is None or not len(values):
        return None
    strings = values.tolist() if values.dtype.kind == "U" else []
    # Such cells may hold several labels that were not split.
    if any(mark in one for one in strings for mark in _MARKS) or any(map(listed, strings)):
        return None
    if values.dtype.kind == "f":
        if not np.isfinite(values).all() or (values != np.round(values)).any():
            raise ValueError("Unknown label type: y has fractions or NaN, as for regression: give classes or labels")
        values = values.astype(np.int64)
    if values.dtype.kind not in "biuU":
        return None
    classes, columns = np.unique(values, return_inverse=True)
    matrix = label_matrix([[int(column)] for column in columns], len(classes))
    are_integers = not strings
    return LabelColumns(matrix, [str(int(c)) if are_integers else str(c) for c in classes], are_integers, "classes")


def _one_per_document(y: Any) -> NDArray[Any] | None:
    """Return an array with one value per document; None if y is something else, such as lists of labels."""
    if isinstance(y, list):
        are_integers = all(isinstance(one, int | np.integer) and not isinstance(one, bool) for one in y)
        return np.array(y) if are_integers else None
    if hasattr(y, "nnz") or not hasattr(y, "__array__") or frames.column_names(y) is not None:
        return None
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1 and values.dtype.kind in "biuf" and not np.isin(values, (0, 1)).all():
        # A column of classes. One of 0 and 1 is a matrix of one label.
        values = values[:, 0]
    if values.ndim != 1:
        return None
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: classes are names or integers")
    if values.dtype.kind == "O":
        return values.astype(str) if all(isinstance(one, str) for one in values) else None
    return values


def _id_columns(rows: list[list[int]]) -> LabelColumns:
    """Return a column for each id that occurs, in the order of the ids."""
    ids = sorted({int(label) for row in rows for label in row})
    column = {label: j for j, label in enumerate(ids)}
    matrix = label_matrix([[column[label] for label in row] for row in rows], len(ids))
    return LabelColumns(matrix, [str(label) for label in ids], are_integers=True)


def _numbered_columns(rows: list[list[int]], names: list[str]) -> LabelColumns:
    """Return a column for each name; labels are the numbers of names."""
    last = max((int(label) for row in rows for label in row), default=-1)
    if last >= len(names):
        raise ValueError(f"{len(names)} label names, and label {last} in Y: there must be one each")
    return LabelColumns(label_matrix(rows, len(names)), names)


def known_labels(Y: Any, names: list[str] | None, n_labels: int, are_integers: bool = False) -> Any:
    """Return a label matrix with the model's columns; unknown labels are dropped."""
    classes = _classes(Y) if names is not None else None
    if classes is not None and classes.names is not None:
        rows: list[list[Any]] | None = [[classes.names[j]] for j in classes.matrix.indices.tolist()]
    else:
        rows = label_rows(Y)
    if rows is None:
        return matrix_of(Y)
    if not are_integers and _are_ids(rows):
        return label_matrix([[label for label in row if label < n_labels] for row in rows], n_labels)
    if names is None:
        raise ValueError("labels are names here, and were ids in training: give ids")
    numbers = {name: j for j, name in enumerate(names)}
    return label_matrix([[numbers[str(label)] for label in row if str(label) in numbers] for row in rows], n_labels)


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
