"""Documents to predict in one or several files, and parts of them, none of which needs the memory of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lightdxml.data import arrow, files, stream
from lightdxml.data.errors import DataError, shortened
from lightdxml.data.options import ReadOptions
from lightdxml.data.stream import Batch, Pending, TextForm

# Files of other programs about a folder, such as Spark's `_SUCCESS`, begin like this.
_NOT_DATA = (".", "_")


class Span(NamedTuple):
    """Documents from the number `start` on and before `stop`, counted from 0."""

    start: int
    stop: int


def span_of(part: int, parts: int, n_documents: int) -> Span:
    """Return the documents of a part, counted from 1: neighbors, as many as in the other parts or one more.

    >>> [tuple(span_of(part, 3, 10)) for part in (1, 2, 3)]
    [(0, 3), (3, 6), (6, 10)]
    """
    return Span((part - 1) * n_documents // parts, part * n_documents // parts)


@dataclass(frozen=True)
class Corpus:
    r"""The documents of a file or, one after the other, of the files of a folder.

    Parameters
    ----------
    path
        A file, `-` for standard input, or a folder of files of one form.
    options, form
        How texts are read.
    n_features
        How many features documents have; None if they are texts.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for i in range(3):
    ...         _ = (Path(folder) / f"{i}.txt").write_text(f"a {i}\nb {i}\n")
    ...     corpus = Corpus(Path(folder))
    ...     [list(batch.documents) for batch in corpus.batches(Span(1, 4), corpus.counts())]
    [['b 0'], ['a 1', 'b 1']]
    """

    path: Path
    options: ReadOptions = field(default_factory=ReadOptions)
    form: TextForm = "auto"
    n_features: int | None = None

    def files(self) -> list[Path]:
        """Return the files in order."""
        if not self.path.is_dir() or arrow.is_saved(self.path):
            return [self.path]
        found = [entry for entry in files.entries(self.path) if not entry.name.startswith(_NOT_DATA)]
        for entry in found:
            if entry.is_dir():
                raise DataError(entry, "a folder", f"nothing but files in {self.path}")
        endings = sorted({Path(files.base_name(entry)).suffix or "none" for entry in found})
        if len(endings) != 1:
            what = f"files that end in {shortened(', '.join(endings))}" if found else "no files"
            raise DataError(self.path, what, "files of one form, such as part-00000.jsonl and part-00001.jsonl")
        return found

    def counts(self) -> list[int]:
        """Return the number of documents of each file. It takes reading all of them, Parquet files excepted."""
        if str(self.path) == "-":
            raise ValueError("standard input cannot be divided into parts: save the documents to a file first")
        return [self._count(file) for file in self.files()]

    def _count(self, file: Path) -> int:
        if self.n_features is None and self.form == "auto" and arrow.is_parquet(file):
            return arrow.n_rows(file)
        return sum(one.n_documents for one in self._pending(file))

    def batches(self, span: Span | None = None, counts: Sequence[int] = ()) -> Iterator[Batch]:
        """Yield documents in order: all or, given the numbers of documents of all files, those of a span."""
        if span is None:
            for file in self.files():
                yield from (one.read() for one in self._pending(file))
            return
        first = 0
        for file, count in zip(self.files(), counts, strict=True):
            start, stop = max(0, span.start - first), min(count, span.stop - first)
            if start < stop:
                yield from _cut(self._pending(file), start, stop)
            first += count

    def _pending(self, file: Path) -> Iterator[Pending]:
        with stream.opened(file) as source:
            if self.n_features is None:
                yield from stream.pending_texts(file, source, self.options, self.form)
            else:
                yield from stream.pending_features(file, source, self.n_features)


def _cut(batches: Iterator[Pending], start: int, stop: int) -> Iterator[Batch]:
    """Yield the documents from a number on and before another; what follows is not read."""
    first = 0
    for one in batches:
        after = first + one.n_documents
        if after > start:
            yield _slice(one.read(), max(start, first) - first, min(stop, after) - first)
        if after >= stop:
            return
        first = after


def _slice(batch: Batch, start: int, stop: int) -> Batch:
    errors = {place - start: error for place, error in batch.errors.items() if start <= place < stop}
    return Batch(batch.documents[start:stop], batch.ids[start:stop], errors)
