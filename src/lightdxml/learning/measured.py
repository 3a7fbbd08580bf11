"""How well a model does on documents before it learns them, and probabilities that follow from that."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from lightdxml.kernels import parallel
from lightdxml.metrics import evaluate
from lightdxml.model.candidates import find_candidates
from lightdxml.model.model import Model, best_labels
from lightdxml.model.thresholds import DEPTH
from lightdxml.persistence.arrays import Arrays
from lightdxml.training import calibrate, logistic
from lightdxml.views.base import Batch, expect, in_range, is_indptr

# Documents since the last calibration that are enough for the next one, and the latest ones that it is fitted to.
ENOUGH, _LATEST = 500, 2000
_CUTS, _DOCUMENTS = (1, 3, 5), 2048
_METRICS = tuple(f"{name}@{k}" for name in ("P", "nDCG") for k in _CUTS)


@dataclass(frozen=True)
class Measured:
    """What a model achieves on documents that it has not learned yet: metrics in percent, and their number."""

    documents: int
    metrics: dict[str, float]


def _no_labels() -> csr_matrix:
    return csr_matrix((0, 1), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Recent:
    """The labels that a model gave to the latest documents, before it learned them.

    Attributes
    ----------
    labels, log_odds, is_right
        Documents × ranks: the first labels, -1 for none, their log-odds, and whether they are right.
    Y
        The labels of these documents.
    since
        How many of them have come since probabilities were fitted.
    """

    labels: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, DEPTH), dtype=np.int32))
    log_odds: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, DEPTH), dtype=np.float32))
    is_right: NDArray[np.bool_] = field(default_factory=lambda: np.empty((0, DEPTH), dtype=np.bool_))
    Y: csr_matrix = field(default_factory=_no_labels)
    since: int = 0

    def extended(self, other: Recent) -> Recent:
        """Return the latest documents of both."""
        first = slice(max(0, len(self.labels) + len(other.labels) - _LATEST), None)
        n_labels = max(self.Y.shape[1], other.Y.shape[1])
        rows = [csr_matrix((one.data, one.indices, one.indptr), shape=(one.shape[0], n_labels)) for one in (self.Y, other.Y)]
        return Recent(
            np.concatenate([self.labels, other.labels])[first],
            np.concatenate([self.log_odds, other.log_odds])[first],
            np.concatenate([self.is_right, other.is_right])[first],
            csr_matrix(vstack(rows))[first],
            self.since + len(other.labels),
        )

    def recalibrated(self, model: Model) -> tuple[Recent, Model]:
        """Return a model with probabilities and thresholds that fit these documents, once there are enough new ones."""
        if self.since < ENOUGH:
            return self, model
        ranked = calibrate.Ranked(self.labels, self.log_odds.astype(np.float64), self.is_right)
        found = calibrate.fit(ranked)
        groups = np.zeros(self.Y.shape[1], dtype=np.uint8)
        groups[: model.n_labels] = model.label_groups
        table = calibrate.tabulate(ranked, found, groups, self.Y)
        return replace(self, since=0), replace(model, calibration=found, thresholds=table)

    def arrays(self) -> Arrays:
        """Return all arrays by name."""
        return {
            "recent.labels": self.labels,
            "recent.log_odds": self.log_odds,
            "recent.is_right": self.is_right.astype(np.uint8),
            "recent.Y.indptr": self.Y.indptr.astype(np.int64),
            "recent.Y.indices": self.Y.indices.astype(np.int32),
        }

    @staticmethod
    def restore(arrays: Arrays, since: Any, n_labels: int) -> Recent:
        """Return what these arrays make up; raise a `ValueError` if they cannot."""
        labels, indptr, indices = (arrays[f"recent.{one}"] for one in ("labels", "Y.indptr", "Y.indices"))
        n = len(labels)
        expect(labels, "recent.labels", (n, DEPTH), np.int32)
        log_odds = expect(arrays["recent.log_odds"], "recent.log_odds", (n, DEPTH), np.float32)
        is_right = expect(arrays["recent.is_right"], "recent.is_right", (n, DEPTH), np.uint8)
        expect(indptr, "recent.Y.indptr", (n + 1,), np.int64)
        expect(indices, "recent.Y.indices", (len(indices),), np.int32)
        is_sound = is_indptr(indptr, len(indices)) and in_range(indices, 0, n_labels) and in_range(labels, -1, n_labels)
        if type(since) is not int or not 0 <= since <= ENOUGH or not is_sound or n > _LATEST:
            raise ValueError("its latest documents have labels that do not exist")
        Y = csr_matrix((np.ones(len(indices), dtype=np.float32), indices, indptr), shape=(n, n_labels))
        return Recent(np.array(labels), np.array(log_odds), is_right > 0, Y, since)


def measure(
    model: Model, X: csr_matrix, Y: csr_matrix, own: NDArray[np.int32] | None
) -> tuple[Measured, Recent]:
    """Return how well a model does on documents, which may have labels that it does not know, and what it says."""
    recent, ranked = Recent(), []
    groups = np.zeros(Y.shape[1], dtype=np.uint8)
    groups[: model.n_labels] = model.label_groups
    for start, stop in parallel.fixed_chunks(X.shape[0], _DOCUMENTS):
        batch = Batch(X[start:stop], None if own is None else own[start:stop], model.allowed)
        candidates = find_candidates(model.views, batch)
        candidates.labels[np.diff(batch.X.indptr) == 0] = -1
        log_odds = model.blend.log_odds(candidates.log_scores, model.label_groups[candidates.labels])
        judged = logistic.judge(candidates, groups, Y[start:stop])
        found = calibrate.rank(candidates.labels, log_odds, judged)
        shape = stop - start, DEPTH - found.labels.shape[1]
        # A model may have fewer labels than are shown.
        missing = np.full(shape, -1, dtype=np.int32), np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.bool_)
        labels, odds, right = (np.concatenate(pair, axis=1) for pair in zip(found, missing, strict=True))
        recent = recent.extended(Recent(labels, odds.astype(np.float32), right, Y[start:stop]))
        ranked.append(best_labels(model, candidates, max(_CUTS))[0])
    found = evaluate(Y, np.concatenate(ranked), k=_CUTS)
    return Measured(X.shape[0], {name: found[name] for name in _METRICS}), recent

