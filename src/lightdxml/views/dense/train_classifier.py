"""Step 4 of Algorithm 1: the one-vs-all classifier, trained over P_i ∪ S_k(x_i) jointly with the encoder.

The loss is binary cross-entropy with logits (Equation 3 and the equation of its section 'Training').
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import adam, parallel
from lightdxml.kernels import classifier as kernels
from lightdxml.kernels.sparse import Groups, Pattern
from lightdxml.views.dense import train_encoder
from lightdxml.views.dense.options import DenseOptions
from lightdxml.views.dense.train_encoder import EncodedBatch, EncoderState

# Gradients to the documents are summed over this many parts of a batch's labels, whatever the number of threads.
_PARTS = 8
_HALVED_AT = (14, 21, 25)


@dataclass
class Classifier:
    """w_j of every label with its bias in the last column, Adam's moments, and the number of steps."""

    W: NDArray[np.float32]
    mean: NDArray[np.uint16]
    square: NDArray[np.float32]
    steps: int = 0


@dataclass
class Workspace:
    """Buffers for the (document, label) pairs of one batch, by document and by label."""

    pairs: kernels.Pairs
    by_label: Groups
    stamps: NDArray[np.int64]
    counts: NDArray[np.int32]
    gradients: NDArray[np.float32]
    stamp: int = 0


def start(n_labels: int, options: DenseOptions, rng: np.random.Generator) -> Classifier:
    """Start from weights uniform in ±1/√D and a negative bias."""
    D = options.dim
    W = np.empty((n_labels, D + 1), dtype=np.float32)
    W[:, :-1] = (2 * rng.random((n_labels, D), dtype=np.float32) - 1) / np.float32(np.sqrt(D))
    W[:, -1] = options.initial_bias
    return Classifier(W, adam.zero_means(W), np.zeros(n_labels, dtype=np.float32))


def workspace(Y: csr_matrix, shortlist_size: int, options: DenseOptions) -> Workspace:
    """Return buffers for the largest batch that these documents can make."""
    B = min(options.batch_size, Y.shape[0])
    most_positives = int(np.sort(np.diff(Y.indptr))[-B:].sum())
    pairs = B * (shortlist_size + options.random_negatives) + most_positives
    distinct = min(pairs, Y.shape[1])
    return Workspace(
        pairs=kernels.Pairs(
            indptr=np.empty(B + 1, dtype=np.int64),
            labels=np.empty(pairs, dtype=np.int32),
            targets=np.empty(pairs, dtype=np.float32),
            weights=np.empty(pairs, dtype=np.float32),
        ),
        by_label=Groups(
            columns=np.empty(distinct, dtype=np.int32),
            indptr=np.empty(distinct + 1, dtype=np.int64),
            rows=np.empty(pairs, dtype=np.int32),
            positions=np.empty(pairs, dtype=np.int64),
        ),
        stamps=np.full(Y.shape[1], -1, dtype=np.int64),
        counts=np.zeros(Y.shape[1], dtype=np.int32),
        gradients=np.empty((_PARTS, B, options.dim), dtype=np.float32),
    )


def learning_rate(options: DenseOptions, epoch: int, fraction: float) -> float:
    """Return the learning rate after this fraction of an epoch.

    >>> learning_rate(DenseOptions(learning_rate=1.0, epochs=2), 1, 0.0).__round__(3)
    0.5
    """
    if options.schedule == "steps":
        return options.learning_rate * 0.5 ** sum(epoch >= at for at in _HALVED_AT)
    return options.learning_rate * 0.5 * (1 + float(np.cos(np.pi * (epoch + fraction) / options.epochs)))


def train_batch(
    classifier: Classifier,
    features: EncoderState,
    buffers: Workspace,
    X: csr_matrix,
    Y: csr_matrix,
    rows: NDArray[np.int64],
    shortlists: NDArray[np.int32],
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
    classifier.steps += 1
    corrected = adam.bias_corrected_rate(rate, classifier.steps)
    n_labels = _pairs_by_label(buffers, Y, rows, shortlists, options, rng)
    loss, gradient = _step(classifier, buffers, n_labels, batch.embedding, options, corrected)
    update_encoder(features, batch, gradient, np.float32(options.vector_rate) * corrected)
    return loss


def _pairs_by_label(
    buffers: Workspace,
    Y: csr_matrix,
    rows: NDArray[np.int64],
    shortlists: NDArray[np.int32],
    options: DenseOptions,
    rng: np.random.Generator,
) -> int:
    """Collect the batch's pairs P_i ∪ S_k(x_i) and random negatives, and group them by label."""
    drawn = rng.integers(0, Y.shape[1], (len(rows), options.random_negatives), dtype=np.int32)
    pairs, stamps = buffers.pairs, (buffers.stamps, buffers.stamp)
    kernels.collect_pairs(rows, Pattern.of(Y), shortlists, drawn, options.random_weight, *stamps, pairs)
    buffers.stamp += len(rows)
    by_document = Pattern(pairs.indptr[: len(rows) + 1], pairs.labels)
    return kernels.group_by_column(by_document, buffers.counts, buffers.by_label)


def _step(
    classifier: Classifier,
    buffers: Workspace,
    n_labels: int,
    embeddings: NDArray[np.float32],
    options: DenseOptions,
    rate: np.float32,
) -> tuple[float, NDArray[np.float32]]:
    """Update the weights of the batch's labels; return the loss and the gradient to the embeddings."""
    indptr = buffers.by_label.indptr[: n_labels + 1]
    bounds = np.searchsorted(indptr, np.linspace(0, indptr[-1], _PARTS + 1).astype(np.int64))
    bounds[-1] = n_labels
    gradients = buffers.gradients[:, : len(embeddings)]
    norms = np.einsum("bd,bd->b", embeddings, embeddings) + np.float32(1)
    lazy = classifier.W.nbytes > options.lazy_bytes
    min_gradient = np.float32(options.lazy_ratio**2 if lazy else 0)
    scale, weights = np.float32(1 / len(embeddings)), adam.AdamRows(classifier.W, classifier.mean, classifier.square)

    def part(p: int) -> float:
        gradients[p] = 0
        return kernels.train_step(
            bounds[p], bounds[p + 1], buffers.by_label, buffers.pairs, embeddings, norms, weights, scale, rate,
            min_gradient, gradients[p],
        )  # fmt: skip

    losses = parallel.run(part, range(_PARTS))
    return sum(losses), gradients.sum(axis=0)
