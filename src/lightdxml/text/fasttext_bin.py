"""fastText's own `.bin` models: a word's vector is the mean of its row and of those of its character n-grams."""

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
_ENTRY_BYTES = 10  # the shortest entry of the dictionary: an end of word, a count of 8 bytes, a kind
_BLOCK_BYTES = 1 << 24
_FNV_START, _FNV_FACTOR, _32_BITS = 2166136261, 16777619, 0xFFFFFFFF


@dataclass(frozen=True)
class Ngrams:
    """Which rows of the matrix belong to a word's character n-grams.

    Attributes
    ----------
    n_words
        The rows of whole words, which come first.
    bucket
        The rows of n-grams, which share them by their hash.
    least, most
        How many characters an n-gram has; `<` and `>` around the word count.
    """

    n_words: int
    bucket: int
    least: int
    most: int

    def rows(self, word: str) -> list[int]:
        """Return the rows of a word's n-grams, as often as they occur.

        >>> Ngrams(n_words=10, bucket=1, least=3, most=3).rows("cat")
        [10, 10, 10]
        """
        if self.bucket == 0 or word == _END_OF_SENTENCE:
            return []
        characters = [character.encode("utf-8", "surrogatepass") for character in f"<{word}>"]
        n = len(characters)
        rows = []
        for first in range(n):
            value = _FNV_START
            for last in range(first, min(n, first + self.most)):
                for byte in characters[last]:
                    # fastText's bytes are signed: those from 128 fill the upper 24 bits as well.
                    value = ((value ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * _FNV_FACTOR) & _32_BITS
                alone = last == first and (first == 0 or last == n - 1)
                if last - first + 1 >= self.least and not alone:
                    rows.append(self.n_words + value % self.bucket)
        return rows


def read(
    path: Path, stream: BinaryIO, words: Sequence[str], claim: Callable[[str], int | None]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the vectors of words, and which of them have one, from a model that is open at its beginning.

    Parameters
    ----------
    path
        The file, which a plain stream is mapped from and errors name.
    stream
        Its bytes; those of a compressed file are read once, forwards.
    words
        Those wanted; one that the dictionary lacks gets the mean of its n-grams.
    claim
        Says for a word of the dictionary which of the words wanted it stands for.
    """
    reader = _Reader(path, stream)
    dimensions, ngrams, n_entries = _settings(reader)
    entries: list[tuple[int, str] | None] = [None] * len(words)
    for row in range(n_entries):
        word = reader.word().decode("utf-8", "replace")
        _, kind = reader.unpack("<qb")
        place = claim(word) if row < ngrams.n_words and kind == 0 else None
        if place is not None:
            entries[place] = row, word
    n_rows = _matrix_rows(reader, dimensions, ngrams)
    rows: list[int] = []
    counts = np.zeros(len(words), dtype=np.int64)
    for i, entry in enumerate(entries):
        own = ngrams.rows(words[i]) if entry is None else [entry[0], *ngrams.rows(entry[1])]
        rows.extend(own)
        counts[i] = len(own)
    owners = np.repeat(np.arange(len(words)), counts)
    matrix = _sums(_blocks(reader, n_rows, dimensions), np.array(rows, dtype=np.int64), owners, len(words), dimensions)
    matrix /= np.maximum(counts, 1).astype(np.float32)[:, None]
    wrong = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(wrong):
        found = f"NaN or an infinite number in the vector of {words[wrong[0]]!r}"
        raise DataError(path, found, "finite numbers: fetch or copy the file again")
    return matrix, counts > 0


class _Reader:
    """A stream that is read forwards; nothing is allocated for bytes that are not there."""

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
        """Return the bytes before the next zero, which is passed over."""
        while (end := self.buffer.find(b"\0", self.at)) < 0:
            if len(self.buffer) - self.at > _LONGEST_WORD:
                raise self.error(f"a word of more than {_LONGEST_WORD:,} bytes", "words that end with a zero byte")
            self._fill(1)
        word = self.buffer[self.at : end]
        self._advance(len(word) + 1)
        return word

    def check_room(self, n: int) -> None:
        """Raise where so many bytes cannot follow."""
        if self.size is not None and self.position + n > self.size:
            raise self.broken_off()

    def error(self, found: str, expected: str) -> DataError:
        return DataError(self.path, f"{found} (fastText model, byte {self.position:,})", expected)

    def broken_off(self) -> DataError:
        return DataError(self.path, "a fastText model that breaks off", "a complete file: fetch or copy it again")

    def _advance(self, n: int) -> None:
        self.at += n
        self.position += n

    def _fill(self, wanted: int) -> None:
        more = self.stream.read(max(wanted, _READ_BYTES))
        if not more:
            raise self.broken_off()
        self.buffer = self.buffer[self.at :] + more
        self.at = 0


def _settings(reader: _Reader) -> tuple[int, Ngrams, int]:
    """Return the dimensions, the n-grams, and the number of entries in the dictionary, which follows."""
    _, version = reader.unpack("<4si")
    if version not in _VERSIONS:
        raise reader.error(f"version {version}", "version 11 or 12: train or convert the model with fastText 0.9")
    dimensions, _, _, _, _, _, _, model, bucket, least, most, _, _ = reader.unpack("<12id")
    n_entries, n_words, n_labels, _, pruned = reader.unpack("<3i2q")
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise reader.error(f"{dimensions:,} dimensions", f"1 to {MOST_DIMENSIONS:,}")
    if bucket < 0 or not 0 <= most <= _LONGEST_NGRAM:
        found = f"n-grams of up to {most} characters in {bucket:,} buckets"
        raise reader.error(found, f"at most {_LONGEST_NGRAM} characters and no negative number")
    if n_words < 0 or n_labels < 0 or n_words + n_labels != n_entries:
        raise reader.error(f"{n_words:,} words and {n_labels:,} labels among {n_entries:,} entries", "their sum")
    if pruned >= 0:
        raise _quantised(reader)
    reader.check_room(n_entries * _ENTRY_BYTES)
    # The older version's classifiers had settings for n-grams and made no use of them.
    unused = version == 11 and model == _SUPERVISED
    return dimensions, Ngrams(n_words, bucket, least, 0 if unused else most), n_entries


def _matrix_rows(reader: _Reader, dimensions: int, ngrams: Ngrams) -> int:
    """Read the head of the matrix; return its number of rows, for which there is room in the file."""
    (quantised,) = reader.unpack("<b")
    if quantised:
        raise _quantised(reader)
    n_rows, width = reader.unpack("<2q")
    needed = ngrams.n_words + (ngrams.bucket if ngrams.most else 0)
    if width != dimensions or n_rows < needed:
        raise reader.error(f"a matrix of {n_rows:,} × {width:,}", f"at least {needed:,} × {dimensions:,}")
    reader.check_room(4 * n_rows * dimensions)
    return int(n_rows)


def _quantised(reader: _Reader) -> DataError:
    return DataError(reader.path, "a quantised fastText model", "the model before it was quantised, or its .vec file")


def _blocks(reader: _Reader, n_rows: int, dimensions: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the matrix in blocks of rows, each with the number of its first; a plain file's are mapped, not read."""
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


def _sums(
    blocks: Iterator[tuple[int, NDArray[np.float32]]],
    rows: NDArray[np.int64],
    owners: NDArray[np.int64],
    n: int,
    dimensions: int,
) -> NDArray[np.float32]:
    """Return for each of n owners the sum of its rows."""
    sums = np.zeros((n, dimensions), dtype=np.float32)
    order = np.argsort(rows, kind="stable")
    rows, owners = rows[order], owners[order]
    for first, block in blocks:
        part = slice(*np.searchsorted(rows, (first, first + len(block))))
        if part.start == part.stop:
            continue
        used, column = np.unique(rows[part], return_inverse=True)
        moved, row = np.unique(owners[part], return_inverse=True)
        ones = np.ones(len(row), dtype=np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            sums[moved] += csr_matrix((ones, (row, column)), shape=(len(moved), len(used))) @ block[used - first]
    return sums
