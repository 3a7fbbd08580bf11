"""Vectors in clusters: their sums, blocks of them in float32, and the best of many products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.half import row_scale, widen
from lightdxml.kernels.jit import fast_kernel, kernel
from lightdxml.kernels.postings import push


@kernel
def widen_rows(vectors: NDArray[Any], places: NDArray[np.int32], out: NDArray[np.float32]) -> None:
    """Fill out with the vectors at these places; float32, int8, or float16 as `half.readable` hands it over."""
    for i in range(places.size):
        vector = vectors[places[i]]
        scale = row_scale(vector, out.shape[1])
        for d in range(out.shape[1]):
            out[i, d] = widen(vector[d]) * scale


@kernel
def sum_rows(vectors: NDArray[np.float32], clusters: NDArray[np.int32], sums: NDArray[np.float32]) -> None:
    """Add each vector to the sum of its cluster, in order."""
    for i in range(clusters.size):
        total, vector = sums[clusters[i]], vectors[i]
        for d in range(vector.size):
            total[d] += vector[d]


@fast_kernel
def products(
    start: int, stop: int, documents: NDArray[np.float32], centres: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """Fill out[start:stop] with the products of documents and centres: the same bits alone as among others."""
    for b in range(start, stop):
        x = documents[b]
        for c in range(centres.shape[0]):
            centre = centres[c]
            product = np.float32(0.0)
            for d in range(x.size):
                product += centre[d] * x[d]
            out[b, c] = product


@fast_kernel
def scan(
    start: int,
    stop: int,
    document: NDArray[np.float32],
    vectors: NDArray[Any],
    places: NDArray[np.int32],
    out: NDArray[np.float32],
) -> None:
    """Fill out[start:stop] with the products of one document and the vectors at these places (of any kind)."""
    for i in range(start, stop):
        vector = vectors[places[i]]
        product = np.float32(0.0)
        for d in range(document.size):
            product += widen(vector[d]) * document[d]
        out[i] = product * row_scale(vector, document.size)


@kernel
def keep_best(
    block: NDArray[np.float32],
    rows: NDArray[np.int64],
    places: NDArray[np.int32],
    found: NDArray[np.int32],
    scores: NDArray[np.float32],
    counts: NDArray[np.int64],
) -> None:
    """Put the best of some documents' products with some vectors into what was found before.

    Parameters
    ----------
    block
        The products: a row a document, a column a vector.
    rows, places
        Which documents and which vectors they are.
    found, scores, counts
        By document: the best so far, as heaps, and how many there are.
    """
    k = found.shape[1]
    for b in range(rows.size):
        row = rows[b]
        n, best, heap = counts[row], found[row], scores[row]
        for i in range(places.size):
            product = block[b, i]
            if n < k or product >= heap[0]:
                n = push(best, heap, n, places[i], product)
        counts[row] = n
