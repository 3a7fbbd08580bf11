"""Vectors as bytes: products of whole numbers, of which processors with VNNI do four times as many as of float32.

Whole numbers have one sum, whatever the order: the same codes give the same bits anywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types as _types
from numba.core import cgutils as _cgutils
from numba.core import codegen as _codegen
from numba.core import config as _config
from numba.extending import intrinsic
from numpy.typing import NDArray

from lightdxml.kernels.prefetch import fetch
from lightdxml.kernels.clusters import keep_best
from lightdxml.kernels.precision import row_scale, widen
from lightdxml.kernels.jit import kernel

# Parts of these have no type information.
types: Any = _types
cgutils: Any = _cgutils
codegen: Any = _codegen
config: Any = _config


def features() -> list[str]:
    """Return what Numba compiles for: this processor, unless its settings say less."""
    told: str | None = config.CPU_FEATURES
    return str(codegen.get_host_cpu_features() if told is None else told).split(",")


# Whether what is compiled may use the instruction; without it float32 is faster.
AVAILABLE = "+avx512vnni" in features()
# Bytes that are multiplied at once, and sums of four products each: codes are filled up with zeros to a multiple of it.
_STEP, LANES = 64, 16
# Sixteen products are taken at once, of so many documents and vectors: of some, or of one that is alone.
_SOME, _ALONE = (4, 4), (1, 16)
# So many vectors may be read behind the last one.
SPARE = _ALONE[1] - 1
# So many vectors of the next cluster are asked for ahead; the processor foresees the others.
_ASKED_FOR = 64
_LARGEST = np.float32(127.0)
# What is added to a document's codes, as the instruction wants one side without signs.
_OFFSET = 128


def _tile(sides: tuple[int, int]) -> Any:
    """Return what takes the products of so many documents and vectors.

    It fills as many rows of `out`, from the column `at` on, with the products of the documents at these `rows` and the
    vectors from `first` on; there must be as many.
    """

    def tile(_: Any, documents: Any, rows: Any, codes: Any, first: Any, scales: Any, shifts: Any, out: Any, at: Any
             ) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            arrays = arrays_of(context, builder, signature, arguments)
            documents, rows, codes, first, scales, shifts, out, at = arrays
            numbers = [ir.Constant(first.type, n) for n in range(max(sides))]
            those = [builder.load(builder.gep(rows.data, [n])) for n in numbers[: sides[0]]]
            places = [builder.add(first, n) for n in numbers[: sides[1]]]
            sums = sums_of(builder, products_of(builder, documents, those, codes, places))
            _store(builder, sides, sums, first, scales, shifts, out, at)
            return context.get_dummy_value()

        return types.void(documents, rows, codes, types.intp, scales, shifts, out, types.intp), code

    return intrinsic(tile)


def _store(
    builder: Any, sides: tuple[int, int], sums: Any, first: Any, scales: Any, shifts: Any, out: Any, at: Any
) -> None:
    """Store sums, less what the offset of documents added, times what a code of 1 stands for."""
    width = sides[1]
    kinds = ir.VectorType(ir.IntType(32), width), ir.VectorType(ir.FloatType(), width)
    shift = load_from(builder, builder.gep(shifts.data, [first]), kinds[0])
    scale = load_from(builder, builder.gep(scales.data, [first]), kinds[1])
    room = builder.extract_value(out.shape, 1)
    for row in range(sides[0]):
        lanes = ir.Constant(kinds[0], [width * row + n for n in range(width)])
        own = builder.shuffle_vector(sums, sums, lanes)
        product = builder.fmul(builder.sitofp(builder.sub(own, shift), kinds[1]), scale)
        place = builder.add(builder.mul(ir.Constant(room.type, row), room), at)
        stored = builder.store(product, builder.bitcast(builder.gep(out.data, [place]), kinds[1].as_pointer()))
        stored.align = 4


def arrays_of(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Return the arguments of an intrinsic, arrays with their parts at hand."""
    return [
        context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


def load_from(builder: Any, start: Any, kind: Any) -> Any:
    """Return what stands at any place in memory."""
    loaded = builder.load(builder.bitcast(start, kind.as_pointer()))
    loaded.align = 1
    return loaded


def products_of(builder: Any, documents: Any, rows: list[Any], codes: Any, places: list[Any]) -> list[Any]:
    """Return sums of sixteen parts of each product of the documents at these rows and the vectors at these places."""
    kind = ir.VectorType(ir.IntType(32), LANES)
    width = builder.extract_value(documents.shape, 1)
    step = ir.Constant(width.type, _STEP)

    def start(array: Any, row: Any) -> Any:
        whole = builder.bitcast(array.data, ir.IntType(8).as_pointer())
        return builder.gep(whole, [builder.mul(row, width)])

    left, right = [start(documents, row) for row in rows], [start(codes, place) for place in places]
    function = ir.FunctionType(kind, [kind, kind, kind])
    multiply = builder.module.declare_intrinsic("llvm.x86.avx512.vpdpbusd.512", (), function)
    zero = ir.Constant(kind, [0] * LANES)
    totals = [cgutils.alloca_once_value(builder, zero) for _ in range(len(rows) * len(places))]
    with cgutils.for_range(builder, builder.udiv(width, step)) as loop:
        offset = builder.mul(loop.index, step)
        a, b = ([load_from(builder, builder.gep(row, [offset]), kind) for row in side] for side in (left, right))
        for n, total in enumerate(totals):
            one = builder.call(multiply, [builder.load(total), a[n // len(b)], b[n % len(b)]])
            builder.store(one, total)
    return [builder.load(total) for total in totals]


def sums_of(builder: Any, totals: list[Any]) -> Any:
    """Return the sum of each of sixteen vectors, in one vector: neighbours are added until one is left of each."""
    number = ir.VectorType(ir.IntType(32), LANES)
    even, odd = (ir.Constant(number, list(range(start, 2 * LANES, 2))) for start in (0, 1))
    while len(totals) > 1:
        pairs = zip(totals[::2], totals[1::2], strict=True)
        totals = [builder.add(builder.shuffle_vector(a, b, even), builder.shuffle_vector(a, b, odd)) for a, b in pairs]
    return totals[0]


_four: Any = _tile(_SOME)
_one: Any = _tile(_ALONE)


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
    near: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Fill the columns start … stop of out with the products of documents and the vectors at start … stop.

    `near` is scratch, as in `search`.
    """
    rows = np.empty(4, np.int64)
    for first in range(start, stop, near.shape[1]):
        last = min(first + near.shape[1], stop)
        for b in range(0, documents.shape[0], 4):
            n = min(4, documents.shape[0] - b)
            for i in range(n):
                rows[i] = b + i
            _fill(documents, rows[:n], codes, first, last, scales, shifts, near)
            for i in range(n):
                for j in range(first, last):
                    out[b + i, j] = near[i, j - first]


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

    Codes, scales and shifts stand cluster by cluster, as places do, with `SPARE` rows behind; `near` has four rows of a
    multiple of sixteen.
    """
    some = np.empty(4, np.int64)
    c = _next_asked_for(ends, start, stop)
    while c < stop:
        after = _next_asked_for(ends, c + 1, stop)
        if after < stop:
            fetch(codes[pointers[after] : min(pointers[after] + _ASKED_FOR, pointers[after + 1])].reshape(-1))
        for first in range(pointers[c], pointers[c + 1], near.shape[1]):
            last = min(first + near.shape[1], pointers[c + 1])
            for row in range(ends[c], ends[c + 1], 4):
                n = min(4, ends[c + 1] - row)
                for b in range(n):
                    some[b] = rows[row + b]
                _fill(documents, some[:n], codes, first, last, scales, shifts, near)
                keep_best(near, bits, some[:n], places[first:last], k, found, counts, bounds)
        c = after


@kernel
def _next_asked_for(ends: NDArray[np.int64], c: int, stop: int) -> int:
    """Return the first cluster from c on that has documents, or stop."""
    while c < stop and ends[c] == ends[c + 1]:
        c += 1
    return c


@kernel
def _fill(
    documents: NDArray[np.uint8],
    rows: NDArray[np.int64],
    codes: NDArray[np.int8],
    first: int,
    last: int,
    scales: NDArray[np.float32],
    shifts: NDArray[np.int32],
    near: NDArray[np.float32],
) -> None:
    """Fill rows of near with the products of these documents, four at the most, and the vectors at first … last."""
    if rows.size == 4:
        for i in range(first, last, 4):
            _four(documents, rows, codes, i, scales, shifts, near, i - first)
        return
    # The last ones are taken with some before them, not behind: those may be nowhere near in memory's caches.
    end = max(first, last - 16)
    for b in range(rows.size):
        for i in range(first, last, 16):
            place = min(i, end)
            _one(documents, rows[b : b + 1], codes, place, scales, shifts, near[b:], place - first)
