"""Inner products of queries and vectors, with the same bits for one query as for a batch.

Each product is a chain of multiply-adds in the order of the dimensions. The SIMD lanes hold different vectors: a block
of vectors is copied to float32 and transposed, which stays in the cache while all queries are multiplied with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.extending import intrinsic
from numpy.typing import NDArray

from lightdxml.kernels.intrinsics import (
    cgutils,
    cpu_features,
    load_unaligned,
    row_start,
    shuffle,
    store_unaligned,
    types,
    unpack_arrays,
)
from lightdxml.kernels.jit import kernel
from lightdxml.kernels.precision import row_scale, widen
from lightdxml.kernels.prefetch import prefetch_row
from lightdxml.kernels.topk import push_topk

_LANES = 16 if "+avx512f" in cpu_features() else 8 if "+avx" in cpu_features() else 4
# The accumulators of 6 queries × 2 registers of vectors, with their operands, fill the 16 registers of AVX2.
_QUERIES, _REGISTERS = 6, 2
# Vectors per block: about what fits in the L1 cache. A power of two would put the lines of a block in few cache sets.
_BLOCK = 6 * _LANES
# Vectors are transposed 8 dimensions of 8 vectors at a time, by exchanging parts of vectors that are 1, 2 and 4 apart.
_SQUARE = 8
_EXCHANGES = (
    (1, ([0, 8, 1, 9, 4, 12, 5, 13], [2, 10, 3, 11, 6, 14, 7, 15])),
    (2, ([0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15])),
    (4, ([0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15])),
)
_EXCHANGED_ORDER = (0, 2, 1, 3, 4, 6, 5, 7)


@kernel
def search(
    start: int,
    stop: int,
    queries: NDArray[np.float32],
    vectors: NDArray[Any],
    k: int,
    keys: NDArray[np.uint64],
    counts: NDArray[np.int64],
    bounds: NDArray[np.float32],
) -> None:
    """Add the inner products with vectors[start:stop] to the top k of each query.

    Parameters
    ----------
    vectors
        float32, int8, or float16 as `precision.as_bits` passes it.
    k, keys, counts, bounds
        See `topk.push_topk`.
    """
    dim = queries.shape[1]
    block, scales = np.empty((dim, _BLOCK), np.float32), np.empty(_BLOCK, np.float32)
    products = np.empty((_QUERIES, _BLOCK), np.float32)
    row_ids, query_ids = np.empty(_BLOCK, np.int32), np.empty(_QUERIES, np.int64)
    for first in range(start, stop, _BLOCK):
        n = min(_BLOCK, stop - first)
        for i in range(n):
            row_ids[i] = first + i
        _fill_block(vectors, row_ids, n, dim, block, scales)
        for query in range(0, queries.shape[0], _QUERIES):
            some = min(_QUERIES, queries.shape[0] - query)
            if some == _QUERIES:
                for i in range(0, n, _REGISTERS * _LANES):
                    _multiply_tile(queries, query, block, i, products)
            else:
                for j in range(some):
                    _multiply_row(queries, query + j, block, 0, products[j:])
            for j in range(some):
                query_ids[j] = query + j
                for i in range(n):
                    products[j, i] *= scales[i]
            push_topk(products, query_ids[:some], row_ids[:n], k, keys, counts, bounds)


@kernel
def row_products(
    start: int,
    stop: int,
    queries: NDArray[np.float32],
    vectors: NDArray[Any],
    row_ids: NDArray[Any],
    out: NDArray[np.float32],
) -> None:
    """Fill out[start:stop] with the products of each query and the vectors of its row ids; -1 for a row id of -1."""
    dim = queries.shape[1]
    block, scales = np.empty((dim, _BLOCK), np.float32), np.empty(_BLOCK, np.float32)
    products, some = np.empty((1, _BLOCK), np.float32), np.empty(_BLOCK, np.int32)
    for b in range(start, stop):
        for first in range(0, row_ids.shape[1], _BLOCK):
            n = min(_BLOCK, row_ids.shape[1] - first)
            for i in range(n):
                some[i] = max(0, row_ids[b, first + i])
            _fill_block(vectors, some, n, dim, block, scales)
            _multiply_row(queries, b, block, 0, products)
            for i in range(n):
                found = row_ids[b, first + i] >= 0
                out[b, first + i] = products[0, i] * scales[i] if found else np.float32(-1.0)


@kernel
def _fill_block(
    vectors: NDArray[Any],
    row_ids: NDArray[np.int32],
    n: int,
    dim: int,
    block: NDArray[np.float32],
    scales: NDArray[np.float32],
) -> None:
    """Copy the vectors row_ids[:n] to the columns of a block, and the scales of int8 rows beside it."""
    row_ids[n:] = row_ids[n - 1]
    for first in range(0, n, _SQUARE):
        for i in range(first, first + _SQUARE):
            scales[i] = row_scale(vectors[row_ids[i]], dim)
            if i + _SQUARE < n:
                prefetch_row(vectors[row_ids[i + _SQUARE]])
        if dim >= _SQUARE:
            _copy_rows(vectors, row_ids, first, dim, block)
        else:
            for i in range(first, first + _SQUARE):
                for d in range(dim):
                    block[d, i] = widen(vectors[row_ids[i], d])


def _tile(n_queries: int, n_registers: int) -> Any:
    """Return an intrinsic that multiplies this many queries with this many registers of vectors.

    It fills out[:, first:] with the products of queries[row:] and the vectors block[:, first:].
    """

    def tile(_: Any, queries: Any, row: Any, block: Any, first: Any, out: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            queries, row, block, first, out = unpack_arrays(context, builder, signature, arguments)
            number = ir.IntType(64)
            rows = [row_start(builder, queries, builder.add(row, number(i))) for i in range(n_queries)]
            columns = [builder.add(first, number(_LANES * j)) for j in range(n_registers)]
            totals = _accumulate(builder, rows, builder.extract_value(queries.shape, 1), block, columns)
            for i, row_totals in enumerate(totals):
                line = row_start(builder, out, number(i))
                for column, total in zip(columns, row_totals, strict=True):
                    store_unaligned(builder, builder.load(total), builder.gep(line, [column]))
            return context.get_dummy_value()

        return types.void(queries, types.intp, block, types.intp, out), generate

    return intrinsic(tile)


def _accumulate(builder: Any, rows: list[Any], dim: Any, block: Any, columns: list[Any]) -> list[list[Any]]:
    """Return the products of each row and each register of columns, in variables that become registers."""
    kind = ir.VectorType(ir.FloatType(), _LANES)
    name = f"llvm.fmuladd.v{_LANES}f32"
    multiply_add = builder.module.declare_intrinsic(name, (), ir.FunctionType(kind, [kind] * 3))
    zero = ir.Constant(kind, [0.0] * _LANES)
    totals = [[cgutils.alloca_once_value(builder, zero) for _ in columns] for _ in rows]
    with cgutils.for_range(builder, dim) as loop:
        line = row_start(builder, block, loop.index)
        vectors = [load_unaligned(builder, builder.gep(line, [column]), kind) for column in columns]
        for row, row_totals in zip(rows, totals, strict=True):
            value = builder.load(builder.gep(row, [loop.index]))
            value = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.IntType(32)(0))
            value = shuffle(builder, value, value, [0] * _LANES)
            for vector, total in zip(vectors, row_totals, strict=True):
                builder.store(builder.call(multiply_add, [value, vector, builder.load(total)]), total)
    return totals


def _copy_eight_rows(_: Any, vectors: Any, row_ids: Any, first: Any, dim: Any, block: Any) -> Any:
    """Copy the vectors row_ids[first : first + 8], of at least 8 dimensions, to the columns block[:, first:]."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors, row_ids, first, dim, block = unpack_arrays(context, builder, signature, arguments)
        number = ir.IntType(64)
        starts = []
        for i in range(_SQUARE):
            row = builder.load(builder.gep(row_ids.data, [builder.add(first, number(i))]))
            starts.append(row_start(builder, vectors, builder.sext(row, number)))
        last = builder.sub(dim, number(_SQUARE))
        squares = builder.udiv(builder.add(dim, number(_SQUARE - 1)), number(_SQUARE))
        with cgutils.for_range(builder, squares) as loop:
            # The last square overlaps the one before it, instead of reading beyond the rows.
            column = builder.mul(loop.index, number(_SQUARE))
            column = builder.select(builder.icmp_signed("<", column, last), column, last)
            lines = [_load_floats(builder, builder.gep(start, [column])) for start in starts]
            for i, values in enumerate(_transpose(builder, lines)):
                line = row_start(builder, block, builder.add(column, number(i)))
                store_unaligned(builder, values, builder.gep(line, [first]))
        return context.get_dummy_value()

    return types.void(vectors, row_ids, types.intp, types.intp, block), generate


def _load_floats(builder: Any, pointer: Any) -> Any:
    """Load 8 numbers, of float32, of int8 or the bits of float16, as float32."""
    kind = pointer.type.pointee
    floats, integers = ir.VectorType(ir.FloatType(), _SQUARE), ir.VectorType(ir.IntType(32), _SQUARE)
    values = load_unaligned(builder, pointer, ir.VectorType(kind, _SQUARE))
    if kind == ir.FloatType():
        return values
    if kind == ir.IntType(8):
        return builder.sitofp(values, floats)
    if "+f16c" in cpu_features():
        return builder.fpext(builder.bitcast(values, ir.VectorType(ir.HalfType(), _SQUARE)), floats)
    # As `precision.widen` does it.
    bits = builder.zext(values, integers)
    size = builder.shl(
        builder.and_(bits, ir.Constant(integers, [0x7FFF] * _SQUARE)), ir.Constant(integers, [13] * _SQUARE)
    )
    size = builder.fmul(builder.bitcast(size, floats), ir.Constant(floats, [2.0**112] * _SQUARE))
    sign = builder.shl(
        builder.and_(bits, ir.Constant(integers, [0x8000] * _SQUARE)), ir.Constant(integers, [16] * _SQUARE)
    )
    return builder.bitcast(builder.or_(builder.bitcast(size, integers), sign), floats)


def _transpose(builder: Any, lines: list[Any]) -> list[Any]:
    for distance, masks in _EXCHANGES:
        exchanged = list(lines)
        for i in range(_SQUARE):
            if not i & distance:
                pair = lines[i], lines[i + distance]
                exchanged[i], exchanged[i + distance] = (shuffle(builder, *pair, mask) for mask in masks)
        lines = exchanged
    return [lines[i] for i in _EXCHANGED_ORDER]


_multiply_tile: Any = _tile(_QUERIES, _REGISTERS)
_multiply_row: Any = _tile(1, _BLOCK // _LANES)
_copy_rows: Any = intrinsic(_copy_eight_rows)
