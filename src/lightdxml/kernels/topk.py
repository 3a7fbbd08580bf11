"""Streaming top-k: candidates arrive in any order and in any number of calls.

A candidate is one 64-bit key that holds its product and its row id. Keys in ascending order are candidates from the
best to the worst: by product, then by lower row id. So the k best are the same in whatever order candidates arrive.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel
from lightdxml.kernels.precision import bits_of_float, float_of_bits

_POSITIVE, _NAN = np.uint32(0x7FFFFFFF), np.uint32(0xFFFFFFFF)
_ROW_BITS = np.uint64(32)


@kernel
def push_topk(
    products: NDArray[np.float32],
    query_ids: NDArray[np.int64],
    row_ids: NDArray[np.int32],
    k: int,
    keys: NDArray[np.uint64],
    counts: NDArray[np.int64],
    bounds: NDArray[np.float32],
) -> None:
    """Add candidates to the top k of some queries.

    Parameters
    ----------
    products
        One row per query, one column per candidate.
    query_ids, row_ids
        Which queries and which candidates these are. A query gets no candidate twice.
    keys, counts
        Per query, a buffer of at least k + 2 keys, and how many it holds. A full buffer is reduced to its best.
    bounds
        Per query, a product that at least k candidates reach: lower ones are ignored.
    """
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
def select_topk(k: int, keys: NDArray[np.uint64], counts: NDArray[np.int64]) -> None:
    """Move the k lowest keys of each query to the front of its buffer, in any order."""
    for query in range(counts.size):
        if counts[query] > k:
            _compact(keys[query], counts[query], k, k)


@kernel
def pack_keys(products: NDArray[np.float32], row_ids: NDArray[np.int32], out: NDArray[np.uint64]) -> None:
    """Fill out with the keys of candidates."""
    for b in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[b, i] = _pack(products[b, i], row_ids[b, i])


@kernel
def unpack_keys(keys: NDArray[np.uint64], products: NDArray[np.float32], row_ids: NDArray[np.int32]) -> None:
    """Fill products and row ids with those of keys."""
    for b in range(keys.shape[0]):
        for i in range(keys.shape[1]):
            products[b, i] = _product(keys[b, i])
            row_ids[b, i] = np.int32(keys[b, i] & np.uint64(_NAN))


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


@kernel
def kth_largest(values: NDArray[np.float32], k: int, histogram: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the k-th largest value of each row; -inf for a row whose values are not all finite.

    A histogram (the workspace) finds the bin of that value, and only this bin is sorted.
    """
    n_bins = histogram.size
    out = np.empty(len(values), np.float32)
    in_bin = np.empty(values.shape[1], np.float32)
    for b in range(len(values)):
        row = values[b]
        low, high, total = row[0], row[0], np.float32(0.0)
        for value in row:
            low, high = min(low, value), max(high, value)
            total += value
        out[b] = low if np.isfinite(total) else -np.inf
        spread = high - low
        factor = np.float32(n_bins) / spread if spread > 0 else np.float32(np.inf)
        if not (np.isfinite(total) and np.isfinite(spread) and np.isfinite(factor)):
            continue
        histogram[:] = 0
        for value in row:
            histogram[min(n_bins - 1, int((value - low) * factor))] += 1
        seen, chosen = 0, n_bins
        while seen < k:
            chosen -= 1
            seen += histogram[chosen]
        n = 0
        for value in row:
            if min(n_bins - 1, int((value - low) * factor)) == chosen:
                in_bin[n] = value
                n += 1
        out[b] = np.sort(in_bin[:n])[seen - k]
    return out
