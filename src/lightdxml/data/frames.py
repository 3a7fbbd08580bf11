"""Columns and frames of pandas, polars, PyArrow and `datasets`, without importing any of these libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.dataset import Texts

# How the values of a column become Python objects: in PyArrow, polars and pandas, NumPy.
_TO_LIST = ("to_pylist", "to_list", "tolist")
_MISSING_TYPES = ("NAType", "NaTType")
_HEAD = 100


def column_names(data: Any) -> list[Any] | None:
    """Return the names of a frame's columns; None if the data is no frame.

    >>> column_names([1, 2]) is None
    True
    """
    if hasattr(data, "nnz") or isinstance(data, list | tuple | np.ndarray):
        return None
    # Asked of the type: a lazy frame would compute its columns.
    if hasattr(type(data), "collect") and hasattr(type(data), "columns"):
        raise ValueError("the data is a lazy frame: call collect() first")
    # The `columns` of PyArrow are the columns themselves.
    names = getattr(data, "column_names", None)
    names = getattr(data, "columns", None) if names is None else names
    if names is None or isinstance(names, str):
        return None
    if isinstance(names, dict):
        raise ValueError(f"the data has several splits ({', '.join(map(str, names))}): give one of them")
    return list(names)


def values(column: Any) -> list[Any]:
    """Return the values of a column, an array or any sequence as a list of Python objects.

    >>> values(np.array(["a", "b"]))
    ['a', 'b']
    """
    for name in _TO_LIST:
        if callable(method := getattr(column, name, None)):
            return list(method())
    return list(column)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or what pandas has for a missing value.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def texts_of_frame(frame: Any, names: Sequence[Any]) -> Texts | None:
    """Return the texts of a frame: its column `text`, with `title` if there is one, or its only column of strings.

    None if it has no such column: then it is a matrix of features.
    """
    if "text" in names:
        titles = _strings(frame["title"], "title", optional=True) if "title" in names else None
        bodies = _strings(frame["text"], "text", optional=titles is not None)
        for i, value in enumerate(values(frame["text"]) if titles is not None else ()):
            if is_missing(value) and not (titles or ())[i]:
                raise missing_text(i, value)
        return Texts(bodies, titles)
    found = [name for name in names if _has_strings(frame[name])]
    if len(found) > 1:
        shown = ", ".join(map(str, found[:8]))
        raise ValueError(
            f"X is a table with several columns of texts ({shown}): call one of them text, or give X[{found[0]!r}]"
        )
    return Texts(_strings(frame[found[0]], str(found[0]))) if found else None


def _has_strings(column: Any) -> bool:
    return any(isinstance(value, str) for value in values(column[:_HEAD]))


def _strings(column: Any, name: str, *, optional: bool = False) -> list[str]:
    """Return a column of texts. A missing one is empty if it is optional, else an error."""
    found = values(column)
    for i, value in enumerate(found):
        if isinstance(value, str):
            continue
        if not is_missing(value):
            raise ValueError(f"document {i} has {value!r:.50} in the column {name}: give a text for each document")
        if not optional:
            raise missing_text(i, value)
        found[i] = ""
    return found


def missing_text(i: int, value: Any) -> ValueError:
    """Return the error for a document without a text."""
    return ValueError(f"document {i} is {value!r:.50} among texts: drop it, or give an empty text")


def matrix(frame: Any, names: Sequence[Any]) -> NDArray[Any]:
    """Return a frame of numbers as an array, documents × columns."""
    if callable(to_numpy := getattr(frame, "to_numpy", None)):
        return np.asarray(to_numpy())
    return np.column_stack([np.asarray(frame[name]) for name in names])


def label_column(frame: Any, names: Sequence[Any]) -> Any:
    """Return the column of labels of a frame: `labels`, or its only column, if it has no numbers; None without one."""
    name = "labels" if "labels" in names else names[0] if len(names) == 1 else None
    if name is None:
        return None
    numbers = all(is_missing(one) or isinstance(one, int | float) for one in values(frame[name][:_HEAD]))
    return None if numbers else frame[name]
