"""An inverted file: vectors in clusters, of which a search looks into those whose centres are nearest.

It holds no vectors of its own but the centres: the caller's, in the caller's order, are handed to each search. Where
the processor is faster with bytes, a copy of them in bytes is made at the first one.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lightdxml.encoder import to_unit_rows
from lightdxml.kernels import clusters as kernels
from lightdxml.kernels import codes, ova, parallel
from lightdxml.kernels.half import readable, wide, width

# Clusters for the square root of the number of vectors; more cost more to find, fewer are larger than need be.
_CLUSTERS = 16.0
# So many vectors a centre, and so many rounds, move it to about where all vectors and more rounds would.
SAMPLE, _ROUNDS = 16, 5
# More centres than these are found in groups, for the square root of their number; then one looks into so many groups.
_FEW_CENTRES, _GROUPS, _SAMPLE_OF_GROUP, _GROUPS_LOOKED_INTO = 512, 2.0, 64, 16
# Rounds in which they are moved among all groups.
_ROUNDS_OF_ALL = 4
_SEED = 0
CHUNK, _BLOCK, _ASSIGNED = 2048, 4096, 1 << 16
# So many vectors of a cluster, of a few hundred numbers each, are widened at a time: they stay close at hand.
_BLOCK_OF_CLUSTER = 256
# How near clusters are is counted in so many steps.
_STEPS = 1024
# One vector in so many, and as many besides, are found more than are asked for where they are found in bytes.
_RESERVE = 8
# So many centres are compared with one query at a time.
_CENTRES_AT_ONCE = 2048
_FEW, _SAMPLE_QUERIES = 128, 256
# Room for so many times as many vectors as are to be found: when it is full, the best are told from the others.
ROOM = 2


_lock = threading.Lock()
_within: list[Any] = []


@contextmanager
def _one_blas_thread() -> Iterator[None]:
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
class _Codes:
    """Vectors as bytes, cluster by cluster (`kernels.codes`)."""

    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    shifts: NDArray[np.int32]


class _Coded:
    """Vectors as bytes, made when they are first searched.

    Threads that come first at once may make them each; all but one are dropped.
    """

    def __init__(self) -> None:
        self._made: tuple[NDArray[Any], _Codes] | None = None

    def __reduce__(self) -> Any:
        return _Coded, ()

    def ready(self, vectors: NDArray[Any], places: NDArray[np.int32]) -> _Codes:
        """Return the codes of these vectors in the order of places; made anew for other vectors than the last time."""
        known = self._made
        if known is None or known[0] is not vectors:
            n, D = len(vectors), width(vectors)
            rows = n + codes.SPARE
            made = _Codes(
                np.zeros((rows, codes.padded(D)), dtype=np.int8), np.zeros(rows, dtype=np.float32),
                np.zeros(rows, dtype=np.int32),
            )  # fmt: skip
            bits = readable(vectors)

            def encode(first: int, last: int) -> None:
                codes.encode(first, last, bits, places, D, made.codes, made.scales, made.shifts)

            parallel.over(encode, n)
            known = self._made = (vectors, made)
        return known[1]


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
    coded: _Coded = field(default_factory=_Coded, compare=False, repr=False)
    coded_centres: _Coded = field(default_factory=_Coded, compare=False, repr=False)

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
        The share of the k nearest vectors that are in the clusters that a search looks into. In bytes it may miss one
        that is there; of 16,640 in a trial it found as many as in float32.
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
        mean = _mean(vectors)
        centres, groups = _centres(vectors, mean, cluster_count(n), rng)
        whole = restore(centres, _assign(vectors, mean, centres, groups), len(centres))
        if queries is None:
            queries = _rows(vectors, np.sort(rng.permutation(n)[:_SAMPLE_QUERIES]))
        return replace(whole, probes=_probes(whole, vectors, queries, min(k, n), recall))


def with_recall(
    index: InvertedFile, vectors: NDArray[Any], queries: NDArray[np.float32], k: int, recall: float
) -> InvertedFile:
    """Return the same clusters, of which a search looks into as many as it takes to find that share."""
    return replace(index, probes=_probes(index, vectors, queries, min(k, len(vectors)), recall))


def cluster_count(n: int) -> int:
    """Return into about how many clusters so many vectors are put.

    >>> cluster_count(1), cluster_count(100_000)
    (1, 5059)
    """
    return max(1, min(n // 8, int(_CLUSTERS * math.sqrt(n))))


def _rows(vectors: NDArray[Any], places: NDArray[Any]) -> NDArray[np.float32]:
    out = np.empty((len(places), width(vectors)), dtype=np.float32)
    kernels.widen_rows(readable(vectors), places.astype(np.int32), out)
    return out


def _mean(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Return the mean of all vectors.

    They are clustered as seen from there: what all have in common adds the same to each one's product with a query, but
    draws most of them to the few centres that have most of it. (With one that is no number there are no clusters, and
    all are looked into.)
    """
    sums = [
        wide(vectors[first:last]).sum(axis=0, dtype=np.float64)
        for first, last in parallel.fixed_chunks(len(vectors), _BLOCK)
    ]
    mean: NDArray[np.float32] = (np.sum(sums, axis=0) / len(vectors)).astype(np.float32)
    return mean


def _centres(
    vectors: NDArray[Any], mean: NDArray[np.float32], n: int, rng: np.random.Generator
) -> tuple[NDArray[np.float32], InvertedFile]:
    """Return the centres that spherical k-means finds on a sample, and an inverted file of them.

    Centres are found in groups, as many in each as it has of the sample, and moved a few times more among all of them.
    """
    sample = _rows(vectors, np.sort(rng.permutation(len(vectors))[: n * SAMPLE])) - mean
    to_unit_rows(sample)
    n_groups = round(_GROUPS * math.sqrt(n)) if n > _FEW_CENTRES else 1
    middles = _k_means(sample[rng.permutation(len(sample))[: n_groups * _SAMPLE_OF_GROUP]], n_groups, rng)
    group_of = _nearest(sample, middles)
    sizes = np.bincount(group_of, minlength=n_groups)
    seeds = rng.spawn(n_groups)

    def divide(group: int) -> NDArray[np.float32]:
        return _k_means(sample[group_of == group], math.ceil(n * sizes[group] / len(sample)), seeds[group])

    parts = parallel.run(divide, range(n_groups))
    centres = np.concatenate(parts)
    owner = np.repeat(np.arange(n_groups, dtype=np.int32), [len(part) for part in parts])
    groups = restore(middles, owner, min(_GROUPS_LOOKED_INTO, n_groups))
    for _ in range(_ROUNDS_OF_ALL if n_groups > 1 else 0):
        centres = _moved(sample, search(groups, centres, sample, 1)[:, 0], centres)
    return centres, groups


def _k_means(rows: NDArray[np.float32], n: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return the centres of n clusters of rows (or of as many as there are rows) after a few rounds, on one thread."""
    centres = rows[np.sort(rng.permutation(len(rows))[:n])]
    for _ in range(_ROUNDS if len(rows) else 0):
        centres = _moved(rows, _nearest(rows, centres), centres)
    return centres


def _nearest(rows: NDArray[np.float32], centres: NDArray[np.float32]) -> NDArray[np.int32]:
    parts = [(rows[slice(*bounds)] @ centres.T).argmax(axis=1) for bounds in parallel.fixed_chunks(len(rows), CHUNK)]
    return np.concatenate(parts).astype(np.int32)


def _moved(
    rows: NDArray[np.float32], cluster_of: NDArray[np.int32], centres: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the direction of each cluster's rows; a centre that has lost all of them stays where it is."""
    sums = np.zeros_like(centres)
    kernels.sum_rows(rows, cluster_of, sums)
    to_unit_rows(sums)
    moved: NDArray[np.float32] = np.where(sums.any(axis=1, keepdims=True), sums, centres)
    return moved


def _assign(
    vectors: NDArray[Any], mean: NDArray[np.float32], centres: NDArray[np.float32], groups: InvertedFile
) -> NDArray[np.int32]:
    """Return the nearest centre of each vector as seen from the mean, of those in the groups that are nearest."""
    parts = [
        search(groups, centres, wide(vectors[first:last]) - mean, 1)[:, 0]
        for first, last in parallel.fixed_chunks(len(vectors), _ASSIGNED)
    ]
    return np.concatenate(parts)


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
    _comparison(index)(queries, (0, len(index.centres)), out)
    return out


def _comparison(index: InvertedFile) -> Callable[[NDArray[np.float32], tuple[int, int], NDArray[np.float32]], None]:
    """Return what fills columns of clusters with how near they are to queries. It is not for threads to ask for it."""
    if codes.AVAILABLE:
        coded = index.coded_centres.ready(index.centres, np.arange(len(index.centres), dtype=np.int32))
        return lambda queries, bounds, out: codes.products(
            *bounds, _codes_of(queries, coded), coded.codes, coded.scales, coded.shifts, _room(), out
        )
    return lambda queries, bounds, out: kernels.products(
        0, len(queries), queries, index.centres[slice(*bounds)], out[:, slice(*bounds)]
    )


def _room() -> NDArray[np.float32]:
    return np.empty((4, _BLOCK_OF_CLUSTER), dtype=np.float32)


def _codes_of(queries: NDArray[np.float32], coded: _Codes) -> NDArray[np.uint8]:
    """Return queries as bytes, in rows as long as these."""
    those = np.zeros((len(queries), coded.codes.shape[1]), dtype=np.uint8)
    codes.encode_documents(queries, those)
    return those


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


def search(index: InvertedFile, vectors: NDArray[Any], queries: NDArray[np.float32], k: int) -> NDArray[np.int32]:
    """Return the places of the k vectors nearest to each query (rows of length 1), nearest first.

    Parameters
    ----------
    index, vectors
        An inverted file and the vectors that it was built of, at least k of them.
    """
    found = np.empty((len(queries), k), dtype=np.int32)
    looked_into = _coded_clusters(index, vectors) if codes.AVAILABLE else _wide_clusters(index, vectors)
    more, compare, n_clusters = with_reserve(k, len(vectors)), _comparison(index), len(index.centres)

    def look(bounds: tuple[int, int]) -> None:
        part = queries[slice(*bounds)]
        nearness = np.empty((len(part), n_clusters), dtype=np.float32)
        compare(part, (0, n_clusters), nearness)
        rows, ends = kernels.by_cluster(nearness, _least(index, nearness, more))
        best = Best.start(len(part), more)
        looked_into(part, rows, ends, (0, n_clusters), best)
        found[slice(*bounds)] = _nearest_of(vectors, part, best.keys(), k)

    parallel.run(look, parallel.fixed_chunks(len(queries), CHUNK))
    return found


def search_one(index: InvertedFile, vectors: NDArray[Any], query: NDArray[np.float32], k: int) -> NDArray[np.int32]:
    """Return what `search` returns for one query: its clusters are shared out among threads."""
    nearness = np.empty((1, len(index.centres)), dtype=np.float32)
    parts = parallel.fixed_chunks(len(index.centres), _CENTRES_AT_ONCE)

    compare = _comparison(index)
    parallel.run(lambda bounds: compare(query[None], bounds, nearness), parts)
    more = with_reserve(k, len(vectors))
    rows, ends = kernels.by_cluster(nearness, _least(index, nearness, more))
    looked_into = _coded_clusters(index, vectors) if codes.AVAILABLE else _wide_clusters(index, vectors)

    def look(bounds: tuple[int, int]) -> NDArray[np.uint64]:
        best = Best.start(1, more)
        looked_into(query[None], rows, ends, bounds, best)
        return best.keys()[0, : best.counts[0]]

    keys = np.sort(np.concatenate(parallel.run(look, parts)))[None, :more]
    found: NDArray[np.int32] = _nearest_of(vectors, query[None], keys, k)[0]
    return found


def with_reserve(k: int, n: int) -> int:
    """Return how many of n vectors are found in bytes for k to be chosen from: rounding swaps some that are as near."""
    return min(n, k + k // _RESERVE + _RESERVE) if codes.AVAILABLE else k


def _nearest_of(
    vectors: NDArray[Any], queries: NDArray[np.float32], keys: NDArray[np.uint64], k: int
) -> NDArray[np.int32]:
    """Return the places of the k nearest of what was found, nearest first, by products as exact as the vectors."""
    if codes.AVAILABLE:
        places = places_of(keys)
        products = np.empty(places.shape, dtype=np.float32)
        ova.cosines(0, len(queries), queries, readable(vectors), places.astype(np.int64), products)
        keys = np.empty(places.shape, dtype=np.uint64)
        kernels.keys_of(products, products.view(np.uint32), places, keys)
    return places_of(np.sort(keys, axis=1)[:, :k])


_LookInto = Callable[[NDArray[np.float32], NDArray[np.int32], NDArray[np.int64], tuple[int, int], "Best"], None]


def _wide_clusters(index: InvertedFile, vectors: NDArray[Any]) -> _LookInto:
    """Return how queries are looked for in a range of clusters, in float32."""
    bits = readable(vectors)

    def look_into(
        queries: NDArray[np.float32],
        rows: NDArray[np.int32],
        ends: NDArray[np.int64],
        clusters: tuple[int, int],
        best: Best,
    ) -> None:
        block = np.empty((min(_BLOCK_OF_CLUSTER, int(index.sizes.max())), queries.shape[1]), dtype=np.float32)
        near = np.empty((4, len(block)), dtype=np.float32)
        kernels.search(
            *clusters, queries, rows, ends, bits, index.places, index.pointers, best.k, block, near,
            near.view(np.uint32), best.found, best.counts, best.bounds,
        )  # fmt: skip

    return look_into


def _coded_clusters(index: InvertedFile, vectors: NDArray[Any]) -> _LookInto:
    """Return how queries are looked for in a range of clusters, in bytes."""
    coded = index.coded.ready(vectors, index.places)

    def look_into(
        queries: NDArray[np.float32],
        rows: NDArray[np.int32],
        ends: NDArray[np.int64],
        clusters: tuple[int, int],
        best: Best,
    ) -> None:
        those = _codes_of(queries, coded)
        near = _room()
        codes.search(
            *clusters, those, rows, ends, coded.codes, coded.scales, coded.shifts, index.places, index.pointers, best.k,
            near, near.view(np.uint32), best.found, best.counts, best.bounds,
        )  # fmt: skip

    return look_into


def search_all(vectors: NDArray[Any], queries: NDArray[np.float32], k: int) -> NDArray[np.int32]:
    """Return what `search` would if it looked into all clusters, without any: for few queries."""
    found = np.empty((len(queries), k), dtype=np.int32)

    def look(bounds: tuple[int, int]) -> None:
        part = queries[slice(*bounds)]
        best, rows = Best.start(len(part), k), np.arange(len(part))
        for first, last in parallel.fixed_chunks(len(vectors), _BLOCK):
            best.keep(part @ wide(vectors[first:last]).T, rows, np.arange(first, last, dtype=np.int32))
        found[slice(*bounds)] = places_of(np.sort(best.keys(), axis=1))

    with _one_blas_thread():
        parallel.run(look, parallel.fixed_chunks(len(queries), _FEW))
    return found


def sample_of(queries: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return some queries by which to see into how many clusters a search must look."""
    return np.ascontiguousarray(queries[:: max(1, len(queries) // _SAMPLE_QUERIES)][:_SAMPLE_QUERIES])


@dataclass(frozen=True)
class Best:
    """What may be among the best k of each query, of what was seen so far, as keys (`kernels.clusters`)."""

    k: int
    found: NDArray[np.uint64]
    counts: NDArray[np.int64]
    bounds: NDArray[np.float32]

    @staticmethod
    def start(n: int, k: int) -> Best:
        """Begin with nothing for n queries."""
        found = np.empty((n, ROOM * k + 1), dtype=np.uint64)
        return Best(k, found, np.zeros(n, dtype=np.int64), np.full(n, -np.inf, dtype=np.float32))

    def keep(self, products: NDArray[np.float32], rows: NDArray[np.int64], places: NDArray[np.int32]) -> None:
        """See the products of these queries and the vectors at these places."""
        bits = products.view(np.uint32)
        kernels.keep_best(products, bits, rows, places, self.k, self.found, self.counts, self.bounds)

    def keys(self) -> NDArray[np.uint64]:
        """Return the best in no order, as keys."""
        kernels.finish(self.k, self.found, self.counts)
        return self.found[:, : self.k]


def places_of(keys: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Return the places that keys stand for: keys in ascending order are of vectors nearest first."""
    places: NDArray[np.int32] = (keys & np.uint64(0xFFFFFFFF)).astype(np.int32)
    return places
