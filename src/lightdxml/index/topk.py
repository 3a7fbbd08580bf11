"""The k best candidates of each query, from candidates that arrive in any order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lightdxml.index.base import Neighbors
from lightdxml.kernels import topk

# Buffers have space for this many times k candidates.
_CAPACITY = 2
# Above every key of a candidate.
NO_KEY = np.uint64(0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True)
class TopK:
    """Buffers of candidates, as `kernels.topk.push_topk` fills them.

    Attributes
    ----------
    k
        How many candidates per query are wanted.
    keys, counts
        The candidates of each query as keys, and how many there are.
    bounds
        A product that at least k candidates of each query reach.
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
        topk.select_topk(self.k, self.keys, self.counts)
        best = self.keys[:, : self.k]
        best[np.arange(self.k) >= self.counts[:, None]] = NO_KEY
        return best


def best_keys(parts: list[NDArray[np.uint64]], k: int) -> NDArray[np.uint64]:
    """Return the k lowest keys per query of all parts, in ascending order."""
    keys = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    return np.sort(keys, axis=1)[:, :k]


def pack(row_ids: NDArray[np.int32], products: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return candidates as keys: lower keys are better."""
    keys = np.empty(row_ids.shape, dtype=np.uint64)
    topk.pack_keys(products, row_ids, keys)
    return keys


def unpack(keys: NDArray[np.uint64]) -> Neighbors:
    """Return the row ids and products of keys.

    >>> unpack(pack(np.array([[3, 1]], dtype=np.int32), np.array([[0.5, -2.0]], dtype=np.float32)))
    (array([[3, 1]], dtype=int32), array([[ 0.5, -2. ]], dtype=float32))
    """
    row_ids, products = np.empty(keys.shape, dtype=np.int32), np.empty(keys.shape, dtype=np.float32)
    topk.unpack_keys(keys, products, row_ids)
    return row_ids, products
