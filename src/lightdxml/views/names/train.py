"""Fitting the scorer of names, on documents that do not count in the frequencies of labels, like new ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.persistence.arrays import Arrays
from lightdxml.views.base import FREQUENCY, Batch, ViewMemory, groups_of
from lightdxml.views.linear.solver import inverted_rows
from lightdxml.views.names import scorer
from lightdxml.views.names.forms import NameForms
from lightdxml.views.names.model import NamesView, without_repeats
from lightdxml.views.names.occurrences import count
from lightdxml.views.names.scorer import AMBIGUITY, TERMS, WHOLE, Matches, NameScorer

if TYPE_CHECKING:
    from lightdxml.config import Config
    from lightdxml.training.run import Run, TrainingData

_PHASE = "names of labels"
_DOCUMENTS = 512
# Candidates of other views that the scorer sees: most of what it is asked about later.
_OTHERS = 20


def train(run: Run) -> NamesView | None:
    """Fit the scorer, and return the view; None if labels have no names, or names no known words."""
    data, options = run.data, run.config.names
    # The paper's method has no such view.
    wanted = options.enabled and run.config.linear.enabled and data.X_validation.shape[0] >= options.min_documents
    if not wanted or data.names is None or not data.names.terms.nnz:
        return None
    view = _unfitted(data.names, run)

    def compute() -> Arrays:
        return _fit(run, view).arrays("scorer")

    fitted = run.step(_PHASE, "scorer", compute, lambda product: NameScorer.restore(product, "scorer"))
    return replace(view, scorer=fitted)


def _unfitted(names: NameForms, run: Run) -> NamesView:
    return NamesView(
        inverted_rows(names.shares, run.config.precision),
        names.labels,
        groups_of(names.n_terms, TERMS),
        groups_of(names.ambiguity, AMBIGUITY),
        count(names, run.data.X, run.data.label_to_docs, run.executor),
        groups_of(run.data.label_frequency, FREQUENCY),
        scorer.undecided(),
        run.config.names.proposals,
    )


def refit(view: NamesView, data: TrainingData) -> NamesView:
    """Return the view with the counts of all documents, held-out ones included."""
    assert data.names is not None
    more = count(data.names, data.X_validation, csr_matrix(data.Y_validation.T))
    frequency = groups_of(data.all_label_frequency, FREQUENCY)
    return replace(view, occurrences=view.occurrences + more, frequency=frequency)


def _fit(run: Run, view: NamesView) -> NameScorer:
    """Fit the scorer on a sample; a document does not count in the frequencies of its own labels and names."""
    data, options = run.data, run.config.names
    n = data.X.shape[0]
    rows = np.sort(np.random.default_rng(run.config.random_state).permutation(n)[: options.sample])
    parts: list[Matches] = []
    right: list[NDArray[np.bool_]] = []
    for start in range(0, len(rows), _DOCUMENTS):
        run.tick()
        some = rows[start : start + _DOCUMENTS]
        batch, true = Batch(data.X[some]), data.Y[some]
        labels = _candidates(run, view, batch, true)
        if data.own is not None:
            labels = np.where(labels == data.own[some][:, None], np.int32(-1), labels)
        at = np.repeat(np.arange(len(some)), labels.shape[1]).reshape(labels.shape)
        is_right = np.asarray(true[at.ravel(), np.maximum(labels, 0).ravel()]).reshape(labels.shape) > 0
        found = view.matches(batch, labels)
        best = _best_names(found)
        matches = Matches(*(_taken(one, best) for one in vars(found).values()))
        others = groups_of(data.label_frequency[labels] - is_right, FREQUENCY)
        counts = view.occurrences[view.number(labels, best)].without(matches.kind == WHOLE, is_right)
        kept = replace(matches, frequency=others, log_rate=counts.log_rate)
        parts.append(Matches(*(one[labels >= 0] for one in vars(kept).values())))
        right.append(is_right[labels >= 0])
    joined = (np.concatenate([getattr(part, one) for part in parts]) for one in vars(parts[0]))
    return scorer.fit(Matches(*joined), np.concatenate(right))


def _candidates(run: Run, view: NamesView, batch: Batch, true: csr_matrix) -> NDArray[np.int32]:
    """Return the labels that are right, and candidates of this and of the other views."""
    none = np.empty((len(batch), 0), dtype=np.int32)
    own = np.full((len(batch), max(1, int(np.diff(true.indptr).max(initial=0)))), -1, dtype=np.int32)
    for i in range(len(batch)):
        labels = true.indices[true.indptr[i] : true.indptr[i + 1]]
        own[i, : len(labels)] = labels
    found = own
    for other in run.views.values():
        proposal = other.propose(batch, none)
        if proposal is not None:
            labels = proposal.labels
            scores = np.where(labels >= 0, proposal.log_scores, -np.inf)
            order = np.lexsort((labels, -scores), axis=1)[:, :_OTHERS]
            labels = np.take_along_axis(labels, order, axis=1)
            found = np.concatenate([found, without_repeats(found, labels)], axis=1)
    return np.concatenate([found, view.matching_labels(batch, found)], axis=1)


def _best_names(found: Matches) -> NDArray[np.int64]:
    """Return the name of each label that covers the most, and then explains the most."""
    best: NDArray[np.int64] = np.argmax(found.coverage + np.float32(0.01) * found.weight, axis=2)
    return best


def _taken(values: NDArray[Any], best: NDArray[np.int64]) -> NDArray[Any]:
    return np.take_along_axis(values, best[:, :, None], axis=2)[:, :, 0]


def memory(data: TrainingData, config: Config) -> ViewMemory:
    """Return the bytes of the names: their index, by name and by term, and the matches of the sample."""
    if not config.names.enabled or data.names is None:
        return ViewMemory()
    entries, n = data.names.terms.nnz, len(data.names.labels)
    index = 16 * entries + 8 * data.X.shape[1] + 32 * n
    # The documents of each term, to count names in them.
    by_term = 8 * data.X.nnz
    sample = min(config.names.sample, data.X.shape[0]) * (4 * config.names.proposals + 4 * _OTHERS) * 200
    return ViewMemory(training=index + max(sample, by_term), kept=index)
