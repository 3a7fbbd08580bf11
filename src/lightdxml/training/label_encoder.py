"""Step 2: Z_l, from a label's centroid μ_j to its embedding ŷ_j, trained on positives alone.

ŷ_j = W₂(W₁ μ_j + b₁) + b₂, trained to make log(1 + |x̂_i − ŷ_j|²) small for the documents i of label j.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import adam, bag, parallel

_LABELS = 1024


@dataclass
class LabelEncoder:
    """The two layers with their biases in the last column, Adam's means, and the steps taken."""

    layers: list[NDArray[np.float32]]
    means: list[NDArray[np.uint16]]
    squares: list[NDArray[np.float32]]
    steps: int = 0


def start(D: int) -> LabelEncoder:
    """Begin as the identity: a label lies at its centroid.

    >>> encoder = start(2)
    >>> embed(encoder, np.array([[1.0, 2.0]], dtype=np.float32)).tolist()
    [[1.0, 2.0]]
    """
    layers = [np.eye(D, D + 1, dtype=np.float32) for _ in range(2)]
    return LabelEncoder(layers, [adam.first_means(w) for w in layers], [np.zeros(D, dtype=np.float32) for _ in layers])


def centroids(label_documents: csr_matrix, embeddings: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return μ_j, the mean embedding of each label's documents; `label_documents` is Y transposed."""
    out = np.empty((label_documents.shape[0], embeddings.shape[1]), dtype=np.float32)
    pointers = label_documents.indptr.astype(np.int64)

    def fill(first: int, last: int) -> None:
        bag.centroids(first, last, pointers, label_documents.indices, embeddings, out)

    parallel.over(fill, len(out))
    return out


def embed(encoder: LabelEncoder, mu: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return Z_l of these centroids."""
    for layer in encoder.layers:
        mu = mu @ layer[:, :-1].T + layer[:, -1]
    return mu


def train_epoch(
    encoder: LabelEncoder,
    label_documents: csr_matrix,
    labels: NDArray[np.int64],
    mu: NDArray[np.float32],
    embeddings: NDArray[np.float32],
    rate: float,
    rng: np.random.Generator,
) -> float:
    """Train Z_l once on these labels and return the mean loss of a (document, label) pair."""
    pointers = label_documents.indptr.astype(np.int64)
    order = rng.permutation(labels)
    loss = 0.0
    for first in range(0, len(order), _LABELS):
        chosen = order[first : first + _LABELS]
        inputs = mu[chosen]
        hidden = inputs @ encoder.layers[0][:, :-1].T + encoder.layers[0][:, -1]
        outputs = hidden @ encoder.layers[1][:, :-1].T + encoder.layers[1][:, -1]
        gradient = np.empty_like(outputs)

        def pull(bounds: tuple[int, int], z: NDArray[np.float32] = outputs, dz: NDArray[np.float32] = gradient,
                 chosen: NDArray[np.int64] = chosen) -> float:  # fmt: skip
            return bag.pull(*bounds, chosen, pointers, label_documents.indices, embeddings, z, dz)

        loss += sum(parallel.run(pull, parallel.fixed_chunks(len(chosen), 64)))
        pairs = (pointers[chosen + 1] - pointers[chosen]).sum()
        gradient /= np.float32(max(1, pairs))
        _move(encoder, inputs, hidden, gradient, rate)
    return loss / max(1, int(label_documents.nnz))


def _move(
    encoder: LabelEncoder,
    inputs: NDArray[np.float32],
    hidden: NDArray[np.float32],
    gradient: NDArray[np.float32],
    rate: float,
) -> None:
    encoder.steps += 1
    corrected = adam.corrected_rate(rate, encoder.steps)
    below = gradient @ encoder.layers[1][:, :-1]
    gradients = [_with_bias(below, inputs), _with_bias(gradient, hidden)]
    for layer, mean, square, moved in zip(encoder.layers, encoder.means, encoder.squares, gradients, strict=True):
        for row in range(len(layer)):
            adam.adam_row(layer, mean, square, row, moved[row], corrected)


def _with_bias(gradient: NDArray[np.float32], inputs: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.concatenate([gradient.T @ inputs, gradient.sum(axis=0)[:, None]], axis=1)
