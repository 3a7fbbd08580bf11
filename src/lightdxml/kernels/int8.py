"""int8 rerank: products of 8-bit codes, which are integers and so have the same sum in any order.

The instruction of CPUs with VNNI multiplies unsigned with signed bytes. So the codes of queries are stored with an
offset, and each vector stores what the offset adds to its products.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from lightdxml.kernels import intrinsics as llvm
from lightdxml.kernels.jit import kernel
from lightdxml.kernels.precision import row_scale, widen

# Products that are taken at once.
LANES = 16
# Bytes per step: rows of codes are padded with zeros to a multiple of it.
_STEP = 64
_LARGEST = np.float32(127.0)
# Added to the codes of queries.
_OFFSET = 128
_VNNI = "+avx512vnni" in llvm.cpu_features()


def code_width(dim: int) -> int:
    """Return the bytes per row of codes.

    >>> code_width(64), code_width(65)
    (64, 128)
    """
    return -(-dim // _STEP) * _STEP


class Int8Codes(NamedTuple):
    """Vectors as int8 codes.

    Attributes
    ----------
    codes
        One row per vector.
    scales
        The value of a code of 1; NaN for a vector that is not finite.
    offsets
        What the offset of queries adds to a product.
    """

    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    offsets: NDArray[np.int32]


@kernel
def encode_vectors(
    start: int, stop: int, vectors: NDArray[Any], row_ids: NDArray[np.int32], dim: int, encoded: Int8Codes
) -> None:
    """Fill rows start … stop of the codes, zeros before, with those of the vectors row_ids[start:stop].

    Vectors are float32, int8, or float16 as `precision.as_bits` passes it.
    """
    codes, scales, offsets = encoded
    for i in range(start, stop):
        vector = vectors[row_ids[i]]
        largest, size = np.float32(0.0), np.float32(0.0)
        for d in range(dim):
            largest = max(largest, abs(widen(vector[d])))
            size += abs(widen(vector[d]))
        scales[i] = largest / _LARGEST * row_scale(vector, dim) if np.isfinite(size) else np.nan
        total = 0
        if largest > 0 and np.isfinite(size):
            for d in range(dim):
                codes[i, d] = np.int8(np.rint(widen(vector[d]) * (_LARGEST / largest)))
                total += codes[i, d]
        offsets[i] = _OFFSET * total


@kernel
def encode_queries(queries: NDArray[np.float32], codes: NDArray[np.uint8]) -> None:
    """Fill codes, zeros before, with those of queries; each has a scale of its own, which leaves its order as it is."""
    for b in range(len(queries)):
        x = queries[b]
        largest = np.float32(0.0)
        for d in range(x.size):
            largest = max(largest, abs(x[d]))
        factor = _LARGEST / largest if largest > 0 else np.float32(0.0)
        for d in range(x.size):
            codes[b, d] = np.uint8(np.int64(np.rint(x[d] * factor)) + _OFFSET)


@kernel
def rerank(
    queries: NDArray[np.uint8],
    query: int,
    vectors: Int8Codes,
    rows: NDArray[np.int64],
    n: int,
    sums: NDArray[np.int32],
    out: NDArray[np.float32],
) -> None:
    """Fill out with the products of a query and the codes of n rows; `rows` and `sums` have space for 16 more."""
    if n == 0:
        return
    codes, scales, offsets = vectors
    for i in range(n, n + LANES):
        rows[i] = rows[n - 1]
    for i in range(0, n, LANES):
        _multiply_sixteen(queries, query, codes, rows, i, sums)
    for i in range(n):
        out[i] = np.float32(sums[i] - offsets[rows[i]]) * scales[rows[i]]


@kernel
def multiply_portably(
    queries: NDArray[np.uint8],
    query: int,
    codes: NDArray[np.int8],
    rows: NDArray[np.int64],
    first: int,
    out: NDArray[np.int32],
) -> None:
    """Fill out[first : first + 16] with the products of a query and the codes of these rows, without VNNI."""
    x = queries[query]
    for i in range(first, first + LANES):
        vector, total = codes[rows[i]], np.int32(0)
        for d in range(x.size):
            total = np.int32(total + np.int32(x[d]) * np.int32(vector[d]))
        out[i] = total


@llvm.intrinsic
def _multiply_with_vnni(builder: Any, queries: Any, query: Any, codes: Any, rows: Any, first: Any, out: Any) -> None:
    """Do what `multiply_portably` does."""
    positions = [builder.add(first, ir.Constant(first.type, n)) for n in range(LANES)]
    starts = [llvm.row_start(builder, codes, builder.load(builder.gep(rows.data, [at]))) for at in positions]
    width = builder.extract_value(queries.shape, 1)
    totals = _accumulate(builder, llvm.row_start(builder, queries, query), starts, width)
    llvm.store_unaligned(builder, _sum_lanes(builder, totals), builder.gep(out.data, [first]))


def _accumulate(builder: Any, query: Any, rows: list[Any], width: Any) -> list[Any]:
    """Return, per row, a vector whose lanes add up to its product with the query."""
    kind = ir.VectorType(ir.IntType(32), LANES)
    multiply_add = builder.module.declare_intrinsic(
        "llvm.x86.avx512.vpdpbusd.512", (), ir.FunctionType(kind, [kind] * 3)
    )
    step = ir.Constant(width.type, _STEP)
    totals = [llvm.cgutils.alloca_once_value(builder, ir.Constant(kind, [0] * LANES)) for _ in rows]
    with llvm.cgutils.for_range(builder, builder.udiv(width, step)) as loop:
        offset = builder.mul(loop.index, step)
        x = llvm.load_unaligned(builder, builder.gep(query, [offset]), kind)
        for row, total in zip(rows, totals, strict=True):
            values = llvm.load_unaligned(builder, builder.gep(row, [offset]), kind)
            builder.store(builder.call(multiply_add, [builder.load(total), x, values]), total)
    return [builder.load(total) for total in totals]


def _sum_lanes(builder: Any, totals: list[Any]) -> Any:
    """Return the sums of the lanes of sixteen vectors as one vector."""
    even, odd = (list(range(start, 2 * LANES, 2)) for start in (0, 1))
    while len(totals) > 1:
        pairs = zip(totals[::2], totals[1::2], strict=True)
        totals = [builder.add(llvm.shuffle(builder, a, b, even), llvm.shuffle(builder, a, b, odd)) for a, b in pairs]
    return totals[0]


_multiply_sixteen: Any = _multiply_with_vnni if _VNNI else multiply_portably
