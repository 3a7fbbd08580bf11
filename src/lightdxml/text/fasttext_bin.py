"""Read fastText's `.bin` models with gensim, after checks of what gensim trusts."""

from __future__ import annotations

import importlib
import mmap
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.errors import DataError
from lightdxml.data.npz import UNREADABLE, reason

MAGIC = struct.pack("<i", 793712314)
MOST_DIMENSIONS = 10_000
_HEADER, _MATRIX = struct.Struct("<4s13id3i2q"), struct.Struct("<b2q")
_AFTER_WORD = 10  # its end, a count of 8 bytes, a type
_LONGEST_NGRAM = 100
_EXPECTED = "an intact model that is not a classifier, or its .vec file"


def read(
    path: Path, words: Sequence[str], claim: Callable[[str], int | None]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the vectors of words, and which words have one.

    The vector of a word is the mean of its row and of the rows of its character n-grams. `claim` returns the index of
    the wanted word that a word of the file matches. Words that match none get the mean of their n-grams.
    """
    _check(path)
    model, ngram_hashes = _load(path)
    found: dict[int, tuple[int, str]] = {}
    for row, word in enumerate(model.raw_vocab):
        if (slot := claim(word)) is not None:
            found[slot] = row, word
    matrix = np.zeros((len(words), model.dim), dtype=np.float32)
    known = np.zeros(len(words), dtype=np.bool_)
    for slot, word in enumerate(words):
        row, spelled = found.get(slot, (-1, word))
        hashes = ngram_hashes(spelled, model.minn, model.maxn, model.bucket) if model.bucket else []
        rows = [row] * (row >= 0) + [model.nwords + value for value in hashes]
        if rows:
            with np.errstate(over="ignore", invalid="ignore"):
                matrix[slot], known[slot] = model.vectors_ngrams[rows].mean(axis=0), True
    wrong = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(wrong):
        raise DataError(path, f"NaN or an infinite number in the vector of {words[wrong[0]]!r}", "finite numbers")
    return matrix, known


def _load(path: Path) -> tuple[Any, Callable[[str, int, int, int], list[int]]]:
    """Return the model as gensim reads it, and gensim's function for the hashes of n-grams.

    gensim's `load_facebook_vectors` would compute the vectors of all words of the file, which takes minutes.
    """
    try:
        reader = importlib.import_module("gensim.models._fasttext_bin")
        ngram_hashes = importlib.import_module("gensim.models.fasttext").ft_ngram_hashes
    except ImportError as error:
        message = f'{path} requires gensim: pip install "lightdxml[vectors]", or use the .vec file of the model'
        raise ImportError(message) from error
    try:
        with path.open("rb") as stream:
            model = reader.load(stream, full_model=False)
    except UNREADABLE as error:
        raise DataError(path, f"an invalid fastText model ({reason(error)})", _EXPECTED) from error
    if len(model.raw_vocab) != model.nwords:
        raise DataError(path, "a fastText model that lists a word twice", _EXPECTED)
    return model, ngram_hashes


def _check(path: Path) -> None:
    """Raise a `DataError` if the model is not in the file: gensim trusts the header, and a truncated one hangs it."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            _, version, D, *_, bucket, shortest, longest, _, _, n_entries, n_words, _, _, pruned = _HEADER.unpack_from(
                data
            )
            position = _HEADER.size
            for _ in range(min(n_entries, len(data) // _AFTER_WORD)):
                end = data.find(b"\0", position)
                position = end + _AFTER_WORD if end >= 0 else len(data)
            quantized, n_rows, width = _MATRIX.unpack_from(data, position)
            complete = 0 <= 4 * n_rows * width <= len(data) - position - _MATRIX.size
        except struct.error:
            complete = False
    if not complete:
        raise DataError(path, "a truncated fastText model", "a complete file: download or copy it again")
    if quantized or pruned >= 0:
        raise DataError(path, "a quantized fastText model", "the model before quantization, or its .vec file")
    consistent = width == D and n_rows == n_words + bucket and n_words == n_entries
    plausible = 1 <= D <= MOST_DIMENSIONS and min(bucket, shortest, longest) >= 0 and longest <= _LONGEST_NGRAM
    if version not in (11, 12) or not consistent or not plausible:
        found = f"a fastText model of version {version} with {n_words:,} words, {n_rows:,} rows and {D:,} dimensions"
        raise DataError(path, found, _EXPECTED)
