"""Search among some of the vectors of an index."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.index.base import Index, Neighbors
from lightdxml.index.exact import ExactIndex


def search_some(index: Index, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_]) -> Neighbors:
    """Return the k nearest vectors per query that are allowed, as `Index.search` does; fewer columns if there are few.

    A query gets the same answer alone as among others.

    Examples
    --------
    >>> index = ExactIndex(np.eye(3, dtype=np.float32))
    >>> query = np.array([[0.6, 0.8, 0]], dtype=np.float32)
    >>> search_some(index, query, 1, np.array([True, False, True]))[0].tolist()
    [[0]]
    """
    rows = np.flatnonzero(allowed).astype(np.int32)
    k = min(k, len(rows))
    if k == 0:
        return np.empty((len(queries), 0), dtype=np.int32), np.empty((len(queries), 0), dtype=np.float32)
    # Where few vectors are left out, or they are far away, twice as many neighbors hold enough that are allowed.
    found, cosines = index.search(queries, k + min(k, len(allowed) - len(rows)))
    order = np.argsort(~allowed[found], axis=1, kind="stable")[:, :k]
    found, cosines = np.take_along_axis(found, order, axis=1), np.take_along_axis(cosines, order, axis=1)
    short = np.flatnonzero(~allowed[found[:, -1]])
    if len(short):
        some, cosines[short] = ExactIndex(index.vectors[rows]).search(queries[short], k)
        found[short] = rows[some]
    return found, cosines
