"""Text of the Extreme Classification repository: `label,label feature:value …`, one document a line.

Three forms share the line and the reader: with a header `N V L` (documents and labels), with a header `N M`
(one matrix alone, the split form's `trn_X_Xf.txt` and `trn_X_Y.txt`), and without a header (multi-label svmlight).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import check_encoding, line_blocks, reading, writing
from lightdxml.kernels import parallel, parse

_ID_LIMIT = 2**31 - 1
_HEADER_BYTES = 200
_EXACT_DIGITS = 1000
_WRITE_ROWS = 4096
_LARGEST = float(np.finfo(np.float32).max)
# Half-way between the largest float32 and what would be the next one.
_OVERFLOW = Fraction(2**128 - 2**103)


@dataclass(frozen=True)
class Header:
    """The first line's counts; `n_labels` is None in a file of one matrix."""

    n_rows: int
    n_columns: int
    n_labels: int | None = None


def parse_header(path: Path, line: bytes) -> Header | None:
    """Read a header of two or three whole numbers; None if the line is something else."""
    words = line.split()
    if len(line) > _HEADER_BYTES or len(words) not in (2, 3) or not all(word.isdigit() for word in words):
        return None
    counts = [int(word) for word in words]
    for count, what in zip(counts[1:], ("features", "labels"), strict=False):
        if count > _ID_LIMIT:
            raise DataError(path, f"a header that claims {count:,} {what}", f"at most {_ID_LIMIT:,}", line=1)
    return Header(*counts)


@dataclass(frozen=True)
class Lines:
    """What the lines of a file hold: features with values and labels, each with row pointers."""

    features: csr_matrix
    labels: csr_matrix
    header: Header | None


def read_labelled(path: Path) -> Lines:
    """Read documents with labels, with a header `N V L` or, as svmlight, without one.

    Without a header ids are taken as they stand, from 0, and the largest one sets the size.
    """
    return _read(path, with_labels=True)


def read_matrix(path: Path) -> csr_matrix:
    """Read one matrix: a header `N M`, then `column:value …` a line."""
    return _read(path, with_labels=False).features


def parse_documents(path: Path, lines: list[bytes], n_features: int, line_number: int) -> csr_matrix:
    """Return the features of lines of documents, whose labels play no part; the first has this number in its file."""
    parts = _Parts()
    block = np.frombuffer(b"".join(lines), dtype=np.uint8)
    header = Header(len(lines), n_features, _ID_LIMIT)
    n = _read_block(path, block, 0, header, True, line_number, parts)
    return _assemble(path, parts, Header(n, n_features, _ID_LIMIT)).features


def _read(path: Path, *, with_labels: bool) -> Lines:
    parts = _Parts()
    header: Header | None = None
    line_number = 1
    with reading(path) as stream:
        for i, block in enumerate(line_blocks(path, stream)):
            start = 0
            if i == 0:
                start_bytes = block[: _HEADER_BYTES + 2].tobytes()
                check_encoding(path, start_bytes)
                header, start = _take_header(path, start_bytes, with_labels)
                line_number += start_bytes[:start].count(b"\n")
            line_number += _read_block(path, block, start, header, with_labels, line_number, parts)
    if line_number == 1 and header is None:
        raise DataError(path, "an empty file", "lines of label,label feature:value …")
    return _assemble(path, parts, header)


def _take_header(path: Path, start: bytes, with_labels: bool) -> tuple[Header | None, int]:
    """Return the header and where the documents begin."""
    blank = len(start) - len(start.lstrip(b" \t\r\n"))
    first, newline, _ = start[blank:].partition(b"\n")
    header = parse_header(path, first)
    if header is None and not with_labels:
        raise DataError(path, excerpt(first), "a header with two numbers: rows and columns", line=1)
    if header is not None and (header.n_labels is None) == with_labels:
        wanted = "three numbers: documents, features and labels" if with_labels else "two numbers: rows and columns"
        raise DataError(path, f"the header {excerpt(first)}", f"a header with {wanted}", line=1)
    return header, blank + len(first) + len(newline) if header else 0


class _Growing:
    """An array that grows at its end, in place where the system can, and never far ahead of what it holds."""

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
        """Return the array, cut to its size without a copy; nothing can be added after that."""
        self._array.resize(self._size, refcheck=False)
        return self._array


class _Parts:
    """What the blocks read so far hold."""

    def __init__(self) -> None:
        self.row_features = _Growing(np.int32)
        self.row_labels = _Growing(np.int32)
        self.features = _Growing(np.int32)
        self.values = _Growing(np.float32)
        self.labels = _Growing(np.int32)


def _read_block(
    path: Path,
    block: NDArray[np.uint8],
    start: int,
    header: Header | None,
    with_labels: bool,
    line_number: int,
    parts: _Parts,
) -> int:
    """Parse one block on all threads, add what it holds to `parts`, and return its number of lines."""
    n_features = header.n_columns if header else _ID_LIMIT
    n_labels = _ID_LIMIT if header is None or header.n_labels is None else header.n_labels

    def parse_range(bounds: tuple[int, int]) -> _Range:
        return _parse_range(block, bounds, with_labels, header is None, n_features, n_labels)

    lines = 0
    for done in parallel.run(parse_range, list(_line_ranges(block, start, parallel.thread_count()))):
        for index, first, last, line in done.slow.tolist():
            token = block[first:last].tobytes()
            done.values[index] = _exact_float32(path, token, line_number + lines + line)
        lines += done.lines
        if done.code != parse.OK:
            raise _fault(path, block, done, header, line_number + lines)
        parts.row_features.extend(done.row_features)
        parts.row_labels.extend(done.row_labels)
        parts.features.extend(done.features)
        parts.values.extend(done.values)
        parts.labels.extend(done.labels)
    return lines


def _line_ranges(block: NDArray[np.uint8], start: int, n: int) -> Iterator[tuple[int, int]]:
    """Cut a block into about n ranges of whole lines."""
    offset = start
    for _, wanted in parallel.ranges(len(block) - offset, n):
        stop = _end_of_line(block, max(start, offset + wanted))
        if stop > start:
            yield start, stop
        start = stop


def _end_of_line(block: NDArray[np.uint8], position: int) -> int:
    """Return where the line ends that holds the byte before `position`."""
    step = 1 << 12
    while position < len(block):
        found = block[position - 1 : position - 1 + step].tobytes().find(b"\n")
        if found >= 0:
            return position + found
        position += step
    return len(block)


@dataclass
class _Range:
    """What one thread made of its lines."""

    lines: int
    row_features: NDArray[np.int32]
    row_labels: NDArray[np.int32]
    features: NDArray[np.int32]
    values: NDArray[np.float32]
    labels: NDArray[np.int32]
    slow: NDArray[np.int64]
    code: int
    fault: int


def _parse_range(
    block: NDArray[np.uint8],
    bounds: tuple[int, int],
    with_labels: bool,
    with_comments: bool,
    n_features: int,
    n_labels: int,
) -> _Range:
    start, stop = bounds
    # The most that so many bytes can hold; memory that is not written to costs nothing.
    size = stop - start
    row_features = np.empty(size, dtype=np.int32)
    row_labels = np.empty(size, dtype=np.int32)
    features = np.empty(size // 2 + 1, dtype=np.int32)
    values = np.empty(size // 2 + 1, dtype=np.float32)
    labels = np.empty(size // 2 + 1, dtype=np.int32)
    slow = np.empty((1024, 4), dtype=np.int64)
    while True:
        lines, rows, n_features_read, n_labels_read, n_slow, code, fault = parse.parse_lines(
            block, start, stop, with_labels, with_comments, n_features, n_labels,
            row_features, row_labels, features, values, labels, slow,
        )  # fmt: skip
        if code != parse.SLOW_FULL:
            break
        slow = np.empty((4 * len(slow), 4), dtype=np.int64)
    return _Range(
        lines,
        row_features[:rows],
        row_labels[:rows],
        features[:n_features_read],
        values[:n_features_read],
        labels[:n_labels_read],
        slow[:n_slow],
        code,
        fault,
    )


def _exact_float32(path: Path, token: bytes, line: int) -> np.float32:
    """Round a decimal number to the nearest float32 with exact arithmetic (ties to even)."""
    if len(token) > _EXACT_DIGITS:
        raise DataError(
            path, f"a number of {len(token):,} characters", f"at most {_EXACT_DIGITS:,} characters", line=line
        )
    exact = Fraction(token.decode())
    if abs(exact) >= _OVERFLOW:
        raise DataError(path, f"{excerpt(token)}, which overflows", "a number that fits into a float32", line=line)
    with np.errstate(over="ignore", under="ignore"):
        near = np.float32(min(max(float(exact), -_LARGEST), _LARGEST))
        around = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
    candidates = [value for value in around if np.isfinite(value)]
    # Of two equally near ones the one with an even last bit.
    return min(candidates, key=lambda c: (abs(Fraction(float(c)) - exact), int(c.view(np.uint32)) & 1))


def _fault(path: Path, block: NDArray[np.uint8], done: _Range, header: Header | None, line: int) -> DataError:
    """Put into words what `parse_lines` stopped at."""
    rest = block[done.fault : done.fault + 4096].tobytes()
    line_rest = rest.partition(b"\n")[0]
    token = excerpt((line_rest.split() or [b""])[0])
    source = "the header says" if header else "no more is supported:"
    n_features = header.n_columns if header else _ID_LIMIT
    n_labels = header.n_labels if header and header.n_labels is not None else _ID_LIMIT
    columns = "features" if header is None or header.n_labels is not None else "columns"
    words = {
        parse.BAD_LABEL: (token, "label ids, whole numbers from 0 separated by commas"),
        parse.LABEL_RANGE: (
            f"label id {token}",
            f"ids from 0 to {n_labels - 1} ({source} {n_labels} labels)",
        ),
        parse.LABEL_NOT_ALLOWED: (f"label id {token}", "only column:value, as this file holds no labels"),
        parse.BAD_FEATURE: (token, "feature:value with a whole number from 0 as feature"),
        parse.NO_COLON: (
            f"{token} without a colon",
            "feature:value (labels stand first, separated by commas)",
        ),
        parse.FEATURE_RANGE: (token, f"ids from 0 to {n_features - 1} ({source} {n_features} {columns})"),
        parse.FEATURE_TWICE: (
            f"a feature that stands twice in {excerpt(line_rest)}",
            "each feature once a document",
        ),
        parse.BAD_VALUE: (token, "feature:value with a decimal number as value"),
        parse.NOT_FINITE: (token, "a finite value, neither NaN nor infinite"),
        parse.OVERFLOW: (f"{token}, which overflows", "a number that fits into a float32"),
    }
    found, expected = words[done.code]
    return DataError(path, found, expected, line=line)


def _assemble(path: Path, parts: _Parts, header: Header | None) -> Lines:
    row_features = parts.row_features.finish()
    row_labels = parts.row_labels.finish()
    n = _count_rows(path, row_features, row_labels, header)
    labels = parts.labels.finish()
    n_labels = header.n_labels if header and header.n_labels is not None else int(labels.max(initial=-1)) + 1
    Y = _csr(np.ones(len(labels), dtype=np.float32), labels, row_labels[:n], n_labels)
    features = parts.features.finish()
    n_features = header.n_columns if header else int(features.max(initial=-1)) + 1
    X = _csr(parts.values.finish(), features, row_features[:n], n_features)
    return Lines(X, Y, header)


def _count_rows(path: Path, row_features: NDArray[Any], row_labels: NDArray[Any], header: Header | None) -> int:
    """Return the number of documents; blank lines after the last one are none."""
    filled = np.flatnonzero((row_features > 0) | (row_labels > 0))
    last = int(filled[-1]) + 1 if len(filled) else 0
    if header is None:
        return last
    found = max(last, min(len(row_features), header.n_rows))
    if found != header.n_rows:
        raise DataError(path, f"{found} documents", f"{header.n_rows}, as the header says", line=1)
    return found


def _csr(values: NDArray[Any], columns: NDArray[Any], counts: NDArray[Any], width: int) -> csr_matrix:
    pointers = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=pointers[1:])
    if pointers[-1] <= _ID_LIMIT:
        pointers = pointers.astype(np.int32)
    matrix = csr_matrix((values, columns, pointers), shape=(len(counts), width))
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix


def write_labelled(path: Path, X: csr_matrix, Y: csr_matrix) -> None:
    """Write documents with a header `N V L`; values are the shortest text that reads back the same."""
    write_chunks(path, (X.shape[0], X.shape[1], Y.shape[1]), [(X, Y)])


def write_chunks(path: Path, shape: tuple[int, int, int], chunks: Iterable[tuple[csr_matrix, csr_matrix]]) -> None:
    """Write documents that come in chunks, features and labels, as `write_labelled` does; `shape` is N, V and L."""
    with writing(path) as stream:
        stream.write("{} {} {}\n".format(*shape).encode())
        for X, Y in chunks:
            X, Y = _sorted(X), _sorted(Y)
            for start in range(0, X.shape[0], _WRITE_ROWS):
                labels = _row_texts(Y[start : start + _WRITE_ROWS].indices.astype(str), Y, start, ",")
                features = _row_texts(_pair_texts(X[start : start + _WRITE_ROWS]), X, start, " ")
                stream.write("".join(f"{a} {b}\n" for a, b in zip(labels, features, strict=True)).encode())


def write_matrix(path: Path, matrix: csr_matrix) -> None:
    """Write one matrix with a header `N M`."""
    matrix = _sorted(matrix)
    with writing(path) as stream:
        stream.write(f"{matrix.shape[0]} {matrix.shape[1]}\n".encode())
        for start in range(0, matrix.shape[0], _WRITE_ROWS):
            rows = _row_texts(_pair_texts(matrix[start : start + _WRITE_ROWS]), matrix, start, " ")
            stream.write("".join(f"{row}\n" for row in rows).encode())


def check_binary(Y: csr_matrix, path: Path) -> None:
    """Raise where labels have weights, which text formats cannot hold."""
    if not np.all(Y.data == 1):
        raise DataError(path, "labels with weights other than 1", "plain labels: the npz format keeps weights")


def _sorted(matrix: csr_matrix) -> csr_matrix:
    with np.errstate(over="ignore"):
        matrix = matrix.astype(np.float32, copy=False)
    if not np.all(np.isfinite(matrix.data)):
        raise ValueError("the matrix holds values that no finite float32 can hold, which cannot be written")
    return matrix if matrix.has_canonical_format else _canonical(matrix.copy())


def _canonical(matrix: csr_matrix) -> csr_matrix:
    matrix.sum_duplicates()
    return matrix


def _pair_texts(rows: csr_matrix) -> list[str]:
    # NumPy writes a float32 in the fewest digits that tell it from its neighbours.
    values = rows.data.astype(str)
    return [f"{i}:{v.removesuffix('.0')}" for i, v in zip(rows.indices.tolist(), values.tolist(), strict=True)]


def _row_texts(tokens: Sequence[str], matrix: csr_matrix, start: int, separator: str) -> list[str]:
    """Join the tokens of each of the rows from `start`."""
    pointers = (matrix.indptr[start : start + _WRITE_ROWS + 1] - matrix.indptr[start]).tolist()
    return [separator.join(tokens[a:b]) for a, b in pairwise(pointers)]
