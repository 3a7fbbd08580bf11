"""Astec's re-ranker: a second network, trained on the labels that the first one wrongly put on top.

It takes any first network's candidates, so that what it adds can be measured for LightDXML as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines.surrogate import Schedule
from lightdxml.config import Config
from lightdxml.encoder import Encoder, encode, rounded
from lightdxml.kernels import ova, parallel
from lightdxml.kernels.precision import as_bits
from lightdxml.model import Candidates, blend, top
from lightdxml.progress import Progress
from lightdxml.training import blend as blending
from lightdxml.training import classifier, embedding
from lightdxml.training.classifier import Classifier, Scratch
from lightdxml.training.embedding import Batch, EmbeddingState

# What the second network may count against the first.
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_DOCUMENTS = 8192


@dataclass
class Reranker:
    """The second network, how much it counts, and how many labels it looks at."""

    encoder: Encoder
    W: NDArray[np.float16 | np.float32]
    depth: int
    share: float = 0.0
    beta: float = 1.0


def train(
    X: csr_matrix,
    Y: csr_matrix,
    candidates: Callable[[csr_matrix, NDArray[np.int32]], Candidates],
    beta: float,
    depth: int,
    config: Config,
    schedule: Schedule,
    rng: np.random.Generator,
    progress: Progress,
) -> Reranker:
    """Train on each document's labels and the wrong ones among the first network's `depth` best.

    `candidates` are the first network's of some documents, whose numbers (rows of X) it is told as well.
    """
    mistakes = _mistakes(X, candidates, beta, depth)
    features = embedding.start(X.shape[1], config, rng, None)
    second = classifier.start(Y.shape[1], config, rng)
    room = classifier.scratch(Y, depth, 0, config)
    train_epochs("re-ranker", second, features, room, X, Y, mistakes, config, schedule, rng, progress)
    return Reranker(features.encoder.copy(config.precision), rounded(second.W, config.precision), depth)


def train_epochs(
    what: str,
    weights: Classifier,
    features: EmbeddingState,
    room: Scratch,
    X: csr_matrix,
    Y: csr_matrix,
    shortlists: NDArray[np.int32],
    config: Config,
    schedule: Schedule,
    rng: np.random.Generator,
    progress: Progress,
    move_features: Callable[[EmbeddingState, Batch, NDArray[np.float32], np.float32], object] = embedding.backward,
) -> None:
    """Train a classifier on shortlists that stay what they are, for all epochs of a schedule."""
    nowhere, n = np.empty(0, dtype=np.int32), X.shape[0]
    for epoch in range(schedule.epochs):
        with progress.phase(f"{what}, epoch {epoch + 1}/{schedule.epochs}", n) as bar:
            order = rng.permutation(n)
            loss = 0.0
            for first in range(0, n, config.batch_size):
                rows = order[first : first + config.batch_size]
                loss += classifier.train_batch(
                    weights, features, room, X, Y, rows, shortlists, nowhere, config, schedule.at(epoch), rng,
                    move_features,
                )  # fmt: skip
                bar.advance(len(rows), loss=loss / (first + len(rows)))


def _mistakes(
    X: csr_matrix, candidates: Callable[[csr_matrix, NDArray[np.int32]], Candidates], beta: float, depth: int
) -> NDArray[np.int32]:
    """Return each document's `depth` best labels by the first network; its own among them are no negatives anyway."""
    best = np.empty((X.shape[0], depth), dtype=np.int32)
    for start, stop in parallel.fixed_chunks(X.shape[0], _DOCUMENTS):
        some = candidates(X[start:stop], np.arange(start, stop, dtype=np.int32))
        best[start:stop], _ = top(some.labels, blend(some, beta), depth)
    return best


def rerank(reranker: Reranker, X: csr_matrix, candidates: Candidates, beta: float) -> Candidates:
    """Return the first network's best labels with logits in which the second has its share."""
    chosen = _best(candidates, beta, reranker.depth)
    return _mixed(chosen, _second_logits(reranker, X, chosen.labels), reranker.share)


def choose(
    reranker: Reranker,
    X: csr_matrix,
    Y: csr_matrix,
    candidates: Candidates,
    beta: float,
    inv_propensity: NDArray[np.float64],
) -> dict[str, float]:
    """Set the second network's share, and β anew, to what is best on these documents; return the measures."""
    chosen = _best(candidates, beta, reranker.depth)
    logits = _second_logits(reranker, X, chosen.labels)
    best: tuple[float, dict[str, float]] = (-1.0, {})
    for share in SHARES:
        chosen_beta, figures = blending.choose(blending.curve(_mixed(chosen, logits, share), Y, inv_propensity))
        if blending.mean(figures, "P") > best[0]:
            best = blending.mean(figures, "P"), figures
            reranker.share, reranker.beta = share, chosen_beta
    return best[1]


def _best(candidates: Candidates, beta: float, depth: int) -> Candidates:
    """Return the best candidates, best first."""
    scores = np.where(candidates.labels >= 0, blend(candidates, beta), -np.inf)
    depth = min(depth, scores.shape[1])
    order = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
    return Candidates(
        np.take_along_axis(candidates.labels, order, axis=1),
        np.take_along_axis(candidates.cosines, order, axis=1),
        np.take_along_axis(candidates.logits, order, axis=1),
    )


def _second_logits(reranker: Reranker, X: csr_matrix, labels: NDArray[np.int32]) -> NDArray[np.float32]:
    embeddings = encode(reranker.encoder, X)
    logits = np.empty(labels.shape, dtype=np.float32)

    def fill(first: int, last: int) -> None:
        ova.scores(first, last, embeddings, as_bits(reranker.W), labels, logits)

    parallel.over(fill, len(labels))
    return logits


def _mixed(first: Candidates, second: NDArray[np.float32], share: float) -> Candidates:
    # A label that is none has -∞ in both, which no share may turn into NaN.
    none = first.labels < 0
    logits = np.where(none, 0, first.logits) * np.float32(1 - share) + np.where(none, 0, second) * np.float32(share)
    return Candidates(first.labels, first.cosines, np.where(none, -np.inf, logits).astype(np.float32))
