"""TF-IDF of words and of pairs of neighbouring words, with a vocabulary that can be stored.

Where settings coincide, the numbers are those of scikit-learn's `TfidfVectorizer`. The texts are read twice, in chunks:
once to count terms, once to weigh those that were chosen. Nothing but counts is kept of the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.data.dataset import Texts
from lightdxml.kernels import parallel, words
from lightdxml.text import tokenizer
from lightdxml.text.tokenizer import Fields

_FIRST_SLOTS = 1 << 8
_LARGEST_WEIGHT = 1_000_000
_MOST_FEATURES = 2**31 - 1
_Rows = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]


@dataclass(frozen=True)
class TextOptions:
    """How texts become features.

    Attributes
    ----------
    ngrams
        1 for words, 2 for words and pairs of neighbouring words.
    min_df
        Terms of fewer documents are left out.
    max_features
        At most so many terms are kept: those with the largest count, of equals those first in the alphabet.
    title_weight
        How often a word of the title counts; 0 leaves titles out.
    sublinear
        A term that is there n times counts 1 + ln n, not n.

    Examples
    --------
    >>> TextOptions(ngrams=3)
    Traceback (most recent call last):
    ...
    ValueError: ngrams is 3: it must be 1 (words) or 2 (words and pairs of words)
    """

    ngrams: int = 2
    min_df: int = 2
    max_features: int = 100_000
    title_weight: float = 1.0
    sublinear: bool = True

    def __post_init__(self) -> None:
        if not _whole(self.ngrams) or self.ngrams not in (1, 2):
            raise ValueError(f"ngrams is {self.ngrams!r}: it must be 1 (words) or 2 (words and pairs of words)")
        if not _whole(self.min_df) or not 1 <= self.min_df <= _MOST_FEATURES:
            raise ValueError(f"min_df is {self.min_df!r}: it must be a whole number from 1")
        if not _whole(self.max_features) or not 1 <= self.max_features <= _MOST_FEATURES:
            raise ValueError(f"max_features is {self.max_features!r}: it must be a whole number from 1")
        weight = self.title_weight
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= _LARGEST_WEIGHT:
            raise ValueError(f"title_weight is {weight!r}: it must be a number from 0 to {_LARGEST_WEIGHT:,}")
        if not isinstance(self.sublinear, bool):
            raise ValueError(f"sublinear is {self.sublinear!r}: it must be true or false")


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_DEFAULT = TextOptions()


@dataclass(frozen=True, eq=False)
class Vectorizer:
    """The terms in the order of the features, and how much each counts; a pair is two words with a space between."""

    vocabulary: list[str]
    idf: NDArray[np.float32]
    settings: TextOptions = _DEFAULT

    def __post_init__(self) -> None:
        if np.shape(self.idf) != (len(self.vocabulary),):
            shape = " × ".join(map(str, np.shape(self.idf)))
            raise ValueError(f"{len(self.vocabulary)} terms and {shape} weights: there must be one each")

    @cached_property
    def table(self) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """The hash table of terms: hashes, and columns."""
        joined, bounds = tokenizer.join(self.vocabulary)
        slots = 1 << (2 * len(self.vocabulary)).bit_length()
        return words.vocabulary_table(tokenizer.code_points(joined), bounds, tokenizer.characters(), slots)


def fit(texts: Texts | Sequence[str], settings: TextOptions = _DEFAULT) -> tuple[Vectorizer, csr_matrix]:
    """Learn the vocabulary of these texts and return their features.

    Examples
    --------
    >>> vectorizer, X = fit(["my black cat", "my white cat", "my white dog"])
    >>> vectorizer.vocabulary, X.shape
    (['cat', 'my', 'my white', 'white'], (3, 4))
    """
    fields = Fields.of(texts, settings.title_weight > 0)
    terms = _chosen(fields, _count(fields, settings), settings)
    vocabulary = sorted(terms)
    documents = np.array([terms[term] for term in vocabulary], dtype=np.float64)
    idf = np.log((1 + len(fields)) / (1 + documents)) + 1
    vectorizer = Vectorizer(vocabulary, idf.astype(np.float32), settings)
    return vectorizer, transform(vectorizer, texts)


def transform(vectorizer: Vectorizer, texts: Texts | Sequence[str]) -> csr_matrix:
    """Return the features of texts, each row of length 1; terms that are not in the vocabulary are passed over.

    Examples
    --------
    >>> transform(Vectorizer(["cat", "dog"], np.array([1, 1], dtype=np.float32)), ["a cat", ""]).toarray().tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    settings = vectorizer.settings
    fields = Fields.of(texts, settings.title_weight > 0)
    hashes, columns = vectorizer.table
    idf = np.ascontiguousarray(vectorizer.idf, dtype=np.float32)
    characters = tokenizer.characters()

    def rows(chunk: tuple[int, int]) -> _Rows:
        pointers, found, counts = words.count_known(
            *fields.codes(*chunk),
            characters,
            settings.ngrams == 2,
            hashes,
            columns,
            idf.size,
            float(settings.title_weight),
        )
        indices, values = np.empty(found.size, np.int32), np.empty(found.size, np.float32)
        words.weigh(pointers, found, counts, idf, settings.sublinear, indices, values)
        return np.diff(pointers), indices, values

    return _stacked(parallel.run(rows, fields.chunks()), idf.size)


def _stacked(parts: list[_Rows], n_columns: int) -> csr_matrix:
    """Return the rows of all parts as one matrix; each part is let go as soon as it is copied."""
    pointers = np.concatenate([[0], *(lengths for lengths, _, _ in parts)]).cumsum()
    indices, values = np.empty(pointers[-1], np.int32), np.empty(pointers[-1], np.float32)
    n = pointers[-1]
    while parts:
        _, part_indices, part_values = parts.pop()
        n -= part_indices.size
        indices[n : n + part_indices.size], values[n : n + part_indices.size] = part_indices, part_values
    matrix = csr_matrix((values, indices, pointers), shape=(pointers.size - 1, n_columns))
    matrix.has_canonical_format = True
    return matrix


def _count(fields: Fields, settings: TextOptions) -> NDArray[np.uint64]:
    """Return the terms that stand in enough documents, as rows of `kernels.words`, in no particular order."""
    tables = [(np.zeros((_FIRST_SLOTS, words.COLUMNS), np.uint64), 0) for _ in range(words.SHARDS)]
    locks = [Lock() for _ in tables]
    characters = tokenizer.characters()

    def count(chunk: tuple[int, int]) -> None:
        codes, bounds = fields.codes(*chunk)
        terms, pointers = words.count_terms(codes, bounds, characters, settings.ngrams == 2, chunk[0])
        for i in range(words.SHARDS):
            # Each chunk begins with another shard, so that threads do not wait for one another.
            shard = (i + chunk[0]) % words.SHARDS
            with locks[shard]:
                tables[shard] = words.merge(*tables[shard], terms, pointers[shard], pointers[shard + 1])

    parallel.run(count, fields.chunks())
    enough = np.uint64(settings.min_df)
    return np.concatenate([table[_documents(table) >= enough] for table, _ in tables])


def _documents(terms: NDArray[np.uint64]) -> NDArray[np.uint64]:
    documents: NDArray[np.uint64] = terms[:, 1] & np.uint64(0xFFFFFFFF)
    return documents


def _chosen(fields: Fields, terms: NDArray[np.uint64], settings: TextOptions) -> dict[str, int]:
    """Return the terms of the vocabulary, and in how many documents each stands."""
    if not len(terms):
        number = {1: "any document", 2: "two documents"}.get(settings.min_df, f"{settings.min_df} documents")
        reason = "there is nothing to learn from (are the texts in the right column?)"
        raise ValueError(f"no word stands in {number}: {reason}")
    counts = terms[:, 1] >> np.uint64(32)
    if len(terms) <= settings.max_features:
        return _spelt(fields, terms)
    least = np.partition(counts, len(counts) - settings.max_features)[len(counts) - settings.max_features]
    kept, tied = _spelt(fields, terms[counts > least]), _spelt(fields, terms[counts == least])
    return kept | {term: tied[term] for term in sorted(tied)[: settings.max_features - len(kept)]}


def _spelt(fields: Fields, terms: NDArray[np.uint64]) -> dict[str, int]:
    """Return the terms as strings, read where each stands first, and in how many documents they stand."""
    terms = terms[np.argsort(terms[:, 2])]
    spelt: dict[str, int] = {}
    text, current = "", -1
    for place, documents in zip(terms[:, 2].tolist(), _documents(terms).tolist(), strict=True):
        document, position = place >> 32, (place & 0xFFFFFFFF) >> 1
        if document != current:
            text, current = fields.document(document), document
        spelt[tokenizer.term_at(text, position, bool(place & 1))] = documents
    return spelt
