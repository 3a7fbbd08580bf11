"""CSV and TSV with columns `text` and `labels`, and optionally `title` and `id`, or with columns of other names."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from lightdxml.data.cells import labels_of_cell
from lightdxml.data.dataset import Split
from lightdxml.data.documents import SplitBuilder
from lightdxml.data.errors import DataError, excerpt, shortened
from lightdxml.data.files import text_lines
from lightdxml.data.labels import LabelIndex
from lightdxml.data.options import DEFAULT_COLUMNS, Columns, ReadOptions, expected_columns

_LONGEST_CELL = 2**31 - 1
_DELIMITERS = (",", "\t", ";")
# The name of a column, perhaps in quotes: in a text, a space follows a comma.
_NAME = re.compile(r'[a-z][\w.-]*|"[a-z][\w. -]*"', re.IGNORECASE)


def labeled_delimiter(header: str, columns: Columns = DEFAULT_COLUMNS) -> str | None:
    """Return the delimiter of a header that names a text and a labels column, or None for any other line."""
    return _delimiter(header, columns, lambda names: columns.lowered().labels in names)


def text_delimiter(header: str, columns: Columns = DEFAULT_COLUMNS) -> str | None:
    """Return the delimiter of a header that names a text column, with or without labels, or None.

    >>> text_delimiter("id,text"), text_delimiter("text"), text_delimiter("Some text, with a comma")
    (',', ',', None)
    """
    return _delimiter(
        header, columns, lambda names: len(names) > 1 or header.strip() in (columns.text, columns.lowered().text)
    )


def is_table(lines: Sequence[str], columns: Columns = DEFAULT_COLUMNS) -> bool:
    r"""Return whether lines without a file name are those of a table, and not texts with commas.

    The first line must name a column of texts or titles exactly, and the next row must have as many cells.

    >>> is_table(["id,text\n", "1,a cat\n"]), is_table(["text\n", "a cat\n"])
    (True, True)
    >>> is_table(["Title, text\n", "a, b\n"]), is_table(["text,title\n", "no comma\n"]), is_table(["text\n"])
    (False, False, False)
    """
    delimiter = text_delimiter(lines[0], columns) if lines else None
    if delimiter is None or not all(map(_NAME.fullmatch, lines[0].rstrip("\r\n").split(delimiter))):
        return False
    names = _column_names(lines[0], delimiter)
    try:
        first = next(filter(None, csv.reader(lines[1:], delimiter=delimiter, strict=True)), None)
    except csv.Error:
        # A cell that ends beyond these lines.
        return True
    return len(names) > 1 if first is None else len(first) == len(names)


def _delimiter(header: str, columns: Columns, accept: Callable[[list[str]], bool]) -> str | None:
    for delimiter in _DELIMITERS:
        names = _column_names(header, delimiter)
        if columns.lowered().are_in(names) and accept(names):
            return delimiter
    return None


def guess_columns(header: str) -> list[str]:
    """Split a line that may be a header, with the delimiter that gives the most columns."""
    return max((_column_names(header, delimiter) for delimiter in _DELIMITERS), key=len)


def _column_names(line: str, delimiter: str) -> list[str]:
    try:
        cells = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []
    return [cell.strip().lower() for cell in cells]


def missing_columns(
    path: Path, header: str, columns: Columns, with_labels: bool = True, line: int | None = 1
) -> DataError:
    """Return the error for a header that does not name the columns of texts and labels."""
    names = guess_columns(header)
    found = f"the columns {shortened(', '.join(names))}"
    return DataError(path, found, expected_columns(columns.lowered(), names, with_labels), line=line)


def read(path: Path, index: LabelIndex, options: ReadOptions) -> Split:
    """Read a table whose first line names the columns, skipping blank lines."""
    documents, columns = SplitBuilder(path), options.columns.lowered()
    for number, row in file_rows(path, options.encoding, options.columns):
        labels = index.ids(labels_of_cell(row[columns.labels], options.label_separator))
        documents.add(number, *id_and_texts(row, columns), labels)
    return documents.split(len(index.names))


def id_and_texts(row: Mapping[str, str], columns: Columns) -> tuple[str | None, tuple[str | None, str | None]]:
    """Return the id of a row, and its title and text; None where it has none."""
    found = [None if name is None else row.get(name) for name in columns]
    return found[0], (found[1], found[2])


def file_rows(path: Path, encoding: str, columns: Columns) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a file with the number of their first line.

    No two columns may have one of these names. The column of labels must exist.
    """
    lines = text_lines(path, encoding)
    first, header = next(((n, line) for n, line in lines if line.strip()), (1, ""))
    delimiter = labeled_delimiter(header, columns)
    if delimiter is None:
        raise missing_columns(path, header, columns, line=first)
    return rows(path, chain([(first, header)], lines), delimiter, columns)


def rows(
    path: Path, lines: Iterator[tuple[int, str]], delimiter: str, unique: Columns = DEFAULT_COLUMNS
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a table with the number of their first line; the first of the lines is the header.

    The columns that are named `unique` must not occur twice.
    """
    for number, row in rows_and_errors(path, lines, delimiter, unique):
        if isinstance(row, DataError):
            raise row
        yield number, row


def rows_and_errors(
    path: Path, lines: Iterator[tuple[int, str]], delimiter: str, unique: Columns = DEFAULT_COLUMNS
) -> Iterator[tuple[int, dict[str, str] | DataError]]:
    """Yield what `rows` yields, but for a malformed row its error: the rows after it follow."""
    header_number, header = next(lines)
    columns = _column_names(header, delimiter)
    for name in unique.lowered():
        if name is not None and columns.count(name) > 1:
            raise DataError(path, f"two columns named {name}", "unique column names", line=header_number)
    csv.field_size_limit(_LONGEST_CELL)  # for the whole process; the default of 128 KB is too little for texts
    reader = csv.reader((line for _, line in lines), delimiter=delimiter, strict=True)
    while True:
        start = header_number + 1 + reader.line_num
        try:
            cells = next(reader, None)
        except csv.Error as error:
            line = header_number + reader.line_num
            yield start, DataError(path, f"a malformed line ({error})", "cells with balanced quotes", line=line)
            continue
        if cells is None:
            return
        # In a table of one column an empty cell is a document; elsewhere the line is blank.
        if len(cells) > 1 or (cells and (cells[0].strip() or len(columns) == 1)):
            if len(cells) == len(columns):
                yield start, dict(zip(columns, cells, strict=True))
            else:
                found = f"{len(cells)} cells: {excerpt(delimiter.join(cells))}"
                yield start, DataError(path, found, f"{len(columns)}, as in the header", line=start)
