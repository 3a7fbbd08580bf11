"""TF-IDF of words and pairs of adjacent words, with a vocabulary that can be stored.

With equal options the values are those of scikit-learn's `TfidfVectorizer`. `fit` reads the texts twice, in chunks: to
count terms, and to weight the terms of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.dataset import Texts
from lightdxml.kernels import parallel, words
from lightdxml.kernels.sparse import FeatureRows
from lightdxml.resources.system import check_memory
from lightdxml.settings import check, setting
from lightdxml.text import tokenizer
from lightdxml.text.languages import check_language
from lightdxml.text.tokenizer import Fields

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_FIRST_SLOTS = 1 << 8
_LARGEST_COUNT = 2**31 - 1
# Memory of `fit` per million characters, and the power with which it grows, by `ngrams`: terms in hash tables, and the
# features. The more text, the fewer of its pairs are new. Compiled code and buffers come on top.
_FIT_BYTES, _FIT_POWER, _FIT_BUFFERS = {1: 1.7e6, 2: 10e6}, {1: 1.0, 2: 0.77}, 100_000_000
_SAMPLE = 1000


@dataclass(frozen=True)
class TextOptions:
    """Options of TF-IDF features. A term that occurs n times in a document counts as 1 + ln n (sublinear TF).

    Examples
    --------
    >>> TextOptions(ngrams=3)
    Traceback (most recent call last):
    ...
    ValueError: ngrams is 3: it must be an integer of at least 1 and at most 2
    """

    ngrams: int = setting(1, "1 for words, 2 for words and pairs of adjacent words.", low=1, high=2)
    min_df: int = setting(2, "The smallest number of documents that a term must occur in.", low=1, high=_LARGEST_COUNT)
    max_features: int = setting(
        100_000,
        "The largest number of terms: those with the largest counts, and among equals the first in the alphabet.",
        low=1,
        high=_LARGEST_COUNT,
    )
    title_weight: float = setting(1.0, "The weight of a word in the title; 0 ignores titles.", low=0, high=1_000_000)
    language: str = setting("", "Language whose words are reduced to their base form, such as fi; empty: as written.")

    def __post_init__(self) -> None:
        check(self)
        if self.language:
            check_language(self.language)


_DEFAULT = TextOptions()


@dataclass(frozen=True, eq=False)
class Vectorizer:
    """The terms in the order of the features, and their weights; a pair is two words with a space between them."""

    vocabulary: list[str]
    idf: NDArray[np.float32]
    settings: TextOptions = _DEFAULT

    def __post_init__(self) -> None:
        if np.shape(self.idf) != (len(self.vocabulary),):
            shape = " × ".join(map(str, np.shape(self.idf)))
            raise ValueError(f"{len(self.vocabulary)} terms and {shape} weights: there must be one weight per term")

    @cached_property
    def table(self) -> NDArray[np.uint64]:
        """The hash table of the terms, as `kernels.words` takes it."""
        joined, bounds = tokenizer.join(self.vocabulary)
        codes, slots = tokenizer.code_points(joined), 1 << (2 * len(self.vocabulary)).bit_length()
        return words.vocabulary_table(codes, bounds, tokenizer.characters(codes), slots)


def fit(
    texts: Texts | Sequence[str],
    settings: TextOptions = _DEFAULT,
    memory_limit: int | None = None,
    names: Sequence[str] = (),
) -> tuple[Vectorizer, csr_matrix]:
    """Learn a vocabulary from texts; return it with the features of the texts, as `transform` does.

    How many terms there are shows only when they are counted, so the most memory that the process may take is checked
    meanwhile; None for what the machine has. The words of `names` are in the vocabulary however rare they are in the
    texts.

    Examples
    --------
    >>> vectorizer, X = fit(["my black cat", "my white cat", "my white dog"], TextOptions(ngrams=2))
    >>> vectorizer.vocabulary, X.shape
    (['cat', 'my', 'my white', 'white'], (3, 4))
    """
    fields = Fields.of(texts, settings.title_weight > 0, settings.language)
    of_names = Fields.of(names, language=settings.language)
    common, wanted = _count(fields, settings, memory_limit, _words(of_names))
    document_counts = spell(of_names, wanted) | _select(fields, common, settings)
    vocabulary = sorted(document_counts)
    df = np.array([document_counts[term] for term in vocabulary], dtype=np.float64)
    idf = np.log((1 + len(fields)) / (1 + df)) + 1
    vectorizer = Vectorizer(vocabulary, idf.astype(np.float32), settings)
    return vectorizer, transform(vectorizer, texts, memory_limit)


def with_words(vectorizer: Vectorizer, names: Sequence[str], n_documents: int) -> Vectorizer:
    """Return a vectorizer that knows all words of names: words that it does not know become its last features.

    They have the weight of words that none of its documents has.

    Examples
    --------
    >>> known = Vectorizer(["cat", "dog"], np.array([1, 2], dtype=np.float32))
    >>> with_words(known, ["a big dog"], 100).vocabulary
    ['cat', 'dog', 'big']
    """
    new = sorted(set(words_of_names(names, vectorizer.settings)) - set(vectorizer.vocabulary))
    weights = np.full(len(new), np.log(1 + n_documents) + 1, dtype=np.float32)
    return Vectorizer([*vectorizer.vocabulary, *new], np.append(vectorizer.idf, weights), vectorizer.settings)


def words_of_names(names: Sequence[str], settings: TextOptions) -> list[str]:
    """Return the words of names, each once.

    >>> words_of_names(["big cats", "big dogs"], TextOptions())
    ['big', 'cats', 'dogs']
    """
    fields = Fields.of(names, language=settings.language)
    return list(spell(fields, _words(fields)))


def fit_bytes(texts: Texts | Sequence[str], settings: TextOptions = _DEFAULT) -> int:
    """Return about how much memory `fit` takes, from the length of some texts.

    >>> fit_bytes(["a cat"] * 1000) > 1_000_000
    True
    """
    n = len(texts)
    some = range(0, n, max(1, n // _SAMPLE))
    millions = n * sum(len(texts[i]) for i in some) / max(1, len(some)) / 1e6
    growing = _FIT_BYTES[settings.ngrams] * float(millions ** _FIT_POWER[settings.ngrams])
    return round(growing) + _FIT_BUFFERS


def transform(vectorizer: Vectorizer, texts: Texts | Sequence[str], memory_limit: int | None = None) -> csr_matrix:
    """Return the features of texts as a matrix of SciPy: see `features`.

    Examples
    --------
    >>> transform(Vectorizer(["cat", "dog"], np.array([1, 1], dtype=np.float32)), ["a cat", ""]).toarray().tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    from scipy.sparse import csr_matrix

    rows = features(vectorizer, texts, memory_limit)
    matrix = csr_matrix((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    matrix.has_canonical_format = True
    return matrix


def features(vectorizer: Vectorizer, texts: Texts | Sequence[str], memory_limit: int | None = None) -> FeatureRows:
    """Return the features of texts; terms outside the vocabulary are ignored.

    The matrix is canonical CSR: float32 values, sorted int32 indices without duplicates, and rows of length 1 (a text
    without known terms is an empty row). The rest of the package relies on it and neither checks nor normalizes it
    again. The memory limit is as in `fit`.

    Examples
    --------
    >>> features(Vectorizer(["cat", "dog"], np.array([1, 1], dtype=np.float32)), ["a cat", ""]).data.tolist()
    [1.0]
    """
    settings = vectorizer.settings
    fields = Fields.of(texts, settings.title_weight > 0, settings.language)
    idf = np.ascontiguousarray(vectorizer.idf, dtype=np.float32)
    table = vectorizer.table
    pairs, title_weight = settings.ngrams == 2, float(settings.title_weight)
    chunks, sizes = fields.chunks(), list[int]()

    def rows(chunk: tuple[int, int]) -> _Rows:
        codes, bounds = fields.codes(*chunk)
        characters = tokenizer.characters(codes)
        indptr, found, counts = words.count_known(codes, bounds, characters, pairs, table, idf.size, title_weight)
        indices, values = np.empty(found.size, np.int32), np.empty(found.size, np.float32)
        words.weigh(indptr, found, counts, idf, indices, values)
        sizes.append(indices.nbytes + values.nbytes)
        if len(chunks) > 1:
            # All chunks are copied into one matrix in the end.
            check_memory("turning texts into features", sum(sizes), memory_limit)
        return np.diff(indptr), indices, values

    return _stack(parallel.run(rows, chunks), idf.size)


_Rows = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]


def _stack(parts: list[_Rows], n_columns: int) -> FeatureRows:
    """Join rows (lengths, indices, values) into one matrix; the memory of each part is freed once it is copied."""
    indptr = np.concatenate([[0], *(lengths for lengths, _, _ in parts)]).cumsum()
    end = indptr[-1]
    indices, values = np.empty(end, np.int32), np.empty(end, np.float32)
    while parts:
        _, part_indices, part_values = parts.pop()
        start = end - part_indices.size
        indices[start:end], values[start:end] = part_indices, part_values
        end = start
    return FeatureRows(indptr, indices, values, n_columns)


def _words(names: Fields) -> NDArray[np.uint64]:
    """Return the words of names, as unordered rows of `kernels.words`."""
    table, size = np.zeros((_FIRST_SLOTS, words.COLUMNS), np.uint64), 0
    for chunk in names.chunks():
        codes, bounds = names.codes(*chunk)
        terms, starts = words.count_terms(codes, bounds, tokenizer.characters(codes), False, chunk[0])
        table, size = words.merge(table, size, terms, starts[0], starts[-1])
    return table[table[:, 0] > 0]


def _count(
    fields: Fields, settings: TextOptions, memory_limit: int | None, wanted: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the terms that occur in enough documents, and the wanted ones with their counts in the documents.

    Both are unordered rows of `kernels.words`. A wanted term is at its place in the names.
    """
    tables = [(np.zeros((_FIRST_SLOTS, words.COLUMNS), np.uint64), 0) for _ in range(words.SHARDS)]
    locks = [Lock() for _ in tables]

    def count(chunk: tuple[int, int]) -> None:
        codes, bounds = fields.codes(*chunk)
        terms, starts = words.count_terms(codes, bounds, tokenizer.characters(codes), settings.ngrams == 2, chunk[0])
        for i in range(words.SHARDS):
            # Chunks start at different shards, so that threads do not wait for each other.
            shard = (i + chunk[0]) % words.SHARDS
            with locks[shard]:
                tables[shard] = words.merge(*tables[shard], terms, starts[shard], starts[shard + 1])
        # A table that is full is copied to one of twice the size, on every thread.
        largest = max(table.nbytes for table, _ in tables)
        check_memory("counting the words of the texts", 2 * parallel.thread_count() * largest, memory_limit)

    parallel.run(count, fields.chunks())
    min_df = np.uint64(settings.min_df)
    common = np.concatenate([table[_document_counts(table) >= min_df] for table, _ in tables])
    counted = wanted[np.argsort(wanted[:, 0])]
    counted[:, 1] = 0
    for table, _ in tables if len(counted) else ():
        found = table[np.isin(table[:, 0], counted[:, 0])]
        counted[np.searchsorted(counted[:, 0], found[:, 0]), 1] = found[:, 1]
    return common, counted


def count_terms(fields: Fields, settings: TextOptions) -> NDArray[np.uint64]:
    """Return the terms that occur in enough documents, as unordered rows of `kernels.words`."""
    return _count(fields, settings, None, np.zeros((0, words.COLUMNS), np.uint64))[0]


def _document_counts(terms: NDArray[np.uint64]) -> NDArray[np.uint64]:
    counts: NDArray[np.uint64] = terms[:, 1] & np.uint64(0xFFFFFFFF)
    return counts


def _select(fields: Fields, terms: NDArray[np.uint64], settings: TextOptions) -> dict[str, int]:
    """Return the terms of the vocabulary with their document counts."""
    if not len(terms):
        number = {1: "any document", 2: "two documents"}.get(settings.min_df, f"{settings.min_df} documents")
        raise ValueError(f"no word occurs in {number}: check that the texts are in the right column")
    if len(terms) <= settings.max_features:
        return spell(fields, terms)
    counts = terms[:, 1] >> np.uint64(32)
    threshold = np.partition(counts, len(counts) - settings.max_features)[len(counts) - settings.max_features]
    kept, tied = spell(fields, terms[counts > threshold]), spell(fields, terms[counts == threshold])
    return kept | {term: tied[term] for term in sorted(tied)[: settings.max_features - len(kept)]}


def spell(fields: Fields, terms: NDArray[np.uint64]) -> dict[str, int]:
    """Return terms as strings, read from their first occurrence, with their document counts."""
    terms = terms[np.argsort(terms[:, 2])]
    spelled: dict[str, int] = {}
    text, codes, current = "", tokenizer.code_points(""), -1
    characters = tokenizer.characters(codes)
    for place, count in zip(terms[:, 2].tolist(), _document_counts(terms).tolist(), strict=True):
        document, position = place >> 32, (place & 0xFFFFFFFF) >> 1
        if document != current:
            text, current = fields.document(document), document
            codes = tokenizer.code_points(text)
            characters = tokenizer.characters(codes)
        spelled[tokenizer.term_at(text, codes, characters, position, bool(place & 1))] = count
    return spelled
