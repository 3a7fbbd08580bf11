"""An index of sketches: a bit a number tells which vectors may be near, a byte a number which of those are.

A search goes through the sketches of all vectors, a thirtieth of their size in float32, and compares so many of them in
bytes: as many as it takes to have the share that is wanted of the nearest among them. From what sketches say of some
blocks it sees how near those must seem. The nearest by bytes are chosen from by exact products, as in `comparison`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.comparison import Best, Codes, codes_of, encoded, mean_of, nearest_of, places_of, with_reserve
from lightdxml.inverted_file import CHUNK, search_all
from lightdxml.kernels import clusters, parallel
from lightdxml.kernels import sketches as kernels
from lightdxml.kernels.int8 import SPARE, padded
from lightdxml.kernels.precision import as_bits, width

# So many blocks are looked into at once, and about so many to see how near vectors seem to be.
_BLOCKS, _SAMPLE = 64, 128
# So many vectors of that sample, at least, must seem near enough: fewer would tell little of all others.
_FEWEST = 16
# Where too few vectors seem near enough, so many times as many are compared.
_MORE = 4
# How near vectors seem is counted in so many steps.
_STEPS = 1024


@dataclass(frozen=True)
class Sketches:
    """Vectors as bits and as bytes, in an order of their own.

    Attributes
    ----------
    signs, scales
        By block of sixty-four vectors: their signs as seen from the mean, and what those stand for. Vectors are in the
        order of that, so that a block has one for all of its own.
    places
        The place that each vector has among those of the caller.
    codes
        They as bytes.
    candidates
        How many vectors, those that seem nearest, a search compares in bytes.
    """

    signs: NDArray[np.uint8]
    scales: NDArray[np.float32]
    places: NDArray[np.int32]
    codes: Codes
    candidates: int

    @cached_property
    def inverses(self) -> NDArray[np.float32]:
        """One over scales; NaN where vectors have no direction."""
        return np.divide(1, self.scales, out=np.full(self.scales.shape, np.nan, np.float32), where=self.scales > 0)


@dataclass(frozen=True)
class _Queries:
    """Queries as tables, by which products with signs are summed up, and as bytes."""

    tables: NDArray[np.uint8]
    steps: NDArray[np.float32]
    offsets: NDArray[np.float32]
    codes: NDArray[np.uint8]


def sketches_of(vectors: NDArray[Any], k: int, queries: NDArray[np.float32], recall: float = 0.95) -> Sketches:
    """Sketch vectors (of length 1), and find how many of them a search must compare.

    Parameters
    ----------
    vectors
        float32, float16, or int8 as `precision.quantize_int8` makes it.
    k, queries, recall
        The share of the k nearest vectors to find for such queries (rows of length 1).

    Examples
    --------
    >>> vectors = np.eye(3, dtype=np.float32)
    >>> search(sketches_of(vectors, 1, vectors), vectors, vectors[1:], k=1)[0].tolist()
    [[1], [2]]
    """
    n, D = len(vectors), width(vectors)
    mean, bits, scales = mean_of(vectors), as_bits(vectors), np.empty(n, dtype=np.float32)
    parallel.over(lambda first, last: kernels.measure(first, last, bits, mean, kernels.width_of(D), scales), n)
    places = np.argsort(scales, kind="stable").astype(np.int32)
    n_blocks = _block_count(n)
    signs = np.zeros((n_blocks, kernels.bytes_of(D)[0]), dtype=np.uint8)
    parallel.over(lambda first, last: kernels.draw(first, last, bits, places, mean, signs), n_blocks)
    middles = np.minimum(np.arange(n_blocks) * kernels.BLOCK + kernels.BLOCK // 2, n - 1)
    drawn = Sketches(signs, scales[places[middles]], places, encoded(vectors, places), n)
    return with_recall(drawn, vectors, queries, k, recall)


def restore(
    signs: NDArray[np.uint8], scales: NDArray[np.float32], places: NDArray[np.int32], codes: Codes, candidates: int
) -> Sketches:
    """Return sketches that were made before, in arrays as `shapes` has them; a `ValueError` where they can be none."""
    n = len(places)
    if not np.array_equal(np.sort(places), np.arange(n)):
        raise ValueError("its index has sketches of labels that are not there, or of some twice")
    if not 1 <= candidates <= n:
        raise ValueError(f"its index compares {candidates} of {n} labels")
    return Sketches(signs, scales, places, codes, candidates)


def shapes(n: int, D: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of sketches of n vectors of D numbers.

    >>> shapes(100, 300)["signs"]
    (2, 2560)
    """
    blocks, rows = _block_count(n), n + SPARE
    return {
        "signs": (blocks, kernels.bytes_of(D)[0]), "scales": (blocks,), "places": (n,), "codes": (rows, padded(D)),
        "code_scales": (rows,), "code_shifts": (rows,), "candidates": (1,),
    }  # fmt: skip


def _block_count(n: int) -> int:
    return -(-n // (kernels.BLOCK * kernels.PAIR)) * kernels.PAIR


def with_recall(
    index: Sketches, vectors: NDArray[Any], queries: NDArray[np.float32], k: int, recall: float
) -> Sketches:
    """Return the same sketches, by which a search compares as many vectors as it takes to find that share."""
    k, n = min(k, len(vectors)), len(vectors)
    row_of = np.empty(n, dtype=np.int64)
    row_of[index.places] = np.arange(n)
    nearest = row_of[search_all(vectors, queries, k)]
    given = _prepared(index, queries)
    seeming = np.empty(nearest.shape, dtype=np.float32)
    kernels.estimates_of(nearest, given.tables, given.steps, given.offsets, index.signs, index.scales, seeming)
    some = np.sort(_sampled(index, given), axis=1)
    if not some.shape[1]:
        return replace(index, candidates=n)
    # How many of all seem to be nearer than each one that is among the nearest.
    nearer = [row.size - np.searchsorted(row, one) for row, one in zip(some, seeming, strict=True)]
    needed = np.sort(np.concatenate(nearer))[math.ceil(recall * seeming.size) - 1]
    return replace(index, candidates=int(min(n, max(k, math.ceil((needed + 1) * n / some.shape[1])))))


def _prepared(index: Sketches, queries: NDArray[np.float32]) -> _Queries:
    n, room = len(queries), kernels.bytes_of(queries.shape[1])[1]
    tables = np.empty((n, room), dtype=np.uint8)
    steps, offsets = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    kernels.tabulate(queries, tables, steps, offsets)
    return _Queries(tables, steps, offsets, codes_of(queries, index.codes))


def _sampled(index: Sketches, given: _Queries) -> NDArray[np.float32]:
    """Return how near the vectors of some whole blocks seem to be to each query."""
    blocks = _sample_of_blocks(len(index.places))
    near = np.empty((len(given.tables), len(blocks) * kernels.BLOCK), dtype=np.float32)
    kernels.estimates(blocks, given.tables, given.steps, given.offsets, index.signs, index.scales, near)
    return near


def _sample_of_blocks(n: int) -> NDArray[np.int64]:
    whole = n // kernels.BLOCK
    return np.arange(0, whole, max(1, whole // _SAMPLE), dtype=np.int64)


def room_to_search(n: int, D: int) -> int:
    """Return the bytes that a query among n vectors of D numbers takes besides what is found for it.

    >>> room_to_search(64, 64)
    576
    """
    return 4 * kernels.BLOCK * len(_sample_of_blocks(n)) + kernels.bytes_of(D)[1] + padded(D)


def _least(index: Sketches, given: _Queries, candidates: int) -> NDArray[np.float32]:
    """Return how near vectors must seem for about so many to be compared with each query."""
    n, everything = len(index.places), np.full(len(given.tables), -np.inf, dtype=np.float32)
    if candidates >= n:
        return everything
    some = _sampled(index, given)
    wanted = max(_FEWEST, math.ceil(candidates * some.shape[1] / n))
    if wanted >= some.shape[1]:
        return everything
    return clusters.nearest_clusters(some, wanted, np.empty(_STEPS, dtype=np.int64))


def search(
    index: Sketches, vectors: NDArray[Any], queries: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the places of the k vectors nearest to each query (rows of length 1), nearest first, and their products.

    Parameters
    ----------
    index, vectors
        Sketches and the vectors that they were made of, at least k of them.
    """
    places, products = np.empty((len(queries), k), dtype=np.int32), np.empty((len(queries), k), dtype=np.float32)
    more = with_reserve(k, len(vectors))

    def look(bounds: tuple[int, int]) -> None:
        part = queries[slice(*bounds)]
        keys = _nearest_keys(index, part, more, _candidates(index, more))
        places[slice(*bounds)], products[slice(*bounds)] = nearest_of(vectors, part, places_of(keys), k)

    parallel.run(look, parallel.fixed_chunks(len(queries), CHUNK))
    return places, products


def search_one(
    index: Sketches, vectors: NDArray[Any], query: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return what `search` returns for one query: blocks are shared out among threads."""
    more, given = with_reserve(k, len(vectors)), _prepared(index, query[None])
    candidates = _candidates(index, more)
    least = _least(index, given, candidates)

    def look(bounds: tuple[int, int]) -> NDArray[np.uint64]:
        best = _look_into(index, given, least, bounds, more)
        return best.keys()[0, : best.counts[0]]

    # Whatever the parts are, the best of them are the same.
    pairs = parallel.ranges(len(index.signs) // kernels.PAIR, parallel.thread_count())
    parts = [(kernels.PAIR * first, kernels.PAIR * last) for first, last in pairs]
    keys = np.sort(np.concatenate(parallel.run(look, parts)))[None, :more]
    if keys.shape[1] < more:
        keys = _nearest_keys(index, query[None], more, _MORE * candidates)
    return nearest_of(vectors, query[None], places_of(keys), k)


def _candidates(index: Sketches, k: int) -> int:
    """Return how many vectors to compare for k to be found: more than those, as it is told by a sample."""
    return max(index.candidates, k + k // 2)


def _nearest_keys(index: Sketches, queries: NDArray[np.float32], k: int, candidates: int) -> NDArray[np.uint64]:
    """Return the keys of the k vectors nearest to each query by bytes, of about so many that seem nearest."""
    given = _prepared(index, queries)
    best = _look_into(index, given, _least(index, given, candidates), (0, len(index.signs)), k)
    keys = best.keys()
    if len(short := np.flatnonzero(best.counts < k)):
        keys[short] = _nearest_keys(index, queries[short], k, _MORE * candidates)
    return keys


def _look_into(index: Sketches, given: _Queries, least: NDArray[np.float32], blocks: tuple[int, int], k: int) -> Best:
    """Return the best of what seems near enough to queries in a range of blocks."""
    best, near = Best.start(len(least), k), np.empty((1, _BLOCKS * kernels.BLOCK), dtype=np.float32)
    kernels.search(
        *blocks, given.tables, least / given.steps, given.offsets / given.steps, index.signs, index.inverses,
        given.codes,
        index.codes.codes, index.codes.scales, index.codes.shifts, index.places, k, near, near.view(np.uint32),
        best.found, best.counts, best.bounds,
    )  # fmt: skip
    return best
