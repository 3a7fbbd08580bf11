"""TF-IDF of words and pairs of adjacent words, with a vocabulary that can be stored.

With equal options the values are those of scikit-learn's `TfidfVectorizer`. `fit` reads the texts twice, in chunks: to
count terms, and to weight the terms of the vocabulary. Texts that stay in files are read once more, to spell the terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.dataset import Texts
from lightdxml.data.text_files import TextFiles
from lightdxml.executor import Executor
from lightdxml.kernels import parallel, words
from lightdxml.kernels.sparse import FeatureRows, read_only
from lightdxml.resources.system import check_memory
from lightdxml.settings import check, setting
from lightdxml.text import tokenizer
from lightdxml.text.languages import check_language
from lightdxml.text.terms import Corpus, Form, Part, Terms, by_place, document_counts, occurrences

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_LARGEST_COUNT = 2**31 - 1
# Memory of `fit` per million characters, and the power with which it grows, by `ngrams`: terms in hash tables, and the
# features. The more text, the fewer of its pairs are new. Compiled code and buffers come on top.
_FIT_BYTES, _FIT_POWER, _FIT_BUFFERS = {1: 1.7e6, 2: 10e6}, {1: 1.0, 2: 0.77}, 100_000_000
_SAMPLE = 1000
_TO_FEATURES = "turning texts into features"


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

    @property
    def form(self) -> Form:
        """In which form texts are counted."""
        return Form(self.title_weight > 0, self.language, self.ngrams == 2)


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
    executor: Executor | None = None,
) -> tuple[Vectorizer, csr_matrix]:
    """Learn a vocabulary from texts; return it with the features of the texts, as `transform` does.

    How many terms there are shows only when they are counted, so the most memory that the process may take is checked
    meanwhile; None for what the machine has. The words of `names` are in the vocabulary however rare they are in the
    texts. The executor works on texts that stay in files; None for the threads of this process.

    Examples
    --------
    >>> vectorizer, X = fit(["my black cat", "my white cat", "my white dog"], TextOptions(ngrams=2))
    >>> vectorizer.vocabulary, X.shape
    (['cat', 'my', 'my white', 'white'], (3, 4))
    """
    corpus = Corpus.of(texts, settings.form, executor, memory_limit)
    of_names = _names(names, settings)
    counted = corpus.count()
    wanted = counted.counts_of(by_place(of_names.count().rows()))
    of_wanted = dict(zip(of_names.spell(wanted), document_counts(wanted).tolist(), strict=True))
    df_of = of_wanted | _select(corpus, counted.rows(settings.min_df), settings)
    del counted
    vocabulary = sorted(df_of)
    df = np.array([df_of[term] for term in vocabulary], dtype=np.float64)
    idf = np.log((1 + len(texts)) / (1 + df)) + 1
    vectorizer = Vectorizer(vocabulary, idf.astype(np.float32), settings)
    return vectorizer, transform(vectorizer, texts, memory_limit, executor)


def _names(names: Sequence[str], settings: TextOptions) -> Corpus:
    """Return names of labels, whose words are counted."""
    return Corpus.of(names, Form(language=settings.language), None)


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
    corpus = _names(names, settings)
    return list(dict.fromkeys(corpus.spell(by_place(corpus.count().rows()))))


def fit_bytes(texts: Texts | Sequence[str], settings: TextOptions = _DEFAULT) -> int:
    """Return about how much memory `fit` takes, from the length of some texts.

    >>> fit_bytes(["a cat"] * 1000) > 1_000_000
    True
    """
    millions = _characters(texts) / 1e6
    growing = _FIT_BYTES[settings.ngrams] * float(millions ** _FIT_POWER[settings.ngrams])
    return round(growing) + _FIT_BUFFERS


def _characters(texts: Texts | Sequence[str]) -> float:
    """Return about how long all texts are together."""
    if isinstance(texts, TextFiles):
        return texts.characters
    n = len(texts)
    some = range(0, n, max(1, n // _SAMPLE))
    return n * sum(len(texts[i]) for i in some) / max(1, len(some))


def transform(
    vectorizer: Vectorizer,
    texts: Texts | Sequence[str],
    memory_limit: int | None = None,
    executor: Executor | None = None,
) -> csr_matrix:
    """Return the features of texts as a matrix of SciPy: see `features`.

    Examples
    --------
    >>> transform(Vectorizer(["cat", "dog"], np.array([1, 1], dtype=np.float32)), ["a cat", ""]).toarray().tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    from scipy.sparse import csr_matrix

    rows = features(vectorizer, texts, memory_limit, executor)
    matrix = csr_matrix((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    matrix.has_canonical_format = True
    return matrix


def features(
    vectorizer: Vectorizer,
    texts: Texts | Sequence[str],
    memory_limit: int | None = None,
    executor: Executor | None = None,
) -> FeatureRows:
    """Return the features of texts; terms outside the vocabulary are ignored.

    The matrix is canonical CSR: float32 values, sorted int32 indices without duplicates, and rows of length 1 (a text
    without known terms is an empty row). The rest of the package relies on it and neither checks nor normalizes it
    again. Memory limit and executor are as in `fit`.

    Examples
    --------
    >>> features(Vectorizer(["cat", "dog"], np.array([1, 1], dtype=np.float32)), ["a cat", ""]).data.tolist()
    [1.0]
    """
    shared = vectorizer.settings, vectorizer.table, vectorizer.idf, memory_limit
    if isinstance(texts, TextFiles):
        chunks = _rows_of_files(shared, Corpus.of(texts, vectorizer.settings.form, executor, memory_limit))
    else:
        chunks = _rows_of_part(shared, texts)
    return _stack(chunks, len(vectorizer.vocabulary))


def _rows_of_files(shared: _Shared, corpus: Corpus) -> list[_Rows]:
    """Return the rows of all documents, chunk by chunk."""
    sizes = list[int]()

    def check(_: int, chunks: list[_Rows]) -> None:
        sizes.append(_size(chunks))
        check_memory(_TO_FEATURES, sum(sizes), corpus.memory_limit)

    found = corpus.executor.map(_rows_of_part, shared, corpus.parts, each=check)
    return list(chain.from_iterable(found))


_Rows = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]


_Shared = tuple[TextOptions, NDArray[np.uint64], NDArray[np.float32], int | None]


def _rows_of_part(shared: _Shared, part: Part) -> list[_Rows]:
    """Return the rows of the documents of a part, chunk by chunk."""
    settings, table, weights, memory_limit = shared
    fields = settings.form.fields(part)
    idf, table = read_only(np.ascontiguousarray(weights, dtype=np.float32)), read_only(table)
    pairs, title_weight = settings.ngrams == 2, float(settings.title_weight)
    chunks, done = fields.chunks(), list[_Rows]()

    def rows(chunk: tuple[int, int]) -> _Rows:
        codes, bounds = fields.codes(*chunk)
        characters = tokenizer.characters(codes)
        indptr, found, counts = words.count_known(codes, bounds, characters, pairs, table, idf.size, title_weight)
        indices, values = np.empty(found.size, np.int32), np.empty(found.size, np.float32)
        words.weigh(indptr, found, counts, idf, indices, values)
        one = np.diff(indptr), indices, values
        done.append(one)
        if len(chunks) > 1:
            # All chunks are copied into one matrix in the end.
            check_memory(_TO_FEATURES, _size(done), memory_limit)
        return one

    return parallel.run(rows, chunks)


def _size(chunks: list[_Rows]) -> int:
    return sum(indices.nbytes + values.nbytes for _, indices, values in chunks)


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


def _select(corpus: Corpus, terms: Terms, settings: TextOptions) -> dict[str, int]:
    """Return the terms of the vocabulary with their document counts."""
    if not len(terms):
        number = {1: "any document", 2: "two documents"}.get(settings.min_df, f"{settings.min_df} documents")
        raise ValueError(f"no word occurs in {number}: check that the texts are in the right column")
    counts, smallest, room = occurrences(terms), np.uint64(0), settings.max_features
    if len(terms) > room:
        smallest = np.partition(counts, len(counts) - room)[len(counts) - room]
    terms = by_place(terms[counts >= smallest])
    is_tied = (occurrences(terms) == smallest).tolist()
    kept, tied = dict[str, int](), dict[str, int]()
    for term, df, last in zip(corpus.spell(terms), document_counts(terms).tolist(), is_tied, strict=True):
        (tied if last else kept)[term] = df
    return kept | {term: tied[term] for term in sorted(tied)[: room - len(kept)]}
