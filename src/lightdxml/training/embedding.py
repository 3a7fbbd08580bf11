"""Step 1 and the feature half of step 4: documents as TF-IDF-weighted sums of word vectors, which are trained too."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.config import Config
from lightdxml.encoder import Encoder, Residual
from lightdxml.kernels import adam, bag, ova, parallel

_POWER_STEPS, _POWER_TOLERANCE, _SMALLEST = 100, 1e-6, 1e-12


@dataclass
class EmbeddingState:
    """The encoder with Adam's means, and scratch for turning a batch's documents into its words' documents."""

    encoder: Encoder
    mean: NDArray[np.uint16]
    square: NDArray[np.float32]
    residual_mean: NDArray[np.uint16]
    residual_square: NDArray[np.float32]
    singular: NDArray[np.float32]
    counts: NDArray[np.int32]
    found: NDArray[np.int32]
    found_pointers: NDArray[np.int64]


@dataclass
class Batch:
    """A batch on its way through the encoder; what the way back needs is kept."""

    X: csr_matrix
    pointers: NDArray[np.int64]
    embedding: NDArray[np.float32]
    first_mask: NDArray[np.float32] | None
    inner: NDArray[np.float32]
    second_mask: NDArray[np.float32] | None


def start(
    n_features: int, config: Config, rng: np.random.Generator, vectors: NDArray[np.float32] | None
) -> EmbeddingState:
    """Begin with random word vectors of length about 1, or with given ones."""
    D = config.D
    if vectors is None:
        vectors = rng.standard_normal((n_features, D), dtype=np.float32) / np.float32(np.sqrt(D))
    residual = Residual(np.eye(D, dtype=np.float32), np.zeros(D, dtype=np.float32)) if config.residual else None
    size = D if config.residual else 0
    vectors = np.array(vectors, dtype=np.float32)
    return EmbeddingState(
        encoder=Encoder(vectors, config.relu, residual),
        mean=adam.first_means(vectors),
        square=np.zeros(n_features, dtype=np.float32),
        residual_mean=np.zeros((size + 1, size), dtype=np.uint16),
        residual_square=np.zeros(size + 1, dtype=np.float32),
        singular=np.full(size, 1 / np.sqrt(max(1, size)), dtype=np.float32),
        counts=np.zeros(n_features, dtype=np.int32),
        found=np.empty(n_features, dtype=np.int32),
        found_pointers=np.empty(n_features + 1, dtype=np.int64),
    )


def forward(state: EmbeddingState, X: csr_matrix, dropout: float, rng: np.random.Generator) -> Batch:
    """Embed a batch with dropout."""
    encoder = state.encoder
    n, D = X.shape[0], encoder.vectors.shape[1]
    pointers = X.indptr.astype(np.int64)
    rows = np.arange(n, dtype=np.int64)
    z = np.empty((n, D), dtype=np.float32)

    def fill(first: int, last: int) -> None:
        bag.forward(first, last, rows, pointers, X.indices, X.data, encoder.vectors, z)

    parallel.over(fill, n)
    if encoder.relu:
        np.maximum(z, 0, out=z)
    first_mask = _mask(z.shape, dropout, rng)
    if first_mask is not None:
        z *= first_mask
    batch = Batch(X, pointers, z, first_mask, z, None)
    if encoder.residual is not None:
        r = np.maximum(z @ encoder.residual.R.T + encoder.residual.bias, 0)
        batch.second_mask = _mask(z.shape, dropout, rng)
        if batch.second_mask is not None:
            r *= batch.second_mask
        batch.embedding = z + r
    return batch


def _mask(shape: tuple[int, ...], dropout: float, rng: np.random.Generator) -> NDArray[np.float32] | None:
    """Return what zeroes a share of coordinates and makes up for it in the others."""
    if dropout == 0:
        return None
    kept = rng.random(shape, dtype=np.float32) >= np.float32(dropout)
    mask: NDArray[np.float32] = kept * np.float32(1 / (1 - dropout))
    return mask


def backward(state: EmbeddingState, batch: Batch, gradient: NDArray[np.float32], rate: np.float32) -> None:
    """Move the word vectors, and the residual layer, against the gradient to the batch's embeddings."""
    if state.encoder.residual is not None:
        gradient = move_residual(state, batch, gradient, rate)
    if batch.first_mask is not None:
        gradient = gradient * batch.first_mask
    if state.encoder.relu:
        gradient = np.where(batch.inner > 0, gradient, np.float32(0))
    gradient = np.ascontiguousarray(gradient)
    X, vectors = batch.X, state.encoder.vectors
    rows = np.empty(X.nnz, dtype=np.int32)
    places = np.empty(X.nnz, dtype=np.int64)
    n = ova.invert(batch.pointers, X.indices, state.counts, state.found, state.found_pointers, rows, places)

    def move(first: int, last: int) -> None:
        bag.backward(
            first, last, state.found, state.found_pointers, rows, places, X.data, gradient,
            vectors, state.mean, state.square, rate,
        )  # fmt: skip

    parallel.over(move, n)


def move_residual(
    state: EmbeddingState, batch: Batch, gradient: NDArray[np.float32], rate: np.float32
) -> NDArray[np.float32]:
    """Return the gradient below the residual layer, and move the layer; R keeps the largest singular value 1."""
    residual = state.encoder.residual
    assert residual is not None
    inner = np.where(batch.embedding > batch.inner, gradient, np.float32(0)).astype(np.float32, copy=False)
    if batch.second_mask is not None:
        inner *= batch.second_mask
    below: NDArray[np.float32] = gradient + inner @ residual.R
    moved = np.concatenate([inner.T @ batch.inner, inner.sum(axis=0, keepdims=True)])
    layer = np.concatenate([residual.R, residual.bias[None]])
    for row in range(len(layer)):
        adam.adam_row(layer, state.residual_mean, state.residual_square, row, moved[row], rate)
    residual.bias = layer[-1].copy()
    residual.R = layer[:-1] / np.float32(_largest_singular_value(layer[:-1], state.singular))
    return below


def _largest_singular_value(R: NDArray[np.float32], vector: NDArray[np.float32]) -> float:
    """Return the largest singular value by power iteration; the vector, which is moved, is near already as a rule."""
    value = 0.0
    for _ in range(_POWER_STEPS):
        image = R.T @ (R @ vector)
        before, value = value, max(math.sqrt(float(np.linalg.norm(image))), _SMALLEST)
        vector[:] = image / value**2
        if abs(value - before) <= _POWER_TOLERANCE * value:
            break
    return value
