"""Search by 1-bit RaBitQ codes: fast scan selects candidates, int8 products and then exact ones rerank them.

A search scans the codes of all vectors, one bit per dimension, and reranks about as many candidates as calibration
found necessary. A sample of the codes gives the threshold that lets this many pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lightdxml.index.base import Kind, Neighbors
from lightdxml.index.exact import ExactIndex, kernel_rows
from lightdxml.kernels import dot, fast_scan, int8, parallel, rabitq
from lightdxml.kernels.precision import as_bits, dequantize, row_width
from lightdxml.kernels.topk import NO_KEY, TopK, best_keys, pack, unpack

# The share of the exact neighbors that a search is calibrated to find.
RECALL = 0.955
# Queries per chunk, and about how many vectors are sampled for the threshold.
QUERIES, SAMPLE = 1024, 8192
# The fewest vectors that are worth a part of a search: each part has buffers of its own.
_VECTORS = 32_768
# Blocks whose candidates are reranked together.
_BLOCKS = 64
# At least this many vectors of the sample must pass the threshold: fewer would say little about the others.
_MIN_SAMPLE = 16
# If too few candidates pass, the search is repeated with this many times as many.
_RETRY = 4
# int8 products leave k + k / 8 + 8 candidates for the exact products.
_OVERSAMPLING = 8
_ROWS = 4096


@dataclass(frozen=True)
class _Codes:
    """Vectors as codes, sorted by scale so that all vectors of a block share one.

    Attributes
    ----------
    signs, scales
        Per block of 64 vectors: 1-bit codes, and the scale of their estimates.
    row_ids
        The row id of each vector.
    codes, code_scales, code_offsets
        int8 codes of each vector; see `kernels.int8`.
    """

    signs: NDArray[np.uint8]
    scales: NDArray[np.float32]
    row_ids: NDArray[np.int32]
    codes: NDArray[np.int8]
    code_scales: NDArray[np.float32]
    code_offsets: NDArray[np.int32]

    @property
    def int8_codes(self) -> int8.Int8Codes:
        """The int8 codes, as kernels take them."""
        return int8.Int8Codes(self.codes, self.code_scales, self.code_offsets)

    @cached_property
    def inverse_scales(self) -> NDArray[np.float32]:
        """1 / scale; NaN for vectors at the mean, of which codes say nothing."""
        return np.divide(1, self.scales, out=np.full(self.scales.shape, np.nan, np.float32), where=self.scales > 0)


@dataclass(frozen=True)
class _Queries:
    """Queries as lookup tables and as int8 codes."""

    luts: rabitq.Luts
    codes: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class RaBitQIndex:
    """Search by 1-bit codes; see `lightdxml.index.base.Index`.

    Use `build_rabitq` or `restore_rabitq` to make one.

    Attributes
    ----------
    vectors
        The vectors.
    codes
        Their codes.
    candidates
        About how many vectors per query are reranked.

    Examples
    --------
    >>> vectors = np.eye(3, dtype=np.float32)
    >>> build_rabitq(vectors, vectors, k=1).search(vectors[1:], k=1)[0].tolist()
    [[1], [2]]
    """

    kind: ClassVar[Kind] = "rabitq"
    vectors: NDArray[Any]
    codes: _Codes
    candidates: int

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store in addition to the vectors."""
        stored: dict[str, NDArray[Any]] = {field.name: getattr(self.codes, field.name) for field in fields(_Codes)}
        return stored | {"candidates": np.array([self.candidates], dtype=np.int32)}

    def search(self, queries: NDArray[np.float32], k: int) -> Neighbors:
        """Return the row ids of the k nearest vectors per query, nearest first, and their cosines."""
        k, n = min(k, len(self.vectors)), len(queries)
        row_ids, products = np.empty((n, k), dtype=np.int32), np.empty((n, k), dtype=np.float32)
        if k == 0 or n == 0:
            return row_ids, products
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        exact_queries, vectors = kernel_rows(queries, self.vectors)
        oversampled = min(len(self.vectors), k + k // _OVERSAMPLING + _OVERSAMPLING)
        # The threshold comes from a sample: some more candidates, so that seldom too few pass.
        candidates = max(self.candidates, oversampled + oversampled // 2)
        chunks = parallel.fixed_chunks(n, QUERIES)
        # Threads share the blocks if there are too few queries to share.
        parts = min(parallel.parts_per_item(len(chunks)), -(-len(self.vectors) // _VECTORS))

        def find(chunk: tuple[int, int]) -> None:
            rows = slice(*chunk)
            found, _ = unpack(_rerank(self.codes, queries[rows], oversampled, candidates, parts))
            exact = np.empty(found.shape, dtype=np.float32)
            dot.row_products(0, len(found), exact_queries[rows], vectors, found, exact)
            row_ids[rows], products[rows] = unpack(best_keys([pack(found, exact)], k))

        parallel.run(find, chunks)
        return row_ids, products

    def calibrated(self, queries: NDArray[np.float32], k: int, recall: float) -> RaBitQIndex:
        """Return the same codes with as many candidates as find this share of the k nearest vectors."""
        n, k, codes = len(self.vectors), min(k, len(self.vectors)), self.codes
        prepared = _prepare(codes, queries)
        sample = np.sort(_sample(codes, prepared), axis=1)
        if not sample.size or not k:
            return replace(self, candidates=n)
        row_of = np.empty(n, dtype=np.int64)
        row_of[codes.row_ids] = np.arange(n)
        nearest = row_of[ExactIndex(self.vectors).search(queries, k)[0]]
        estimates = np.empty(nearest.shape, dtype=np.float32)
        rabitq.estimate_rows(nearest, prepared.luts, codes.signs, codes.scales, estimates)
        # How many of the sample are estimated to be nearer than each of the nearest.
        nearer = [row.size - np.searchsorted(row, own) for row, own in zip(sample, estimates, strict=True)]
        needed = np.sort(np.concatenate(nearer))[math.ceil(recall * estimates.size) - 1]
        candidates = math.ceil((needed + 1) * n / sample.shape[1])
        return replace(self, candidates=int(min(n, max(k, candidates))))


def build_rabitq(vectors: NDArray[Any], queries: NDArray[np.float32], k: int, recall: float = RECALL) -> RaBitQIndex:
    """Encode unit vectors and calibrate the number of candidates.

    Parameters
    ----------
    vectors
        float32, float16, or int8 as `kernels.precision` stores them; at least one.
    queries, k, recall
        The share of the k nearest vectors to find, and unit rows like the queries of later searches.
    """
    vectors = np.ascontiguousarray(vectors)
    n, dim = len(vectors), row_width(vectors)
    bits, mean, scales = as_bits(vectors), _mean(vectors), np.empty(n, dtype=np.float32)
    width = rabitq.rotated_width(dim)
    parallel.over(lambda first, last: rabitq.measure_scales(first, last, bits, mean, scales, width), n)
    row_ids = np.argsort(scales, kind="stable").astype(np.int32)
    made = {name: np.zeros(shape, dtype) for name, (shape, dtype) in rabitq_specs(n, dim).items()}
    signs, codes = made["signs"], int8.Int8Codes(made["codes"], made["code_scales"], made["code_offsets"])
    parallel.over(lambda first, last: rabitq.encode(first, last, bits, row_ids, mean, signs), len(signs))
    parallel.over(lambda first, last: int8.encode_vectors(first, last, bits, row_ids, dim, codes), n)
    middles = np.minimum(np.arange(len(signs)) * fast_scan.BLOCK + fast_scan.BLOCK // 2, n - 1)
    index = RaBitQIndex(vectors, _Codes(signs, scales[row_ids[middles]], row_ids, *codes), n)
    return index.calibrated(queries, k, recall)


def restore_rabitq(vectors: NDArray[Any], arrays: dict[str, NDArray[Any]]) -> RaBitQIndex:
    """Return the index of stored arrays, which `rabitq_specs` describes; a `ValueError` if they are none."""
    stored = dict(arrays)
    n, candidates = len(vectors), int(stored.pop("candidates")[0])
    if not np.array_equal(np.sort(stored["row_ids"]), np.arange(n)):
        raise ValueError("its index has row ids that are missing or repeated")
    if not 1 <= candidates <= n:
        raise ValueError(f"its index reranks {candidates} of {n} vectors")
    return RaBitQIndex(np.ascontiguousarray(vectors), _Codes(**stored), candidates)


def rabitq_specs(n: int, dim: int) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Return shape and type of each stored array of n vectors.

    >>> rabitq_specs(100, 300)["signs"]
    ((2, 2560), <class 'numpy.uint8'>)
    """
    tile = fast_scan.BLOCK * fast_scan.BLOCKS
    blocks = -(-n // tile) * fast_scan.BLOCKS
    return {
        "signs": ((blocks, rabitq.block_bytes(dim)), np.uint8),
        "scales": ((blocks,), np.float32),
        "row_ids": ((n,), np.int32),
        "codes": ((n, int8.code_width(dim)), np.int8),
        "code_scales": ((n,), np.float32),
        "code_offsets": ((n,), np.int32),
        "candidates": ((1,), np.int32),
    }


def _mean(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Return the mean of all vectors.

    What all vectors share adds the same to each product with a query, and would hide the rest from 1-bit codes.
    """
    chunks = parallel.fixed_chunks(len(vectors), _ROWS)
    sums = parallel.run(lambda bounds: dequantize(vectors[slice(*bounds)]).sum(axis=0, dtype=np.float64), chunks)
    mean: NDArray[np.float32] = (np.sum(sums, axis=0) / len(vectors)).astype(np.float32)
    return mean


def _prepare(codes: _Codes, queries: NDArray[np.float32]) -> _Queries:
    n, dim = queries.shape
    tables = np.empty((n, rabitq.lut_bytes(dim)), dtype=np.uint8)
    luts = rabitq.Luts(tables, np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32))
    rabitq.build_luts(queries, luts)
    query_codes = np.zeros((n, codes.codes.shape[1]), dtype=np.uint8)
    int8.encode_queries(queries, query_codes)
    return _Queries(luts, query_codes)


def _sample(codes: _Codes, queries: _Queries) -> NDArray[np.float32]:
    """Return the estimated products of each query and the vectors of some blocks, none of them padded."""
    full = len(codes.row_ids) // fast_scan.BLOCK
    blocks = np.arange(0, full, max(1, full * fast_scan.BLOCK // SAMPLE), dtype=np.int64)
    estimates = np.empty((len(queries), len(blocks) * fast_scan.BLOCK), dtype=np.float32)
    rabitq.estimate_blocks(blocks, queries.luts, codes.signs, codes.scales, estimates)
    return estimates


def _thresholds(codes: _Codes, queries: _Queries, candidates: int) -> NDArray[np.float32]:
    """Return the estimates that let about this many candidates per query pass."""
    n, everything = len(codes.row_ids), np.full(len(queries), -np.inf, dtype=np.float32)
    if candidates >= n:
        return everything
    sample = _sample(codes, queries)
    wanted = max(_MIN_SAMPLE, math.ceil(candidates * sample.shape[1] / n))
    if wanted >= sample.shape[1]:
        return everything
    # Estimates that are not finite have no order: everything passes.
    finite = np.isfinite(sample).all(axis=1)
    sample.partition(sample.shape[1] - wanted, axis=1)
    return np.where(finite, sample[:, -wanted], everything)


def _rerank(codes: _Codes, queries: NDArray[np.float32], k: int, candidates: int, parts: int) -> NDArray[np.uint64]:
    """Return the keys of the best k of about this many candidates per query by int8 products.

    The blocks are scanned in so many parts at the same time.
    """
    prepared = _prepare(codes, queries)
    thresholds = _thresholds(codes, prepared, candidates)
    tables, scales, offsets = prepared.luts
    compared = rabitq.Scan(tables, thresholds / scales, offsets / scales, codes.signs, codes.inverse_scales)

    def scan(tiles: tuple[int, int]) -> NDArray[np.uint64]:
        start, stop = (tile * fast_scan.BLOCKS for tile in tiles)
        top = TopK.empty(len(queries), k)
        rabitq.search(start, stop, compared, prepared.codes, codes.int8_codes, codes.row_ids, _BLOCKS, top)
        return top.best()

    keys = best_keys(parallel.run(scan, parallel.ranges(len(codes.signs) // fast_scan.BLOCKS, parts)), k)
    if len(short := np.flatnonzero(keys[:, -1] == NO_KEY)):
        keys[short] = _rerank(codes, queries[short], k, _RETRY * candidates, parts)
    return keys
