"""Vectors in clusters: their sums, blocks of them in float32, and the best of many products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.precision import row_scale, widen
from lightdxml.kernels.jit import fast_kernel, kernel

# So many centres, of a few hundred numbers each, stay close at hand.
_CENTRES = 64


@kernel
def widen_rows(vectors: NDArray[Any], places: NDArray[np.int32], out: NDArray[np.float32]) -> None:
    """Fill out with the vectors at these places; float32, int8, or float16 as `precision.as_bits` hands it over."""
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
    rows = np.empty(4, np.int64)
    for first in range(0, centres.shape[0], _CENTRES):
        block = centres[first : first + _CENTRES]
        for b in range(start, stop, 4):
            for i in range(4):
                rows[i] = min(b + i, stop - 1)
            _four(documents, rows, block, block.shape[0], out[:, first : first + _CENTRES], rows)


@fast_kernel
def _four(
    documents: NDArray[np.float32],
    rows: NDArray[np.int64],
    block: NDArray[np.float32],
    n: int,
    out: NDArray[np.float32],
    out_rows: NDArray[np.int64],
) -> None:
    """Fill four rows of out with the products of four documents and the first n vectors of a block, two at a time.

    Where there are fewer the last one is to be given several times: a loop of its own could sum up to other bits.
    """
    x0, x1, x2, x3 = documents[rows[0]], documents[rows[1]], documents[rows[2]], documents[rows[3]]
    o0, o1, o2, o3 = out[out_rows[0]], out[out_rows[1]], out[out_rows[2]], out[out_rows[3]]
    for i in range(0, n, 2):
        j = min(i + 1, n - 1)
        v, w = block[i], block[j]
        a0 = a1 = a2 = a3 = np.float32(0.0)
        b0 = b1 = b2 = b3 = np.float32(0.0)
        for d in range(v.size):
            a0 += x0[d] * v[d]
            a1 += x1[d] * v[d]
            a2 += x2[d] * v[d]
            a3 += x3[d] * v[d]
            b0 += x0[d] * w[d]
            b1 += x1[d] * w[d]
            b2 += x2[d] * w[d]
            b3 += x3[d] * w[d]
        o0[i], o1[i], o2[i], o3[i] = a0, a1, a2, a3
        o0[j], o1[j], o2[j], o3[j] = b0, b1, b2, b3


@kernel
def nearest_clusters(nearness: NDArray[np.float32], probes: int, counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return for each document how near the last of so many nearest clusters is; -inf where a number is none.

    Nearness is counted in steps from the lowest to the highest, and only the step in which the last one lies is sorted.

    Parameters
    ----------
    counts
        Scratch, one entry a step.
    """
    n_steps = counts.size
    least = np.empty(len(nearness), np.float32)
    within = np.empty(nearness.shape[1], np.float32)
    for b in range(len(nearness)):
        near = nearness[b]
        low, high, total = near[0], near[0], np.float32(0.0)
        for value in near:
            low, high = min(low, value), max(high, value)
            total += value
        least[b] = low if np.isfinite(total) else -np.inf
        spread = high - low
        factor = np.float32(n_steps) / spread if spread > 0 else np.float32(np.inf)
        if not (np.isfinite(total) and np.isfinite(spread) and np.isfinite(factor)):
            continue
        counts[:] = 0
        for value in near:
            counts[min(n_steps - 1, int((value - low) * factor))] += 1
        seen, step = 0, n_steps
        while seen < probes:
            step -= 1
            seen += counts[step]
        n = 0
        for value in near:
            if min(n_steps - 1, int((value - low) * factor)) == step:
                within[n] = value
                n += 1
        least[b] = np.sort(within[:n])[seen - probes]
    return least


@kernel
def vectors_seen(
    nearness: NDArray[np.float32], least: NDArray[np.float32], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how many vectors the clusters have that each document is to be looked for in: not below its least."""
    seen = np.zeros(least.size, np.int64)
    for b in range(least.size):
        for c in range(sizes.size):
            if not nearness[b, c] < least[b]:
                seen[b] += sizes[c]
    return seen


@kernel
def by_cluster(
    nearness: NDArray[np.float32], least: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the documents to be looked for in each cluster, one after another, and where each cluster's begin."""
    n_documents, n_clusters = nearness.shape
    ends = np.zeros(n_clusters + 1, np.int64)
    for b in range(n_documents):
        for c in range(n_clusters):
            if not nearness[b, c] < least[b]:
                ends[c + 1] += 1
    for c in range(n_clusters):
        ends[c + 1] += ends[c]
    next_place = ends[:-1].copy()
    rows = np.empty(ends[n_clusters], np.int32)
    for b in range(n_documents):
        for c in range(n_clusters):
            if not nearness[b, c] < least[b]:
                rows[next_place[c]] = b
                next_place[c] += 1
    return rows, ends


@fast_kernel
def search(
    start: int,
    stop: int,
    documents: NDArray[np.float32],
    rows: NDArray[np.int32],
    ends: NDArray[np.int64],
    vectors: NDArray[Any],
    places: NDArray[np.int32],
    pointers: NDArray[np.int64],
    k: int,
    block: NDArray[np.float32],
    near: NDArray[np.float32],
    bits: NDArray[np.uint32],
    found: NDArray[np.uint64],
    counts: NDArray[np.int64],
    bounds: NDArray[np.float32],
) -> None:
    """Look for documents in those of the clusters start … stop that are theirs.

    Parameters
    ----------
    rows, ends
        Which documents are to be looked for in which cluster, from `by_cluster`.
    vectors, places, pointers
        Vectors of any kind, and the places of those of each cluster.
    block, near, bits
        Scratch: some vectors widened, and four rows of their products; `bits` is `near` as whole numbers.
    k, found, counts, bounds
        As in `keep_best`.
    """
    four, own = np.empty(4, np.int64), np.arange(4)
    for c in range(start, stop):
        if ends[c] == ends[c + 1]:
            continue
        for place in range(pointers[c], pointers[c + 1], block.shape[0]):
            those = places[place : min(place + block.shape[0], pointers[c + 1])]
            widen_rows(vectors, those, block)
            for first in range(ends[c], ends[c + 1], 4):
                for i in range(4):
                    four[i] = rows[min(first + i, ends[c + 1] - 1)]
                _four(documents, four, block, those.size, near, own)
                n = min(4, ends[c + 1] - first)
                keep_best(near[:n], bits[:n], four[:n], those, k, found, counts, bounds)


@kernel
def keep_best(
    products: NDArray[np.float32],
    bits: NDArray[np.uint32],
    rows: NDArray[np.int64],
    places: NDArray[np.int32],
    k: int,
    found: NDArray[np.uint64],
    counts: NDArray[np.int64],
    bounds: NDArray[np.float32],
) -> None:
    """Put the best of some documents' products with some vectors beside what was found before.

    Parameters
    ----------
    products, bits
        A row a document, a column a vector; and the bits of the same numbers.
    rows, places
        Which documents and which vectors they are.
    k
        How many vectors are to be found for a document.
    found, counts
        By document: what may be among the best so far, as keys (`_key`), in room for more than k, and how many there
        are. When it is full, the best k stay.
    bounds
        By document: a product that there are k of at least, so that lower ones need not be kept.
    """
    room = found.shape[1]
    for b in range(rows.size):
        row = rows[b]
        near, bound = products[b], bounds[row]
        # Most have none that is near enough, which is seen many at a time.
        enough = 0
        for i in range(places.size):
            enough += 0 if near[i] < bound else 1
        if enough == 0:
            continue
        n, keys = counts[row], found[row]
        for i in range(places.size):
            if near[i] < bound:
                continue
            keys[n] = _key(near[i], bits[b, i], places[i])
            n += 1
            if n == room:
                bound = _select(keys, n, k)
                n = k
        counts[row], bounds[row] = n, bound


@kernel
def keys_of(
    products: NDArray[np.float32], bits: NDArray[np.uint32], places: NDArray[np.int32], out: NDArray[np.uint64]
) -> None:
    """Fill out with the keys of products and their bits with the vectors at these places."""
    for b in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[b, i] = _key(products[b, i], bits[b, i], places[b, i])


@kernel
def finish(k: int, found: NDArray[np.uint64], counts: NDArray[np.int64]) -> None:
    """Bring the best k that each document has found to the front, in no order."""
    for row in range(counts.size):
        if counts[row] > k:
            _select(found[row], counts[row], k)


@kernel
def _key(product: np.float32, bits: int, place: int) -> np.uint64:
    """Return a number that is lower for a higher product, and of equal ones for a lower place; highest for NaN."""
    ones = np.uint32(0xFFFFFFFF)
    if np.isnan(product):
        high = ones
    elif product == 0:
        high = np.uint32(0x7FFFFFFF)
    elif product < 0:
        high = np.uint32(bits)
    else:
        high = np.uint32(0x7FFFFFFF) - np.uint32(bits)
    key: np.uint64 = (np.uint64(high) << np.uint64(32)) | np.uint64(place)
    return key


@kernel
def _select(keys: NDArray[np.uint64], n: int, k: int) -> np.float32:
    """Bring the k lowest of n keys to the front, in no order; return the product of the highest of them."""
    low, high = 0, n - 1
    while low < high:
        pivot = _middle(keys[low], keys[(low + high) // 2], keys[high])
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    worst = np.uint32(keys[:k].max() >> np.uint64(32))
    one = np.empty(1, np.uint32)
    one[0] = worst if worst > np.uint32(0x7FFFFFFF) else np.uint32(0x7FFFFFFF) - worst
    product: np.float32 = one.view(np.float32)[0]
    # All ones are no number again: nothing is worse than that.
    return product


@kernel
def _middle(a: np.uint64, b: np.uint64, c: np.uint64) -> np.uint64:
    return max(min(a, b), min(max(a, b), c))
