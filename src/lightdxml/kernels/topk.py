"""Streaming top-k: candidates arrive in any order and in any number of calls.

A candidate is one 64-bit key that holds its product and its row id. Keys in ascending order are candidates from the
best to the worst: by product, then by lower row id. So the k best are the same in whatever order candidates arrive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel
from lightdxml.kernels.precision import bits_of_float, float_of_bits

# Buffers have space for this many times k candidates.
_CAPACITY = 2
# Above every key of a candidate.
NO_KEY = np.uint64(0xFFFFFFFFFFFFFFFF)
_POSITIVE, _NAN = np.uint32(0x7FFFFFFF), np.uint32(0xFFFFFFFF)
_ROW_BITS = np.uint64(32)


class TopK(NamedTuple):
    """Buffers for the best candidates of each query.

    Attributes
    ----------
    k
        How many candidates per query are wanted.
    keys, counts
        Per query, a buffer of at least k + 2 keys, and how many it holds. A full buffer is reduced to its best.
    bounds
        Per query, a product that at least k candidates reach: lower ones are ignored.
    """

    k: int
    keys: NDArray[np.uint64]
    counts: NDArray[np.int64]
    bounds: NDArray[np.float32]

    @classmethod
    def empty(cls, n_queries: int, k: int) -> TopK:
        """Return buffers without candidates."""
        keys = np.empty((n_queries, _CAPACITY * k + 2), dtype=np.uint64)
        return cls(k, keys, np.zeros(n_queries, dtype=np.int64), np.full(n_queries, -np.inf, dtype=np.float32))

    def best(self) -> NDArray[np.uint64]:
        """Return the keys of the best k candidates per query, in any order; `NO_KEY` where there are fewer."""
        _select(self)
        best = self.keys[:, : self.k]
        best[np.arange(self.k) >= self.counts[:, None]] = NO_KEY
        return best


def best_keys(parts: list[NDArray[np.uint64]], k: int) -> NDArray[np.uint64]:
    """Return the k lowest keys per query of all parts, in ascending order."""
    keys = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    return np.sort(keys, axis=1)[:, :k]


@kernel
def push_topk(
    products: NDArray[np.float32], query_ids: NDArray[np.int64], row_ids: NDArray[np.int32], top: TopK
) -> None:
    """Add candidates to the top k of some queries.

    Parameters
    ----------
    products
        One row per query, one column per candidate.
    query_ids, row_ids
        Which queries and which candidates these are. A query gets no candidate twice.
    """
    k, keys, counts, bounds = top
    capacity = keys.shape[1]
    limit = k + (capacity - k) // 2
    for b in range(query_ids.size):
        query = query_ids[b]
        values, bound = products[b], bounds[query]
        # Most calls have no good candidate. This loop uses SIMD, the next one cannot.
        good = 0
        for i in range(row_ids.size):
            good += 0 if values[i] < bound else 1
        if good == 0:
            continue
        n, own = counts[query], keys[query]
        for i in range(row_ids.size):
            if values[i] < bound:
                continue
            own[n] = _pack(values[i], row_ids[i])
            n += 1
            if n == capacity:
                n, bound = _compact(own, n, k, limit)
        counts[query], bounds[query] = n, bound


@kernel
def _select(top: TopK) -> None:
    """Move the k lowest keys of each query to the front of its buffer, in any order."""
    k, keys, counts, _ = top
    for query in range(counts.size):
        if counts[query] > k:
            _compact(keys[query], counts[query], k, k)


@kernel
def pack(row_ids: NDArray[np.int32], products: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return candidates as keys: lower keys are better."""
    keys = np.empty(row_ids.shape, np.uint64)
    for b in range(row_ids.shape[0]):
        for i in range(row_ids.shape[1]):
            keys[b, i] = _pack(products[b, i], row_ids[b, i])
    return keys


@kernel
def unpack(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the row ids and products of keys.

    >>> unpack(pack(np.array([[3, 1]], dtype=np.int32), np.array([[0.5, -2.0]], dtype=np.float32)))
    (array([[3, 1]], dtype=int32), array([[ 0.5, -2. ]], dtype=float32))
    """
    row_ids, products = np.empty(keys.shape, np.int32), np.empty(keys.shape, np.float32)
    for b in range(keys.shape[0]):
        for i in range(keys.shape[1]):
            products[b, i] = _product(keys[b, i])
            row_ids[b, i] = np.int32(keys[b, i] & np.uint64(_NAN))
    return row_ids, products


@kernel
def _pack(product: np.float32, row_id: int) -> np.uint64:
    """Return the key of a candidate; NaN ranks last."""
    bits: np.uint32 = bits_of_float(product)
    if np.isnan(product):
        bits = _NAN
    elif product == 0:
        bits = _POSITIVE
    elif product > 0:
        bits = _POSITIVE - bits
    key: np.uint64 = (np.uint64(bits) << _ROW_BITS) | np.uint64(row_id)
    return key


@kernel
def _product(key: np.uint64) -> np.float32:
    bits = np.uint32(key >> _ROW_BITS)
    product: np.float32 = float_of_bits(bits if bits > _POSITIVE else np.uint32(_POSITIVE - bits))
    return product


@kernel
def _compact(keys: NDArray[np.uint64], n: int, k: int, limit: int) -> tuple[int, np.float32]:
    """Move the lowest of n distinct keys to the front, at least k and at most `limit` of them.

    Returns how many these are, and a bound of their products. The pivot is found by bisection of the key range:
    counting and moving have no branch that a CPU could mispredict.
    """
    low = high = keys[0]
    for i in range(n):
        low, high = min(low, keys[i]), max(high, keys[i])
    while True:
        pivot = low + (high - low + np.uint64(1)) // np.uint64(2)
        count = 0
        for i in range(n):
            count += keys[i] < pivot
        if count < k:
            low = pivot
        elif count > limit:
            high = pivot
        else:
            break
    count = 0
    for i in range(n):
        key = keys[i]
        keys[count] = key
        count += key < pivot
    return count, _product(pivot)
