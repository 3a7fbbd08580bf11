"""CSV and TSV: columns `text` and `labels`, optional `title` and `id`; several labels stand in one cell."""

from __future__ import annotations

import csv
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from lightdxml.data.dataset import Split
from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import text_lines
from lightdxml.data.jsonl import TextColumns
from lightdxml.data.labels import LabelIndex, LabelRows

_LIMIT = threading.Lock()
_DELIMITERS = (",", "\t", ";")
_COLUMNS = ("id", "title", "text", "labels")


def delimiter_of(first_line: str) -> str | None:
    """Return the delimiter under which a first line names the columns of a table, or None if it does not.

    >>> delimiter_of("title;text;labels")
    ';'
    """
    for delimiter in _DELIMITERS:
        names = _column_names(first_line, delimiter)
        if "labels" in names and ("text" in names or "title" in names):
            return delimiter
    return None


def delimiter_of_texts(first_line: str) -> str | None:
    """Return the delimiter under which a first line names a table's columns, of texts without labels too, or None.

    >>> delimiter_of_texts("id,text"), delimiter_of_texts("text"), delimiter_of_texts("Some text, with a comma")
    (',', ',', None)
    """
    for delimiter in _DELIMITERS:
        names = _column_names(first_line, delimiter)
        if ("text" in names or "title" in names) and (len(names) > 1 or first_line.strip() == "text"):
            return delimiter
    return None


def guess_columns(first_line: str) -> list[str]:
    """Return the cells of a first line that may name columns, by the delimiter that makes the most of them.

    >>> guess_columns("id;body;tags")
    ['id', 'body', 'tags']
    """
    return max((_column_names(first_line, delimiter) for delimiter in _DELIMITERS), key=len)


def _column_names(line: str, delimiter: str) -> list[str]:
    try:
        cells = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []
    return [cell.strip().lower() for cell in cells]


def read(path: Path, index: LabelIndex, label_separator: str = "|", encoding: str = "utf-8") -> Split:
    """Read a table whose first line names the columns; blank lines are passed over."""
    texts = TextColumns()
    labels = LabelRows()
    with any_cell_size():
        for number, row in _labelled_rows(path, encoding):
            texts.add(path, number, row.get("id"), row.get("title"), row.get("text"))
            names = (name.strip() for name in row["labels"].split(label_separator))
            labels.add(index.numbers(name for name in names if name))
    if not len(labels):
        raise DataError(path, "no documents below the column names", "one document a line")
    return texts.split(labels.matrix(len(index.names)))


def _labelled_rows(path: Path, encoding: str) -> Iterator[tuple[int, dict[str, str]]]:
    lines = text_lines(path, encoding)
    number, header = next(((n, line) for n, line in lines if line.strip()), (1, ""))
    delimiter = delimiter_of(header)
    if delimiter is None:
        raise DataError(path, excerpt(header), "columns named text and labels", line=number)
    yield from rows(path, chain([(number, header)], lines), delimiter)


def rows(path: Path, lines: Iterator[tuple[int, str]], delimiter: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield a table's rows with the lines on which they begin; the first line names the columns."""
    header_number, header = next(lines)
    columns = _column_names(header, delimiter)
    for name in _COLUMNS:
        if columns.count(name) > 1:
            raise DataError(path, f"two columns named {name}", "one of each name", line=header_number)
    reader = csv.reader((line for _, line in lines), delimiter=delimiter, strict=True)
    start = header_number + 1
    try:
        for cells in reader:
            # Where there is one column, a cell may be empty; elsewhere such a line is blank.
            if len(cells) > 1 or (cells and (cells[0].strip() or len(columns) == 1)):
                if len(cells) != len(columns):
                    found = f"{len(cells)} cells: {excerpt(delimiter.join(cells))}"
                    raise DataError(path, found, f"{len(columns)}, as the first line has", line=start)
                yield start, dict(zip(columns, cells, strict=True))
            start = header_number + 1 + reader.line_num
    except csv.Error as error:
        place = header_number + reader.line_num
        raise DataError(path, f"a broken line ({error})", "cells with balanced quotes", line=place) from error


@contextmanager
def any_cell_size() -> Iterator[None]:
    """Lift the csv module's limit of 128 KB a cell, which real documents pass, and put it back.

    The limit is the whole process's: one thread at a time.
    """
    with _LIMIT:
        before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
        try:
            yield
        finally:
            csv.field_size_limit(before)
