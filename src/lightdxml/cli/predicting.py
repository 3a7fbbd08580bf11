"""Prediction of documents, or of a part of them, as the options ask: what `lightdxml predict` runs in one process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lightdxml.cli.decisions import Least, parse_threshold
from lightdxml.cli.opinions import SecondOpinion, check_options
from lightdxml.cli.output import warn
from lightdxml.cli.predictions import Found, To, writing
from lightdxml.cli.reading import Reading, reading_for
from lightdxml.cli.rules import rules_of

if TYPE_CHECKING:
    from lightdxml.data.corpus import Corpus, Span
    from lightdxml.data.errors import DataError
    from lightdxml.data.stream import Batch, TextForm

# Documents that cannot be read of which each is named.
_WARNINGS = 10
_PATHS = ("model", "file", "other")


@dataclass(frozen=True)
class Request:
    """What to predict and how: the options of `lightdxml predict`, which another process can follow, too."""

    model: Path
    file: Path
    to: To
    k: int | None = None
    threshold: str | None = None
    by_frequency: bool = False
    form: TextForm = "auto"
    tail: float = 0.0
    include: Sequence[str] | None = None
    exclude: Sequence[str] | None = None
    include_branch: Sequence[str] | None = None
    exclude_branch: Sequence[str] | None = None
    other: Path | None = None
    weight: float | None = None
    on_error: Literal["stop", "skip"] = "stop"
    reading: Reading = field(default_factory=dict)

    def check(self) -> None:
        """Raise a `ValueError` for what is wrong without looking at the model."""
        from lightdxml.data.options import ReadOptions
        from lightdxml.model.model import check_tail

        ReadOptions(**self.reading)
        if self.threshold is not None:
            parse_threshold(self.threshold)
        check_tail(self.tail)
        check_options(self.other, self.weight, self.tail, self.threshold)

    def settings(self) -> dict[str, Any]:
        """Return what changes predictions, beside the model and the data, as JSON can hold it."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self) if one.name not in _PATHS}


class Work:
    """A request with its model, which is loaded once for all parts that this process predicts."""

    def __init__(self, request: Request, n_jobs: int | None = None) -> None:
        from lightdxml.model.thresholds import DEPTH
        from lightdxml.predictor import DEFAULT_K, Predictor

        self.request = request
        self.predictor = Predictor.load(request.model, n_jobs=n_jobs)
        trained = self.predictor.model
        self._rules = rules_of(
            trained,
            *(None if one is None else list(one) for one in (request.include, request.exclude)),
            *(None if one is None else list(one) for one in (request.include_branch, request.exclude_branch)),
        )
        self._second = SecondOpinion.of(request.other, request.weight, trained, self._rules)
        self._limit = request.k or (DEFAULT_K if request.threshold is None else DEPTH)
        found = Least.of(trained, request.threshold, request.by_frequency, trained.n_labels)
        self._least = None if found is None else found.of_label.astype(np.float32).tolist()

    @property
    def corpus(self) -> Corpus:
        """The documents, read as the model takes them."""
        from lightdxml.data.corpus import Corpus
        from lightdxml.data.options import ReadOptions

        trained, request = self.predictor.model, self.request
        options = ReadOptions(**reading_for(trained, request.reading))
        return Corpus(request.file, options, request.form, trained.n_features if trained.vectorizer is None else None)

    def write(self, out: Path | None, span: Span | None = None, counts: Sequence[int] = ()) -> int:
        """Predict all documents or, given the numbers of documents of all files, a span; return how many they are.

        A file appears when all of them are written.
        """
        from lightdxml.data.cells import SEPARATOR

        corpus, n_documents, skipped = self.corpus, 0, _Skipped()
        separator = corpus.options.label_separator or SEPARATOR
        if self._second is not None and span is not None:
            self._second.begin_at(span.start, sum(counts))
        with writing(self.request.to, out, self.predictor.model, separator) as write:
            for batch in self._readable(corpus.batches(span, counts)):
                n_documents += len(batch.ids)
                errors = {place: str(error) for place, error in batch.errors.items()}
                rows = self._predict(batch)
                write(batch.ids, [[] if i in errors else row for i, row in enumerate(rows)], errors)
                skipped.warn_of(batch.errors.values())
            skipped.note_rest()
        if n_documents and self._second is not None:
            self._second.note_missing()
        return n_documents

    def _readable(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        from lightdxml.data import stream

        return stream.until_error(batches) if self.request.on_error == "stop" else batches

    def _predict(self, batch: Batch) -> list[Found]:
        ids = ["" if one is None else str(one) for one in batch.ids]
        second, least = self._second, self._least
        depth = self._limit if second is None else second.depth(self._limit)
        labels, scores = self.predictor.rank(batch.documents, depth, tail=self.request.tail, ids=ids, **self._rules)
        if second is not None:
            labels, scores = second.combine((labels, scores), batch.ids, self._limit)
        return [
            [
                (j, score)
                for j, score in zip(row, values, strict=True)
                if j >= 0 and (least is None or score >= least[j])
            ]
            for row, values in zip(labels.tolist(), scores.tolist(), strict=True)
        ]


def _plain(value: Any) -> Any:
    """Return a value as it comes back from JSON."""
    return json.loads(json.dumps(value))


class _Skipped:
    """Documents that cannot be read: the first ones are named, the others counted."""

    def __init__(self) -> None:
        self.count = 0

    def warn_of(self, errors: Iterable[DataError]) -> None:
        """Warn of documents."""
        for error in errors:
            self.count += 1
            if self.count <= _WARNINGS:
                warn(f"{error}; skipped")

    def note_rest(self) -> None:
        """Say how many documents were skipped without a warning."""
        if self.count > _WARNINGS:
            warn(f"{self.count - _WARNINGS:,} more documents that cannot be read were skipped")
