"""An inverted file: vectors in clusters, of which a search looks into those whose centres are nearest.

It holds no vectors of its own but the centres: the caller's, in the caller's order, are handed to each search. Where
the processor is faster with bytes, a copy of them in bytes is made at the first one (`comparison`). How clusters are
found is in `k_means`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lightdxml.comparison import Best, Coded, nearest_of, places_of, way
from lightdxml.kernels import clusters as kernels
from lightdxml.kernels import parallel
from lightdxml.kernels.precision import dequantize

CHUNK, _BLOCK = 2048, 4096
# How near clusters are is counted in so many steps.
_STEPS = 1024
# So many centres are compared with one query at a time.
_CENTRES_AT_ONCE = 2048
_FEW, _SAMPLE_QUERIES = 128, 256

_lock = threading.Lock()
_within: list[Any] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread: our own share the work out.

    The limit is the whole process's. Where several threads are within at once the first one in sets it and the last one
    out lifts it; else one could restore what another one had set.
    """
    with _lock:
        _within.append(_within[0] if _within else threadpool_limits(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            limits = _within.pop()
            if not _within:
                limits.restore_original_limits()


@dataclass(frozen=True)
class InvertedFile:
    """Which vector is in which cluster.

    Attributes
    ----------
    centres
        A direction of length 1 for each cluster: where it lies as seen from the mean of all vectors.
    cluster_of
        The cluster of each vector.
    probes
        Into how many clusters a search looks.
    places, pointers
        The places of the vectors of cluster c, ascending: places[pointers[c] : pointers[c + 1]].
    coded, coded_centres
        Vectors and centres as bytes, once they were searched, where the processor is faster with those.
    """

    centres: NDArray[np.float32]
    cluster_of: NDArray[np.int32]
    probes: int
    places: NDArray[np.int32]
    pointers: NDArray[np.int64]
    coded: Coded = field(default_factory=Coded, compare=False, repr=False)
    coded_centres: Coded = field(default_factory=Coded, compare=False, repr=False)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many vectors each cluster has."""
        return np.diff(self.pointers)


def restore(centres: NDArray[np.float32], cluster_of: NDArray[np.int32], probes: int) -> InvertedFile:
    """Return the inverted file of vectors that were put into clusters before; a `ValueError` where it can be none."""
    n = len(centres)
    if n == 0 or not len(cluster_of) or cluster_of.min() < 0 or cluster_of.max() >= n:
        raise ValueError("its index has labels in clusters that are not there")
    if not 1 <= probes <= n:
        raise ValueError(f"its index looks into {probes} of {n} clusters")
    pointers = np.concatenate([[0], np.cumsum(np.bincount(cluster_of, minlength=n))])
    places = np.argsort(cluster_of, kind="stable").astype(np.int32)
    return InvertedFile(centres, cluster_of, probes, places, pointers)


def with_recall(
    index: InvertedFile, vectors: NDArray[Any], queries: NDArray[np.float32], k: int, recall: float
) -> InvertedFile:
    """Return the same clusters, of which a search looks into as many as it takes to find that share."""
    return replace(index, probes=probes_for(index, vectors, queries, min(k, len(vectors)), recall))


def probes_for(whole: InvertedFile, vectors: NDArray[Any], queries: NDArray[np.float32], k: int, recall: float) -> int:
    """Return into how many clusters queries must look to find that share of what is nearest to them."""
    nearest = search_all(vectors, queries, k)
    order = np.argsort(-_nearness(whole, queries), axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(order.shape[1])[None], axis=1)
    needed = np.sort(np.take_along_axis(ranks, whole.cluster_of[nearest], axis=1), axis=None)
    return int(needed[math.ceil(recall * needed.size) - 1]) + 1


def share_of_work(index: InvertedFile, queries: NDArray[np.float32]) -> float:
    """Return which share of all vectors a search for such queries looks at."""
    nearness = _nearness(index, queries)
    seen = kernels.vectors_seen(nearness, _least(index, nearness, 1), index.sizes)
    return float(seen.mean() / len(index.cluster_of))


def probes_within(index: InvertedFile, queries: NDArray[np.float32], share: float) -> int:
    """Return into how many clusters, at least one, a search may look to see at most that share of all vectors."""
    order = np.argsort(-_nearness(index, queries), axis=1, kind="stable")
    seen = np.cumsum(index.sizes[order], axis=1).mean(axis=0)
    return max(1, int(np.searchsorted(seen, share * len(index.cluster_of), side="right")))


def _nearness(index: InvertedFile, queries: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how near each cluster is to each query."""
    out = np.empty((len(queries), len(index.centres)), dtype=np.float32)
    way().centres(index)(queries, (0, len(index.centres)), out)
    return out


def _least(index: InvertedFile, nearness: NDArray[np.float32], k: int) -> NDArray[np.float32]:
    """Return how near a cluster must be to be looked into for each query: so many are, with k vectors in all."""
    n, probes = nearness.shape[1], index.probes
    steps = np.empty(_STEPS, dtype=np.int64)
    least = kernels.nearest_clusters(nearness, probes, steps)
    while len(short := np.flatnonzero(kernels.vectors_seen(nearness, least, index.sizes) < k)):
        probes = min(2 * probes, n)
        # All of them in the end, also where what is no number is near to nothing.
        least[short] = -np.inf if probes == n else kernels.nearest_clusters(nearness[short], probes, steps)
    return least


def search(
    index: InvertedFile, vectors: NDArray[Any], queries: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the places of the k vectors nearest to each query (rows of length 1), nearest first, and their products.

    Parameters
    ----------
    index, vectors
        An inverted file and the vectors that it was built of, at least k of them.
    """
    places, products = np.empty((len(queries), k), dtype=np.int32), np.empty((len(queries), k), dtype=np.float32)
    compare, look_into = way().centres(index), way().vectors(index, vectors)
    more, n_clusters = way().reserve(k, len(vectors)), len(index.centres)

    def look(bounds: tuple[int, int]) -> None:
        part = queries[slice(*bounds)]
        nearness = np.empty((len(part), n_clusters), dtype=np.float32)
        compare(part, (0, n_clusters), nearness)
        rows, ends = kernels.by_cluster(nearness, _least(index, nearness, more))
        best = Best.start(len(part), more)
        look_into(part, rows, ends, (0, n_clusters), best)
        places[slice(*bounds)], products[slice(*bounds)] = nearest_of(vectors, part, places_of(best.keys()), k)

    parallel.run(look, parallel.fixed_chunks(len(queries), CHUNK))
    return places, products


def search_one(
    index: InvertedFile, vectors: NDArray[Any], query: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return what `search` returns for one query: its clusters are shared out among threads."""
    nearness = np.empty((1, len(index.centres)), dtype=np.float32)
    parts = parallel.fixed_chunks(len(index.centres), _CENTRES_AT_ONCE)
    compare, look_into = way().centres(index), way().vectors(index, vectors)
    parallel.run(lambda bounds: compare(query[None], bounds, nearness), parts)
    more = way().reserve(k, len(vectors))
    rows, ends = kernels.by_cluster(nearness, _least(index, nearness, more))

    def look(bounds: tuple[int, int]) -> NDArray[np.uint64]:
        best = Best.start(1, more)
        look_into(query[None], rows, ends, bounds, best)
        return best.keys()[0, : best.counts[0]]

    keys = np.sort(np.concatenate(parallel.run(look, parts)))[None, :more]
    return nearest_of(vectors, query[None], places_of(keys), k)


def search_all(vectors: NDArray[Any], queries: NDArray[np.float32], k: int) -> NDArray[np.int32]:
    """Return what `search` would if it looked into all clusters, without any: for few queries."""
    found = np.empty((len(queries), k), dtype=np.int32)

    def look(bounds: tuple[int, int]) -> None:
        part = queries[slice(*bounds)]
        best, rows = Best.start(len(part), k), np.arange(len(part))
        for first, last in parallel.fixed_chunks(len(vectors), _BLOCK):
            best.keep(part @ dequantize(vectors[first:last]).T, rows, np.arange(first, last, dtype=np.int32))
        found[slice(*bounds)] = places_of(np.sort(best.keys(), axis=1))

    with one_blas_thread():
        parallel.run(look, parallel.fixed_chunks(len(queries), _FEW))
    return found


def sample_of(queries: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return some queries by which to see how far a search must look."""
    return np.ascontiguousarray(queries[:: max(1, len(queries) // _SAMPLE_QUERIES)][:_SAMPLE_QUERIES])
