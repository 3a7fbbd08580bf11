"""Embedding bag: documents as weighted sums of word vectors, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.adam import AdamRows, adam_row
from lightdxml.kernels.jit import fast_kernel
from lightdxml.kernels.precision import row_scale, widen
from lightdxml.kernels.sparse import Csr, Groups, Pattern


@fast_kernel
def forward(start: int, stop: int, documents: Csr, vectors: NDArray[Any], out: NDArray[np.float32]) -> None:
    """Fill out[start:stop] with documents: sums of word vectors times their weights.

    Word vectors are float32, int8, or float16 as `precision.as_bits` passes it.
    """
    indptr, words, weights = documents
    for b in range(start, stop):
        target = out[b]
        target[:] = 0.0
        for i in range(indptr[b], indptr[b + 1]):
            vector = vectors[words[i]]
            weight = weights[i] * row_scale(vector, target.size)
            for d in range(target.size):
                target[d] += weight * widen(vector[d])


@fast_kernel
def add_residual(
    start: int, stop: int, R: NDArray[np.float32], bias: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """Add ReLU(R z + b) to each row z of out[start:stop]; row by row, so that a row's bits depend on no other row."""
    D = out.shape[1]
    layer = np.empty(D, np.float32)
    for b in range(start, stop):
        z = out[b]
        for i in range(D):
            weights = R[i]
            value = np.float32(0.0)
            for d in range(D):
                value += weights[d] * z[d]
            layer[i] = max(value + bias[i], np.float32(0.0))
        for d in range(D):
            z[d] += layer[d]


@fast_kernel
def backward(
    start: int,
    stop: int,
    words: Groups,
    weights: NDArray[np.float32],
    dX: NDArray[np.float32],
    vectors: AdamRows,
    rate: np.float32,
) -> None:
    """Move the vectors of the words words.columns[start:stop] against the gradients of their documents.

    Parameters
    ----------
    words, weights
        The words of the batch with their documents, and the weights of the words by position.
    dX
        The gradient to the documents of the batch.
    """
    columns, column_indptr, rows, positions = words
    D = dX.shape[1]
    gradient = np.empty(D, np.float32)
    for c in range(start, stop):
        gradient[:] = 0.0
        for i in range(column_indptr[c], column_indptr[c + 1]):
            dx = dX[rows[i]]
            weight = weights[positions[i]]
            for d in range(D):
                gradient[d] += weight * dx[d]
        adam_row(vectors, columns[c], gradient, rate)


@fast_kernel
def centroids(start: int, stop: int, documents: Pattern, X: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Fill out[start:stop] with the mean of each label's documents, zero for a label without documents."""
    indptr, rows = documents
    for label in range(start, stop):
        target = out[label]
        target[:] = 0.0
        first, last = indptr[label], indptr[label + 1]
        for i in range(first, last):
            x = X[rows[i]]
            for d in range(target.size):
                target[d] += x[d]
        if last > first:
            share = np.float32(1.0) / np.float32(last - first)
            for d in range(target.size):
                target[d] *= share


@fast_kernel
def label_loss(
    labels: NDArray[np.int64],
    documents: Pattern,
    X: NDArray[np.float32],
    Z: NDArray[np.float32],
    dZ: NDArray[np.float32],
) -> float:
    """Return the loss of Z, the sum of log(1 + |x - z|²) over each label's documents x, and fill dZ with its gradient.

    Row i of Z and dZ belongs to the label labels[i].
    """
    indptr, rows = documents
    D = X.shape[1]
    loss = 0.0
    for i in range(labels.size):
        z, dz = Z[i], dZ[i]
        dz[:] = 0.0
        for p in range(indptr[labels[i]], indptr[labels[i] + 1]):
            x = X[rows[p]]
            distance = np.float32(0.0)
            for d in range(D):
                distance += (x[d] - z[d]) * (x[d] - z[d])
            loss += np.log1p(distance)
            factor = np.float32(2.0) / (np.float32(1.0) + distance)
            for d in range(D):
                dz[d] += factor * (z[d] - x[d])
    return loss
