"""Inner products of queries and vectors, with the same bits for one query as for a batch.

Eight partial sums take the products of every eighth dimension, in the order of the dimensions. They are then added up
in order. For one query, the lanes of a register hold the partial sums of one vector. For a batch, the lanes hold
different vectors, and the partial sums follow each other. Vectors are then copied to a transposed block of float32,
which stays in the cache while all queries are multiplied with it.

Rows are split into groups of 8 dimensions. The last group overlaps the one before it, so that no row is read beyond its
end. Queries are zero where a dimension is repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from lightdxml.kernels import intrinsics as llvm
from lightdxml.kernels.jit import kernel
from lightdxml.kernels.precision import row_scale
from lightdxml.kernels.prefetch import prefetch_row
from lightdxml.kernels.topk import TopK, push_topk

# Dimensions per group, which is also the number of partial sums; vectors must have as many.
MIN_DIM = _GROUP = 8
# Vectors that one query is multiplied with at once: their chains of multiply-adds overlap.
_ROWS = 8
_LANES = 16 if "+avx512f" in llvm.cpu_features() else 8 if "+avx" in llvm.cpu_features() else 4
# In a batch, the accumulators of 6 queries × 2 registers of vectors, with their operands, fill the registers of AVX2.
_QUERIES, _REGISTERS = 6, 2
# Vectors per block: about what fits in the L1 cache, and a multiple of `_ROWS`.
_BLOCK = 6 * max(8, _LANES)
# Rows are prefetched this far ahead.
_AHEAD = 24


@kernel
def search(start: int, stop: int, queries: NDArray[np.float32], vectors: NDArray[Any], top: TopK) -> None:
    """Add the inner products with vectors[start:stop] to the top k of each query.

    Queries and vectors have at least `MIN_DIM` dimensions. Vectors are float32, int8, or float16 as `precision.as_bits`
    passes it.
    """
    if queries.shape[0] == 1:
        _search_one(start, stop, queries[0], vectors, top)
        return
    dim, n_queries = queries.shape[1], queries.shape[0]
    n_groups = (dim + _GROUP - 1) // _GROUP
    # The tile of the last queries is padded with zeros.
    grouped = np.zeros(((n_queries + _QUERIES - 1) // _QUERIES * _QUERIES, _GROUP * n_groups), np.float32)
    query_ids = np.empty(n_queries, np.int64)
    for b in range(n_queries):
        query_ids[b] = b
        for i, x in enumerate(_group(queries[b])):
            grouped[b, i % _GROUP * n_groups + i // _GROUP] = x
    block, scales = np.empty((_GROUP * n_groups, _BLOCK), np.float32), np.empty(_BLOCK, np.float32)
    products, row_ids = np.empty((_QUERIES, _BLOCK), np.float32), np.empty(_BLOCK, np.int32)
    for first in range(start, stop, _BLOCK):
        n = min(_BLOCK, stop - first)
        for i in range(_BLOCK):
            row_ids[i] = min(first + i, stop - 1)
            scales[i] = row_scale(vectors[row_ids[i]], dim)
        for i in range(0, n, _ROWS):
            _fill_block(vectors, row_ids, i, dim, block)
        for query in range(0, n_queries, _QUERIES):
            some = query_ids[query : query + _QUERIES]
            for i in range(0, n, _REGISTERS * _LANES):
                _multiply_tile(grouped, query, block, i, products)
            for j in range(some.size):
                for i in range(n):
                    products[j, i] *= scales[i]
            push_topk(products, some, row_ids[:n], top)


@kernel
def _search_one(start: int, stop: int, query: NDArray[np.float32], vectors: NDArray[Any], top: TopK) -> None:
    grouped, query_id = _group(query), np.zeros(1, np.int64)
    row_ids, products = np.empty(_BLOCK, np.int32), np.empty((1, _BLOCK), np.float32)
    for first in range(start, stop, _BLOCK):
        n = min(_BLOCK, stop - first)
        for i in range(_BLOCK):
            row_ids[i] = min(first + i, stop - 1)
        for i in range(0, n, _ROWS):
            for j in range(i, i + _ROWS):
                prefetch_row(vectors[min(first + _AHEAD + j, stop - 1)])
            _multiply_rows(grouped, vectors, row_ids, i, query.size, products[0])
        for i in range(n):
            products[0, i] *= row_scale(vectors[row_ids[i]], query.size)
        push_topk(products, query_id, row_ids[:n], top)


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
        grouped = _group(queries[b])
        for first in range(0, n_rows, _ROWS):
            for i in range(_ROWS):
                own_ids[i] = max(0, row_ids[b, min(first + i, n_rows - 1)])
                prefetch_row(vectors[max(0, row_ids[b, min(first + _ROWS + i, n_rows - 1)])])
            _multiply_rows(grouped, vectors, own_ids, 0, dim, products)
            for i in range(min(_ROWS, n_rows - first)):
                scaled = products[i] * row_scale(vectors[own_ids[i]], dim)
                out[b, first + i] = scaled if row_ids[b, first + i] >= 0 else np.float32(-1.0)


@kernel
def _group(query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a query in groups, with zeros where the last group repeats dimensions."""
    dim, size = query.size, (query.size + _GROUP - 1) // _GROUP * _GROUP
    grouped = np.zeros(size, np.float32)
    for d in range(dim):
        grouped[d if d < size - _GROUP else d + size - dim] = query[d]
    return grouped


@llvm.intrinsic
def _multiply_rows(builder: Any, grouped: Any, vectors: Any, row_ids: Any, first: Any, dim: Any, out: Any) -> None:
    """Fill out[first : first + 8] with the products of a query in groups and the vectors row_ids[first : first + 8]."""
    kind = ir.VectorType(ir.FloatType(), _GROUP)
    rows = _row_starts(builder, vectors, row_ids, first)
    totals = [llvm.cgutils.alloca_once_value(builder, ir.Constant(kind, [0.0] * _GROUP)) for _ in rows]
    with _groups(builder, dim) as (group, column):
        start = builder.mul(group, ir.Constant(group.type, _GROUP))
        x = llvm.load_unaligned(builder, builder.gep(grouped.data, [start]), kind)
        for row, total in zip(rows, totals, strict=True):
            values = _to_float32(builder, _load_group(builder, row, column))
            builder.store(_multiply_add(builder, x, values, builder.load(total)), total)
    sums = _transpose(builder, [builder.load(total) for total in totals])
    llvm.store_unaligned(builder, reduce(builder.fadd, sums), builder.gep(out.data, [first]))


@llvm.intrinsic
def _fill_block(builder: Any, vectors: Any, row_ids: Any, first: Any, dim: Any, block: Any) -> None:
    """Copy the vectors row_ids[first : first + 8] to the columns block[:, first:], partial sum by partial sum."""
    rows = _row_starts(builder, vectors, row_ids, first)
    n_groups = builder.udiv(builder.extract_value(block.shape, 0), ir.Constant(ir.IntType(64), _GROUP))
    with _groups(builder, dim) as (group, column):
        lines = _transpose(builder, [_load_group(builder, row, column) for row in rows])
        for i, line in enumerate(lines):
            at = builder.add(builder.mul(ir.Constant(ir.IntType(64), i), n_groups), group)
            start = builder.gep(llvm.row_start(builder, block, at), [first])
            llvm.store_unaligned(builder, _to_float32(builder, line), start)


@llvm.intrinsic
def _multiply_tile(builder: Any, queries: Any, row: Any, block: Any, first: Any, out: Any) -> None:
    """Fill out[:, first:] with the products of queries[row:] and the vectors block[:, first:], one tile of them."""
    number, kind = ir.IntType(64), ir.VectorType(ir.FloatType(), _LANES)
    rows = [llvm.row_start(builder, queries, builder.add(row, number(i))) for i in range(_QUERIES)]
    columns = [builder.add(first, number(_LANES * j)) for j in range(_REGISTERS)]
    zero = ir.Constant(kind, [0.0] * _LANES)
    sums, totals = ([[llvm.cgutils.alloca_once_value(builder, zero) for _ in columns] for _ in rows] for _ in "st")
    n_groups = builder.udiv(builder.extract_value(block.shape, 0), number(_GROUP))
    with llvm.cgutils.for_range(builder, number(_GROUP)) as partial:
        for total in chain(*totals):
            builder.store(zero, total)
        with llvm.cgutils.for_range(builder, n_groups) as group:
            at = builder.add(builder.mul(partial.index, n_groups), group.index)
            line = llvm.row_start(builder, block, at)
            vectors = [llvm.load_unaligned(builder, builder.gep(line, [column]), kind) for column in columns]
            for start, own in zip(rows, totals, strict=True):
                x = llvm.broadcast(builder, builder.load(builder.gep(start, [at])), _LANES)
                for vector, total in zip(vectors, own, strict=True):
                    builder.store(_multiply_add(builder, x, vector, builder.load(total)), total)
        for total, added in zip(chain(*sums), chain(*totals), strict=True):
            builder.store(builder.fadd(builder.load(total), builder.load(added)), total)
    for i, own in enumerate(sums):
        line = llvm.row_start(builder, out, number(i))
        for column, total in zip(columns, own, strict=True):
            llvm.store_unaligned(builder, builder.load(total), builder.gep(line, [column]))


def _row_starts(builder: Any, vectors: Any, row_ids: Any, first: Any) -> list[Any]:
    """Return pointers to the vectors row_ids[first : first + 8]."""
    positions = [builder.add(first, ir.Constant(first.type, i)) for i in range(_ROWS)]
    ids = [builder.load(builder.gep(row_ids.data, [position])) for position in positions]
    return [llvm.row_start(builder, vectors, builder.sext(row, ir.IntType(64))) for row in ids]


@contextmanager
def _groups(builder: Any, dim: Any) -> Iterator[tuple[Any, Any]]:
    """Loop over the groups of a row: gives the number of each and its first column."""
    size = ir.Constant(ir.IntType(64), _GROUP)
    last = builder.sub(dim, size)
    count = builder.udiv(builder.add(dim, ir.Constant(ir.IntType(64), _GROUP - 1)), size)
    with llvm.cgutils.for_range(builder, count) as loop:
        start = builder.mul(loop.index, size)
        yield loop.index, builder.select(builder.icmp_signed("<", start, last), start, last)


def _load_group(builder: Any, row: Any, column: Any) -> Any:
    return llvm.load_unaligned(builder, builder.gep(row, [column]), ir.VectorType(row.type.pointee, _GROUP))


def _transpose(builder: Any, lines: list[Any]) -> list[Any]:
    """Turn the lanes of 8 vectors into vectors: interleave each with the one 4 further on, three times."""
    low, high = ([lane for i in range(start, start + 4) for lane in (i, i + 8)] for start in (0, 4))
    for _ in range(3):
        pairs = list(zip(lines[:4], lines[4:], strict=True))
        lines = [llvm.shuffle(builder, a, b, lanes) for a, b in pairs for lanes in (low, high)]
    return lines


def _to_float32(builder: Any, values: Any) -> Any:
    """Return 8 numbers, of float32, of int8 or the bits of float16, as float32."""
    kind = values.type.element
    floats, integers = ir.VectorType(ir.FloatType(), _GROUP), ir.VectorType(ir.IntType(32), _GROUP)
    if kind == ir.FloatType():
        return values
    if kind == ir.IntType(8):
        return builder.sitofp(values, floats)
    if "+f16c" in llvm.cpu_features():
        return builder.fpext(builder.bitcast(values, ir.VectorType(ir.HalfType(), _GROUP)), floats)

    def constant(number: int) -> Any:
        return ir.Constant(integers, [number] * _GROUP)

    # As `precision.widen` does it.
    bits = builder.zext(values, integers)
    size = builder.bitcast(builder.shl(builder.and_(bits, constant(0x7FFF)), constant(13)), floats)
    size = builder.bitcast(builder.fmul(size, ir.Constant(floats, [2.0**112] * _GROUP)), integers)
    sign = builder.shl(builder.and_(bits, constant(0x8000)), constant(16))
    return builder.bitcast(builder.or_(size, sign), floats)


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a · b + c, fused if the CPU can."""
    kind = a.type
    name = f"llvm.fmuladd.v{kind.count}f32"
    return builder.call(builder.module.declare_intrinsic(name, (), ir.FunctionType(kind, [kind] * 3)), [a, b, c])
