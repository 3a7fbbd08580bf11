"""The labels that a document is scored on, and what every view says about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lightdxml.views.base import Batch, View


@dataclass(frozen=True)
class Candidates:
    """Candidate labels of documents.

    Attributes
    ----------
    labels
        Documents × candidates; -1 for none.
    log_scores
        What each view says about them, by the view's name.
    """

    labels: NDArray[np.int32]
    log_scores: dict[str, NDArray[np.float32]]


def find_candidates(views: Mapping[str, View], batch: Batch) -> Candidates:
    """Return the candidates that the views propose, scored by every view."""
    labels = np.empty((len(batch), 0), dtype=np.int32)
    log_scores: dict[str, NDArray[np.float32]] = {}
    for name, view in views.items():
        proposal = view.propose(batch, labels)
        if proposal is not None:
            labels = np.concatenate([labels, _allowed(proposal.labels, batch)], axis=1)
            log_scores[name] = proposal.log_scores
    for name, view in views.items():
        log_scores[name] = _completed(view, batch, labels, log_scores.get(name))
    return Candidates(labels, log_scores)


def score_all(views: Mapping[str, View], batch: Batch, labels: NDArray[np.int32]) -> Candidates:
    """Return these labels as the candidates of every document, scored by every view."""
    table = _allowed(np.tile(labels, (len(batch), 1)), batch)
    return Candidates(table, {name: view.log_score(batch, table) for name, view in views.items()})


def extended(candidates: Candidates, views: Mapping[str, View], name: str, view: View, batch: Batch) -> Candidates:
    """Return the candidates of some views and of one more, scored by all of them."""
    proposal = view.propose(batch, candidates.labels)
    if proposal is None:
        log_scores = {**candidates.log_scores, name: view.log_score(batch, candidates.labels)}
        return Candidates(candidates.labels, log_scores)
    labels = np.concatenate([candidates.labels, _allowed(proposal.labels, batch)], axis=1)
    scored = {one: _completed(views[one], batch, labels, known) for one, known in candidates.log_scores.items()}
    return Candidates(labels, {**scored, name: proposal.log_scores})


def _allowed(labels: NDArray[np.int32], batch: Batch) -> NDArray[np.int32]:
    """Return labels with -1 for those that a document is itself."""
    return labels if batch.own is None else np.where(labels == batch.own[:, None], np.int32(-1), labels)


def _completed(
    view: View, batch: Batch, labels: NDArray[np.int32], scored: NDArray[np.float32] | None
) -> NDArray[np.float32]:
    """Return a view's log-scores of all candidates, given those that it has computed while proposing."""
    if scored is None:
        return view.log_score(batch, labels)
    if scored.shape[1] == labels.shape[1]:
        return scored
    return np.concatenate([scored, view.log_score(batch, labels[:, scored.shape[1] :])], axis=1)
