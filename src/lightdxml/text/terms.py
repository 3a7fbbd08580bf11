"""Count the terms of texts, and spell them.

Texts in memory are one part. Texts in files have a part per file, on which an executor may work elsewhere: what it
returns are tables of terms, and no texts. Documents are numbered over all parts. Sums and minima make up the tables, so
the order in which parts are counted does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.dataset import Texts
from lightdxml.data.text_files import FilePart, TextFiles
from lightdxml.executor import Executor, Threads
from lightdxml.kernels import parallel, words
from lightdxml.kernels.sparse import read_only
from lightdxml.resources.system import check_memory
from lightdxml.text import tokenizer
from lightdxml.text.tokenizer import Fields

_FIRST_SLOTS = 1 << 8
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)

# Rows of `kernels.words`: hash, counts, first occurrence.
Terms = NDArray[np.uint64]
Part = Texts | Sequence[str] | FilePart


@dataclass(frozen=True)
class Form:
    """In which form texts are counted: with titles or without, in base forms of a language, with pairs of words."""

    titles: bool = True
    language: str = ""
    pairs: bool = False

    def fields(self, part: Part) -> Fields:
        """Return the fields of a part, which are read if it is in a file."""
        return Fields.of(part.read() if isinstance(part, FilePart) else part, self.titles, self.language)


@dataclass(frozen=True)
class Corpus:
    """Texts in parts, and what works on the parts.

    Examples
    --------
    >>> corpus = Corpus.of(["a cat", "a cat and a dog"], Form(), None)
    >>> terms = corpus.count().rows(least=2)
    >>> corpus.spell(terms), document_counts(terms).tolist()
    (['cat'], [2])
    """

    parts: Sequence[Part]
    form: Form
    executor: Executor
    memory_limit: int | None = None

    @classmethod
    def of(
        cls, texts: Texts | Sequence[str], form: Form, executor: Executor | None, memory_limit: int | None = None
    ) -> Corpus:
        """Return the parts of texts; those in memory stay in this process."""
        if isinstance(texts, TextFiles):
            return cls(texts.parts, form, executor or Threads(), memory_limit)
        return cls([texts], form, Threads(), memory_limit)

    @property
    def starts(self) -> list[int]:
        """The number of the first document of each part, and the number of all documents."""
        return list(np.cumsum([0, *map(len, self.parts)]).tolist())

    def count(self) -> Counted:
        """Count the terms of all documents."""
        if len(self.parts) == 1 and not isinstance(self.parts[0], FilePart):
            return _count(self.form.fields(self.parts[0]), self.form, self.memory_limit)
        counted, starts = Counted(self.memory_limit), self.starts

        def merge(number: int, found: list[tuple[Terms, NDArray[np.int64]]]) -> None:
            # Taken out: the tables of all parts together may be large.
            terms, by_shard = found.pop()
            moved = terms.copy()
            moved[:, 2] += np.uint64(starts[number]) << _HALF
            counted.add(moved, by_shard, number)

        self.executor.map(_count_part, (self.form, self.memory_limit), self.parts, each=merge)
        return counted

    def spell(self, terms: Terms) -> list[str]:
        """Return terms as strings, read from their first occurrence, by which they are sorted: see `by_place`."""
        cuts = np.searchsorted(terms[:, 2] >> _HALF, np.array(self.starts, np.uint64)).tolist()
        work = []
        for part, start, first, last in zip(self.parts, self.starts, cuts, cuts[1:], strict=False):
            if first < last:
                work.append((part, terms[first:last, 2] - (np.uint64(start) << _HALF)))
        return list(chain.from_iterable(self.executor.map(_spell_part, self.form, work)))


class Counted:
    """Counted terms, in a table per shard of hashes, into which threads merge more."""

    def __init__(self, memory_limit: int | None) -> None:
        self._tables = [(np.zeros((_FIRST_SLOTS, words.COLUMNS), np.uint64), 0) for _ in range(words.SHARDS)]
        self._locks = [Lock() for _ in self._tables]
        self._memory_limit = memory_limit

    def add(self, terms: Terms, starts: NDArray[np.int64], number: int) -> None:
        """Add terms in the order of their shards; `number` is that of the chunk or part that has them."""
        terms = read_only(terms)
        for i in range(words.SHARDS):
            # Chunks start at different shards, so that threads do not wait for each other.
            shard = (i + number) % words.SHARDS
            with self._locks[shard]:
                self._tables[shard] = words.merge(*self._tables[shard], terms, starts[shard], starts[shard + 1])
        # A table that is full is copied to one of twice the size, on every thread.
        largest = max(table.nbytes for table, _ in self._tables)
        check_memory("counting the words of the texts", 2 * parallel.thread_count() * largest, self._memory_limit)

    def rows(self, least: int = 1) -> Terms:
        """Return the terms that occur in at least so many documents, in the order of their shards."""
        return np.concatenate(self._rows(least))

    def by_shard(self) -> tuple[Terms, NDArray[np.int64]]:
        """Return all terms, and where those of each shard start."""
        rows = list(self._rows(1))
        return np.concatenate(rows), np.cumsum([0, *map(len, rows)])

    def _rows(self, least: int) -> list[Terms]:
        return [table[document_counts(table) >= np.uint64(least)] for table, _ in self._tables]

    def counts_of(self, wanted: Terms) -> Terms:
        """Return wanted terms with their counts here, 0 for those that are not; they keep their places."""
        counted: Terms = wanted.copy()
        order = np.argsort(wanted[:, 0])
        counted[:, 1] = 0
        for table, _ in self._tables if len(counted) else ():
            found = table[np.isin(table[:, 0], counted[:, 0])]
            counted[order[np.searchsorted(wanted[:, 0], found[:, 0], sorter=order)], 1] = found[:, 1]
        return counted


def by_place(terms: Terms) -> Terms:
    """Return terms in the order of their first occurrence."""
    ordered: Terms = terms[np.argsort(terms[:, 2])]
    return ordered


def document_counts(terms: Terms) -> NDArray[np.uint64]:
    """Return the number of documents that have each term."""
    counts: NDArray[np.uint64] = terms[:, 1] & _LOW
    return counts


def occurrences(terms: Terms) -> NDArray[np.uint64]:
    """Return how often each term occurs."""
    counts: NDArray[np.uint64] = terms[:, 1] >> _HALF
    return counts


def _count(fields: Fields, form: Form, memory_limit: int | None) -> Counted:
    counted = Counted(memory_limit)

    def count(chunk: tuple[int, int]) -> None:
        codes, bounds = fields.codes(*chunk)
        counted.add(*words.count_terms(codes, bounds, tokenizer.characters(codes), form.pairs, chunk[0]), chunk[0])

    parallel.run(count, fields.chunks())
    return counted


def _count_part(shared: tuple[Form, int | None], part: Part) -> list[tuple[Terms, NDArray[np.int64]]]:
    form, memory_limit = shared
    return [_count(form.fields(part), form, memory_limit).by_shard()]


def _spell_part(form: Form, work: tuple[Part, NDArray[np.uint64]]) -> list[str]:
    part, places = work
    fields = form.fields(part)
    spelled: list[str] = []
    text, codes, current = "", tokenizer.code_points(""), -1
    characters = tokenizer.characters(codes)
    for place in places.tolist():
        document, position = place >> 32, (place & 0xFFFFFFFF) >> 1
        if document != current:
            text, current = fields.document(document), document
            codes = tokenizer.code_points(text)
            characters = tokenizer.characters(codes)
        spelled.append(tokenizer.term_at(text, codes, characters, position, bool(place & 1)))
    return spelled
