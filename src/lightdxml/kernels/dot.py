"""Inner products of queries and vectors, with the same bits for one query as for a batch.

Each product is a chain of multiply-adds in the order of the dimensions. The SIMD lanes hold different vectors, so
stored vectors are transposed on the way: for one query in registers, for a batch to a block of float32 that stays in
the cache while all queries are multiplied with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir
from numba.extending import intrinsic
from numpy.typing import NDArray

from lightdxml.kernels.intrinsics import (
    broadcast,
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
from lightdxml.kernels.precision import row_scale
from lightdxml.kernels.prefetch import prefetch_row
from lightdxml.kernels.topk import push_topk

# Vectors are transposed 8 dimensions of 8 vectors at a time; there must be as many dimensions.
MIN_DIM = _SQUARE = 8
# A query alone is multiplied with this many squares at once: their chains of multiply-adds overlap.
_SQUARES = 3
_ROWS = _SQUARES * _SQUARE
_LANES = 16 if "+avx512f" in cpu_features() else 8 if "+avx" in cpu_features() else 4
# In a batch, the accumulators of 6 queries × 2 registers of vectors, with their operands, fill the registers of AVX2.
_QUERIES, _REGISTERS = 6, 2
# Vectors per block: about what fits in the L1 cache, and a multiple of `_SQUARE`.
_BLOCK = 6 * max(8, _LANES)


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
    queries, vectors
        At least `MIN_DIM` dimensions. Vectors are float32, int8, or float16 as `precision.as_bits` passes it.
    k, keys, counts, bounds
        See `topk.push_topk`.
    """
    if queries.shape[0] == 1:
        _search_one(start, stop, queries[0], vectors, k, keys, counts, bounds)
        return
    dim, n_queries = queries.shape[1], queries.shape[0]
    padded = np.zeros(((n_queries + _QUERIES - 1) // _QUERIES * _QUERIES, dim), np.float32)
    query_ids = np.empty(n_queries, np.int64)
    for b in range(n_queries):
        query_ids[b] = b
        for d in range(dim):
            padded[b, d] = queries[b, d]
    block, scales = np.empty((dim, _BLOCK), np.float32), np.empty(_BLOCK, np.float32)
    products = np.empty((_QUERIES, _BLOCK), np.float32)
    row_ids = np.empty(_BLOCK, np.int32)
    for first in range(start, stop, _BLOCK):
        n = min(_BLOCK, stop - first)
        for i in range(_BLOCK):
            row_ids[i] = min(first + i, stop - 1)
            scales[i] = row_scale(vectors[row_ids[i]], dim)
        for i in range(0, n, _SQUARE):
            _fill_block(vectors, row_ids, i, block)
        for query in range(0, n_queries, _QUERIES):
            some = query_ids[query : query + _QUERIES]
            for i in range(0, n, _REGISTERS * _LANES):
                _multiply_tile(padded, query, block, i, products)
            for j in range(some.size):
                for i in range(n):
                    products[j, i] *= scales[i]
            push_topk(products, some, row_ids[:n], k, keys, counts, bounds)


@kernel
def _search_one(
    start: int,
    stop: int,
    query: NDArray[np.float32],
    vectors: NDArray[Any],
    k: int,
    keys: NDArray[np.uint64],
    counts: NDArray[np.int64],
    bounds: NDArray[np.float32],
) -> None:
    squares = _cut_into_squares(query)
    row_ids, products, query_id = np.empty(_ROWS, np.int32), np.empty((1, _ROWS), np.float32), np.zeros(1, np.int64)
    for first in range(start, stop, _ROWS):
        for i in range(_ROWS):
            row_ids[i] = min(first + i, stop - 1)
            prefetch_row(vectors[min(first + _ROWS + i, stop - 1)])
        _multiply_rows(squares, vectors, row_ids, query.size, products[0])
        n = min(_ROWS, stop - first)
        for i in range(n):
            products[0, i] *= row_scale(vectors[row_ids[i]], query.size)
        push_topk(products, query_id, row_ids[:n], k, keys, counts, bounds)


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
    dim, n_rows = queries.shape[1], row_ids.shape[1]
    own_ids, products = np.empty(_ROWS, np.int32), np.empty(_ROWS, np.float32)
    for b in range(start, stop):
        squares = _cut_into_squares(queries[b])
        for first in range(0, n_rows, _ROWS):
            for i in range(_ROWS):
                own_ids[i] = max(0, row_ids[b, min(first + i, n_rows - 1)])
                prefetch_row(vectors[max(0, row_ids[b, min(first + _ROWS + i, n_rows - 1)])])
            _multiply_rows(squares, vectors, own_ids, dim, products)
            for i in range(min(_ROWS, n_rows - first)):
                scaled = products[i] * row_scale(vectors[own_ids[i]], dim)
                out[b, first + i] = scaled if row_ids[b, first + i] >= 0 else np.float32(-1.0)


@kernel
def _cut_into_squares(query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the numbers of a query by which the columns of all squares are multiplied.

    The last square of rows overlaps the one before it, so that no row is read beyond its end. Its first columns have
    been multiplied already, and are now multiplied by zero.
    """
    dim, size = query.size, (query.size + _SQUARE - 1) // _SQUARE * _SQUARE
    squares = np.zeros(size, np.float32)
    for d in range(dim):
        squares[d if d < size - _SQUARE else d + size - dim] = query[d]
    return squares


def _copy_to_block(_: Any, vectors: Any, row_ids: Any, first: Any, block: Any) -> Any:
    """Copy the vectors row_ids[first : first + 8] to the columns block[:, first:]."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors, row_ids, first, block = unpack_arrays(context, builder, signature, arguments)
        number = ir.IntType(64)
        rows = _row_starts(builder, vectors, row_ids, [builder.add(first, number(i)) for i in range(_SQUARE)])
        with _squares(builder, builder.extract_value(block.shape, 0)) as (_, column):
            for i, values in enumerate(_load_transposed(builder, rows, column)):
                line = row_start(builder, block, builder.add(column, number(i)))
                store_unaligned(builder, values, builder.gep(line, [first]))
        return context.get_dummy_value()

    return types.void(vectors, row_ids, types.intp, block), generate


def _multiply_with_rows(_: Any, squares: Any, vectors: Any, row_ids: Any, dim: Any, out: Any) -> Any:
    """Fill out with the products of a query, from `_cut_into_squares`, and the vectors of `_ROWS` row ids."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        squares, vectors, row_ids, dim, out = unpack_arrays(context, builder, signature, arguments)
        number, kind = ir.IntType(64), ir.VectorType(ir.FloatType(), _SQUARE)
        rows = _row_starts(builder, vectors, row_ids, [number(i) for i in range(_ROWS)])
        totals = [cgutils.alloca_once_value(builder, ir.Constant(kind, [0.0] * _SQUARE)) for _ in range(_SQUARES)]
        with _squares(builder, dim) as (position, column):
            for n, total in enumerate(totals):
                values = builder.load(total)
                lines = _load_transposed(builder, rows[n * _SQUARE : (n + 1) * _SQUARE], column)
                for i, line in enumerate(lines):
                    x = builder.load(builder.gep(squares.data, [builder.add(position, number(i))]))
                    values = _multiply_add(builder, broadcast(builder, x, _SQUARE), line, values)
                builder.store(values, total)
        for n, total in enumerate(totals):
            store_unaligned(builder, builder.load(total), builder.gep(out.data, [number(n * _SQUARE)]))
        return context.get_dummy_value()

    return types.void(squares, vectors, row_ids, types.intp, out), generate


def _multiply_with_block(_: Any, queries: Any, row: Any, block: Any, first: Any, out: Any) -> Any:
    """Fill out[:, first:] with the products of queries[row:] and the vectors block[:, first:], one tile of them."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        queries, row, block, first, out = unpack_arrays(context, builder, signature, arguments)
        number, kind = ir.IntType(64), ir.VectorType(ir.FloatType(), _LANES)
        rows = [row_start(builder, queries, builder.add(row, number(i))) for i in range(_QUERIES)]
        columns = [builder.add(first, number(_LANES * j)) for j in range(_REGISTERS)]
        zero = ir.Constant(kind, [0.0] * _LANES)
        totals = [[cgutils.alloca_once_value(builder, zero) for _ in columns] for _ in rows]
        with cgutils.for_range(builder, builder.extract_value(queries.shape, 1)) as loop:
            line = row_start(builder, block, loop.index)
            vectors = [load_unaligned(builder, builder.gep(line, [column]), kind) for column in columns]
            for start, row_totals in zip(rows, totals, strict=True):
                x = broadcast(builder, builder.load(builder.gep(start, [loop.index])), _LANES)
                for vector, total in zip(vectors, row_totals, strict=True):
                    builder.store(_multiply_add(builder, x, vector, builder.load(total)), total)
        for i, row_totals in enumerate(totals):
            line = row_start(builder, out, number(i))
            for column, total in zip(columns, row_totals, strict=True):
                store_unaligned(builder, builder.load(total), builder.gep(line, [column]))
        return context.get_dummy_value()

    return types.void(queries, types.intp, block, types.intp, out), generate


def _row_starts(builder: Any, vectors: Any, row_ids: Any, positions: list[Any]) -> list[Any]:
    """Return pointers to the rows whose ids are at these positions."""
    ids = [builder.load(builder.gep(row_ids.data, [position])) for position in positions]
    return [row_start(builder, vectors, builder.sext(row, ir.IntType(64))) for row in ids]


@contextmanager
def _squares(builder: Any, dim: Any) -> Iterator[tuple[Any, Any]]:
    """Loop over the squares of rows: gives the number of columns before each, and its first column."""
    size = ir.Constant(ir.IntType(64), _SQUARE)
    last = builder.sub(dim, size)
    count = builder.udiv(builder.add(last, ir.Constant(ir.IntType(64), 2 * _SQUARE - 1)), size)
    with cgutils.for_range(builder, count) as loop:
        position = builder.mul(loop.index, size)
        yield position, builder.select(builder.icmp_signed("<", position, last), position, last)


def _load_transposed(builder: Any, rows: list[Any], column: Any) -> list[Any]:
    """Return 8 columns of 8 rows as float32."""
    kind = ir.VectorType(rows[0].type.pointee, _SQUARE)
    lines = [load_unaligned(builder, builder.gep(row, [column]), kind) for row in rows]
    # Interleaved with the line 4 further on, three times, rows become columns.
    low, high = ([lane for i in range(start, start + 4) for lane in (i, i + _SQUARE)] for start in (0, 4))
    for _ in range(3):
        pairs = list(zip(lines[:4], lines[4:], strict=True))
        lines = [shuffle(builder, a, b, lanes) for a, b in pairs for lanes in (low, high)]
    return [_to_float32(builder, line) for line in lines]


def _to_float32(builder: Any, values: Any) -> Any:
    """Return 8 numbers, of float32, of int8 or the bits of float16, as float32."""
    kind = values.type.element
    floats, integers = ir.VectorType(ir.FloatType(), _SQUARE), ir.VectorType(ir.IntType(32), _SQUARE)
    if kind == ir.FloatType():
        return values
    if kind == ir.IntType(8):
        return builder.sitofp(values, floats)
    if "+f16c" in cpu_features():
        return builder.fpext(builder.bitcast(values, ir.VectorType(ir.HalfType(), _SQUARE)), floats)

    def constant(number: int) -> Any:
        return ir.Constant(integers, [number] * _SQUARE)

    # As `precision.widen` does it.
    bits = builder.zext(values, integers)
    size = builder.bitcast(builder.shl(builder.and_(bits, constant(0x7FFF)), constant(13)), floats)
    size = builder.bitcast(builder.fmul(size, ir.Constant(floats, [2.0**112] * _SQUARE)), integers)
    sign = builder.shl(builder.and_(bits, constant(0x8000)), constant(16))
    return builder.bitcast(builder.or_(size, sign), floats)


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a · b + c, fused if the CPU can."""
    kind = a.type
    name = f"llvm.fmuladd.v{kind.count}f32"
    return builder.call(builder.module.declare_intrinsic(name, (), ir.FunctionType(kind, [kind] * 3)), [a, b, c])


_fill_block: Any = intrinsic(_copy_to_block)
_multiply_rows: Any = intrinsic(_multiply_with_rows)
_multiply_tile: Any = intrinsic(_multiply_with_block)
