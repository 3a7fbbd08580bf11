"""Suggestions and explanations for the documents of a request, computed through the batch queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.dataset import Texts
from lightdxml.model.explain import Explanation
from lightdxml.model.model import Model
from lightdxml.model.rules import branches
from lightdxml.model.thresholds import thresholds_of
from lightdxml.predictor import Predictor
from lightdxml.serve.batching import Batcher
from lightdxml.serve.labels import name_of
from lightdxml.serve.problems import Problem
from lightdxml.serve.registry import ServedModel
from lightdxml.text.written import positions, written_terms

# The most labels per document. Requests are batched together if they rank to the same depth.
MAX_LABELS = 1000
_DEPTHS = (10, 100, MAX_LABELS)

# The labels of a document, best first: columns of the model, and probabilities.
Found = list[tuple[int, float]]


class Document(NamedTuple):
    """A document of a request. Its id matters where documents are labels: none gets itself."""

    text: str
    title: str = ""
    id: str = ""


@dataclass(frozen=True)
class SuggestOptions:
    """Which labels a request wants for its documents.

    Attributes
    ----------
    k
        Labels per document, at most.
    threshold
        The least probability: a number, or a measure such as `auto`; see `Predictor.predict`.
    by_frequency
        Whether the threshold depends on the frequency of a label.
    tail
        Preference for rare labels, from 0 to 1.
    include, exclude
        The labels that may be suggested, and those that may not; None for no such rule.
    include_branch, exclude_branch
        Concepts for which all concepts below them count, too.
    """

    k: int = 10
    threshold: float | str = 0.0
    by_frequency: bool = False
    tail: float = 0.0
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    include_branch: tuple[str, ...] | None = None
    exclude_branch: tuple[str, ...] | None = None

    @property
    def rules(self) -> tuple[tuple[str, ...] | None, ...]:
        """All rules: requests with other rules cannot share a batch."""
        return self.include, self.exclude, self.include_branch, self.exclude_branch

    @property
    def depth(self) -> int:
        """How many labels to rank: the first k of a longer ranking are the k best."""
        return next(depth for depth in _DEPTHS if self.k <= depth)


async def suggest(
    batcher: Batcher, served: ServedModel, documents: Sequence[Document], options: SuggestOptions
) -> list[Found]:
    """Return the labels of each document that reach the threshold, best first."""
    if options.k == 0 or not documents:
        return [[] for _ in documents]
    least = _thresholds(served, options)
    key = "suggest", served.id, served.version, options.depth, options.tail, options.rules

    def rank(together: Sequence[Document]) -> list[Found]:
        return ranked(served, together, options)

    return [_kept(served, row, options.k, least) for row in await batcher.run(key, rank, documents)]


def ranked(served: ServedModel, documents: Sequence[Document], options: SuggestOptions) -> list[Found]:
    """Return the best labels of documents, computed on this thread alone."""
    ids = [document.id for document in documents] if served.model.never_own else None
    rules = _rules(served, options)
    try:
        labels, scores = Predictor(served.model, 1).rank(
            texts_of(documents), options.depth, tail=options.tail, ids=ids, **rules
        )
    except ValueError as error:
        raise Problem(400, str(error)) from error
    return [
        [(j, score) for j, score in zip(row, values, strict=True) if j >= 0]
        for row, values in zip(labels.tolist(), scores.tolist(), strict=True)
    ]


class Explained(NamedTuple):
    """Explanations by label column, and the positions of words in the text."""

    labels: list[tuple[int, Explanation]]
    positions: dict[str, list[tuple[int, int]]]


async def explain(batcher: Batcher, served: ServedModel, document: Document, options: SuggestOptions) -> Explained:
    """Return what every word adds to the probability of each suggested label."""
    least = _thresholds(served, options)

    def explained(alone: Sequence[Document]) -> list[Explained]:
        return [_explained(served, one, options, least) for one in alone]

    found: Explained = (await batcher.run(object(), explained, [document]))[0]
    return found


def _explained(
    served: ServedModel, document: Document, options: SuggestOptions, least: float | NDArray[np.float32]
) -> Explained:
    ids = [document.id] if served.model.never_own else None
    rules = _rules(served, options)
    try:
        (found,) = Predictor(served.model, 1).explain(
            texts_of([document]), options.k, tail=options.tail, ids=ids, **rules
        )
    except ValueError as error:
        raise Problem(400, str(error)) from error
    by_column = {served.model.column(one.label): one for one in found}
    kept = _kept(served, [(j, one.score) for j, one in by_column.items()], options.k, least)
    words = {word for j, _ in kept for word, _ in by_column[j].parts}
    found_at = {word: some for word, some in _positions(served.model, document).items() if word in words}
    return Explained([(j, by_column[j]) for j, _ in kept], found_at)


def _positions(model: Model, document: Document) -> dict[str, list[tuple[int, int]]]:
    """Return the positions of words in the text of a document."""
    assert model.vectorizer is not None
    settings = model.vectorizer.settings
    (terms,) = written_terms(Texts([document.text], titles=[document.title]), settings)
    return positions(document.text, terms, settings)


def texts_of(documents: Sequence[Document]) -> Texts | list[str]:
    """Return texts and titles as models take them."""
    bodies = [document.text for document in documents]
    titles = [document.title for document in documents]
    return Texts(bodies, titles=titles) if any(titles) else bodies


def _kept(served: ServedModel, found: Found, k: int, least: float | NDArray[np.float32]) -> Found:
    """Return those of the first k labels of a document that reach the threshold, as `Predictor.rank` does."""
    first = found[:k]
    if isinstance(least, float):
        return [one for one in first if one[1] >= least and one[1] > 0]
    groups = served.model.label_groups
    return [(j, score) for j, score in first if score >= least[groups[j]] and score > 0]


def _thresholds(served: ServedModel, options: SuggestOptions) -> float | NDArray[np.float32]:
    """Return the threshold for all labels, or one per group of label frequency.

    Raises a `Problem` if the model has no such threshold.
    """
    if not isinstance(options.threshold, str) and not options.by_frequency:
        # Probabilities have this precision.
        return float(np.float32(options.threshold)) if options.threshold else 0.0
    try:
        return thresholds_of(served.model.thresholds, options.threshold, options.by_frequency).astype(np.float32)
    except ValueError as error:
        raise Problem(400, str(error)) from error


def _rules(served: ServedModel, options: SuggestOptions) -> dict[str, Any]:
    """Return the rules as `Predictor.rank` takes them; raise a `Problem` if a branch is not known."""
    rules: dict[str, Any] = {}
    try:
        for rule in ("include", "exclude"):
            labels, above = getattr(options, rule), getattr(options, f"{rule}_branch")
            if labels is not None or above is not None:
                below = branches(served.model, [name_of(one) for one in above or ()], f"{rule}_branch")
                rules[rule] = [*map(name_of, labels or ()), *below]
    except ValueError as error:
        raise Problem(400, str(error)) from error
    return rules
