"""Exact search: every query is compared with every vector."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lightdxml.index.base import Kind, Neighbors
from lightdxml.index.topk import TopK, unpack
from lightdxml.kernels import dot, parallel
from lightdxml.kernels.precision import as_bits

# Queries that share one conversion of the vectors to float32, and the fewest vectors that are worth a thread.
_QUERIES, _VECTORS = 1024, 2048


class ExactIndex:
    """Compare every query with every vector; see `lightdxml.index.base.Index`.

    The vectors stay in their precision: each thread converts a few of them at a time.

    Examples
    --------
    >>> index = ExactIndex(np.eye(3, dtype=np.float32))
    >>> index.search(np.array([[0.6, 0.8, 0]], dtype=np.float32), k=2)
    (array([[1, 0]], dtype=int32), array([[0.8, 0.6]], dtype=float32))
    """

    kind: ClassVar[Kind] = "exact"

    def __init__(self, vectors: NDArray[Any]) -> None:
        self.vectors = np.ascontiguousarray(vectors)

    def search(self, queries: NDArray[np.float32], k: int) -> Neighbors:
        """Return the row ids of the k nearest vectors per query, nearest first, and their cosines."""
        k, n = min(k, len(self.vectors)), len(queries)
        row_ids, products = np.empty((n, k), dtype=np.int32), np.empty((n, k), dtype=np.float32)
        if k == 0 or n == 0:
            return row_ids, products
        queries, bits = np.ascontiguousarray(queries, dtype=np.float32), as_bits(self.vectors)
        query_chunks = parallel.fixed_chunks(n, _QUERIES)
        # Threads share the vectors if there are too few queries to share. Keys have one order: the split does not show.
        parts = -(-parallel.thread_count() // len(query_chunks))
        vector_chunks = parallel.ranges(len(bits), max(1, min(parts, len(bits) // _VECTORS)))

        def find(task: tuple[tuple[int, int], tuple[int, int]]) -> NDArray[np.uint64]:
            (first, last), vector_range = task
            top = TopK.empty(last - first, min(k, vector_range[1] - vector_range[0]))
            dot.search(*vector_range, queries[first:last], bits, top.k, top.keys, top.counts, top.bounds)
            keys = top.best()
            return np.sort(keys, axis=1)

        tasks = [(queries_, vectors) for queries_ in query_chunks for vectors in vector_chunks]
        found = parallel.run(find, tasks)
        for i, (first, last) in enumerate(query_chunks):
            keys = found[i * len(vector_chunks) : (i + 1) * len(vector_chunks)]
            merged = keys[0] if len(keys) == 1 else np.sort(np.concatenate(keys, axis=1), axis=1)[:, :k]
            row_ids[first:last], products[first:last] = unpack(merged)
        return row_ids, products

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store in addition to the vectors: none."""
        return {}


def cosines(vectors: NDArray[Any], queries: NDArray[np.float32], rows: NDArray[Any]) -> NDArray[np.float32]:
    """Return the cosines of each query and the vectors of its row ids, the same bits as a search gives.

    Parameters
    ----------
    rows
        Row ids, one row per query; -1 for none, whose cosine is given as -1.

    Examples
    --------
    >>> cosines(np.eye(2, dtype=np.float32), np.array([[0.6, 0.8]], dtype=np.float32), np.array([[1, -1]]))
    array([[ 0.8, -1. ]], dtype=float32)
    """
    queries, bits = np.ascontiguousarray(queries, dtype=np.float32), as_bits(np.ascontiguousarray(vectors))
    out = np.empty(rows.shape, dtype=np.float32)
    if len(rows) == 1:
        # One query: threads share its rows.
        def fill(first: int, last: int) -> None:
            dot.row_products(0, 1, queries, bits, rows[:, first:last], out[:, first:last])

        parallel.over(fill, rows.shape[1])
    else:
        parallel.over(lambda first, last: dot.row_products(first, last, queries, bits, rows, out), len(rows))
    return out
