"""Astec's re-ranker: a second network, trained on the labels that the first one wrongly ranked high.

It takes the candidates of any first network, so that its gain can be measured for LightDXML as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines.base import Ranked, Settings, rank_chunks
from lightdxml.kernels.precision import rounded
from lightdxml.metrics import evaluate, inverse_propensity
from lightdxml.model.blend import sigmoid, top_k
from lightdxml.persistence import arrays
from lightdxml.training.choose import BETAS, CUTS, choose, mean_precision
from lightdxml.views.base import Batch
from lightdxml.views.dense import train_classifier, train_encoder
from lightdxml.views.dense.classifier import logits_of
from lightdxml.views.dense.encoder import Encoder
from lightdxml.views.dense.options import DenseOptions

SETTINGS = {"reranker_epochs": 15, "reranker_rate": 0.005, "reranker_halved_at": 10, "reranker_depth": 100}
# Documents that are scored at once.
CHUNK = 1024
# Weights of the second network against the first that are tried.
_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_TOLERANCE = 0.5

# Training and validation documents with their labels: X, Y, X_held, Y_held.
Parts = tuple[csr_matrix, csr_matrix, csr_matrix, csr_matrix]


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train: from the epoch `halved_at` on, the rate is halved."""

    epochs: int
    rate: float
    halved_at: int

    def batches(self, n: int, batch_size: int, rng: np.random.Generator) -> Iterator[tuple[NDArray[np.int64], float]]:
        """Yield the rows of each batch and the learning rate, over all epochs.

        >>> [rate for _, rate in Schedule(3, 0.01, 2).batches(2, 2, np.random.default_rng(0))]
        [0.01, 0.01, 0.005]
        """
        for epoch in range(self.epochs):
            order = rng.permutation(n)
            for first in range(0, n, batch_size):
                yield order[first : first + batch_size], self.rate / 2 if epoch >= self.halved_at else self.rate


@dataclass(frozen=True)
class Scored:
    """Candidate labels of documents (-1 for none), with the cosines and the logits of a network."""

    labels: NDArray[np.int32]
    cosines: NDArray[np.float32]
    logits: NDArray[np.float32]

    def blend(self, beta: float) -> NDArray[np.float32]:
        """Return β σ(classifier) + (1 − β) σ(cosine)."""
        score: NDArray[np.float32] = np.float32(beta) * sigmoid(self.logits)
        score += np.float32(1 - beta) * sigmoid(self.cosines)
        return score

    def top(self, beta: float, k: int) -> Ranked:
        """Return the k best labels and their scores."""
        return top_k(self.labels, self.blend(beta), k)

    def best(self, beta: float, depth: int) -> Scored:
        """Return the best candidates, best first."""
        scores = np.where(self.labels >= 0, self.blend(beta), -np.inf)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
        parts: Any = (self.labels, self.cosines, self.logits)
        return Scored(*(np.take_along_axis(part, order, axis=1) for part in parts))

    def mixed(self, other: NDArray[np.float32], share: float) -> Scored:
        """Return the candidates with logits in which those of another network have a share."""
        # Label -1 has -inf in both, which no share may turn into NaN.
        none = self.labels < 0
        logits = np.where(none, 0, self.logits) * np.float32(1 - share) + np.where(none, 0, other) * np.float32(share)
        return replace(self, logits=np.where(none, -np.inf, logits).astype(np.float32))


# Candidates of documents, given their features and, for training documents, their row ids.
CandidatesOf = Callable[[csr_matrix, NDArray[np.int32] | None], Scored]


@dataclass
class Reranker:
    """The second network, how many labels it ranks, its weight, and β of both networks together."""

    encoder: Encoder
    W: NDArray[np.float16 | np.float32]
    depth: int
    share: float = 0.0
    beta: float = 1.0

    def rerank(self, X: csr_matrix, candidates: Scored, beta: float) -> Scored:
        """Return the first network's best labels with logits in which the second network has its share."""
        best = candidates.best(beta, self.depth)
        return best.mixed(logits_of(self.encoder, self.W, Batch(X), best.labels), self.share)

    def save(self, folder: Path) -> None:
        """Write the network."""
        arrays.write(folder / "reranker.safetensors", {**self.encoder.arrays(), "classifier.W": self.W})


def choose_beta(
    candidates: Scored, Y: csr_matrix, inv_propensity: NDArray[np.float64]
) -> tuple[float, dict[str, float]]:
    """Return the best β for these documents, and the metrics with it."""
    ranked = ((beta, candidates.top(beta, max(CUTS))[0]) for beta in BETAS)
    return choose(
        [(beta, evaluate(Y, best, k=CUTS, inv_propensity=inv_propensity)) for beta, best in ranked], _TOLERANCE
    )


def train(
    parts: Parts,
    first: CandidatesOf,
    held: Scored,
    beta: float,
    options: DenseOptions,
    settings: Settings,
    rng: np.random.Generator,
) -> Reranker:
    """Train on each document's labels and the wrong ones among the best of the first network.

    Parameters
    ----------
    parts
        Training and validation documents. The latter choose the second network's share, and β with it.
    first, held, beta
        The first network, its candidates for the validation documents, and its β.
    options, settings
        Of the encoder and classifier; `reranker_epochs`, `reranker_rate`, `reranker_halved_at`, `reranker_depth`.
    """
    X, Y, X_held, Y_held = parts
    n, depth = X.shape[0], min(settings["reranker_depth"], Y.shape[1])
    own = np.arange(n, dtype=np.int32)
    mistakes, _ = rank_chunks(lambda rows: first(X[rows], own[rows]).top(beta, depth), n, depth, CHUNK)
    options = replace(options, random_negatives=0, vector_rate=1.0)
    features = train_encoder.start(X.shape[1], options, rng, None)
    classifier = train_classifier.start(Y.shape[1], options, rng)
    training = train_classifier.divide(classifier, Y, options)
    training.take_shortlists(mistakes)
    schedule = Schedule(*(settings[f"reranker_{name}"] for name in ("epochs", "rate", "halved_at")))
    for rows, rate in schedule.batches(n, options.batch_size, rng):
        train_classifier.train_batch(training, features, X, rows, options, rate, rng)
    reranker = Reranker(features.encoder.copy("float16"), rounded(classifier.W, "float16"), depth)
    _choose_share(reranker, X_held, Y_held, held.best(beta, depth), inverse_propensity(Y))
    return reranker


def _choose_share(
    reranker: Reranker, X: csr_matrix, Y: csr_matrix, best: Scored, inv_propensity: NDArray[np.float64]
) -> None:
    """Set the second network's share, and β with it, to what is best on these documents."""
    logits = logits_of(reranker.encoder, reranker.W, Batch(X), best.labels)
    most = -1.0
    for share in _SHARES:
        beta, metrics = choose_beta(best.mixed(logits, share), Y, inv_propensity)
        if mean_precision(metrics) > most:
            most, reranker.share, reranker.beta = mean_precision(metrics), share, beta


def rank(X: csr_matrix, k: int, first: CandidatesOf, beta: float, reranker: Reranker | None) -> Ranked:
    """Return the k best labels by the first network, or by the re-ranker if there is one."""

    def rank_part(rows: slice) -> Ranked:
        candidates = first(X[rows], None)
        if reranker is None:
            return candidates.top(beta, k)
        return reranker.rerank(X[rows], candidates, beta).top(reranker.beta, k)

    labels, scores = rank_chunks(rank_part, X.shape[0], k, CHUNK)
    # As LightDXML does: nothing is known about a document without features.
    labels[np.diff(X.indptr) == 0] = -1
    scores[labels < 0] = 0
    return labels, scores
