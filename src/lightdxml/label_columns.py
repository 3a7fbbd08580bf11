"""Labels in whatever form they are given, as matrices: lists of names or ids, columns, matrices, classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from lightdxml.data import frames
from lightdxml.data.cells import likely_separator, listed
from lightdxml.data.labels import LabelIndex, label_matrix
from lightdxml.validation import check_labels, is_matrix, matrix_of

# What may separate several labels in a string.
_MARKS = "|;,"
_LARGEST_ID = 2**63 - 1


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
    elif is_matrix(Y):
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
            f" labels, as [[one.strip() for one in cell.split({mark!r})] for cell in Y]"
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


def known_labels(
    Y: Any, names: list[str] | None, n_labels: int, are_integers: bool = False, output: str = "lists"
) -> Any:
    """Return a label matrix with the model's columns; unknown labels are dropped.

    `output` is the form in which labels were given to training.
    """
    classes = _classes(Y) if output == "classes" else None
    if classes is not None and classes.names is not None:
        rows: list[list[Any]] | None = [[classes.names[j]] for j in classes.matrix.indices.tolist()]
    else:
        rows = label_rows(Y)
    if rows is None:
        return matrix_of(Y)
    if output == "dense" and _are_indicators(rows):
        return np.array(rows)
    if not are_integers and _are_ids(rows):
        return label_matrix([[label for label in row if label < n_labels] for row in rows], n_labels)
    if names is None:
        raise ValueError("labels are names here, and were ids in training: give ids")
    numbers = {name: j for j, name in enumerate(names)}
    return label_matrix([[numbers[str(label)] for label in row if str(label) in numbers] for row in rows], n_labels)
