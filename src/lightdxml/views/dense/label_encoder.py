"""Step 2 of Algorithm 1: the label encoder Z_l, from a label's centroid μ_j to its embedding ŷ_j.

ŷ_j = W₂(W₁ μ_j + b₁) + b₂ (Equation 4, without the ReLU, as in the authors' code), trained on positives alone to
minimize log(1 + ‖x̂_i − ŷ_j‖²) (Equation 2). Nothing lies between the two layers. So their product is applied to a
batch, and the gradients of both layers follow from the gradient of the product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import adam, bag, parallel
from lightdxml.kernels.sparse import Pattern

_BATCH = 1024
# Labels per task of a thread; fixed, so that sums do not depend on the number of threads.
_CHUNK = 256


@dataclass
class LabelEncoder:
    """The two layers with their biases in the last column, Adam's moments, and the number of steps."""

    layers: list[NDArray[np.float32]]
    means: list[NDArray[np.uint16]]
    squares: list[NDArray[np.float32]]
    steps: int = 0


def start(dim: int) -> LabelEncoder:
    """Start from the identity: a label lies at its centroid.

    >>> encoder = start(2)
    >>> embed(encoder, np.array([[1.0, 2.0]], dtype=np.float32)).tolist()
    [[1.0, 2.0]]
    """
    return from_layers([np.eye(dim, dim + 1, dtype=np.float32) for _ in range(2)])


def from_layers(layers: list[NDArray[np.float32]]) -> LabelEncoder:
    """Return a label encoder with these layers, as before the first step of training."""
    squares = [np.zeros(len(layer), dtype=np.float32) for layer in layers]
    return LabelEncoder(layers, [adam.zero_means(w) for w in layers], squares)


def centroids(label_to_docs: csr_matrix, embeddings: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return μ_j, the mean embedding of each label's documents (Equation 5)."""
    out = np.empty((label_to_docs.shape[0], embeddings.shape[1]), dtype=np.float32)
    documents = Pattern.of(label_to_docs)
    parallel.over(lambda first, last: bag.centroids(first, last, documents, embeddings, out), len(out))
    return out


def embed(encoder: LabelEncoder, mu: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return Z_l of these centroids (Equation 4)."""
    for layer in encoder.layers:
        mu = mu @ layer[:, :-1].T
        mu += layer[:, -1]
    return mu


def train_epoch(
    encoder: LabelEncoder,
    label_to_docs: csr_matrix,
    labels: NDArray[np.int64],
    mu: NDArray[np.float32],
    embeddings: NDArray[np.float32],
    rate: float,
    rng: np.random.Generator,
) -> float:
    """Train Z_l for one epoch on these labels and return the mean loss per (document, label) pair (Equation 2)."""
    documents, frequency = Pattern.of(label_to_docs), np.diff(label_to_docs.indptr)
    order = rng.permutation(labels)
    loss = 0.0
    for first in range(0, len(order), _BATCH):
        chosen = order[first : first + _BATCH]
        W, b = _product(encoder)

        def gradient_of(
            bounds: tuple[int, int],
            chosen: NDArray[np.int64] = chosen,
            W: NDArray[np.float32] = W,
            b: NDArray[np.float32] = b,
        ) -> tuple[float, NDArray[np.float32]]:
            part = chosen[slice(*bounds)]
            inputs = mu[part]
            outputs = inputs @ W.T + b
            gradient = np.empty_like(outputs)
            part_loss = bag.label_loss(part, documents, embeddings, outputs, gradient)
            return part_loss, np.concatenate([gradient.T @ inputs, gradient.sum(axis=0)[:, None]], axis=1)

        losses, gradients = zip(*parallel.run(gradient_of, parallel.fixed_chunks(len(chosen), _CHUNK)), strict=True)
        loss += sum(losses)
        pairs = frequency[chosen].sum()
        _update(encoder, np.sum(gradients, axis=0) / np.float32(max(1, pairs)), rate)
    return loss / max(1, int(label_to_docs.nnz))


def _product(encoder: LabelEncoder) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return both layers as one, W_l = W₂W₁ and b_l = W₂b₁ + b₂."""
    first, second = encoder.layers
    both = second[:, :-1] @ first
    return both[:, :-1], both[:, -1] + second[:, -1]


def _update(encoder: LabelEncoder, gradient: NDArray[np.float32], rate: float) -> None:
    encoder.steps += 1
    corrected = adam.bias_corrected_rate(rate, encoder.steps)
    gradients = layer_gradients(encoder, gradient)
    for layer, mean, square, one in zip(encoder.layers, encoder.means, encoder.squares, gradients, strict=True):
        adam.adam_rows(adam.AdamRows(layer, mean, square), one, corrected)


def layer_gradients(encoder: LabelEncoder, gradient: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Return the gradient of each layer, given that of W_l with b_l in the last column, by the chain rule."""
    first, second = encoder.layers

    def of_first() -> NDArray[np.float32]:
        below: NDArray[np.float32] = second[:, :-1].T @ gradient
        return below

    def of_second() -> NDArray[np.float32]:
        return np.concatenate([gradient @ first.T, gradient[:, -1:]], axis=1)

    return parallel.run(lambda layer: layer(), [of_first, of_second])
