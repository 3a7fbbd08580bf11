"""An inverted file: vectors in clusters, of which a search looks into those whose centres are nearest.

It holds no vectors of its own but the centres: the caller's, in the caller's order, are handed to each search.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lightdxml.kernels import clusters as kernels
from lightdxml.kernels import parallel
from lightdxml.kernels.half import readable, wide, width

# Clusters for the square root of the number of vectors; more cost more to find, fewer are larger than need be.
_CLUSTERS = 4.0
# So many vectors a centre, and so many rounds, move it to about where all vectors and more rounds would.
SAMPLE, _ROUNDS = 32, 5
_SEED = 0
_CHUNK, _BLOCK = 1024, 4096
_FEW, _SAMPLE_QUERIES = 128, 256


_lock = threading.Lock()
_within: list[Any] = []


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread: our own share the work out.

    The limit is the whole process's. Where several threads search at once the first one in sets it and the last one out
    lifts it; else one could restore what another one had set.
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
        A direction of length 1 for each cluster.
    cluster_of
        The cluster of each vector.
    probes
        Into how many clusters a search looks.
    places, pointers
        The places of the vectors of cluster c, ascending: places[pointers[c] : pointers[c + 1]].
    """

    centres: NDArray[np.float32]
    cluster_of: NDArray[np.int32]
    probes: int
    places: NDArray[np.int32]
    pointers: NDArray[np.int64]

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


def build(
    vectors: NDArray[Any], k: int, queries: NDArray[np.float32] | None = None, recall: float = 0.95
) -> InvertedFile:
    """Put vectors (of length 1) into clusters, and find into how many of them a search must look.

    Parameters
    ----------
    vectors
        float32, float16, or int8 as `half.narrowed` makes it.
    k, recall
        The share of the k nearest vectors that a search is to find.
    queries
        Such rows as will be searched for, of length 1; None for some of the vectors themselves.

    Examples
    --------
    >>> vectors = np.eye(3, dtype=np.float32)
    >>> search(build(vectors, k=1), vectors, vectors[1:], k=1).tolist()
    [[1], [2]]
    """
    n = len(vectors)
    rng = np.random.default_rng(_SEED)
    with _one_blas_thread():
        centres = _centres(vectors, cluster_count(n), rng)
        whole = restore(centres, _assign(vectors, centres), len(centres))
        if queries is None:
            queries = _rows(vectors, np.sort(rng.permutation(n)[:_SAMPLE_QUERIES]))
        return restore(centres, whole.cluster_of, _probes(whole, vectors, queries, min(k, n), recall))


def with_recall(
    index: InvertedFile, vectors: NDArray[Any], queries: NDArray[np.float32], k: int, recall: float
) -> InvertedFile:
    """Return the same clusters, of which a search looks into as many as it takes to find that share."""
    with _one_blas_thread():
        return replace(index, probes=_probes(index, vectors, queries, min(k, len(vectors)), recall))


def cluster_count(n: int) -> int:
    """Return into how many clusters so many vectors are put.

    >>> cluster_count(1), cluster_count(100_000)
    (1, 1264)
    """
    return max(1, min(n // 8, int(_CLUSTERS * math.sqrt(n))))


def _rows(vectors: NDArray[Any], places: NDArray[Any]) -> NDArray[np.float32]:
    out = np.empty((len(places), width(vectors)), dtype=np.float32)
    kernels.widen_rows(readable(vectors), places.astype(np.int32), out)
    return out


def _centres(vectors: NDArray[Any], n: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return the centres that a few rounds of spherical k-means find on a sample."""
    order = rng.permutation(len(vectors))
    centres = _rows(vectors, np.sort(order[:n]))
    sample = _rows(vectors, np.sort(order[: n * SAMPLE]))
    for _ in range(_ROUNDS):
        sums = np.zeros_like(centres)
        kernels.sum_rows(sample, _assign(sample, centres), sums)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        # One that has lost all its vectors stays where it is.
        centres = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1), centres)
    return centres


def _assign(vectors: NDArray[Any], centres: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return the nearest centre of each vector."""
    nearest = np.empty(len(vectors), dtype=np.int32)

    def look(bounds: tuple[int, int]) -> None:
        nearest[slice(*bounds)] = (wide(vectors[slice(*bounds)]) @ centres.T).argmax(axis=1)

    parallel.run(look, parallel.fixed_chunks(len(vectors), _CHUNK))
    return nearest


def _probes(whole: InvertedFile, vectors: NDArray[Any], queries: NDArray[np.float32], k: int, recall: float) -> int:
    """Return into how many clusters queries must look to find that share of what is nearest to them."""
    nearest = search_all(vectors, queries, k)
    order = np.argsort(-_nearness(whole, queries), axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(order.shape[1])[None], axis=1)
    needed = np.sort(np.take_along_axis(ranks, whole.cluster_of[nearest], axis=1), axis=None)
    return int(needed[math.ceil(recall * needed.size) - 1]) + 1


def share_of_work(index: InvertedFile, queries: NDArray[np.float32]) -> float:
    """Return which share of all vectors a search for such queries looks at."""
    chosen = _chosen(index, queries, 1)
    return float((chosen @ index.sizes.astype(np.float32)).mean() / len(index.cluster_of))


def _nearness(index: InvertedFile, queries: NDArray[np.float32]) -> NDArray[np.float32]:
    out = np.empty((len(queries), len(index.centres)), dtype=np.float32)
    kernels.products(0, len(queries), queries, index.centres, out)
    return out


def _chosen(index: InvertedFile, queries: NDArray[np.float32], k: int) -> NDArray[np.bool_]:
    """Return which clusters each query is to be looked for in: the nearest, all of equals, with at least k vectors."""
    nearness = _nearness(index, queries)
    n, probes = nearness.shape[1], index.probes
    chosen = nearness >= np.partition(nearness, n - probes, axis=1)[:, n - probes, None]
    sizes = index.sizes.astype(np.float64)
    while len(short := np.flatnonzero(chosen @ sizes < k)):
        probes = min(2 * probes, n)
        few = nearness[short]
        # All of them in the end, also where what is no number is near to nothing.
        chosen[short] = (few >= np.partition(few, n - probes, axis=1)[:, n - probes, None]) | (probes == n)
    return chosen


def search(index: InvertedFile, vectors: NDArray[Any], queries: NDArray[np.float32], k: int) -> NDArray[np.int32]:
    """Return the places of the k vectors nearest to each query (rows of length 1), nearest first.

    Parameters
    ----------
    index, vectors
        An inverted file and the vectors that it was built of, at least k of them.
    """
    found = np.empty((len(queries), k), dtype=np.int32)

    def look(bounds: tuple[int, int]) -> None:
        part = queries[slice(*bounds)]
        found[slice(*bounds)] = _search_chosen(index, vectors, part, _chosen(index, part, k), k)

    with _one_blas_thread():
        parallel.run(look, parallel.fixed_chunks(len(queries), _CHUNK))
    return found


def _search_chosen(
    index: InvertedFile, vectors: NDArray[Any], queries: NDArray[np.float32], chosen: NDArray[np.bool_], k: int
) -> NDArray[np.int32]:
    """Search one chunk cluster by cluster, so that each one's vectors meet all their queries in one product."""
    best = _Best.start(len(queries), k)
    clusters, rows = np.nonzero(chosen.T)
    ends = np.searchsorted(clusters, np.arange(len(index.centres) + 1))
    bits = readable(vectors)
    room = np.empty((int(index.sizes.max()), width(vectors)), dtype=np.float32)
    for cluster in np.flatnonzero((np.diff(ends) > 0) & (index.sizes > 0)):
        places = index.places[index.pointers[cluster] : index.pointers[cluster + 1]]
        those = rows[ends[cluster] : ends[cluster + 1]]
        block = room[: len(places)]
        kernels.widen_rows(bits, places, block)
        kernels.keep_best(queries[those] @ block.T, those, places, best.found, best.scores, best.counts)
    return best.in_order()


def search_all(vectors: NDArray[Any], queries: NDArray[np.float32], k: int) -> NDArray[np.int32]:
    """Return what `search` would if it looked into all clusters, without any: for few queries."""
    found = np.empty((len(queries), k), dtype=np.int32)

    def look(bounds: tuple[int, int]) -> None:
        part = queries[slice(*bounds)]
        best, rows = _Best.start(len(part), k), np.arange(len(part))
        for first, last in parallel.fixed_chunks(len(vectors), _BLOCK):
            block = part @ wide(vectors[first:last]).T
            places = np.arange(first, last, dtype=np.int32)
            kernels.keep_best(block, rows, places, best.found, best.scores, best.counts)
        found[slice(*bounds)] = best.in_order()

    with _one_blas_thread():
        parallel.run(look, parallel.fixed_chunks(len(queries), _FEW))
    return found


def places_near(index: InvertedFile, query: NDArray[np.float32], k: int) -> NDArray[np.int32]:
    """Return the places, ascending, of the vectors that a search for k would look at."""
    return np.flatnonzero(_chosen(index, query[None], k)[0][index.cluster_of]).astype(np.int32)


def sample_of(queries: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return some queries by which to see into how many clusters a search must look."""
    return np.ascontiguousarray(queries[:: max(1, len(queries) // _SAMPLE_QUERIES)][:_SAMPLE_QUERIES])


@dataclass(frozen=True)
class _Best:
    """The best that was found so far, as heaps."""

    found: NDArray[np.int32]
    scores: NDArray[np.float32]
    counts: NDArray[np.int64]

    @staticmethod
    def start(n: int, k: int) -> _Best:
        return _Best(np.empty((n, k), np.int32), np.empty((n, k), np.float32), np.zeros(n, np.int64))

    def in_order(self) -> NDArray[np.int32]:
        """Return what was found, nearest first, of equals the first."""
        ordered: NDArray[np.int32] = np.take_along_axis(self.found, np.lexsort((self.found, -self.scores)), axis=1)
        return ordered
