"""1-bit RaBitQ codes (Gao and Long, 2024), fast scan over them, and int8 rerank of the candidates.

A vector v, minus the mean, is rotated. Its numbers are then about equally large, and their signs s carry most of it:
the product of a query x and v is about |v|² / Σ|v_d| · (x · s). The sum x · s comes from the query's lookup tables.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels import int8
from lightdxml.kernels.fast_scan import (
    BITS,
    BLOCK,
    BLOCKS,
    ENTRIES,
    LARGEST,
    QUERIES,
    lowest_bit,
    scan_one,
    scan_tile,
    sum_block,
)
from lightdxml.kernels.jit import kernel
from lightdxml.kernels.precision import row_scale, widen
from lightdxml.kernels.prefetch import prefetch_item, prefetch_row
from lightdxml.kernels.topk import TopK, push_topk

# Numbers that one Hadamard matrix mixes.
_HADAMARD = 64
# With fewer queries, the codes of candidates are prefetched: no other query has read them before.
_FEW = 4
# The bound of an integer sum is rounded from float32: this much is allowed for.
_ROUNDING = np.float32(1e-3)
# Sums of more dimensions would not fit in 16 bits.
MAX_DIM = 65_535 // LARGEST * BITS // _HADAMARD * _HADAMARD


def rotated_width(dim: int) -> int:
    """Return the dimensions of a rotated vector.

    >>> rotated_width(64), rotated_width(65)
    (64, 128)
    """
    return -(-dim // _HADAMARD) * _HADAMARD


def block_bytes(dim: int) -> int:
    """Return the bytes per block of codes.

    >>> block_bytes(300)
    2560
    """
    return rotated_width(dim) // 8 * BLOCK


def lut_bytes(dim: int) -> int:
    """Return the bytes per query of its lookup tables.

    >>> lut_bytes(300)
    1280
    """
    return rotated_width(dim) // BITS * ENTRIES


class Luts(NamedTuple):
    """Lookup tables of queries: x · s is about the sum of the entries times the scale, minus the offset."""

    tables: NDArray[np.uint8]
    scales: NDArray[np.float32]
    offsets: NDArray[np.float32]


class Scan(NamedTuple):
    """What a scan compares.

    Attributes
    ----------
    luts, slopes, intercepts
        Per query: lookup tables, and the least sum as a linear function of the inverse scale of a block.
    signs, inverse_scales
        Per block: codes, and 1 / scale; NaN makes every vector of the block a candidate.
    """

    luts: NDArray[np.uint8]
    slopes: NDArray[np.float32]
    intercepts: NDArray[np.float32]
    signs: NDArray[np.uint8]
    inverse_scales: NDArray[np.float32]


@kernel
def _mix(row: NDArray[np.float32], state: np.uint32) -> np.uint32:
    """Flip signs at random and multiply each 64 numbers with a Hadamard matrix; return the next random state."""
    for d in range(row.size):
        state = np.uint32(state * np.uint32(1664525) + np.uint32(1013904223))
        row[d] *= np.float32(-0.125) if state >> np.uint32(31) else np.float32(0.125)
    half = 1
    while half < _HADAMARD:
        for first in range(0, row.size, 2 * half):
            for d in range(first, first + half):
                a, b = row[d], row[d + half]
                row[d], row[d + half] = a + b, a - b
        half *= 2
    return state


@kernel
def _rotate(row: NDArray[np.float32], workspace: NDArray[np.float32]) -> None:
    """Rotate a row in place: mix it, distribute the numbers of each 64 over all others, and mix it again."""
    state = _mix(row, np.uint32(1))
    parts = row.size // _HADAMARD
    if parts == 1:
        return
    for d in range(row.size):
        workspace[d % parts * _HADAMARD + d // parts] = row[d]
    for d in range(row.size):
        row[d] = workspace[d]
    _mix(row, state)


@kernel
def _rotate_vector(
    vector: NDArray[Any], mean: NDArray[np.float32], row: NDArray[np.float32], workspace: NDArray[np.float32]
) -> None:
    """Fill a row with a vector of any precision, minus the mean, rotated."""
    scale = row_scale(vector, mean.size)
    for d in range(row.size):
        row[d] = widen(vector[d]) * scale - mean[d] if d < mean.size else np.float32(0.0)
    _rotate(row, workspace)


@kernel
def measure_scales(
    start: int, stop: int, vectors: NDArray[Any], mean: NDArray[np.float32], scales: NDArray[np.float32], width: int
) -> None:
    """Fill scales[start:stop] with |v|² / Σ|v_d| of rotated vectors; NaN for one that is not finite."""
    row, workspace = np.empty(width, np.float32), np.empty(width, np.float32)
    for i in range(start, stop):
        _rotate_vector(vectors[i], mean, row, workspace)
        square, size = np.float32(0.0), np.float32(0.0)
        for value in row:
            square += value * value
            size += abs(value)
        scales[i] = square / size if size != 0 else size


@kernel
def encode(
    start: int,
    stop: int,
    vectors: NDArray[Any],
    row_ids: NDArray[np.int32],
    mean: NDArray[np.float32],
    signs: NDArray[np.uint8],
) -> None:
    """Fill the blocks start … stop of signs, zeros before, with the codes of the vectors of these row ids."""
    width = signs.shape[1] * 8 // BLOCK
    row, workspace = np.empty(width, np.float32), np.empty(width, np.float32)
    for block in range(start, stop):
        for lane in range(min(BLOCK, row_ids.size - block * BLOCK)):
            _rotate_vector(vectors[row_ids[block * BLOCK + lane]], mean, row, workspace)
            for lut in range(width // BITS):
                code = 0
                for i in range(BITS):
                    if row[lut * BITS + i] > 0:
                        code |= 1 << i
                signs[block, lut // 2 * BLOCK + lane] |= np.uint8(code << (4 * (lut % 2)))


@kernel
def build_luts(queries: NDArray[np.float32], luts: Luts) -> None:
    """Fill the lookup tables of queries."""
    tables, scales, offsets = luts
    width = tables.shape[1] * BITS // ENTRIES
    row, workspace = np.empty(width, np.float32), np.empty(width, np.float32)
    for b in range(len(queries)):
        row[: queries.shape[1]] = queries[b]
        row[queries.shape[1] :] = 0.0
        _rotate(row, workspace)
        largest = total = np.float32(0.0)
        for first in range(0, width, BITS):
            size = np.float32(0.0)
            for i in range(BITS):
                size += abs(row[first + i])
            largest, total = max(largest, size), total + size
        # A query of zeros has the same product with every vector.
        scale = max(np.float32(2.0) * largest / np.float32(LARGEST), np.float32(1e-20))
        scales[b], offsets[b] = scale, total
        for lut in range(width // BITS):
            for entry in range(ENTRIES):
                value = np.float32(0.0)
                for i in range(BITS):
                    x = row[lut * BITS + i]
                    value += abs(x) + (x if entry >> i & 1 else -x)
                tables[b, lut * ENTRIES + entry] = np.uint8(np.rint(value / scale))


@kernel
def estimate_blocks(
    blocks: NDArray[np.int64],
    luts: Luts,
    signs: NDArray[np.uint8],
    scales: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Fill out with the estimated products of queries and the vectors of some blocks: even vectors, then odd ones."""
    tables, lut_scales, lut_offsets = luts
    sums = np.empty(BLOCK, np.uint16)
    for i in range(blocks.size):
        for b in range(len(tables)):
            sum_block(signs, blocks[i], tables, b, sums)
            for lane in range(BLOCK):
                out[b, i * BLOCK + lane] = scales[blocks[i]] * (lut_scales[b] * np.float32(sums[lane]) - lut_offsets[b])


@kernel
def estimate_rows(
    rows: NDArray[np.int64], luts: Luts, signs: NDArray[np.uint8], scales: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """Fill out with the estimated products of each query and the codes at its rows, without fast scan."""
    tables, lut_scales, lut_offsets = luts
    for b in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            block, lane = rows[b, i] // BLOCK, rows[b, i] % BLOCK
            total = 0
            for lut in range(tables.shape[1] // ENTRIES):
                code = signs[block, lut // 2 * BLOCK + lane] >> (4 * (lut % 2)) & 15
                total += tables[b, lut * ENTRIES + code]
            out[b, i] = scales[block] * (lut_scales[b] * np.float32(total) - lut_offsets[b])


@kernel
def search(
    start: int,
    stop: int,
    scan: Scan,
    queries: NDArray[np.uint8],
    vectors: int8.Int8Codes,
    row_ids: NDArray[np.int32],
    n_blocks: int,
    top: TopK,
) -> None:
    """Scan the blocks start … stop (even numbers), rerank the candidates by int8 products and keep the top k.

    Parameters
    ----------
    queries, vectors
        int8 codes; vectors in the order of the blocks.
    row_ids
        Row ids of the vectors in the order of the blocks.
    n_blocks
        Blocks (an even number) that are scanned before their candidates are reranked.
    """
    n_queries = len(scan.luts)
    size = n_blocks * BLOCK
    rows = np.empty((QUERIES, size + int8.LANES), np.int64)
    n, before = np.empty(QUERIES, np.int64), np.empty(QUERIES, np.int64)
    sums, products = np.empty(size + int8.LANES, np.int32), np.empty((1, size), np.float32)
    candidates, query_id = np.empty(size, np.int32), np.empty(1, np.int64)
    for first in range(start, stop, n_blocks):
        last = min(first + n_blocks, stop)
        for b in range(0, n_queries, QUERIES):
            some = min(QUERIES, n_queries - b)
            for i in range(some):
                n[i] = 0
            for block in range(first, last, BLOCKS):
                for i in range(some):
                    before[i] = n[i]
                _scan(block, b, some, scan, row_ids.size, rows, n)
                for i in range(some if n_queries < _FEW else 0):
                    for j in range(before[i], n[i]):
                        row = rows[i, j]
                        prefetch_row(vectors.codes[row])
                        prefetch_item(vectors.scales, row)
                        prefetch_item(vectors.offsets, row)
                        prefetch_item(row_ids, row)
            for i in range(some):
                int8.rerank(queries, b + i, vectors, rows[i], n[i], sums, products[0])
                for j in range(n[i]):
                    candidates[j] = row_ids[rows[i, j]]
                query_id[0] = b + i
                push_topk(products, query_id, candidates[: n[i]], top)


@kernel
def _scan(
    block: int, b: int, some: int, scan: Scan, n_vectors: int, rows: NDArray[np.int64], n: NDArray[np.int64]
) -> None:
    """Append the candidates of the queries b … b + some in two blocks to rows, and count them in n."""
    luts, slopes, intercepts, signs, inverse_scales = scan
    least, bits = np.zeros((QUERIES, BLOCKS), np.uint16), np.zeros((QUERIES, BLOCKS), np.uint64)
    for i in range(some):
        for j in range(BLOCKS):
            least[i, j] = _least_sum(slopes[b + i] * inverse_scales[block + j] + intercepts[b + i])
    if some == QUERIES:
        scan_tile(signs, block, luts, b, least, bits)
    else:
        for i in range(some):
            for j in range(BLOCKS):
                scan_one(signs, block + j, luts, b + i, least[i, j:], bits[i, j:])
    for i in range(some):
        for j in range(BLOCKS):
            n[i] = _append_rows(bits[i, j], (block + j) * BLOCK, n_vectors, rows[i], n[i])


@kernel
def _append_rows(bits: np.uint64, first: int, n_vectors: int, rows: NDArray[np.int64], n: int) -> int:
    """Append the vectors of a block whose bits are set to rows[:n]; return the new n."""
    while bits:
        bit = np.int64(lowest_bit(bits))
        bits &= bits - np.uint64(1)
        rows[n] = first + (2 * bit if bit < BLOCK // 2 else 2 * bit - BLOCK + 1)
        # The last block may be padded.
        n += 1 if rows[n] < n_vectors else 0
    return n


@kernel
def _least_sum(least: np.float32) -> np.uint16:
    """Return a bound as a 16-bit integer, with tolerance for rounding; 0 for NaN."""
    bound: np.uint16 = np.uint16(min(np.ceil(least - _ROUNDING), np.float32(65535.0)) if least > _ROUNDING else 0)
    return bound
