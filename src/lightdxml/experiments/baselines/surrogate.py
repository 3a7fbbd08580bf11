"""Astec's module 1: features learned by predicting the clusters of a document's labels, all clusters at every step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import adam, parallel
from lightdxml.model.blend import sigmoid
from lightdxml.progress import Progress
from lightdxml.views.dense import train_classifier, train_encoder
from lightdxml.views.dense.options import DenseOptions
from lightdxml.views.dense.train_classifier import Classifier
from lightdxml.views.dense.train_encoder import EncoderState

# Gradients to the documents are summed over parts of this many clusters, whatever the number of threads.
_CLUSTERS = 512


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train: the rate is halved at these epochs."""

    epochs: int
    rate: float
    halved_at: tuple[int, ...]

    def at(self, epoch: int) -> float:
        """Return the learning rate of an epoch (from 0).

        >>> Schedule(20, 0.01, (14,)).at(14)
        0.005
        """
        return self.rate * 0.5 ** sum(epoch >= at for at in self.halved_at)


def train(
    X: csr_matrix,
    clusters_of: csr_matrix,
    options: DenseOptions,
    schedule: Schedule,
    rng: np.random.Generator,
    progress: Progress,
) -> EncoderState:
    """Train word vectors and a one-vs-all classifier of the clusters; return the features."""
    features = train_encoder.start(X.shape[1], options, rng, None)
    clusters = train_classifier.start(clusters_of.shape[1], options, rng)
    n = X.shape[0]
    for epoch in range(schedule.epochs):
        with progress.phase(f"surrogate task, epoch {epoch + 1} of {schedule.epochs}", n) as bar:
            order = rng.permutation(n)
            loss = 0.0
            for first in range(0, n, options.batch_size):
                rows = order[first : first + options.batch_size]
                batch = train_encoder.forward(features, X[rows], options.dropout, rng)
                clusters.steps += 1
                rate = adam.bias_corrected_rate(schedule.at(epoch), clusters.steps)
                batch_loss, gradient = _step(clusters, batch.embedding, clusters_of[rows], rate)
                train_encoder.backward(features, batch, gradient, rate)
                loss += batch_loss
                bar.advance(len(rows), loss=loss / (first + len(rows)))
    return features


def _step(
    clusters: Classifier, embeddings: NDArray[np.float32], truth: csr_matrix, rate: np.float32
) -> tuple[float, NDArray[np.float32]]:
    """Update the weights of all clusters; return the loss and the gradient to the embeddings."""
    targets = truth.toarray()
    scale = np.float32(1 / len(embeddings))

    def part(bounds: tuple[int, int]) -> tuple[float, NDArray[np.float32]]:
        start, stop = bounds
        W = clusters.W[start:stop]
        logits = embeddings @ W[:, :-1].T + W[:, -1]
        target = targets[:, start:stop]
        loss = float((np.logaddexp(np.float32(0), logits) - logits * target).sum())
        errors = (sigmoid(logits) - target) * scale
        to_embeddings = errors @ W[:, :-1]
        gradient = np.concatenate([errors.T @ embeddings, errors.sum(axis=0)[:, None]], axis=1)
        adam.adam_rows(W, clusters.mean[start:stop], clusters.square[start:stop], gradient, rate)
        return loss, to_embeddings

    parts = parallel.run(part, parallel.fixed_chunks(len(clusters.W), _CLUSTERS))
    return sum(loss for loss, _ in parts), np.sum([gradient for _, gradient in parts], axis=0, dtype=np.float32)
