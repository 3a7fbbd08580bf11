"""How well a model does on documents before it learns them, and what follows for weights and probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from lightdxml.data.labels import widen
from lightdxml.kernels import parallel
from lightdxml.metrics import evaluate
from lightdxml.model.blend import N_GROUPS, LogisticBlend, Slopes, frequency_groups
from lightdxml.model.candidates import Candidates, find_candidates
from lightdxml.model.model import Model, best_labels
from lightdxml.model.thresholds import DEPTH
from lightdxml.persistence.arrays import Arrays
from lightdxml.training import calibrate, logistic
from lightdxml.views.base import Batch, View, expect, in_range, is_indptr

# Documents since the last calibration that are enough for the next one, and the latest ones that it is fitted to.
ENOUGH, LATEST = 500, 2000
_CUTS, _DOCUMENTS = (1, 3, 5), 2048
# The probability from which on a wrong label counts as a mistake to learn from.
_LIKELY = 0.5
METRICS = tuple(f"{name}@{k}" for name in ("P", "nDCG") for k in _CUTS)


@dataclass(frozen=True)
class Measured:
    """What a model achieves on documents that it has not learned yet: metrics in percent, and their number.

    There are no metrics without documents.
    """

    documents: int
    metrics: dict[str, float]


class Measurement(NamedTuple):
    """How well a model does on documents, what it says about them, and the labels that it takes for right wrongly.

    A label occurs among these once per document.
    """

    measured: Measured
    observed: Observed
    mistaken: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Observed:
    """The first labels that a model gave to documents before it learned them.

    Attributes
    ----------
    labels
        Documents × labels, the best 100 of each, -1 for none.
    frequency
        How many documents each of them had then.
    log_scores
        What each view said about them, by the view's name.
    Y
        The labels that the documents have.
    """

    labels: NDArray[np.int32]
    frequency: NDArray[np.int32]
    log_scores: Mapping[str, NDArray[np.float32]]
    Y: csr_matrix

    def __len__(self) -> int:
        return len(self.labels)

    @staticmethod
    def none(views: Sequence[str] = ()) -> Observed:
        """Return what is observed without documents."""
        no_labels, no_scores = np.empty((0, DEPTH), dtype=np.int32), np.empty((0, DEPTH), dtype=np.float32)
        return Observed(no_labels, no_labels, dict.fromkeys(views, no_scores), csr_matrix((0, 1), dtype=np.float32))

    @staticmethod
    def of(
        candidates: Candidates, log_odds: NDArray[np.float64], frequency: NDArray[np.int32], Y: csr_matrix
    ) -> Observed:
        """Return the best candidates of documents, which have these labels; `frequency` is that of every label."""
        labels = candidates.labels
        order = np.lexsort((labels, -log_odds, labels < 0), axis=1)[:, :DEPTH]
        best = np.take_along_axis(labels, order, axis=1)
        scores = {name: np.take_along_axis(one, order, axis=1) for name, one in candidates.log_scores.items()}
        # A model may have fewer labels than are shown.
        missing = ((0, 0), (0, DEPTH - best.shape[1]))
        best = np.pad(best, missing, constant_values=-1)
        return Observed(best, frequency[best], {name: np.pad(one, missing) for name, one in scores.items()}, Y)

    def rows(self, rows: slice | NDArray[np.integer]) -> Observed:
        """Return some of the documents."""
        scores = {name: one[rows] for name, one in self.log_scores.items()}
        return Observed(self.labels[rows], self.frequency[rows], scores, self.Y[rows])

    def joined(self, other: Observed) -> Observed:
        """Return these documents and others, observed by the same views."""
        n_labels = max(self.Y.shape[1], other.Y.shape[1])
        Y = [widen(one, n_labels) for one in (self.Y, other.Y)]
        scores = {
            name: np.concatenate([self.log_scores[name], one]) if len(self) else one
            for name, one in other.log_scores.items()
        }
        labels, frequency = ((self.labels, other.labels), (self.frequency, other.frequency))
        return Observed(np.concatenate(labels), np.concatenate(frequency), scores, csr_matrix(vstack(Y)))

    def arrays(self, prefix: str) -> Arrays:
        """Return all arrays by name."""
        return {
            f"{prefix}.labels": self.labels,
            f"{prefix}.frequency": self.frequency,
            f"{prefix}.Y.indptr": self.Y.indptr.astype(np.int64),
            f"{prefix}.Y.indices": self.Y.indices.astype(np.int32),
            **{f"{prefix}.{name}": scores.astype(np.float32) for name, scores in self.log_scores.items()},
        }

    @staticmethod
    def restore(arrays: Arrays, prefix: str, views: Sequence[str], n_labels: int) -> Observed:
        """Return what these arrays make up; raise a `ValueError` if they cannot."""
        labels, indptr, indices = (arrays[f"{prefix}.{one}"] for one in ("labels", "Y.indptr", "Y.indices"))
        n = len(labels)
        if n == 0:
            return Observed.none(views)
        expect(labels, f"{prefix}.labels", (n, DEPTH), np.int32)
        frequency = expect(arrays[f"{prefix}.frequency"], f"{prefix}.frequency", (n, DEPTH), np.int32)
        names = {name: f"{prefix}.{name}" for name in views}
        scores = {name: expect(arrays[key], key, (n, DEPTH), np.float32) for name, key in names.items()}
        expect(indptr, f"{prefix}.Y.indptr", (n + 1,), np.int64)
        expect(indices, f"{prefix}.Y.indices", (len(indices),), np.int32)
        is_sound = is_indptr(indptr, len(indices)) and in_range(indices, 0, n_labels) and in_range(labels, -1, n_labels)
        if not is_sound or n > LATEST or not in_range(frequency, 0, 1 << 31):
            raise ValueError("its latest documents have labels that do not exist")
        Y = csr_matrix((np.ones(len(indices), dtype=np.float32), indices, indptr), shape=(n, n_labels))
        return Observed(np.array(labels), np.array(frequency), scores, Y)


@dataclass(frozen=True, eq=False)
class Recent:
    """Observations of documents that were not learned yet.

    Attributes
    ----------
    validation
        Those of validation documents, in training.
    latest
        Those of the latest documents.
    since
        How many documents have come since weights and probabilities were fitted.
    trained
        The number of documents of training; 0 if it is not known.
    """

    validation: Observed = field(default_factory=Observed.none)
    latest: Observed = field(default_factory=Observed.none)
    since: int = 0
    trained: int = 0

    def extended(self, other: Observed) -> Recent:
        """Return the observations with those of further documents, without the oldest ones.

        Without observations of training, weights and probabilities stay: the latest documents alone may be of one kind.
        """
        if not len(self.validation) or not self.trained:
            return self
        # Documents without candidates tell nothing.
        other = other.rows(np.flatnonzero((other.labels >= 0).any(axis=1)))
        latest = self.latest.joined(other)
        return replace(self, latest=latest.rows(slice(-LATEST, None)), since=self.since + len(other))

    def recalibrated(self, model: Model) -> tuple[Recent, Model]:
        """Return a model with weights and probabilities that fit these documents, once there are enough new ones."""
        if self.since < ENOUGH:
            return self, model
        return replace(self, since=0), _fitted(model, self._fair_share(model.n_documents))

    def _fair_share(self, n_documents: int) -> Observed:
        """Return validation documents, and as many of the latest ones as there are documents learned after training.

        The latest documents may be about something else than most others, and must not count more than they are.
        """
        wanted = len(self.validation) * (n_documents - self.trained) / self.trained
        step = max(1, round(len(self.latest) / max(1.0, wanted)))
        return self.validation.joined(self.latest.rows(slice(None, None, step)))

    def arrays(self) -> Arrays:
        """Return all arrays by name."""
        return {
            **self.validation.arrays("validation"),
            **self.latest.arrays("latest"),
            "since": np.array([self.since, self.trained], dtype=np.int64),
        }

    @staticmethod
    def restore(arrays: Arrays, views: Sequence[str], n_labels: int) -> Recent:
        """Return what these arrays make up; raise a `ValueError` if they cannot."""
        since, trained = expect(arrays["since"], "since", (2,), np.int64).tolist()
        if not 0 <= since <= ENOUGH or trained < 0:
            raise ValueError(f"it has {since} documents since its probabilities were fitted")
        validation, latest = (Observed.restore(arrays, part, views, n_labels) for part in ("validation", "latest"))
        return Recent(validation, latest, since, trained)


def _fitted(model: Model, observed: Observed) -> Model:
    """Return a model whose weights of views, probabilities and thresholds fit these documents.

    The shift to rare labels stays: so few documents tell little about it, and predictions would change at random.
    """
    candidates = Candidates(observed.labels, dict(observed.log_scores))
    judged = logistic.judge(candidates, np.zeros(observed.Y.shape[1], dtype=np.uint8), observed.Y)
    # Labels in the groups that they were in when the documents came.
    known = replace(judged, groups=frequency_groups(observed.frequency))
    blend = model.blend
    if isinstance(blend, LogisticBlend):
        views, found = list(blend.slopes), logistic.fit(known, list(blend.slopes))
        nothing = Slopes(*[(0.0,) * N_GROUPS] * 2)
        # A view that adds nothing now may do so later.
        blend = LogisticBlend({name: found.slopes.get(name, nothing) for name in views}, found.biases)
    log_odds = blend.log_odds(observed.log_scores, known.groups)
    ranked = calibrate.rank(observed.labels, log_odds, known)
    calibration = calibrate.fit(ranked)
    label_groups = np.zeros(observed.Y.shape[1], dtype=np.uint8)
    label_groups[: model.n_labels] = model.label_groups
    table = calibrate.tabulate(ranked, calibration, label_groups, observed.Y)
    return replace(model, blend=blend, calibration=calibration, thresholds=table)


def measure(
    model: Model, X: csr_matrix, Y: csr_matrix, own: NDArray[np.int32] | None, is_new: NDArray[np.bool_]
) -> Measurement:
    """Return how well a model does on new documents, and what it says about all of them.

    They may have labels that it does not know. Those that are not new were learned before: they only say what it takes
    for right wrongly.
    """
    observed, ranked, mistaken = Observed.none(list(model.views)), [], []
    for start, stop in parallel.fixed_chunks(X.shape[0], _DOCUMENTS):
        batch = Batch(X[start:stop], None if own is None else own[start:stop], model.allowed)
        candidates = find_candidates(model.views, batch)
        candidates.labels[np.diff(batch.X.indptr) == 0] = -1
        log_odds = model.blend.log_odds(candidates.log_scores, model.label_groups[candidates.labels])
        observed = observed.joined(Observed.of(candidates, log_odds, model.label_frequency, Y[start:stop]))
        best, probability = best_labels(model, candidates, max(_CUTS))
        wrong = (best >= 0) & (probability >= _LIKELY) & ~_are_right(best, Y[start:stop])
        # A label without documents is known by its name alone, and has nothing to be trained on.
        wrong &= model.label_frequency[best] > 0
        ranked.append(best)
        mistaken.append(best[wrong])
    n_new = int(is_new.sum())
    found = evaluate(Y[is_new], np.concatenate(ranked)[is_new], k=_CUTS) if n_new else {}
    measured = Measured(n_new, {name: found[name] for name in METRICS if n_new})
    return Measurement(measured, observed, np.concatenate(mistaken).astype(np.int32))


def _are_right(labels: NDArray[np.int32], Y: csr_matrix) -> NDArray[np.bool_]:
    """Return whether documents have these labels, documents × labels."""
    rows = np.repeat(np.arange(len(labels)), labels.shape[1])
    found = np.asarray(Y[rows, np.maximum(labels, 0).ravel()]).ravel()
    return found.reshape(labels.shape) > 0


def observed_in_training(
    views: Mapping[str, View], blend: Any, candidates: Candidates, frequency: NDArray[np.int32], Y: csr_matrix
) -> Observed:
    """Return observations of evenly spaced validation documents."""
    rows = slice(None, None, max(1, -(-len(candidates.labels) // LATEST)))
    some = Candidates(candidates.labels[rows], {name: candidates.log_scores[name][rows] for name in views})
    log_odds = blend.log_odds(some.log_scores, frequency_groups(frequency)[some.labels])
    return Observed.of(some, log_odds, frequency, Y[rows])
