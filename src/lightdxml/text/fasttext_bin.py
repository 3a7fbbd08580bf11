"""Read fastText's `.bin` models: the vector of a word is the mean of its row and the rows of its character n-grams."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.data.errors import DataError

MAGIC = struct.pack("<i", 793712314)
MOST_DIMENSIONS = 10_000
_VERSIONS = (11, 12)
_SUPERVISED = 3
_END_OF_SENTENCE = "</s>"
_LONGEST_NGRAM = 100
_LONGEST_WORD = 1 << 20
_READ_BYTES = 1 << 18
_ENTRY_BYTES = 10  # the shortest entry of the dictionary: an empty word with its end, a count of 8 bytes, a type
_BLOCK_BYTES = 1 << 24
_FNV_START, _FNV_FACTOR, _32_BITS = 2166136261, 16777619, 0xFFFFFFFF


@dataclass(frozen=True)
class Ngrams:
    """The rows of the matrix that belong to the character n-grams of a word."""

    n_words: int  # the number of word rows, which come first
    bucket: int  # the number of n-gram rows; a hash assigns n-grams to them
    shortest: int  # in characters, including `<` and `>` around the word
    longest: int

    def rows(self, word: str) -> list[int]:
        """Return the rows of the n-grams of a word; repeated n-grams repeat."""
        if self.bucket == 0 or word == _END_OF_SENTENCE:
            return []
        characters = [character.encode("utf-8", "surrogatepass") for character in f"<{word}>"]
        n = len(characters)
        rows = []
        for first in range(n):
            value = _FNV_START
            for last in range(first, min(n, first + self.longest)):
                for byte in characters[last]:
                    # fastText's bytes are signed: sign extension sets the upper 24 bits.
                    value = ((value ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * _FNV_FACTOR) & _32_BITS
                boundary = last == first and (first == 0 or last == n - 1)
                if last - first + 1 >= self.shortest and not boundary:
                    rows.append(self.n_words + value % self.bucket)
        return rows


def read(
    path: Path, stream: BinaryIO, words: Sequence[str], claim: Callable[[str], int | None]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the vectors of words, and which words have one.

    A plain file is memory-mapped; the stream of a compressed file is read once, forwards. `claim` returns the index of
    the wanted word that a word of the dictionary matches. Words that match none get the mean of their n-grams.
    """
    reader = _Reader(path, stream)
    dimensions, ngrams, n_entries = _read_header(reader)
    entries: list[tuple[int, str] | None] = [None] * len(words)
    for row in range(n_entries):
        word = reader.word().decode("utf-8", "replace")
        _, kind = reader.unpack("<qb")
        slot = claim(word) if row < ngrams.n_words and kind == 0 else None
        if slot is not None:
            entries[slot] = row, word
    n_rows = _read_matrix_header(reader, dimensions, ngrams)
    rows: list[int] = []
    counts = np.zeros(len(words), dtype=np.int64)
    for i, entry in enumerate(entries):
        own = ngrams.rows(words[i]) if entry is None else [entry[0], *ngrams.rows(entry[1])]
        rows.extend(own)
        counts[i] = len(own)
    owners = np.repeat(np.arange(len(words)), counts)
    matrix = np.zeros((len(words), dimensions), dtype=np.float32)
    _add_rows(matrix, _blocks(reader, n_rows, dimensions), np.array(rows, dtype=np.int64), owners)
    matrix /= np.maximum(counts, 1).astype(np.float32)[:, None]
    wrong = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(wrong):
        found = f"NaN or an infinite number in the vector of {words[wrong[0]]!r}"
        raise DataError(path, found, "finite numbers: download or copy the file again")
    return matrix, counts > 0


class _Reader:
    """Reads a stream forwards, and never allocates memory for bytes that do not exist."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self.path = path
        self.stream = stream
        self.size = os.fstat(stream.fileno()).st_size if isinstance(stream, io.BufferedReader) else None
        self.position = 0
        self.buffer = b""
        self.at = 0

    def take(self, n: int) -> bytes:
        while (missing := n - (len(self.buffer) - self.at)) > 0:
            self._fill(missing)
        taken = self.buffer[self.at : self.at + n]
        self._advance(n)
        return taken

    def unpack(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def word(self) -> bytes:
        """Return the bytes before the next zero byte, and skip the zero."""
        while (end := self.buffer.find(b"\0", self.at)) < 0:
            if len(self.buffer) - self.at > _LONGEST_WORD:
                raise self.error(f"a word of more than {_LONGEST_WORD:,} bytes", "words that end with a zero byte")
            self._fill(1)
        word = self.buffer[self.at : end]
        self._advance(len(word) + 1)
        return word

    def require(self, n: int) -> None:
        """Raise a `DataError` if the file has fewer than n more bytes."""
        if self.size is not None and self.position + n > self.size:
            raise self._truncated()

    def error(self, found: str, expected: str) -> DataError:
        return DataError(self.path, f"{found} (fastText model, byte {self.position:,})", expected)

    def _truncated(self) -> DataError:
        return DataError(self.path, "a truncated fastText model", "a complete file: download or copy it again")

    def _advance(self, n: int) -> None:
        self.at += n
        self.position += n

    def _fill(self, wanted: int) -> None:
        more = self.stream.read(max(wanted, _READ_BYTES))
        if not more:
            raise self._truncated()
        self.buffer = self.buffer[self.at :] + more
        self.at = 0


def _read_header(reader: _Reader) -> tuple[int, Ngrams, int]:
    """Return the dimensions, the n-grams, and the number of entries in the dictionary that follows."""
    _, version = reader.unpack("<4si")
    if version not in _VERSIONS:
        raise reader.error(f"version {version}", "version 11 or 12: train or convert the model with fastText 0.9")
    dimensions, _, _, _, _, _, _, model, bucket, shortest, longest, _, _ = reader.unpack("<12id")
    n_entries, n_words, n_labels, _, pruned = reader.unpack("<3i2q")
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise reader.error(f"{dimensions:,} dimensions", f"1 to {MOST_DIMENSIONS:,}")
    if bucket < 0 or not 0 <= longest <= _LONGEST_NGRAM:
        found = f"n-grams of up to {longest} characters in {bucket:,} buckets"
        raise reader.error(found, f"at most {_LONGEST_NGRAM} characters and no negative number")
    if n_words < 0 or n_labels < 0 or n_words + n_labels != n_entries:
        raise reader.error(f"{n_words:,} words and {n_labels:,} labels among {n_entries:,} entries", "their sum")
    if pruned >= 0:
        raise _quantized(reader)
    reader.require(n_entries * _ENTRY_BYTES)
    # Classifiers of version 11 store options for n-grams but do not use them.
    unused = version == 11 and model == _SUPERVISED
    return dimensions, Ngrams(n_words, bucket, shortest, 0 if unused else longest), n_entries


def _read_matrix_header(reader: _Reader, dimensions: int, ngrams: Ngrams) -> int:
    """Return the number of rows of the matrix that follows."""
    (quantized,) = reader.unpack("<b")
    if quantized:
        raise _quantized(reader)
    n_rows, width = reader.unpack("<2q")
    needed = ngrams.n_words + (ngrams.bucket if ngrams.longest else 0)
    if width != dimensions or n_rows < needed:
        raise reader.error(f"a matrix of {n_rows:,} × {width:,}", f"at least {needed:,} × {dimensions:,}")
    reader.require(4 * n_rows * dimensions)
    return int(n_rows)


def _quantized(reader: _Reader) -> DataError:
    return DataError(reader.path, "a quantized fastText model", "the model before quantization, or its .vec file")


def _blocks(reader: _Reader, n_rows: int, dimensions: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield blocks of rows, each with the index of its first row; a plain file is memory-mapped."""
    step = max(1, _BLOCK_BYTES // (4 * dimensions))
    table = None
    if reader.size is not None and n_rows:
        table = np.memmap(reader.path, dtype="<f4", mode="r", offset=reader.position, shape=(n_rows, dimensions))
    for first in range(0, n_rows, step):
        n = min(step, n_rows - first)
        if table is not None:
            yield first, table[first : first + n]
        else:
            yield first, np.frombuffer(reader.take(4 * n * dimensions), dtype="<f4").reshape(n, dimensions)


def _add_rows(
    sums: NDArray[np.float32],
    blocks: Iterator[tuple[int, NDArray[np.float32]]],
    rows: NDArray[np.int64],
    owners: NDArray[np.int64],
) -> None:
    """Add each of these rows of the blocks to the sum of its owner."""
    order = np.argsort(rows, kind="stable")
    rows, owners = rows[order], owners[order]
    for first, block in blocks:
        part = slice(*np.searchsorted(rows, (first, first + len(block))))
        if part.start == part.stop:
            continue
        used, column = np.unique(rows[part], return_inverse=True)
        targets, row = np.unique(owners[part], return_inverse=True)
        ones = np.ones(len(row), dtype=np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            sums[targets] += csr_matrix((ones, (row, column)), shape=(len(targets), len(used))) @ block[used - first]
