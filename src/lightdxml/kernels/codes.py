"""Vectors as bytes: products of whole numbers, of which processors with VNNI do four times as many as of float32.

Whole numbers have one sum, whatever the order: the same codes give the same bits anywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types as _types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from lightdxml.kernels.clusters import keep_best
from lightdxml.kernels.half import row_scale, widen
from lightdxml.kernels.jit import kernel

# Parts of these have no type information.
types: Any = _types
cgutils: Any = _cgutils
# Whether this processor has the instruction; without it float32 is faster.
AVAILABLE = bool(binding.get_host_cpu_features().get("avx512vnni"))
# Bytes that are multiplied at once: codes are filled up with zeros to a multiple of it.
_STEP, _LANES = 64, 16
_LARGEST = np.float32(127.0)
# So many vectors, of a few hundred bytes each, stay close at hand; an even number.
_AT_HAND = 64
# What is added to a document's codes, as the instruction wants one side without signs.
_OFFSET = 128


def _dots(_: Any, documents: Any, r0: Any, r1: Any, r2: Any, r3: Any, vectors: Any, i: Any, j: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sums = ir.VectorType(ir.IntType(32), _LANES)
        arrays = [context.make_array(signature.args[a])(context, builder, arguments[a]) for a in (0, 5)]
        width = builder.extract_value(arrays[0].shape, 1)
        bytes_at_once = ir.Constant(width.type, _STEP)

        def row(array: Any, place: Any) -> Any:
            start = builder.bitcast(array.data, ir.IntType(8).as_pointer())
            return builder.gep(start, [builder.mul(place, width)])

        rows = [row(arrays[0], place) for place in arguments[1:5]]
        columns = [row(arrays[1], place) for place in arguments[6:8]]
        kind = ir.FunctionType(sums, [sums, sums, sums])
        multiply = builder.module.declare_intrinsic("llvm.x86.avx512.vpdpbusd.512", (), kind)
        totals = [cgutils.alloca_once_value(builder, ir.Constant(sums, [0] * _LANES)) for _ in range(8)]
        with cgutils.for_range(builder, builder.udiv(width, bytes_at_once)) as loop:
            offset = builder.mul(loop.index, bytes_at_once)

            def load(start: Any) -> Any:
                loaded = builder.load(builder.bitcast(builder.gep(start, [offset]), sums.as_pointer()))
                loaded.align = 1
                return loaded

            left, right = [load(start) for start in rows], [load(start) for start in columns]
            for n, total in enumerate(totals):
                builder.store(builder.call(multiply, [builder.load(total), left[n % 4], right[n // 4]]), total)
        kind = ir.FunctionType(ir.IntType(32), [sums])
        add_up = builder.module.declare_intrinsic(f"llvm.vector.reduce.add.v{_LANES}i32", (), kind)
        found = [builder.call(add_up, [builder.load(total)]) for total in totals]
        return context.make_tuple(builder, signature.return_type, found)

    place = types.intp
    return types.UniTuple(types.int32, 8)(documents, place, place, place, place, vectors, place, place), code


# The products of four documents and one vector, then those of the same four and another one.
dots: Any = intrinsic(_dots)


def padded(width: int) -> int:
    """Return how many bytes a row of codes has.

    >>> padded(64), padded(65)
    (64, 128)
    """
    return -(-width // _STEP) * _STEP


@kernel
def encode(
    start: int,
    stop: int,
    vectors: NDArray[Any],
    places: NDArray[np.int32],
    D: int,
    codes: NDArray[np.int8],
    scales: NDArray[np.float32],
    shifts: NDArray[np.int32],
) -> None:
    """Fill rows start … stop of codes, zeros so far, with the vectors (of any kind) at these places.

    Parameters
    ----------
    D
        Numbers a vector.
    scales
        Receives what a code of 1 stands for.
    shifts
        Receives what the offset of documents adds to each product.
    """
    for i in range(start, stop):
        vector = vectors[places[i]]
        largest, size = np.float32(0.0), np.float32(0.0)
        for d in range(D):
            largest = max(largest, abs(widen(vector[d])))
            size += abs(widen(vector[d]))
        # A vector that has no number is near to nothing, and to be told from others.
        scales[i] = largest / _LARGEST * row_scale(vector, D) if np.isfinite(size) else np.nan
        total = 0
        if largest > 0 and np.isfinite(size):
            for d in range(D):
                codes[i, d] = np.int8(np.rint(widen(vector[d]) * (_LARGEST / largest)))
                total += codes[i, d]
        shifts[i] = _OFFSET * total


@kernel
def encode_documents(documents: NDArray[np.float32], codes: NDArray[np.uint8]) -> None:
    """Fill codes with those of documents, each in a scale of its own: only the order of its products matters."""
    for b in range(len(documents)):
        x = documents[b]
        largest = np.float32(0.0)
        for d in range(x.size):
            largest = max(largest, abs(x[d]))
        factor = _LARGEST / largest if largest > 0 else np.float32(0.0)
        for d in range(x.size):
            codes[b, d] = np.uint8(np.int64(np.rint(x[d] * factor)) + _OFFSET)


@kernel
def products(
    start: int,
    stop: int,
    documents: NDArray[np.uint8],
    codes: NDArray[np.int8],
    scales: NDArray[np.float32],
    shifts: NDArray[np.int32],
    out: NDArray[np.float32],
) -> None:
    """Fill the columns start … stop of out with the products of documents and the vectors at start … stop."""
    last_row, last = documents.shape[0] - 1, stop - 1
    for first in range(start, stop, _AT_HAND):
        for b in range(0, documents.shape[0], 4):
            b1, b2, b3 = min(b + 1, last_row), min(b + 2, last_row), min(b + 3, last_row)
            for i in range(first, min(first + _AT_HAND, stop), 2):
                j = min(i + 1, last)
                p0, p1, p2, p3, q0, q1, q2, q3 = dots(documents, b, b1, b2, b3, codes, i, j)
                scale, shift = scales[i], shifts[i]
                out[b, i], out[b1, i] = np.float32(p0 - shift) * scale, np.float32(p1 - shift) * scale
                out[b2, i], out[b3, i] = np.float32(p2 - shift) * scale, np.float32(p3 - shift) * scale
                scale, shift = scales[j], shifts[j]
                out[b, j], out[b1, j] = np.float32(q0 - shift) * scale, np.float32(q1 - shift) * scale
                out[b2, j], out[b3, j] = np.float32(q2 - shift) * scale, np.float32(q3 - shift) * scale


@kernel
def search(
    start: int,
    stop: int,
    documents: NDArray[np.uint8],
    rows: NDArray[np.int32],
    ends: NDArray[np.int64],
    codes: NDArray[np.int8],
    scales: NDArray[np.float32],
    shifts: NDArray[np.int32],
    places: NDArray[np.int32],
    pointers: NDArray[np.int64],
    k: int,
    near: NDArray[np.float32],
    bits: NDArray[np.uint32],
    found: NDArray[np.uint64],
    counts: NDArray[np.int64],
    bounds: NDArray[np.float32],
) -> None:
    """Look for documents in those of the clusters start … stop that are theirs: `clusters.search` on codes.

    Codes, scales and shifts stand cluster by cluster, as places do.
    """
    four = np.empty(4, np.int64)
    for c in range(start, stop):
        if ends[c] == ends[c + 1]:
            continue
        for first in range(pointers[c], pointers[c + 1], near.shape[1]):
            last = min(first + near.shape[1], pointers[c + 1])
            for row in range(ends[c], ends[c + 1], 4):
                for b in range(4):
                    four[b] = rows[min(row + b, ends[c + 1] - 1)]
                for i in range(first, last, 2):
                    j = min(i + 1, last - 1)
                    a0, a1, a2, a3, b0, b1, b2, b3 = dots(documents, four[0], four[1], four[2], four[3], codes, i, j)
                    p, scale, shift = i - first, scales[i], shifts[i]
                    near[0, p], near[1, p] = np.float32(a0 - shift) * scale, np.float32(a1 - shift) * scale
                    near[2, p], near[3, p] = np.float32(a2 - shift) * scale, np.float32(a3 - shift) * scale
                    p, scale, shift = j - first, scales[j], shifts[j]
                    near[0, p], near[1, p] = np.float32(b0 - shift) * scale, np.float32(b1 - shift) * scale
                    near[2, p], near[3, p] = np.float32(b2 - shift) * scale, np.float32(b3 - shift) * scale
                n, m = min(4, ends[c + 1] - row), last - first
                keep_best(near[:n, :m], bits[:n, :m], four[:n], places[first:last], k, found, counts, bounds)
