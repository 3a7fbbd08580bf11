"""Step 2: Z_l, from a label's centroid μ_j to its embedding ŷ_j, trained on positives alone.

ŷ_j = W₂(W₁ μ_j + b₁) + b₂, trained to make log(1 + |x̂_i − ŷ_j|²) small for the documents i of label j. Nothing lies
between the layers: their product is applied to a batch, and the gradients of both follow from that of the product. So
two products are as large as a batch, not five.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import adam, bag, parallel

_LABELS = 1024
# Labels that one thread takes at a time, whatever their number.
_PART = 256


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
        product, shift = _product(encoder)

        def pull(
            bounds: tuple[int, int],
            chosen: NDArray[np.int64] = chosen,
            product: NDArray[np.float32] = product,
            shift: NDArray[np.float32] = shift,
        ) -> tuple[float, NDArray[np.float32]]:
            those = chosen[slice(*bounds)]
            inputs = mu[those]
            outputs = inputs @ product.T + shift
            gradient = np.empty_like(outputs)
            found = bag.pull(0, len(those), those, pointers, label_documents.indices, embeddings, outputs, gradient)
            return found, _with_bias(gradient, inputs)

        losses, gradients = zip(*parallel.run(pull, parallel.fixed_chunks(len(chosen), _PART)), strict=True)
        loss += sum(losses)
        pairs = (pointers[chosen + 1] - pointers[chosen]).sum()
        _move(encoder, np.sum(gradients, axis=0) / np.float32(max(1, pairs)), rate)
    return loss / max(1, int(label_documents.nnz))


def _product(encoder: LabelEncoder) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return both layers as one, W₂W₁ and W₂b₁ + b₂."""
    first, second = encoder.layers
    both = second[:, :-1] @ first
    return both[:, :-1], both[:, -1] + second[:, -1]


def _move(encoder: LabelEncoder, gradient: NDArray[np.float32], rate: float) -> None:
    encoder.steps += 1
    corrected = adam.corrected_rate(rate, encoder.steps)
    gradients = to_layers(encoder, gradient)
    for layer, mean, square, moved in zip(encoder.layers, encoder.means, encoder.squares, gradients, strict=True):
        adam.adam_rows(layer, mean, square, moved, corrected)


def to_layers(encoder: LabelEncoder, gradient: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Return the gradient of each layer, given that of both as one with its shift in the last column.

    By the chain rule: to W₁ and b₁ through W₂, to W₂ with what the first layer gives, and to b₂ as it is.
    """
    first, second = encoder.layers

    def of_first() -> NDArray[np.float32]:
        below: NDArray[np.float32] = second[:, :-1].T @ gradient
        return below

    def of_second() -> NDArray[np.float32]:
        return np.concatenate([gradient @ first.T, gradient[:, -1:]], axis=1)

    return parallel.run(lambda layer: layer(), [of_first, of_second])


def _with_bias(gradient: NDArray[np.float32], inputs: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.concatenate([gradient.T @ inputs, gradient.sum(axis=0)[:, None]], axis=1)
