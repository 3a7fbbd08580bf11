"""Sketches: a bit a number, from which products with a document are told roughly, sixty-four vectors at a time.

A vector is turned first, which no product sees. Then its numbers are about equally large, and their signs s say most of
it: the product of a document x and a vector v is about |v|² / Σ|v_d| · (x · s) (RaBitQ: Gao and Long, 2024). x · s is
summed up from a document's tables, one for each four signs, which a shuffle of bytes looks up for many vectors at once
(André, Kermarrec and Le Scouarnec, 2017).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types as _types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from lightdxml.kernels import codes as _codes
from lightdxml.kernels.prefetch import ask_to_read, fetch
from lightdxml.kernels.clusters import keep_best
from lightdxml.kernels.int8 import LANES, arrays_of, features, load_from, products_of, sums_of
from lightdxml.kernels.precision import row_scale, widen
from lightdxml.kernels.jit import kernel

# Parts of these have no type information.
types: Any = _types
cgutils: Any = _cgutils

# Vectors of a block, and the numbers that are mixed.
BLOCK, _MIXED = 64, 64
# Signs of a table, its entries, and tables that are summed up in a byte.
_SIGNS, _ENTRIES, _AT_ONCE = 4, 16, 8
# Documents and blocks that are looked up together.
_TOGETHER, PAIR = 4, 2
# With so few documents vectors are asked for ahead: no other one will have read them.
_FEW = 4
# What is off by rounding when a sum is worked out from how near it seems.
_ROUNDING = np.float32(1e-3)
# The largest entry of a table: eight are below 256, and all of them below 65,536.
_LARGEST = np.float32(31.0)
MOST_NUMBERS = 65_535 // 31 * _SIGNS // _MIXED * _MIXED
# Instructions that look bytes up in a table of sixteen, with what a processor must have and how many they look up.
_SHUFFLES = (("+avx512bw", "llvm.x86.avx512.pshuf.b.512", 64), ("+avx2", "llvm.x86.avx2.pshuf.b", 32))
_SHUFFLE = next((shuffle[1:] for shuffle in _SHUFFLES if shuffle[0] in features()), None)


# Whether vectors can be looked up quickly by what is compiled.
AVAILABLE = _SHUFFLE is not None


def width_of(D: int) -> int:
    """Return how many numbers a turned vector has.

    >>> width_of(64), width_of(65)
    (64, 128)
    """
    return -(-D // _MIXED) * _MIXED


def bytes_of(D: int) -> tuple[int, int]:
    """Return how many bytes a block of sketches and the tables of a document have.

    >>> bytes_of(300)
    (2560, 1280)
    """
    width = width_of(D)
    return width // 8 * BLOCK, width // _SIGNS * _ENTRIES


def _row(builder: Any, array: Any, row: Any) -> Any:
    """Return where a row of bytes begins."""
    whole = builder.bitcast(array.data, ir.IntType(8).as_pointer())
    return builder.gep(whole, [builder.mul(row, builder.extract_value(array.shape, 1))])


def _looking_up(n_documents: int, n_blocks: int) -> Any:
    """Return what finds which vectors of blocks have sums of documents' tables that are not below their least ones.

    Of so many documents from `row` and blocks from `block` on. `least` and `out` have as many rows and columns. It
    fills `out`: the bits of a block's vectors with even numbers stand in the lower half, those of the others in the
    upper half.
    """

    def look_up(_: Any, blocks: Any, block: Any, tables: Any, row: Any, least: Any, out: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            blocks, block, tables, row, least, out = arrays_of(context, builder, signature, arguments)
            numbers = [ir.Constant(ir.IntType(64), n) for n in range(n_documents * n_blocks)]
            those, rows = ([builder.add(first, n) for n in numbers[:count]]
                           for first, count in ((block, n_blocks), (row, n_documents)))  # fmt: skip
            sums = _sums(builder, blocks, those, tables, rows)
            for n, pair in zip(numbers, sums, strict=True):
                bound = _everywhere(builder, builder.load(builder.gep(least.data, [n])))
                builder.store(_not_below(builder, pair, bound), builder.gep(out.data, [n]))
            return context.get_dummy_value()

        return types.void(blocks, types.intp, tables, types.intp, least, out), code

    return intrinsic(look_up)


def _sums_of_block(_: Any, blocks: Any, block: Any, tables: Any, row: Any, out: Any) -> Any:
    """Fill out with the sums of a document's tables of a block's vectors: those with even numbers, then the others."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        blocks, block, tables, row, out = arrays_of(context, builder, signature, arguments)
        (pair,) = _sums(builder, blocks, [block], tables, [row])
        for half, sums in enumerate(pair):
            start = builder.gep(out.data, [ir.Constant(ir.IntType(64), half * BLOCK // 2)])
            builder.store(sums, builder.bitcast(start, sums.type.as_pointer())).align = 2
        return context.get_dummy_value()

    return types.void(blocks, types.intp, tables, types.intp, out), code


def _everywhere(builder: Any, number: Any) -> Any:
    """Return a vector of one number of 16 bits."""
    kind = ir.VectorType(ir.IntType(16), BLOCK // 2)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.IntType(32)(0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), BLOCK // 2), [0] * (BLOCK // 2))
    return builder.shuffle_vector(first, first, places)


def _not_below(builder: Any, sums: tuple[Any, Any], bound: Any) -> Any:
    half, whole = ir.IntType(BLOCK // 2), ir.IntType(BLOCK)
    even, odd = (builder.zext(builder.bitcast(builder.icmp_unsigned(">=", one, bound), half), whole) for one in sums)
    return builder.or_(even, builder.shl(odd, ir.Constant(whole, BLOCK // 2)))


def _looked_up(builder: Any, table: Any, codes: Any) -> Any:
    """Return the entries of a table of sixteen at sixty-four numbers, by as many shuffles as it takes."""
    assert _SHUFFLE is not None
    name, lanes = _SHUFFLE
    kind = ir.VectorType(ir.IntType(8), lanes)
    shuffle = builder.module.declare_intrinsic(name, (), ir.FunctionType(kind, [kind, kind]))

    def places(first: int, n: int) -> Any:
        return ir.Constant(ir.VectorType(ir.IntType(32), n), list(range(first, first + n)))

    repeated = ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(range(_ENTRIES)) * (lanes // _ENTRIES))
    wide = builder.shuffle_vector(table, table, repeated)
    parts = [
        builder.call(shuffle, [wide, builder.shuffle_vector(codes, codes, places(first, lanes))])
        for first in range(0, BLOCK, lanes)
    ]
    return parts[0] if len(parts) == 1 else builder.shuffle_vector(*parts, places(0, BLOCK))


def _sums(builder: Any, blocks: Any, those: list[Any], tables: Any, rows: list[Any]) -> list[tuple[Any, Any]]:
    """Return the sums of each row's tables, for each of those blocks, of its vectors with even and with odd numbers.

    They have 16 bits each.
    """
    words = ir.VectorType(ir.IntType(16), BLOCK // 2)
    starts, own = [_row(builder, blocks, block) for block in those], [_row(builder, tables, row) for row in rows]
    zero = ir.Constant(words, [0] * (BLOCK // 2))
    wholes, odds = ([cgutils.alloca_once_value(builder, zero) for _ in range(len(rows) * len(those))] for _ in "eo")

    def number(n: int) -> Any:
        return ir.Constant(ir.IntType(64), n)

    steps = builder.udiv(builder.extract_value(tables.shape, 1), number(_AT_ONCE * _ENTRIES))
    with cgutils.for_range(builder, steps) as loop:
        place = builder.mul(loop.index, number(_AT_ONCE // 2 * BLOCK))
        first = builder.mul(loop.index, number(_AT_ONCE * _ENTRIES))
        totals = _eight_tables(builder, [builder.gep(start, [place]) for start in starts],
                               [builder.gep(one, [first]) for one in own])  # fmt: skip
        for whole, odd, total in zip(wholes, odds, totals, strict=True):
            pairs = builder.bitcast(total, words)
            builder.store(builder.add(builder.load(whole), pairs), whole)
            upper = builder.lshr(pairs, ir.Constant(words, [8] * (BLOCK // 2)))
            builder.store(builder.add(builder.load(odd), upper), odd)
    return [_apart(builder, builder.load(whole), builder.load(odd)) for whole, odd in zip(wholes, odds, strict=True)]


def _eight_tables(builder: Any, signs: list[Any], tables: list[Any]) -> list[Any]:
    """Return the sums of eight tables of each document for each block, a byte a vector."""
    bytes_, words = ir.VectorType(ir.IntType(8), BLOCK), ir.VectorType(ir.IntType(16), BLOCK // 2)
    low, four = ir.Constant(bytes_, [15] * BLOCK), ir.Constant(words, [4] * (BLOCK // 2))
    totals = [ir.Constant(bytes_, [0] * BLOCK)] * (len(tables) * len(signs))
    for n in range(_AT_ONCE):
        # Two tables' signs stand in a byte.
        place = ir.Constant(ir.IntType(64), n // 2 * BLOCK)
        pairs = [load_from(builder, builder.gep(start, [place]), bytes_) for start in signs]
        if n % 2:
            pairs = [builder.bitcast(builder.lshr(builder.bitcast(pair, words), four), bytes_) for pair in pairs]
        codes = [builder.and_(pair, low) for pair in pairs]
        for i, table in enumerate(tables):
            start = builder.gep(table, [ir.Constant(ir.IntType(64), n * _ENTRIES)])
            entries = load_from(builder, start, ir.VectorType(ir.IntType(8), _ENTRIES))
            for j, those in enumerate(codes):
                total = i * len(signs) + j
                totals[total] = builder.add(totals[total], _looked_up(builder, entries, those))
    return totals


def _apart(builder: Any, whole: Any, odd: Any) -> tuple[Any, Any]:
    """Return the sums of even bytes and of odd ones: pairs were summed up as numbers of 16 bits."""
    return builder.sub(whole, builder.shl(odd, ir.Constant(odd.type, [8] * (BLOCK // 2)))), odd


_look_up_four: Any = _looking_up(_TOGETHER, PAIR)
_look_up_one: Any = _looking_up(1, 1)
_sums_of_one: Any = intrinsic(_sums_of_block)


def _lowest_bit(_: Any, bits: Any) -> Any:
    """Return the place of the lowest bit that is set."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.uint64(types.uint64), code


lowest_bit: Any = intrinsic(_lowest_bit)


def _gathered(_: Any, documents: Any, row: Any, codes: Any, rows: Any, first: Any, out: Any) -> Any:
    """Fill sixteen of `out`, from `first` on, with products of a document's codes and those of the vectors at `rows`.

    They are whole numbers (`kernels.int8`).
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        documents, row, codes, rows, first, out = arrays_of(context, builder, signature, arguments)
        numbers = [builder.add(first, ir.Constant(first.type, n)) for n in range(LANES)]
        those = [builder.load(builder.gep(rows.data, [n])) for n in numbers]
        sums = sums_of(builder, products_of(builder, documents, [row], codes, those))
        start = builder.bitcast(builder.gep(out.data, [first]), sums.type.as_pointer())
        builder.store(sums, start).align = 4
        return context.get_dummy_value()

    return types.void(documents, types.intp, codes, rows, types.intp, out), code


@kernel
def _multiply_plainly(
    documents: NDArray[np.uint8],
    row: int,
    codes: NDArray[np.int8],
    rows: NDArray[np.int64],
    first: int,
    out: NDArray[np.int32],
) -> None:
    """Do what `_gathered` does by the instructions that every processor has."""
    x = documents[row]
    for i in range(first, first + LANES):
        vector, total = codes[rows[i]], np.int32(0)
        for d in range(x.size):
            total = np.int32(total + np.int32(x[d]) * np.int32(vector[d]))
        out[i] = total


_multiply_sixteen: Any = intrinsic(_gathered) if _codes.AVAILABLE else _multiply_plainly


@kernel
def _mix(row: NDArray[np.float32], sign: np.uint32) -> np.uint32:
    """Change signs of a row, and mix each 64 of its numbers by a Hadamard matrix; return where signs go on from."""
    for d in range(row.size):
        # Whether a sign is changed is as good as random, and always the same.
        sign = np.uint32(sign * np.uint32(1664525) + np.uint32(1013904223))
        row[d] *= np.float32(-0.125) if sign >> np.uint32(31) else np.float32(0.125)
    half = 1
    while half < _MIXED:
        for first in range(0, row.size, 2 * half):
            for d in range(first, first + half):
                a, b = row[d], row[d + half]
                row[d], row[d + half] = a + b, a - b
        half *= 2
    return sign


@kernel
def _turn(row: NDArray[np.float32], room: NDArray[np.float32]) -> None:
    """Turn a row in place by an orthogonal matrix: mixed, dealt out, and mixed again. `room` is scratch."""
    sign = _mix(row, np.uint32(1))
    parts = row.size // _MIXED
    if parts == 1:
        return
    for d in range(row.size):
        room[d % parts * _MIXED + d // parts] = row[d]
    row[:] = room
    _mix(row, sign)


@kernel
def _turned(
    vector: NDArray[Any], mean: NDArray[np.float32], row: NDArray[np.float32], room: NDArray[np.float32]
) -> None:
    """Fill a row with a vector of any kind, less the mean, turned."""
    scale = row_scale(vector, mean.size)
    row[:] = 0
    for d in range(mean.size):
        row[d] = widen(vector[d]) * scale - mean[d]
    _turn(row, room)


@kernel
def measure(
    start: int,
    stop: int,
    vectors: NDArray[Any],
    mean: NDArray[np.float32],
    width: int,
    scales: NDArray[np.float32],
) -> None:
    """Fill scales[start:stop] with |v|² / Σ|v_d| of vectors (of any kind) less the mean, turned; NaN for no number."""
    row, room = np.empty(width, np.float32), np.empty(width, np.float32)
    for i in range(start, stop):
        _turned(vectors[i], mean, row, room)
        square, size = np.float32(0.0), np.float32(0.0)
        for value in row:
            square += value * value
            size += abs(value)
        scales[i] = square / size if size != 0 else size


@kernel
def draw(
    start: int,
    stop: int,
    vectors: NDArray[Any],
    places: NDArray[np.int32],
    mean: NDArray[np.float32],
    sketches: NDArray[np.uint8],
) -> None:
    """Fill the blocks start … stop of sketches, zeros so far, with the signs of the vectors at these places."""
    width = sketches.shape[1] * 8 // BLOCK
    row, room = np.empty(width, np.float32), np.empty(width, np.float32)
    for block in range(start, stop):
        for lane in range(min(BLOCK, places.size - block * BLOCK)):
            _turned(vectors[places[block * BLOCK + lane]], mean, row, room)
            for table in range(width // _SIGNS):
                code = 0
                for i in range(_SIGNS):
                    if row[table * _SIGNS + i] > 0:
                        code |= 1 << i
                sketches[block, table // 2 * BLOCK + lane] |= np.uint8(code << (4 * (table % 2)))


@kernel
def tabulate(
    documents: NDArray[np.float32],
    tables: NDArray[np.uint8],
    steps: NDArray[np.float32],
    offsets: NDArray[np.float32],
) -> None:
    """Fill tables with those of documents: x · s is about steps times their sum, less offsets."""
    width = tables.shape[1] * _SIGNS // _ENTRIES
    row, room = np.empty(width, np.float32), np.empty(width, np.float32)
    for b in range(len(documents)):
        row[:] = 0
        row[: documents.shape[1]] = documents[b]
        _turn(row, room)
        most = total = np.float32(0.0)
        for first in range(0, width, _SIGNS):
            size = np.float32(0.0)
            for value in row[first : first + _SIGNS]:
                size += abs(value)
            most, total = max(most, size), total + size
        # A document of nothing is as near to all.
        step = max(np.float32(2.0) * most / _LARGEST, np.float32(1e-20))
        steps[b], offsets[b] = step, total
        for table in range(width // _SIGNS):
            signs = row[table * _SIGNS : (table + 1) * _SIGNS]
            for entry in range(_ENTRIES):
                value = np.float32(0.0)
                for i in range(_SIGNS):
                    value += abs(signs[i]) + (signs[i] if entry >> i & 1 else -signs[i])
                tables[b, table * _ENTRIES + entry] = np.uint8(np.rint(value / step))


@kernel
def estimates(
    blocks: NDArray[np.int64],
    tables: NDArray[np.uint8],
    steps: NDArray[np.float32],
    offsets: NDArray[np.float32],
    sketches: NDArray[np.uint8],
    scales: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Fill out with the products of documents and the vectors of some blocks, in no order, as sketches tell them."""
    sums = np.empty(BLOCK, np.uint16)
    for i in range(blocks.size):
        for b in range(len(tables)):
            _sums_of_one(sketches, blocks[i], tables, b, sums)
            near = out[b, i * BLOCK : (i + 1) * BLOCK]
            for lane in range(BLOCK):
                near[lane] = scales[blocks[i]] * (steps[b] * np.float32(sums[lane]) - offsets[b])


@kernel
def estimates_of(
    rows: NDArray[np.int64],
    tables: NDArray[np.uint8],
    steps: NDArray[np.float32],
    offsets: NDArray[np.float32],
    sketches: NDArray[np.uint8],
    scales: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Fill out with the products of each document and the vectors at its rows, as sketches tell them: for few."""
    for b in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            block, lane = rows[b, i] // BLOCK, rows[b, i] % BLOCK
            total = 0
            for table in range(tables.shape[1] // _ENTRIES):
                code = sketches[block, table // 2 * BLOCK + lane] >> (4 * (table % 2)) & 15
                total += tables[b, table * _ENTRIES + code]
            out[b, i] = scales[block] * (steps[b] * np.float32(total) - offsets[b])


@kernel
def search(
    start: int,
    stop: int,
    tables: NDArray[np.uint8],
    slopes: NDArray[np.float32],
    bases: NDArray[np.float32],
    sketches: NDArray[np.uint8],
    inverses: NDArray[np.float32],
    documents: NDArray[np.uint8],
    codes: NDArray[np.int8],
    code_scales: NDArray[np.float32],
    shifts: NDArray[np.int32],
    places: NDArray[np.int32],
    k: int,
    near: NDArray[np.float32],
    bits: NDArray[np.uint32],
    found: NDArray[np.uint64],
    counts: NDArray[np.int64],
    bounds: NDArray[np.float32],
) -> None:
    """Look for documents in the blocks start … stop, both even: what may be near enough by its sketch is multiplied.

    Parameters
    ----------
    tables, slopes, bases
        Of documents: tables, and what tells from the scale of a block how large their sums must be (`_bound`).
    sketches, inverses
        By block, of which there is an even number: signs, and one over the scale of its vectors, NaN where they have
        no direction.
    documents, codes, code_scales, shifts
        As in `codes.search`, vectors in the order of the sketches.
    near, bits
        Scratch: a row of as many products as blocks that are looked into at once have vectors.
    k, found, counts, bounds
        As in `keep_best`.
    """
    room = near.shape[1]
    rows, sums = np.empty((_TOGETHER, room + LANES), np.int64), np.empty(room + LANES, np.int32)
    those, own, n = np.empty(room, np.int32), np.empty(1, np.int64), np.empty(_TOGETHER, np.int64)
    for first in range(start, stop, room // BLOCK):
        last = min(first + room // BLOCK, stop)
        for b in range(0, len(tables), _TOGETHER):
            some = min(_TOGETHER, len(tables) - b)
            _candidates(
                first,
                last,
                b,
                some,
                tables,
                slopes,
                bases,
                sketches,
                inverses,
                codes,
                code_scales,
                shifts,
                places,
                rows,
                n,
            )
            for i in range(some):
                _multiply(documents, b + i, codes, code_scales, shifts, rows[i], n[i], sums, near[0])
                for j in range(n[i]):
                    those[j] = places[rows[i, j]]
                own[0] = b + i
                keep_best(near, bits, own, those[: n[i]], k, found, counts, bounds)


@kernel
def _candidates(
    first: int,
    last: int,
    b: int,
    some: int,
    tables: NDArray[np.uint8],
    slopes: NDArray[np.float32],
    bases: NDArray[np.float32],
    sketches: NDArray[np.uint8],
    inverses: NDArray[np.float32],
    codes: NDArray[np.int8],
    code_scales: NDArray[np.float32],
    shifts: NDArray[np.int32],
    places: NDArray[np.int32],
    rows: NDArray[np.int64],
    n: NDArray[np.int64],
) -> None:
    """Fill rows with the vectors of the blocks first … last that may be near enough to some documents from b on.

    `n` receives how many they are of each document.
    """
    needed, bits = np.zeros((_TOGETHER, PAIR), np.uint16), np.zeros((_TOGETHER, PAIR), np.uint64)
    n[:] = 0
    for block in range(first, last, PAIR):
        for i in range(some):
            for j in range(PAIR):
                needed[i, j] = _bound(slopes[b + i] * inverses[block + j] + bases[b + i])
        if some == _TOGETHER:
            _look_up_four(sketches, block, tables, b, needed, bits)
        else:
            for i in range(some):
                for j in range(PAIR):
                    _look_up_one(sketches, block + j, tables, b + i, needed[i, j:], bits[i, j:])
        for i in range(some):
            before = n[i]
            for j in range(PAIR):
                n[i] = _put_down(bits[i, j], (block + j) * BLOCK, places.size, rows[i], n[i])
            if len(tables) < _FEW:
                for j in range(before, n[i]):
                    fetch(codes[rows[i, j]])
                    ask_to_read(code_scales, rows[i, j])
                    ask_to_read(shifts, rows[i, j])
                    ask_to_read(places, rows[i, j])


@kernel
def _put_down(bits: np.uint64, first: int, n_vectors: int, rows: NDArray[np.int64], n: int) -> int:
    """Put the vectors of a block whose bits are set into rows, from the n-th on; return how many there are then."""
    while bits:
        bit = np.int64(lowest_bit(bits))
        bits &= bits - np.uint64(1)
        rows[n] = first + (2 * bit if bit < BLOCK // 2 else 2 * bit - BLOCK + 1)
        # Behind the last vector there are none.
        n += 1 if rows[n] < n_vectors else 0
    return n


@kernel
def _multiply(
    documents: NDArray[np.uint8],
    b: int,
    codes: NDArray[np.int8],
    scales: NDArray[np.float32],
    shifts: NDArray[np.int32],
    rows: NDArray[np.int64],
    n: int,
    sums: NDArray[np.int32],
    near: NDArray[np.float32],
) -> None:
    """Fill near with the products of a document and n vectors."""
    if n == 0:
        return
    for i in range(n, n + LANES):
        rows[i] = rows[n - 1]
    for i in range(0, n, LANES):
        _multiply_sixteen(documents, b, codes, rows, i, sums)
    for i in range(n):
        near[i] = np.float32(sums[i] - shifts[rows[i]]) * scales[rows[i]]


@kernel
def _bound(least: np.float32) -> np.uint16:
    """Return the least sum of 16 bits that is not below this, but for rounding; 0 for what is no number."""
    bound: np.uint16 = np.uint16(min(np.ceil(least - _ROUNDING), np.float32(65535.0)) if least > _ROUNDING else 0)
    return bound
