"""Training of AnnexML (Tagami, 2017): linear embeddings that rank neighbors by cosine, and a partition of documents.

All updates follow one another, as in the original: the next document sees the weights that the last one has changed.
Random numbers are arguments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import fast_kernel, kernel
from lightdxml.kernels.sparse import Csr

_ONE = np.float32(1.0)
# Products that differ by less are equal: float32's machine epsilon, as in the original.
_SAME = np.float32(1.1920929e-7)


@fast_kernel
def embedding_epoch(
    order: NDArray[np.int64],
    documents: Csr,
    positives: NDArray[np.int32],
    negatives: NDArray[np.int32],
    gamma: float,
    rate: np.float32,
    weights: NDArray[np.float32],
    squares: NDArray[np.float32],
) -> None:
    """Move the embeddings of documents towards those of their positives and away from those of their negatives.

    The embedding of a document is the sum of its features' weights. Steps are AdaGrad's.

    Parameters
    ----------
    order
        The documents in the order of their turns.
    positives, negatives
        Documents per document. A document whose first positive is -1 has none, and gets no turn.
    gamma
        What cosines are multiplied with in the softmax.
    rate
        The learning rate.
    weights, squares
        Features × dimensions: the weights, and what AdaGrad has added up. Changed in place.
    """
    n_positives, n_samples = positives.shape[1], positives.shape[1] + negatives.shape[1]
    own, direction = np.empty(weights.shape[1], np.float32), np.empty(weights.shape[1], np.float32)
    others = np.empty((n_samples, weights.shape[1]), np.float32)
    lengths, cosines = np.empty(n_samples, np.float32), np.empty(n_samples, np.float64)
    pulls = np.empty(n_samples, np.float64)
    for i in order:
        if positives[i, 0] < 0:
            continue
        length = _embed(i, documents, weights, own)
        if length == 0:
            continue
        for s in range(n_samples):
            j = positives[i, s] if s < n_positives else negatives[i, s - n_positives]
            lengths[s] = _embed(j, documents, weights, others[s])
            # Embeddings of length zero, as those of empty documents, have no direction.
            cosines[s] = _dot(own, others[s]) / (length * lengths[s]) if lengths[s] > 0 else 0.0
        softmax_gradient(cosines, n_positives, gamma, pulls)
        for s in range(n_samples):
            if lengths[s] == 0:
                continue
            j = positives[i, s] if s < n_positives else negatives[i, s - n_positives]
            cosine, pull = np.float32(cosines[s]), np.float32(pulls[s])
            _cosine_gradient(own, length, others[s], lengths[s], cosine, pull, direction)
            _ascend(i, documents, direction, rate, weights, squares)
            _cosine_gradient(others[s], lengths[s], own, length, cosine, pull, direction)
            _ascend(j, documents, direction, rate, weights, squares)


@kernel
def softmax_gradient(
    cosines: NDArray[np.float64], n_positives: int, gamma: float, gradient: NDArray[np.float64]
) -> None:
    """Compute the gradient of the objective by the cosines; the first ones are those of the positives.

    The objective is the sum, over positives p, of the logarithm of exp(γ cos p) / (exp(γ cos p) + Σ exp(γ cos n)) with
    the sum over negatives n.
    """
    gradient[:] = 0.0
    for p in range(n_positives):
        total = 1.0
        for n in range(n_positives, cosines.size):
            total += np.exp(gamma * (cosines[n] - cosines[p]))
        for n in range(n_positives, cosines.size):
            share = gamma * np.exp(gamma * (cosines[n] - cosines[p])) / total
            gradient[p] += share
            gradient[n] -= share


@fast_kernel
def _embed(i: int, documents: Csr, weights: NDArray[np.float32], embedding: NDArray[np.float32]) -> np.float32:
    """Compute the embedding of a document, and return its length."""
    indptr, features, values = documents
    embedding[:] = np.float32(0.0)
    for p in range(indptr[i], indptr[i + 1]):
        row, value = weights[features[p]], values[p]
        for d in range(row.size):
            embedding[d] += value * row[d]
    length: np.float32 = np.sqrt(_dot(embedding, embedding))
    return length


@fast_kernel
def _dot(one: NDArray[np.float32], other: NDArray[np.float32]) -> np.float32:
    total: np.float32 = np.float32(0.0)
    for d in range(one.size):
        total += one[d] * other[d]
    return total


@fast_kernel
def _cosine_gradient(
    own: NDArray[np.float32],
    length: np.float32,
    other: NDArray[np.float32],
    other_length: np.float32,
    cosine: np.float32,
    factor: np.float32,
    gradient: NDArray[np.float32],
) -> None:
    """Compute the gradient of the cosine by `own`, times a factor."""
    across, along = factor / (length * other_length), factor * cosine / (length * length)
    for d in range(own.size):
        gradient[d] = across * other[d] - along * own[d]


@fast_kernel
def _ascend(
    i: int,
    documents: Csr,
    gradient: NDArray[np.float32],
    rate: np.float32,
    weights: NDArray[np.float32],
    squares: NDArray[np.float32],
) -> None:
    """Move the weights of a document's features by AdaGrad, given the gradient by its embedding."""
    indptr, features, values = documents
    for p in range(indptr[i], indptr[i + 1]):
        row, sums, value = weights[features[p]], squares[features[p]], values[p]
        for d in range(row.size):
            slope = value * gradient[d]
            square = sums[d] + slope * slope
            sums[d] = square
            # Not the operator: it would check for a division by zero, and no loop with a check uses SIMD.
            row[d] += np.divide(rate * slope, np.sqrt(square))


class Ftrl(NamedTuple):
    """Weights in training by FTRL-proximal with a lasso penalty (McMahan et al., 2013).

    The weight of a feature in a cluster has the place feature · clusters + cluster. Where there are fewer places, they
    are counted from the start again: several weights share one.

    Attributes
    ----------
    weights
        The weights.
    squares, sums
        The sums of squared gradients, and of gradients corrected by the weights.
    """

    weights: NDArray[np.float32]
    squares: NDArray[np.float32]
    sums: NDArray[np.float32]


@kernel
def partition_epoch(
    order: NDArray[np.int64],
    documents: Csr,
    positives: NDArray[np.int32],
    negatives: NDArray[np.int32],
    draws: NDArray[np.int32],
    n_clusters: int,
    rate: np.float32,
    penalty: np.float32,
    state: Ftrl,
) -> None:
    """Teach the cluster of each document, by logistic regression, to take its positives and not its negatives.

    Parameters
    ----------
    order, positives, negatives
        As `embedding_epoch` takes them.
    draws
        A random number per document, from 0, which decides among clusters that are equally near.
    rate, penalty
        FTRL's learning rate, and the weight of the lasso penalty.
    state
        Changed in place.
    """
    n_positives = positives.shape[1]
    products = np.empty(n_clusters, np.float32)
    for i in order:
        if positives[i, 0] < 0:
            continue
        cluster = _nearest(i, documents, draws[i], state.weights, products)
        for s in range(n_positives + negatives.shape[1]):
            j = positives[i, s] if s < n_positives else negatives[i, s - n_positives]
            target = _ONE if s < n_positives else np.float32(0.0)
            _step(j, documents, cluster, n_clusters, target, rate, penalty, state)


@kernel
def _nearest(i: int, documents: Csr, draw: int, weights: NDArray[np.float32], products: NDArray[np.float32]) -> int:
    """Return the cluster with the greatest product; `products` is workspace."""
    indptr, features, values = documents
    products[:] = np.float32(0.0)
    for p in range(indptr[i], indptr[i + 1]):
        first = _place(features[p], 0, products.size, weights)
        for c in range(products.size):
            at = first + c if first + c < weights.size else first + c - weights.size
            products[c] += values[p] * weights[at]
    best = products.max()
    near = 0
    for c in range(products.size):
        near += best - products[c] < _SAME
    left = draw % near
    for c in range(products.size):
        if best - products[c] < _SAME:
            if left == 0:
                return c
            left -= 1
    return 0


@kernel
def _step(
    i: int,
    documents: Csr,
    cluster: int,
    n_clusters: int,
    target: np.float32,
    rate: np.float32,
    penalty: np.float32,
    state: Ftrl,
) -> None:
    """Move the probability that a cluster takes a document towards a target."""
    indptr, features, values = documents
    weights, squares, sums = state
    product = np.float32(0.0)
    for p in range(indptr[i], indptr[i + 1]):
        product += values[p] * weights[_place(features[p], cluster, n_clusters, weights)]
    error = target - _ONE / (_ONE + np.exp(-product))
    for p in range(indptr[i], indptr[i + 1]):
        at = _place(features[p], cluster, n_clusters, weights)
        slope, before = error * values[p], np.sqrt(squares[at])
        squares[at] += slope * slope
        after = np.sqrt(squares[at])
        sums[at] += slope + (after - before) / rate * weights[at]
        excess = abs(sums[at]) - penalty
        weights[at] = np.copysign(rate * excess / after, sums[at]) if excess > 0 else np.float32(0.0)


@kernel
def _place(feature: int, cluster: int, n_clusters: int, weights: NDArray[np.float32]) -> int:
    """Return where the weight of a feature in a cluster is."""
    place = np.int64(feature) * n_clusters + cluster
    # A division takes longer than all the rest, and is rarely needed.
    wrapped: int = place if place < weights.size else place % weights.size
    return wrapped
