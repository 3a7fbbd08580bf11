"""Text files of integers: filter files (pairs to ignore in evaluation) and the old split files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import text_lines, writing_text


def read_filter(path: Path, n_rows: int, n_labels: int) -> NDArray[np.int64]:
    """Read pairs `document label`, counted from 0, that evaluation ignores."""
    pairs, lines = _read_integers(path, columns=2)
    _check_range(path, pairs[:, 0], lines, (0, n_rows - 1), f"{n_rows} documents")
    _check_range(path, pairs[:, 1], lines, (0, n_labels - 1), f"{n_labels} labels")
    return pairs


def write_filter(path: Path, pairs: NDArray[np.int64]) -> None:
    """Write pairs to ignore, one per line."""
    with writing_text(path) as stream:
        stream.writelines(f"{document} {label}\n" for document, label in pairs.tolist())


def read_split(path: Path, column: int, n_rows: int) -> NDArray[np.int64]:
    """Read one column of an old split file, which counts documents from 1; return row ids from 0."""
    table, lines = _read_integers(path, columns=None)
    if column >= table.shape[1]:
        raise DataError(path, f"{table.shape[1]} splits", f"split {column}: choose one from 0")
    rows = table[:, column]
    _check_range(path, rows, lines, (1, n_rows), f"{n_rows} documents")
    if len(np.unique(rows)) != len(rows):
        raise DataError(path, f"a document twice in split {column}", "each document once")
    return rows - 1


def _check_range(path: Path, values: NDArray[np.int64], lines: list[int], bounds: tuple[int, int], what: str) -> None:
    low, high = bounds
    wrong = np.flatnonzero((values < low) | (values > high))
    if len(wrong):
        expected = f"integers from {low} to {high} (there are {what})"
        raise DataError(path, str(values[wrong[0]]), expected, line=lines[wrong[0]])


def _read_integers(path: Path, columns: int | None) -> tuple[NDArray[np.int64], list[int]]:
    """Read a table of integers and the line number of each row, skipping blank lines."""
    rows: list[list[int]] = []
    lines: list[int] = []
    for number, line in text_lines(path):
        words = line.split()
        if not words:
            continue
        columns = len(words) if columns is None else columns
        if len(words) != columns or not all(word.isdecimal() and len(word) < 19 for word in words):
            raise DataError(path, excerpt(line.strip()), f"{columns} non-negative integers", line=number)
        rows.append([int(word) for word in words])
        lines.append(number)
    return np.array(rows, dtype=np.int64).reshape(-1, columns or 1), lines
