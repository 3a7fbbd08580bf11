"""Step 4: the one-vs-all classifier, trained by binary cross-entropy over P_i ∪ S_k(x_i), jointly with the features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.config import Config
from lightdxml.kernels import adam, ova, parallel
from lightdxml.training import embedding
from lightdxml.training.embedding import Batch, EmbeddingState

# The gradients to the documents are summed over this many parts of a batch's labels, whatever the thread count.
_PARTS = 8
_START_BIAS = np.float32(-4.0)
# Weights of so many bytes are fetched from memory anew for each batch: labels whose gradient is at most this share,
# squared, of what it usually is are passed over then, which saves two of the three times that a row is moved.
_LARGE, _HARDLY = 1 << 28, np.float32(0.05**2)


@dataclass
class Classifier:
    """w_j of every label with its bias in the last column, and Adam's means."""

    W: NDArray[np.float32]
    mean: NDArray[np.uint16]
    square: NDArray[np.float32]
    steps: int = 0


@dataclass
class Scratch:
    """Room for the pairs of one batch, by document and by label."""

    labels: NDArray[np.int32]
    targets: NDArray[np.float32]
    weights: NDArray[np.float32]
    pointers: NDArray[np.int64]
    stamps: NDArray[np.int64]
    counts: NDArray[np.int32]
    found: NDArray[np.int32]
    found_pointers: NDArray[np.int64]
    rows: NDArray[np.int32]
    places: NDArray[np.int64]
    gradients: NDArray[np.float32]
    stamp: int = 0


def start(n_labels: int, config: Config, rng: np.random.Generator) -> Classifier:
    """Begin with weights uniform in ±1/√D and a bias that says no: nearly all labels are wrong for a document."""
    W = np.empty((n_labels, config.D + 1), dtype=np.float32)
    W[:, :-1] = (2 * rng.random((n_labels, config.D), dtype=np.float32) - 1) / np.float32(np.sqrt(config.D))
    W[:, -1] = _START_BIAS
    return Classifier(W, adam.first_means(W), np.zeros(n_labels, dtype=np.float32))


def scratch(Y: csr_matrix, k: int, n_everywhere: int, config: Config) -> Scratch:
    """Return room for the largest batch that these documents can make."""
    B = min(config.batch_size, Y.shape[0])
    most_positives = int(np.sort(np.diff(Y.indptr))[-B:].sum())
    pairs = B * (k + n_everywhere + config.random_negatives) + most_positives
    distinct = min(pairs, Y.shape[1])
    return Scratch(
        labels=np.empty(pairs, dtype=np.int32),
        targets=np.empty(pairs, dtype=np.float32),
        weights=np.empty(pairs, dtype=np.float32),
        pointers=np.empty(B + 1, dtype=np.int64),
        stamps=np.full(Y.shape[1], -1, dtype=np.int64),
        counts=np.zeros(Y.shape[1], dtype=np.int32),
        found=np.empty(distinct, dtype=np.int32),
        found_pointers=np.empty(distinct + 1, dtype=np.int64),
        rows=np.empty(pairs, dtype=np.int32),
        places=np.empty(pairs, dtype=np.int64),
        gradients=np.empty((_PARTS, B, config.D), dtype=np.float32),
    )


def train_batch(
    classifier: Classifier,
    features: EmbeddingState,
    room: Scratch,
    X: csr_matrix,
    Y: csr_matrix,
    rows: NDArray[np.int64],
    shortlists: NDArray[np.int32],
    everywhere: NDArray[np.int32],
    config: Config,
    rate: float,
    rng: np.random.Generator,
    move_features: Callable[[EmbeddingState, Batch, NDArray[np.float32], np.float32], object] = embedding.backward,
) -> float:
    """Train classifier and features on these rows of the training set; return the summed loss.

    `move_features` takes the gradient to the documents' embeddings where it belongs: to all of the encoder, as a rule.
    """
    batch = embedding.forward(features, X[rows], config.dropout, rng)
    classifier.steps += 1
    corrected = adam.corrected_rate(rate, classifier.steps)
    n_found = _pairs_by_label(room, Y, rows, shortlists, everywhere, config, rng)
    loss, gradient = _step(classifier, room, n_found, batch.embedding, corrected)
    move_features(features, batch, gradient, np.float32(config.feature_rate) * corrected)
    return loss


def _pairs_by_label(
    room: Scratch,
    Y: csr_matrix,
    rows: NDArray[np.int64],
    shortlists: NDArray[np.int32],
    everywhere: NDArray[np.int32],
    config: Config,
    rng: np.random.Generator,
) -> int:
    """List the batch's pairs P_i ∪ S_k(x_i), with frequent and random labels, and sort them by label."""
    drawn = rng.integers(0, Y.shape[1], (len(rows), config.random_negatives), dtype=np.int32)
    pointers = room.pointers[: len(rows) + 1]
    ova.collect_pairs(
        rows, Y.indptr.astype(np.int64), Y.indices, shortlists, everywhere, drawn, config.random_weight,
        room.stamps, room.stamp, room.labels, room.targets, room.weights, pointers,
    )  # fmt: skip
    room.stamp += len(rows)
    return ova.invert(pointers, room.labels, room.counts, room.found, room.found_pointers, room.rows, room.places)


def _step(
    classifier: Classifier, room: Scratch, n_found: int, embeddings: NDArray[np.float32], rate: np.float32
) -> tuple[float, NDArray[np.float32]]:
    """Move the weights of the labels found; return the loss and the gradient to the embeddings."""
    pointers = room.found_pointers[: n_found + 1]
    bounds = np.searchsorted(pointers, np.linspace(0, pointers[-1], _PARTS + 1).astype(np.int64))
    bounds[-1] = n_found
    gradients = room.gradients[:, : len(embeddings)]
    lengths = np.einsum("bd,bd->b", embeddings, embeddings) + np.float32(1)
    least = _HARDLY if classifier.W.nbytes > _LARGE else np.float32(0)
    scale = np.float32(1 / len(embeddings))

    def part(p: int) -> float:
        gradients[p] = 0
        return ova.step(
            bounds[p], bounds[p + 1], room.found, room.found_pointers, room.rows, room.places,
            room.targets, room.weights, embeddings, lengths, classifier.W, classifier.mean, classifier.square,
            scale, rate, least, gradients[p],
        )  # fmt: skip

    losses = parallel.run(part, range(_PARTS))
    return sum(losses), gradients.sum(axis=0)
