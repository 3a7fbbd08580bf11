"""Text of the Extreme Classification repository: one line `label,label feature:value …` per document.

There are three forms: with a header `N V L` (features and labels), with a header `N M` (one matrix, as in
`trn_X_Xf.txt` and `trn_X_Y.txt`), and without a header (multi-label svmlight).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import check_encoding, line_blocks, reading, writing
from lightdxml.kernels import parallel, parse

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

ID_LIMIT = 2**31 - 1
_HEADER_BYTES = 200
_LONGEST_NUMBER = 1000
_WRITE_ROWS = 4096
# Half-way between the largest float32 and the number that would follow it.
_OVERFLOW = Fraction(2**128 - 2**103)


@dataclass(frozen=True)
class Header:
    """The counts in the first line; `n_labels` is None in a file of one matrix."""

    n_rows: int
    n_columns: int
    n_labels: int | None = None


def parse_header(path: Path, line: bytes) -> Header | None:
    """Parse a header of two or three integers; return None for any other line."""
    words = line.split()
    if len(line) > _HEADER_BYTES or len(words) not in (2, 3) or not all(word.isdigit() for word in words):
        return None
    counts = [int(word) for word in words]
    for count, what in zip(counts[1:], ("features", "labels"), strict=False):
        if count > ID_LIMIT:
            raise DataError(path, f"a header that claims {count:,} {what}", f"at most {ID_LIMIT:,}", line=1)
    return Header(*counts)


def read_labeled(path: Path) -> tuple[csr_matrix, csr_matrix]:
    """Read features and labels from a file with a header `N V L`, or without one.

    Without a header, ids count from 0 and the largest ids set the sizes.
    """
    return _read(path, with_labels=True)


def read_matrix(path: Path) -> csr_matrix:
    """Read one matrix from a file with a header `N M` and lines `column:value …`."""
    return _read(path, with_labels=False)[0]


def parse_documents(path: Path, lines: list[bytes], n_features: int, line_number: int) -> csr_matrix:
    """Return the features of lines, and ignore their labels. The first line has this number in its file."""
    parser = _Parser(path, Header(len(lines), n_features, ID_LIMIT), True, line_number)
    parser.parse(np.frombuffer(b"".join(lines), dtype=np.uint8))
    return parser.matrices()[0]


def _read(path: Path, with_labels: bool) -> tuple[csr_matrix, csr_matrix]:
    parser: _Parser | None = None
    with reading(path) as stream:
        for block in line_blocks(path, stream):
            start = 0
            if parser is None:
                head = block[: _HEADER_BYTES + 2].tobytes()
                check_encoding(path, head)
                header, start = _take_header(path, head, with_labels)
                parser = _Parser(path, header, with_labels, 1 + head[:start].count(b"\n"))
            parser.parse(block, start)
    if parser is None:
        raise DataError(path, "an empty file", "lines of label,label feature:value …")
    return parser.matrices()


def _take_header(path: Path, start: bytes, with_labels: bool) -> tuple[Header | None, int]:
    """Return the header, None if there is none, and the position of the first document."""
    blank = len(start) - len(start.lstrip(b" \t\r\n"))
    first, newline, _ = start[blank:].partition(b"\n")
    header = parse_header(path, first)
    if header is None and with_labels:
        return None, 0
    if header is None or (header.n_labels is None) == with_labels:
        wanted = "three integers: documents, features and labels" if with_labels else "two integers: rows and columns"
        raise DataError(path, f"the first line {excerpt(first)}", f"a header of {wanted}", line=1)
    return header, blank + len(first) + len(newline)


class _GrowingArray:
    """An array that grows at its end, in place where the system can."""

    def __init__(self, dtype: type[np.generic]) -> None:
        self._array = np.empty(1 << 16, dtype=dtype)
        self._size = 0

    def extend(self, part: NDArray[Any]) -> None:
        size = self._size + len(part)
        if size > len(self._array):
            self._array.resize(max(size, len(self._array) * 5 // 4), refcheck=False)
        self._array[self._size : size] = part
        self._size = size

    def finish(self) -> NDArray[Any]:
        """Return the array, cut to its size without a copy. Nothing can be added afterwards."""
        self._array.resize(self._size, refcheck=False)
        return self._array


class _Parser:
    """Parses blocks of lines and collects their features and labels. Without a header, lines may have comments."""

    def __init__(self, path: Path, header: Header | None, with_labels: bool, line_number: int) -> None:
        self.path = path
        self.header = header
        self.with_labels = with_labels
        self.line_number = line_number
        self.n_features = header.n_columns if header else ID_LIMIT
        self.n_labels = ID_LIMIT if header is None or header.n_labels is None else header.n_labels
        # Features per row, labels per row, feature ids, feature values, label ids.
        self.arrays = [_GrowingArray(kind) for kind in (np.int32, np.int32, np.int32, np.float32, np.int32)]

    def parse(self, block: NDArray[np.uint8], start: int = 0) -> None:
        """Parse the lines of a block on all threads."""

        def parse_range(bounds: tuple[int, int]) -> _Parsed:
            return self._parse_range(block, *bounds)

        for parsed in parallel.run(parse_range, list(_line_ranges(block, start, parallel.thread_count()))):
            values = parsed.arrays[3]
            for index, first, last, line in parsed.slow.tolist():
                if line == parsed.lines:
                    break  # the line of the error, whose values have no positions yet
                values[index] = _exact_float32(self.path, block[first:last].tobytes(), self.line_number + line)
            self.line_number += parsed.lines
            if parsed.code != parse.OK:
                raise self._error(parsed.code, block[parsed.fault : parsed.fault + 4096].tobytes())
            for array, part in zip(self.arrays, parsed.arrays, strict=True):
                array.extend(part)

    def _parse_range(self, block: NDArray[np.uint8], start: int, stop: int) -> _Parsed:
        # The most entries that this many bytes can hold: memory that is never written costs nothing.
        size = stop - start
        row_features, row_labels = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
        features, labels = np.empty(size // 2 + 1, dtype=np.int32), np.empty(size // 2 + 1, dtype=np.int32)
        values = np.empty(size // 2 + 1, dtype=np.float32)
        slow = np.empty((1024, 4), dtype=np.int64)
        code = parse.SLOW_FULL
        while code == parse.SLOW_FULL:
            lines, rows, n_features, n_labels, n_slow, code, fault = parse.parse_lines(
                block, start, stop, self.with_labels, self.header is None, self.n_features, self.n_labels,
                row_features, row_labels, features, values, labels, slow,
            )  # fmt: skip
            if code == parse.SLOW_FULL:
                slow = np.empty((4 * len(slow), 4), dtype=np.int64)
        arrays = row_features[:rows], row_labels[:rows], features[:n_features], values[:n_features], labels[:n_labels]
        return _Parsed(lines, arrays, slow[:n_slow], code, fault)

    def _error(self, code: int, rest: bytes) -> DataError:
        """Describe the fault at the start of these bytes."""
        line = rest.partition(b"\n")[0]
        token = excerpt((line.split() or [b""])[0])
        source = "the header says" if self.header else "no more is supported:"
        columns = "features" if self.header is None or self.header.n_labels is not None else "columns"
        label_ids = f"ids from 0 to {self.n_labels - 1} ({source} {self.n_labels} labels)"
        feature_ids = f"ids from 0 to {self.n_features - 1} ({source} {self.n_features} {columns})"
        found, expected = {
            parse.BAD_LABEL: (token, "label ids: non-negative integers separated by commas"),
            parse.LABEL_RANGE: (f"label id {token}", label_ids),
            parse.LABEL_NOT_ALLOWED: (f"label id {token}", "only column:value, as this file has no labels"),
            parse.BAD_FEATURE: (token, "feature:value with a non-negative integer as feature"),
            parse.NO_COLON: (f"{token} without a colon", "feature:value (labels come first, separated by commas)"),
            parse.FEATURE_RANGE: (token, feature_ids),
            parse.FEATURE_TWICE: (f"a repeated feature in {excerpt(line)}", "each feature once per document"),
            parse.BAD_VALUE: (token, "feature:value with a decimal number as value"),
            parse.NOT_FINITE: (token, "a finite value"),
            parse.OVERFLOW: (f"{token}, which overflows", "a number that fits into a float32"),
        }[code]
        return DataError(self.path, found, expected, line=self.line_number)

    def matrices(self) -> tuple[csr_matrix, csr_matrix]:
        """Return features and labels of all lines."""
        row_features, row_labels, features, values, labels = (array.finish() for array in self.arrays)
        n = self._count_rows(row_features, row_labels)
        n_features = self.header.n_columns if self.header else int(features.max(initial=-1)) + 1
        stated = self.header.n_labels if self.header else None
        n_labels = int(labels.max(initial=-1)) + 1 if stated is None else stated
        X = _csr(values, features, row_features[:n], n_features)
        return X, _csr(np.ones(len(labels), dtype=np.float32), labels, row_labels[:n], n_labels)

    def _count_rows(self, row_features: NDArray[Any], row_labels: NDArray[Any]) -> int:
        """Return the number of documents; blank lines after the last document do not count."""
        filled = np.flatnonzero((row_features > 0) | (row_labels > 0))
        last = int(filled[-1]) + 1 if len(filled) else 0
        if self.header is None:
            return last
        found = max(last, min(len(row_features), self.header.n_rows))
        if found != self.header.n_rows:
            raise DataError(self.path, f"{found} documents", f"{self.header.n_rows}, as the header says", line=1)
        return found


@dataclass
class _Parsed:
    """The result of one thread; the arrays are those of `_Parser`."""

    lines: int
    arrays: tuple[NDArray[Any], ...]
    slow: NDArray[np.int64]
    code: int
    fault: int


def _line_ranges(block: NDArray[np.uint8], start: int, n: int) -> Iterator[tuple[int, int]]:
    """Cut a block into about n ranges of complete lines."""
    offset = start
    for _, wanted in parallel.ranges(len(block) - offset, n):
        stop = _end_of_line(block, max(start, offset + wanted))
        if stop > start:
            yield start, stop
        start = stop


def _end_of_line(block: NDArray[np.uint8], position: int) -> int:
    """Return the end of the line that contains the byte before `position`."""
    step = 1 << 12
    while position < len(block):
        found = block[position - 1 : position - 1 + step].tobytes().find(b"\n")
        if found >= 0:
            return position + found
        position += step
    return len(block)


def _exact_float32(path: Path, token: bytes, line: int) -> np.float32:
    """Round a decimal number to the nearest float32, ties to even, with exact arithmetic."""
    if len(token) > _LONGEST_NUMBER:
        found = f"a number of {len(token):,} characters"
        raise DataError(path, found, f"at most {_LONGEST_NUMBER:,} characters", line=line)
    exact = Fraction(token.decode())
    if abs(exact) >= _OVERFLOW:
        raise DataError(path, f"{excerpt(token)}, which overflows", "a number that fits into a float32", line=line)
    # The distance of neighboring float32 numbers: 24 significant bits, and none below 2⁻¹⁴⁹. `round` ties to even.
    spacing = Fraction(2) ** max(math.frexp(float(exact))[1] - 24, -149)
    nearest: np.float32 = np.float32(float(round(exact / spacing) * spacing))
    return nearest


def _csr(values: NDArray[Any], columns: NDArray[Any], counts: NDArray[Any], width: int) -> csr_matrix:
    from scipy.sparse import csr_matrix

    indptr = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    if indptr[-1] <= ID_LIMIT:
        indptr = indptr.astype(np.int32)
    matrix = csr_matrix((values, columns, indptr), shape=(len(counts), width))
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix


def write_labeled(path: Path, X: csr_matrix, Y: csr_matrix) -> None:
    """Write documents with a header `N V L`. Values are written with the fewest digits that read back the same."""
    X, Y = _canonical(X), _canonical(Y)
    with writing(path) as stream:
        stream.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode())
        for start in range(0, X.shape[0], _WRITE_ROWS):
            rows = slice(start, start + _WRITE_ROWS)
            labels = _row_texts(Y[rows], [str(label) for label in Y[rows].indices.tolist()], ",")
            features = _row_texts(X[rows], _feature_tokens(X[rows]), " ")
            stream.write("".join(f"{a} {b}\n" for a, b in zip(labels, features, strict=True)).encode())


def _canonical(matrix: csr_matrix) -> csr_matrix:
    with np.errstate(over="ignore"):
        matrix = matrix.astype(np.float32, copy=False)
    if not np.all(np.isfinite(matrix.data)):
        raise ValueError("the matrix has values that are not finite float32 numbers: they cannot be written")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _feature_tokens(rows: csr_matrix) -> list[str]:
    # NumPy writes a float32 with the fewest digits that identify it.
    values = rows.data.astype(str).tolist()
    return [f"{i}:{v.removesuffix('.0')}" for i, v in zip(rows.indices.tolist(), values, strict=True)]


def _row_texts(rows: csr_matrix, tokens: list[str], separator: str) -> list[str]:
    return [separator.join(tokens[a:b]) for a, b in pairwise(rows.indptr.tolist())]
