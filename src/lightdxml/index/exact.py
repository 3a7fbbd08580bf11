"""Exact search: every query is compared with every vector."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lightdxml.index.base import Kind, Neighbors
from lightdxml.kernels import dot, parallel
from lightdxml.kernels.precision import as_bits, dequantize, row_width
from lightdxml.kernels.topk import TopK, best_keys, unpack

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
        queries, bits = kernel_rows(queries, self.vectors)
        chunks = parallel.fixed_chunks(n, _QUERIES)
        # Threads share the vectors if there are too few queries to share. The split does not show: keys have one order.
        parts = min(parallel.parts_per_item(len(chunks)), -(-len(bits) // _VECTORS))
        ranges = parallel.ranges(len(bits), parts)

        def find(chunk: tuple[int, int]) -> None:
            some = queries[slice(*chunk)]

            def scan(rows: tuple[int, int]) -> NDArray[np.uint64]:
                top = TopK.empty(len(some), k)
                dot.search(*rows, some, bits, top)
                return top.best()

            row_ids[slice(*chunk)], products[slice(*chunk)] = unpack(best_keys(parallel.run(scan, ranges), k))

        parallel.run(find, chunks)
        return row_ids, products

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store in addition to the vectors: none."""
        return {}


def kernel_rows(queries: NDArray[np.float32], vectors: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Return queries and vectors as `kernels.dot` takes them: padded with zeros if they have few dimensions."""
    queries, missing = np.ascontiguousarray(queries, dtype=np.float32), dot.MIN_DIM - row_width(vectors)
    if missing <= 0:
        return queries, as_bits(vectors)
    padding = ((0, 0), (0, missing))
    return np.pad(queries, padding), np.pad(dequantize(vectors), padding)


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
    queries, bits = kernel_rows(queries, np.ascontiguousarray(vectors))
    out = np.empty(rows.shape, dtype=np.float32)

    def fill(some: slice, columns: slice) -> None:
        dot.row_products(0, len(rows[some]), queries[some], bits, rows[some, columns], out[some, columns])

    parallel.over_cells(fill, rows.shape)
    return out
