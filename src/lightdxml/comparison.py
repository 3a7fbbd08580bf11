"""How queries are compared with vectors in bytes, and with those of an inverted file in bytes or in float32.

Products of bytes are several times as fast where the processor has an instruction for them (`kernels.int8`), and tell
nearly which vectors are the nearest: some more are found than are asked for, to choose from by exact products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels import clusters as kernels
from lightdxml.kernels import codes, ova, parallel
from lightdxml.kernels.precision import as_bits, dequantize, width

if TYPE_CHECKING:
    from lightdxml.inverted_file import InvertedFile

# So many vectors of a cluster, of a few hundred numbers each, are compared at a time: they stay close at hand.
_BLOCK = 256
# One vector in so many, and as many besides, are found more than are asked for where they are found in bytes.
_RESERVE = 8
# Room for so many times as many vectors as are to be found: when it is full, the best are told from the others.
ROOM = 2
# So many vectors are widened at a time.
_ROWS = 4096

# Fills columns, from the first to the last of some clusters, with how near those are to queries.
Compare = Callable[[NDArray[np.float32], tuple[int, int], NDArray[np.float32]], None]
# Looks for queries, in rows and ends as `kernels.clusters.by_cluster` gives them, in a range of clusters.
LookInto = Callable[[NDArray[np.float32], NDArray[np.int32], NDArray[np.int64], tuple[int, int], "Best"], None]


@dataclass(frozen=True)
class Way:
    """A way to compare queries.

    Attributes
    ----------
    centres, vectors
        Return what compares queries with an inverted file's centres, and what looks for them among its vectors. Both
        may make codes first, on all threads: they are not for threads to be asked.
    reserve
        How many of n vectors are found for k to be chosen from.
    """

    centres: Callable[[InvertedFile], Compare]
    vectors: Callable[[InvertedFile, NDArray[Any]], LookInto]
    reserve: Callable[[int, int], int]


def way() -> Way:
    """Return the faster way on this processor."""
    return IN_BYTES if codes.AVAILABLE else IN_FLOATS


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


def products_of(keys: NDArray[np.uint64]) -> NDArray[np.float32]:
    """Return the products that keys stand for (`kernels.clusters`)."""
    high = (keys >> np.uint64(32)).astype(np.uint32)
    positive = np.uint32(0x7FFFFFFF)
    products: NDArray[np.float32] = np.where(high > positive, high, positive - high).view(np.float32)
    return products


def mean_of(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Return the mean of all vectors, from where an index sees them.

    What all have in common adds the same to each one's product with a query, and tells nothing; but it draws most of
    them to the few clusters that have most of it, and hides the rest from sketches.
    """
    chunks = parallel.fixed_chunks(len(vectors), _ROWS)
    sums = parallel.run(lambda bounds: dequantize(vectors[slice(*bounds)]).sum(axis=0, dtype=np.float64), chunks)
    mean: NDArray[np.float32] = (np.sum(sums, axis=0) / len(vectors)).astype(np.float32)
    return mean


def nearest_of(
    vectors: NDArray[Any], queries: NDArray[np.float32], places: NDArray[np.int32], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the k nearest of what was found for each query, by products as exact as the vectors, and those."""
    products, where, bits = np.empty(places.shape, dtype=np.float32), places.astype(np.int64), as_bits(vectors)
    if len(queries) == 1:

        def fill(rows: slice, columns: slice) -> None:
            ova.cosines(0, 1, queries, bits, where[rows, columns], products[rows, columns])

        parallel.over_cells(fill, places.shape)
    else:
        # Other threads are at work on other queries.
        ova.cosines(0, len(queries), queries, bits, where, products)
    keys = np.empty(places.shape, dtype=np.uint64)
    kernels.keys_of(products, products.view(np.uint32), places, keys)
    keys = np.sort(keys, axis=1)[:, :k]
    return places_of(keys), products_of(keys)


def _centres_in_floats(index: InvertedFile) -> Compare:
    return lambda queries, bounds, out: kernels.products(
        0, len(queries), queries, index.centres[slice(*bounds)], out[:, slice(*bounds)]
    )


def _vectors_in_floats(index: InvertedFile, vectors: NDArray[Any]) -> LookInto:
    bits = as_bits(vectors)

    def look_into(
        queries: NDArray[np.float32],
        rows: NDArray[np.int32],
        ends: NDArray[np.int64],
        clusters: tuple[int, int],
        best: Best,
    ) -> None:
        block = np.empty((min(_BLOCK, int(index.sizes.max())), queries.shape[1]), dtype=np.float32)
        near = np.empty((4, len(block)), dtype=np.float32)
        kernels.search(
            *clusters, queries, rows, ends, bits, index.places, index.pointers, best.k, block, near,
            near.view(np.uint32), best.found, best.counts, best.bounds,
        )  # fmt: skip

    return look_into


IN_FLOATS = Way(_centres_in_floats, _vectors_in_floats, lambda k, n: min(k, n))


@dataclass(frozen=True)
class Codes:
    """Vectors as bytes, in the order of an index (`kernels.int8`)."""

    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    shifts: NDArray[np.int32]


def encoded(vectors: NDArray[Any], places: NDArray[np.int32]) -> Codes:
    """Return the codes of these vectors in the order of places."""
    n, D = len(vectors), width(vectors)
    rows = n + codes.SPARE
    made = Codes(
        np.zeros((rows, codes.padded(D)), dtype=np.int8), np.zeros(rows, dtype=np.float32),
        np.zeros(rows, dtype=np.int32),
    )  # fmt: skip
    bits = as_bits(vectors)

    def encode(first: int, last: int) -> None:
        codes.encode(first, last, bits, places, D, made.codes, made.scales, made.shifts)

    parallel.over(encode, n)
    return made


class Coded:
    """Vectors as bytes, made when they are first searched.

    Threads that come first at once may make them each; all but one are dropped.
    """

    def __init__(self) -> None:
        self._made: tuple[NDArray[Any], Codes] | None = None

    def __reduce__(self) -> Any:
        return Coded, ()

    def ready(self, vectors: NDArray[Any], places: NDArray[np.int32]) -> Codes:
        """Return the codes of these vectors in the order of places; made anew for other vectors than the last time."""
        known = self._made
        if known is None or known[0] is not vectors:
            known = self._made = (vectors, encoded(vectors, places))
        return known[1]


def _centres_in_bytes(index: InvertedFile) -> Compare:
    coded = index.coded_centres.ready(index.centres, np.arange(len(index.centres), dtype=np.int32))
    return lambda queries, bounds, out: codes.products(
        *bounds, codes_of(queries, coded), coded.codes, coded.scales, coded.shifts, _room(), out
    )


def _vectors_in_bytes(index: InvertedFile, vectors: NDArray[Any]) -> LookInto:
    coded = index.coded.ready(vectors, index.places)

    def look_into(
        queries: NDArray[np.float32],
        rows: NDArray[np.int32],
        ends: NDArray[np.int64],
        clusters: tuple[int, int],
        best: Best,
    ) -> None:
        those, near = codes_of(queries, coded), _room()
        codes.search(
            *clusters, those, rows, ends, coded.codes, coded.scales, coded.shifts, index.places, index.pointers, best.k,
            near, near.view(np.uint32), best.found, best.counts, best.bounds,
        )  # fmt: skip

    return look_into


def _room() -> NDArray[np.float32]:
    return np.empty((4, _BLOCK), dtype=np.float32)


def codes_of(queries: NDArray[np.float32], coded: Codes) -> NDArray[np.uint8]:
    """Return queries as bytes, in rows as long as these."""
    those = np.zeros((len(queries), coded.codes.shape[1]), dtype=np.uint8)
    codes.encode_documents(queries, those)
    return those


def with_reserve(k: int, n: int) -> int:
    """Return some more than k: rounding swaps vectors that are as near."""
    return min(n, k + k // _RESERVE + _RESERVE)


IN_BYTES = Way(_centres_in_bytes, _vectors_in_bytes, with_reserve)
