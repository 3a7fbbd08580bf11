"""Step 4 of Algorithm 1: the one-vs-all classifier, trained over P_i ∪ S_k(x_i) jointly with the encoder.

The loss is binary cross-entropy with logits (Equation 3 and the equation of its section 'Training').
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.executor import Executor, Parts, Threads
from lightdxml.kernels import adam, parallel
from lightdxml.kernels.sparse import Pattern
from lightdxml.views.dense import classifier_part, train_encoder
from lightdxml.views.dense.classifier_part import ClassifierPart, EmbeddedBatch, Shortlists
from lightdxml.views.dense.options import DenseOptions
from lightdxml.views.dense.train_encoder import EncodedBatch, EncoderState

_HALVED_AT = (14, 21, 25)
_MAX_SEED = 2**62
# Documents whose shortlists are sent to processes of a cluster at once.
_SENT = 8192


@dataclass
class Classifier:
    """w_j of every label with its bias in the last column, Adam's moments, and the number of steps."""

    W: NDArray[np.float32]
    mean: NDArray[np.uint16]
    square: NDArray[np.float32]
    steps: int = 0

    @property
    def rows(self) -> adam.AdamRows:
        """Weights and moments."""
        return adam.AdamRows(self.W, self.mean, self.square)


@dataclass(frozen=True)
class Training:
    """A classifier whose parts are where they are trained: in memory, or in other processes."""

    classifier: Classifier
    bounds: Sequence[tuple[int, int]]
    parts: Parts[ClassifierPart]

    def take_shortlists(self, shortlists: NDArray[np.int32]) -> None:
        """Train on these shortlists from now on: labels near each training document, -1 for none."""
        n, k = shortlists.shape
        if self.parts.are_here:
            shared = Pattern(np.arange(n + 1) * k, shortlists.reshape(-1))
            self.parts.call(classifier_part.share_shortlists, shared)
            return
        # Some at a time: no process of a cluster has room for all of them.
        for first, last in parallel.fixed_chunks(n, _SENT):
            self.parts.call(classifier_part.take_shortlists, Shortlists(first, n, shortlists[first:last]))

    def collect(self) -> Classifier:
        """Return the classifier with the weights that its parts have."""
        if self.parts.are_here:
            # They share it.
            return self.classifier
        for (first, last), rows in zip(self.bounds, self.parts.call(classifier_part.weights_of, None), strict=True):
            self.classifier.W[first:last] = rows.rows
            self.classifier.mean[first:last] = rows.means
            self.classifier.square[first:last] = rows.squares
        return self.classifier

    def largest_weight(self) -> float:
        """Return the largest absolute weight; NaN if there is one."""
        return float(np.max(self.parts.call(classifier_part.largest_weight, None)))

    def release(self) -> None:
        """Release the processes that hold parts."""
        self.parts.release()


def divide(classifier: Classifier, Y: csr_matrix, options: DenseOptions, executor: Executor | None = None) -> Training:
    """Divide a classifier of the documents' labels into parts, and put them where they are trained."""
    bounds = classifier_part.bounds_of(Y, options)
    labels = classifier_part.Labels(classifier.rows, Y, options)
    return Training(classifier, bounds, (executor or Threads()).hold(classifier_part.create, labels, bounds))


def start(n_labels: int, options: DenseOptions, rng: np.random.Generator) -> Classifier:
    """Start from weights uniform in ±1/√D and a negative bias."""
    D = options.dim
    W = np.empty((n_labels, D + 1), dtype=np.float32)
    W[:, :-1] = (2 * rng.random((n_labels, D), dtype=np.float32) - 1) / np.float32(np.sqrt(D))
    W[:, -1] = options.initial_bias
    return Classifier(W, adam.zero_means(W), np.zeros(n_labels, dtype=np.float32))


def learning_rate(options: DenseOptions, epoch: int, fraction: float) -> float:
    """Return the learning rate after this fraction of an epoch.

    >>> learning_rate(DenseOptions(learning_rate=1.0, epochs=2), 1, 0.0).__round__(3)
    0.5
    """
    if options.schedule == "steps":
        return options.learning_rate * 0.5 ** sum(epoch >= at for at in _HALVED_AT)
    return options.learning_rate * 0.5 * (1 + float(np.cos(np.pi * (epoch + fraction) / options.epochs)))


def train_batch(
    training: Training,
    features: EncoderState,
    X: csr_matrix,
    rows: NDArray[np.int64],
    options: DenseOptions,
    rate: float,
    rng: np.random.Generator,
    update_encoder: Callable[
        [EncoderState, EncodedBatch, NDArray[np.float32], np.float32], object
    ] = train_encoder.backward,
) -> float:
    """Train classifier and encoder on these rows of the training set; return the summed loss.

    `update_encoder` receives the gradient to the embeddings. By default it updates all of the encoder.
    """
    batch = train_encoder.forward(features, X[rows], options.dropout, rng)
    training.classifier.steps += 1
    corrected = adam.bias_corrected_rate(rate, training.classifier.steps)
    embedded = EmbeddedBatch(rows.astype(np.int32), batch.embedding, int(rng.integers(_MAX_SEED)), corrected)
    loss, gradient = training.parts.total(classifier_part.train, embedded)
    update_encoder(features, batch, gradient, np.float32(options.vector_rate) * corrected)
    return loss
