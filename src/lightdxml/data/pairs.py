"""Lines of whole numbers: filter files of pairs to ignore, and the old split files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import text_lines, writing_text


def read_filter(path: Path, n_rows: int, n_labels: int) -> NDArray[np.int64]:
    """Read pairs `document label`, both from 0, that take no part in evaluation."""
    numbers, lines = _read_numbers(path, columns=2)
    for column, limit, what in ((0, n_rows, "documents"), (1, n_labels, "labels")):
        wrong = np.flatnonzero(numbers[:, column] >= limit)
        if len(wrong):
            found = str(numbers[wrong[0], column])
            expected = f"numbers from 0 to {limit - 1} (there are {limit} {what})"
            raise DataError(path, found, expected, line=lines[wrong[0]])
    return numbers


def write_filter(path: Path, pairs: NDArray[np.int64]) -> None:
    """Write pairs to ignore, one a line."""
    with writing_text(path) as stream:
        stream.writelines(f"{document} {label}\n" for document, label in pairs.tolist())


def read_split(path: Path, column: int, n_rows: int) -> NDArray[np.int64]:
    """Read an old split file: one split a column, document numbers from 1; return row numbers from 0."""
    numbers, lines = _read_numbers(path, columns=None)
    if column >= numbers.shape[1]:
        raise DataError(path, f"{numbers.shape[1]} splits", f"split {column}: choose one from 0")
    rows = numbers[:, column]
    wrong = np.flatnonzero((rows < 1) | (rows > n_rows))
    if len(wrong):
        found = f"document {rows[wrong[0]]}"
        expected = f"numbers from 1 to {n_rows} (there are {n_rows} documents)"
        raise DataError(path, found, expected, line=lines[wrong[0]])
    if len(np.unique(rows)) != len(rows):
        raise DataError(path, f"a document twice in split {column}", "each document once")
    return rows - 1


def _read_numbers(path: Path, columns: int | None) -> tuple[NDArray[np.int64], list[int]]:
    """Read lines with the same number of whole numbers each, and the lines' own numbers; blank ones are passed over."""
    rows: list[list[int]] = []
    lines: list[int] = []
    for number, line in text_lines(path):
        words = line.split()
        if not words:
            continue
        columns = len(words) if columns is None else columns
        if len(words) != columns or not all(word.isdecimal() and len(word) < 19 for word in words):
            raise DataError(path, excerpt(line.strip()), f"{columns} whole numbers", line=number)
        rows.append([int(word) for word in words])
        lines.append(number)
    return np.array(rows, dtype=np.int64).reshape(-1, columns or 1), lines
