"""Fast scan: sums of a query's lookup tables for 64 1-bit codes at once (André, Kermarrec and Le Scouarnec, 2017).

A lookup table (LUT) has one entry per combination of four bits of a code. Its 16 bytes fit in a register, where one
shuffle instruction looks up the entries of many codes. Codes are stored in blocks of 64: each 64 bytes of a block hold
eight bits of every code of the block, the bits of two LUTs.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.extending import intrinsic

from lightdxml.kernels import intrinsics as llvm

# Codes per block, bits per LUT, and entries per LUT.
BLOCK, BITS, ENTRIES = 64, 4, 16
# Queries and blocks of `scan_tile`.
QUERIES, BLOCKS = 4, 2
# LUTs whose entries are summed in a byte before they are added to a 16-bit sum.
_LUTS = 8
# The largest entry: `_LUTS` of them fit in a byte.
LARGEST = 31
# Shuffle instructions, with the CPU feature that has them and the bytes that they look up.
_SHUFFLES = (("+avx512bw", "llvm.x86.avx512.pshuf.b.512", 64), ("+avx2", "llvm.x86.avx2.pshuf.b", 32))
_SHUFFLE = next((shuffle[1:] for shuffle in _SHUFFLES if shuffle[0] in llvm.cpu_features()), None)
# Whether this CPU has such an instruction.
AVAILABLE = _SHUFFLE is not None

_BYTES = ir.VectorType(ir.IntType(8), BLOCK)
_WORDS = ir.VectorType(ir.IntType(16), BLOCK // 2)


def _scan(n_queries: int, n_blocks: int) -> Any:
    """Return an intrinsic that finds the codes whose sums reach a bound.

    It scans the blocks from `block` on for the queries from `row` on. `bounds` and `out` have one entry per query and
    block. An entry of `out` has one bit per code: even codes in the lower half, odd codes in the upper half.
    """

    @llvm.intrinsic
    def scan(builder: Any, signs: Any, block: Any, luts: Any, row: Any, bounds: Any, out: Any) -> None:
        numbers = [ir.Constant(ir.IntType(64), n) for n in range(n_queries * n_blocks)]
        blocks = [llvm.row_start(builder, signs, builder.add(block, n)) for n in numbers[:n_blocks]]
        tables = [llvm.row_start(builder, luts, builder.add(row, n)) for n in numbers[:n_queries]]
        sums = _sum_luts(builder, blocks, tables, builder.extract_value(luts.shape, 1))
        for n, pair in zip(numbers, sums, strict=True):
            bound = builder.load(builder.gep(bounds.data, [n]))
            builder.store(_reach(builder, pair, bound), builder.gep(out.data, [n]))

    return scan


@llvm.intrinsic
def sum_block(builder: Any, signs: Any, block: Any, luts: Any, row: Any, out: Any) -> None:
    """Fill out with the sums of a query for the codes of a block: the even codes, then the odd ones."""
    blocks, tables = [llvm.row_start(builder, signs, block)], [llvm.row_start(builder, luts, row)]
    (pair,) = _sum_luts(builder, blocks, tables, builder.extract_value(luts.shape, 1))
    for half, sums in enumerate(pair):
        llvm.store_unaligned(builder, sums, builder.gep(out.data, [ir.Constant(ir.IntType(64), half * BLOCK // 2)]))


def _reach(builder: Any, sums: tuple[Any, Any], bound: Any) -> Any:
    """Return a bit per sum: whether it is not below the bound."""
    bounds = llvm.broadcast(builder, bound, BLOCK // 2)
    half, whole = ir.IntType(BLOCK // 2), ir.IntType(BLOCK)
    even, odd = (builder.zext(builder.bitcast(builder.icmp_unsigned(">=", x, bounds), half), whole) for x in sums)
    return builder.or_(even, builder.shl(odd, ir.Constant(whole, BLOCK // 2)))


def _sum_luts(builder: Any, blocks: list[Any], tables: list[Any], lut_bytes: Any) -> list[tuple[Any, Any]]:
    """Return, per query and block, the 16-bit sums of the even and of the odd codes."""
    zero = ir.Constant(_WORDS, [0] * (BLOCK // 2))
    pairs, odds = (
        [llvm.cgutils.alloca_once_value(builder, zero) for _ in range(len(tables) * len(blocks))] for _ in "po"
    )

    def number(n: int) -> Any:
        return ir.Constant(ir.IntType(64), n)

    with llvm.cgutils.for_range(builder, builder.udiv(lut_bytes, number(_LUTS * ENTRIES))) as loop:
        at = builder.mul(loop.index, number(_LUTS // 2 * BLOCK))
        first = builder.mul(loop.index, number(_LUTS * ENTRIES))
        sums = _sum_eight_luts(builder, [builder.gep(block, [at]) for block in blocks],
                               [builder.gep(table, [first]) for table in tables])  # fmt: skip
        # Bytes are added as 16-bit pairs: the sum of the odd ones is taken off below.
        for pair, odd, total in zip(pairs, odds, sums, strict=True):
            words = builder.bitcast(total, _WORDS)
            builder.store(builder.add(builder.load(pair), words), pair)
            upper = builder.lshr(words, ir.Constant(_WORDS, [8] * (BLOCK // 2)))
            builder.store(builder.add(builder.load(odd), upper), odd)
    loaded = [(builder.load(pair), builder.load(odd)) for pair, odd in zip(pairs, odds, strict=True)]
    eight = ir.Constant(_WORDS, [8] * (BLOCK // 2))
    return [(builder.sub(pair, builder.shl(odd, eight)), odd) for pair, odd in loaded]


def _sum_eight_luts(builder: Any, blocks: list[Any], tables: list[Any]) -> list[Any]:
    """Return, per query and block, the sums of eight LUTs as one byte per code."""
    low, four = ir.Constant(_BYTES, [15] * BLOCK), ir.Constant(_WORDS, [4] * (BLOCK // 2))
    totals = [ir.Constant(_BYTES, [0] * BLOCK)] * (len(tables) * len(blocks))
    for n in range(_LUTS):
        at = ir.Constant(ir.IntType(64), n // 2 * BLOCK)
        bits = [llvm.load_unaligned(builder, builder.gep(block, [at]), _BYTES) for block in blocks]
        if n % 2:
            bits = [builder.bitcast(builder.lshr(builder.bitcast(pair, _WORDS), four), _BYTES) for pair in bits]
        bits = [builder.and_(pair, low) for pair in bits]
        for i, table in enumerate(tables):
            start = builder.gep(table, [ir.Constant(ir.IntType(64), n * ENTRIES)])
            lut = llvm.load_unaligned(builder, start, ir.VectorType(ir.IntType(8), ENTRIES))
            for j, entries in enumerate(bits):
                total = i * len(blocks) + j
                totals[total] = builder.add(totals[total], _look_up(builder, lut, entries))
    return totals


def _look_up(builder: Any, lut: Any, entries: Any) -> Any:
    """Return the values of 64 entries of a LUT, by as many shuffle instructions as needed."""
    assert _SHUFFLE is not None
    name, lanes = _SHUFFLE
    kind = ir.VectorType(ir.IntType(8), lanes)
    instruction = builder.module.declare_intrinsic(name, (), ir.FunctionType(kind, [kind, kind]))
    repeated = llvm.shuffle(builder, lut, lut, list(range(ENTRIES)) * (lanes // ENTRIES))
    parts = [
        builder.call(
            instruction, [repeated, llvm.shuffle(builder, entries, entries, list(range(first, first + lanes)))]
        )
        for first in range(0, BLOCK, lanes)
    ]
    return parts[0] if len(parts) == 1 else llvm.shuffle(builder, parts[0], parts[1], list(range(BLOCK)))


def _lowest_bit(_: Any, bits: Any) -> Any:
    """Return the position of the lowest bit that is set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return llvm.types.uint64(llvm.types.uint64), generate


scan_tile: Any = _scan(QUERIES, BLOCKS)
scan_one: Any = _scan(1, 1)
lowest_bit: Any = intrinsic(_lowest_bit)
