"""Astec's re-ranker: a second network, trained on the labels that the first one wrongly ranked high.

It takes the candidates of any first network, so that its gain can be measured for LightDXML as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines.surrogate import Schedule
from lightdxml.kernels import parallel
from lightdxml.metrics import evaluate
from lightdxml.model.blend import sigmoid, top_k
from lightdxml.progress import Progress
from lightdxml.training.choose import BETAS, CUTS, Curve, choose, mean_precision
from lightdxml.views.base import Batch
from lightdxml.views.dense import train_classifier, train_encoder
from lightdxml.views.dense.classifier import logits_of
from lightdxml.views.dense.encoder import Encoder, rounded
from lightdxml.views.dense.options import DenseOptions
from lightdxml.views.dense.train_classifier import Classifier, Workspace
from lightdxml.views.dense.train_encoder import EncodedBatch, EncoderState

# Weights of the second network against the first that are tried.
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
TOLERANCE = 0.5
_DOCUMENTS = 8192


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


CandidatesOf = Callable[[csr_matrix, NDArray[np.int32]], Scored]


@dataclass
class Reranker:
    """The second network, how many labels it ranks, and its weight."""

    encoder: Encoder
    W: NDArray[np.float16 | np.float32]
    depth: int
    share: float = 0.0
    beta: float = 1.0


def beta_curve(candidates: Scored, Y: csr_matrix, inv_propensity: NDArray[np.float64]) -> Curve[float]:
    """Return the measures of the blend for each β."""
    results = []
    for beta in BETAS:
        ranked = top_k(candidates.labels, candidates.blend(beta), max(CUTS))[0]
        results.append((beta, evaluate(Y, ranked, k=CUTS, inv_propensity=inv_propensity)))
    return results


def train(
    X: csr_matrix,
    Y: csr_matrix,
    candidates: CandidatesOf,
    beta: float,
    depth: int,
    options: DenseOptions,
    schedule: Schedule,
    rng: np.random.Generator,
    progress: Progress,
) -> Reranker:
    """Train on each document's labels and the wrong ones among the first network's `depth` best.

    `candidates` returns those of the first network for some documents, given their features and row ids.
    """
    mistakes = np.empty((X.shape[0], depth), dtype=np.int32)
    for start, stop in parallel.fixed_chunks(X.shape[0], _DOCUMENTS):
        some = candidates(X[start:stop], np.arange(start, stop, dtype=np.int32))
        mistakes[start:stop], _ = top_k(some.labels, some.blend(beta), depth)
    features = train_encoder.start(X.shape[1], options, rng, None)
    second = train_classifier.start(Y.shape[1], options, rng)
    buffers = train_classifier.workspace(Y, depth, options)
    train_epochs("re-ranker", second, features, buffers, X, Y, mistakes, options, schedule, rng, progress)
    return Reranker(features.encoder.copy("float16"), rounded(second.W, "float16"), depth)


def train_epochs(
    title: str,
    weights: Classifier,
    features: EncoderState,
    buffers: Workspace,
    X: csr_matrix,
    Y: csr_matrix,
    shortlists: NDArray[np.int32],
    options: DenseOptions,
    schedule: Schedule,
    rng: np.random.Generator,
    progress: Progress,
    update_encoder: Callable[
        [EncoderState, EncodedBatch, NDArray[np.float32], np.float32], object
    ] = train_encoder.backward,
) -> None:
    """Train a classifier on fixed shortlists for all epochs of a schedule."""
    n = X.shape[0]
    for epoch in range(schedule.epochs):
        with progress.phase(f"{title}, epoch {epoch + 1} of {schedule.epochs}", n) as bar:
            order = rng.permutation(n)
            loss = 0.0
            for first in range(0, n, options.batch_size):
                rows = order[first : first + options.batch_size]
                loss += train_classifier.train_batch(
                    weights, features, buffers, X, Y, rows, shortlists, options, schedule.at(epoch), rng,
                    update_encoder,
                )  # fmt: skip
                bar.advance(len(rows), loss=loss / (first + len(rows)))


def rerank(reranker: Reranker, X: csr_matrix, candidates: Scored, beta: float) -> Scored:
    """Return the first network's best labels with logits in which the second network has its share."""
    best = _best(candidates, beta, reranker.depth)
    return _mixed(best, logits_of(reranker.encoder, reranker.W, Batch(X), best.labels), reranker.share)


def choose_share(
    reranker: Reranker,
    X: csr_matrix,
    Y: csr_matrix,
    candidates: Scored,
    beta: float,
    inv_propensity: NDArray[np.float64],
) -> dict[str, float]:
    """Set the second network's share, and β with it, to what is best on these documents; return the measures."""
    best = _best(candidates, beta, reranker.depth)
    logits = logits_of(reranker.encoder, reranker.W, Batch(X), best.labels)
    found: tuple[float, dict[str, float]] = (-1.0, {})
    for share in SHARES:
        chosen_beta, metrics = choose(beta_curve(_mixed(best, logits, share), Y, inv_propensity), TOLERANCE)
        if mean_precision(metrics) > found[0]:
            found = mean_precision(metrics), metrics
            reranker.share, reranker.beta = share, chosen_beta
    return found[1]


def _best(candidates: Scored, beta: float, depth: int) -> Scored:
    """Return the best candidates, best first."""
    scores = np.where(candidates.labels >= 0, candidates.blend(beta), -np.inf)
    order = np.argsort(-scores, axis=1, kind="stable")[:, : min(depth, scores.shape[1])]
    return Scored(
        np.take_along_axis(candidates.labels, order, axis=1),
        np.take_along_axis(candidates.cosines, order, axis=1),
        np.take_along_axis(candidates.logits, order, axis=1),
    )


def _mixed(first: Scored, second: NDArray[np.float32], share: float) -> Scored:
    # Label -1 has -inf in both, which no share may turn into NaN.
    none = first.labels < 0
    logits = np.where(none, 0, first.logits) * np.float32(1 - share) + np.where(none, 0, second) * np.float32(share)
    return Scored(first.labels, first.cosines, np.where(none, -np.inf, logits).astype(np.float32))
