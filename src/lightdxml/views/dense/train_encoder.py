"""Training of the encoder, in step 4 of Algorithm 1: word vectors move jointly with the classifier."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import adam, bag, parallel
from lightdxml.kernels.classifier import group_by_column
from lightdxml.kernels.sparse import Csr, Groups, Pattern
from lightdxml.views.dense.encoder import Encoder, Residual
from lightdxml.views.dense.options import DenseOptions

_POWER_ITERATIONS, _POWER_TOLERANCE, _MIN_NORM = 100, 1e-6, 1e-12


@dataclass
class EncoderState:
    """The encoder, Adam's moments, and a workspace that groups a batch by feature."""

    encoder: Encoder
    mean: NDArray[np.uint16]
    square: NDArray[np.float32]
    residual_mean: NDArray[np.uint16]
    residual_square: NDArray[np.float32]
    singular: NDArray[np.float32]
    counts: NDArray[np.int32]
    columns: NDArray[np.int32]
    column_indptr: NDArray[np.int64]


@dataclass
class EncodedBatch:
    """A batch on its way through the encoder, with what the backward pass needs."""

    X: Csr
    embedding: NDArray[np.float32]
    first_mask: NDArray[np.float32] | None
    inner: NDArray[np.float32]
    second_mask: NDArray[np.float32] | None


def start(
    n_features: int, options: DenseOptions, rng: np.random.Generator, vectors: NDArray[np.float32] | None
) -> EncoderState:
    """Start from random word vectors of length about 1, or from given ones."""
    D = options.dim
    if vectors is None:
        vectors = rng.standard_normal((n_features, D), dtype=np.float32) / np.float32(np.sqrt(D))
    residual = Residual(np.eye(D, dtype=np.float32), np.zeros(D, dtype=np.float32)) if options.residual else None
    size = D if options.residual else 0
    vectors = np.array(vectors, dtype=np.float32)
    return EncoderState(
        encoder=Encoder(vectors, options.relu, residual),
        mean=adam.zero_means(vectors),
        square=np.zeros(n_features, dtype=np.float32),
        residual_mean=np.zeros((size + 1, size), dtype=np.uint16),
        residual_square=np.zeros(size + 1, dtype=np.float32),
        singular=np.full(size, 1 / np.sqrt(max(1, size)), dtype=np.float32),
        counts=np.zeros(n_features, dtype=np.int32),
        columns=np.empty(n_features, dtype=np.int32),
        column_indptr=np.empty(n_features + 1, dtype=np.int64),
    )


def forward(state: EncoderState, X: csr_matrix, dropout: float, rng: np.random.Generator) -> EncodedBatch:
    """Encode a batch with dropout."""
    encoder, n = state.encoder, X.shape[0]
    documents, z = Csr.of(X), np.empty((n, encoder.dim), dtype=np.float32)
    parallel.over(lambda first, last: bag.forward(first, last, documents, encoder.vectors, z), n)
    if encoder.relu:
        np.maximum(z, 0, out=z)
    first_mask = _dropout_mask(z.shape, dropout, rng)
    if first_mask is not None:
        z *= first_mask
    batch = EncodedBatch(documents, z, first_mask, z, None)
    if encoder.residual is not None:
        r = np.maximum(z @ encoder.residual.R.T + encoder.residual.bias, 0)
        batch.second_mask = _dropout_mask(z.shape, dropout, rng)
        if batch.second_mask is not None:
            r *= batch.second_mask
        batch.embedding = z + r
    return batch


def _dropout_mask(shape: tuple[int, ...], dropout: float, rng: np.random.Generator) -> NDArray[np.float32] | None:
    """Return an inverted-dropout mask: zeros, and factors that make up for them."""
    if dropout == 0:
        return None
    kept = rng.random(shape, dtype=np.float32) >= np.float32(dropout)
    mask: NDArray[np.float32] = kept * np.float32(1 / (1 - dropout))
    return mask


def backward(state: EncoderState, batch: EncodedBatch, gradient: NDArray[np.float32], rate: np.float32) -> None:
    """Update word vectors and residual layer from the gradient to the batch's embeddings."""
    if state.encoder.residual is not None:
        gradient = update_residual(state, batch, gradient, rate)
    if batch.first_mask is not None:
        gradient = gradient * batch.first_mask
    if state.encoder.relu:
        gradient = np.where(batch.inner > 0, gradient, np.float32(0))
    gradient = np.ascontiguousarray(gradient)
    indptr, indices, weights = batch.X
    rows, positions = np.empty(len(indices), dtype=np.int32), np.empty(len(indices), dtype=np.int64)
    words = Groups(state.columns, state.column_indptr, rows, positions)
    vectors = adam.AdamRows(state.encoder.vectors, state.mean, state.square)
    n = group_by_column(Pattern(indptr, indices), state.counts, words)
    parallel.over(lambda first, last: bag.backward(first, last, words, weights, gradient, vectors, rate), n)


def update_residual(
    state: EncoderState, batch: EncodedBatch, gradient: NDArray[np.float32], rate: np.float32
) -> NDArray[np.float32]:
    """Update the residual layer, keep its spectral norm at 1, and return the gradient below it."""
    residual = state.encoder.residual
    assert residual is not None
    inner = np.where(batch.embedding > batch.inner, gradient, np.float32(0)).astype(np.float32, copy=False)
    if batch.second_mask is not None:
        inner *= batch.second_mask
    below: NDArray[np.float32] = gradient + inner @ residual.R
    gradients = np.concatenate([inner.T @ batch.inner, inner.sum(axis=0, keepdims=True)])
    layer = np.concatenate([residual.R, residual.bias[None]])
    adam.adam_rows(adam.AdamRows(layer, state.residual_mean, state.residual_square), gradients, rate)
    residual.bias = layer[-1].copy()
    residual.R = layer[:-1] / np.float32(_spectral_norm(layer[:-1], state.singular))
    return below


def _spectral_norm(R: NDArray[np.float32], vector: NDArray[np.float32]) -> float:
    """Return the largest singular value by power iteration; the vector is kept between calls as a warm start."""
    value = 0.0
    for _ in range(_POWER_ITERATIONS):
        image = R.T @ (R @ vector)
        before, value = value, max(math.sqrt(float(np.linalg.norm(image))), _MIN_NORM)
        vector[:] = image / value**2
        if abs(value - before) <= _POWER_TOLERANCE * value:
            break
    return value
