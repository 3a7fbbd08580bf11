"""Numbers of 16 and 8 bits in arrays: float16 and int8 to keep, bfloat16 to train with; computing is done in float32.

Numba has no 16-bit floats of its own: arrays of them are handed to kernels as uint16, and turned into float32 by
integer arithmetic that every processor's vector units can do. A row of int8 has its own scale: it and, in a classifier,
the bias follow in the row as the bytes of float32, so that all of a row lies in one place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel

_SIGN, _REST = np.uint32(0x8000), np.uint32(0x7FFF)
# float16 has exponents from -14, float32 from -126: shifted bits mean a number 2^112 times too small.
_SCALE = np.float32(2.0**112)
_BELOW_HALF = np.uint32(0x7FFF)
_ONE = np.uint32(1)
# Bytes of a row of int8 behind its numbers.
SCALE_BYTES = BIAS_BYTES = 4
_LARGEST, _ROWS = np.float32(127), 8192
_13, _16 = np.uint32(13), np.uint32(16)


def _float_of_bits(typing_context: Any, bits: Any) -> Any:
    """Return the float32 with these bits (uint32)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.uint32), generate


def _bits_of_float(typing_context: Any, value: Any) -> Any:
    """Return the bits of a float32 as uint32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.uint32(types.float32), generate


float_of_bits: Any = intrinsic(_float_of_bits)
bits_of_float: Any = intrinsic(_bits_of_float)


def quantize_int8(rows: NDArray[np.float32], biases: NDArray[np.float32] | None = None) -> NDArray[np.int8]:
    """Return rows as int8, each with its scale behind it, and its bias if there are some.

    >>> quantize_int8(np.array([[1.27, -0.5]], dtype=np.float32))[:, :2].tolist()
    [[127, -50]]
    """
    n, width = rows.shape
    out = np.empty((n, width + SCALE_BYTES + (0 if biases is None else BIAS_BYTES)), dtype=np.int8)
    # A part at a time: all of a large model in float32 would need several times its memory.
    for first in range(0, n, _ROWS):
        part = rows[first : first + _ROWS]
        scales = np.abs(part).max(axis=1, initial=0).astype(np.float32) / _LARGEST
        steps = np.rint(part / np.where(scales > 0, scales, 1)[:, None])
        # Of the smallest numbers that there are the scale is too coarse.
        out[first : first + _ROWS, :width] = np.clip(steps, -_LARGEST, _LARGEST)
        out[first : first + _ROWS, width : width + SCALE_BYTES] = scales[:, None].view(np.int8)
    if biases is not None:
        out[:, width + SCALE_BYTES :] = np.ascontiguousarray(biases, dtype=np.float32)[:, None].view(np.int8)
    return out


def row_width(array: NDArray[Any]) -> int:
    """Return how many numbers a row of vectors has.

    >>> row_width(quantize_int8(np.ones((2, 3), dtype=np.float32))), row_width(np.ones((2, 3)))
    (3, 3)
    """
    columns = int(array.shape[1])
    return columns - SCALE_BYTES if array.dtype == np.int8 else columns


def dequantize(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Return rows of vectors of any of these kinds as float32.

    >>> dequantize(quantize_int8(np.array([[1.27, -0.5]], dtype=np.float32))).round(3).tolist()
    [[1.2699999809265137, -0.5]]
    """
    if rows.dtype != np.int8:
        return np.ascontiguousarray(rows, dtype=np.float32)
    scales = np.ascontiguousarray(rows[:, -SCALE_BYTES:]).view(np.float32)
    widened: NDArray[np.float32] = rows[:, :-SCALE_BYTES] * scales
    return widened


def dequantize_classifier(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Return rows of a classifier of any of these kinds as float32, the bias in the last column.

    >>> dequantize_classifier(quantize_int8(np.array([[1.27]], dtype=np.float32), np.array([-4.0]))).round(2).tolist()
    [[1.2699999809265137, -4.0]]
    """
    if rows.dtype != np.int8:
        return np.ascontiguousarray(rows, dtype=np.float32)
    biases = np.ascontiguousarray(rows[:, -BIAS_BYTES:]).view(np.float32)
    return np.concatenate([dequantize(rows[:, :-BIAS_BYTES]), biases], axis=1)


def row_scale(row: NDArray[Any], at: int) -> Any:
    """Return what the numbers of a row are to be multiplied by; its bytes begin at `at` where it is one of int8."""
    return np.ascontiguousarray(row[at : at + SCALE_BYTES]).view(np.float32)[0] if row.dtype == np.int8 else np.float32(1.0)


@overload(row_scale, inline="always")
def _row_scale(row: Any, at: Any) -> Any:
    def stored(row: Any, at: Any) -> Any:
        return float_of_bytes(row, at)

    def one(row: Any, at: Any) -> Any:
        return np.float32(1.0)

    return stored if row.dtype == types.int8 else one


def row_bias(row: NDArray[Any], at: int) -> Any:
    """Return the bias of a classifier's row, whose weights end at `at`."""
    if row.dtype == np.int8:
        return np.ascontiguousarray(row[at + SCALE_BYTES : at + SCALE_BYTES + BIAS_BYTES]).view(np.float32)[0]
    return widen(row[at])


@overload(row_bias, inline="always")
def _row_bias(row: Any, at: Any) -> Any:
    def stored(row: Any, at: Any) -> Any:
        return float_of_bytes(row, at + SCALE_BYTES)

    def last(row: Any, at: Any) -> Any:
        return widen(row[at])

    return stored if row.dtype == types.int8 else last


@kernel
def float_of_bytes(row: NDArray[np.int8], at: int) -> np.float32:
    """Return the float32 whose four bytes, the lowest first, begin here."""
    bits = np.uint32(0)
    for i in range(4):
        bits |= np.uint32(np.uint8(row[at + i])) << np.uint32(8 * i)
    value: np.float32 = float_of_bits(bits)
    return value


def as_bits(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of float16 as its bits, which kernels can `widen`; any other as it is.

    >>> as_bits(np.ones(1, dtype=np.float16)).dtype, as_bits(np.ones(1, dtype=np.float32)).dtype
    (dtype('uint16'), dtype('float32'))
    """
    return array.view(np.uint16) if array.dtype == np.float16 else array


def widen(value: Any) -> Any:
    """Return a number of an array as float32: float32 as it is, int8 without its scale, uint16 as a float16's bits.

    >>> float(widen(np.float16(0.5).view(np.uint16)))
    0.5
    """
    return (
        np.float32(value) if isinstance(value, np.float32 | np.int8) else np.float32(np.uint16(value).view(np.float16))
    )


@overload(widen, inline="always")
def _widen(value: Any) -> Any:
    def as_it_is(value: Any) -> Any:
        return value

    def from_float16(value: Any) -> Any:
        bits = np.uint32(value)
        size = float_of_bits((bits & _REST) << _13) * _SCALE
        return float_of_bits(bits_of_float(size) | ((bits & _SIGN) << _16))

    def from_int8(value: Any) -> Any:
        return np.float32(value)

    if value == types.int8:
        return from_int8
    return as_it_is if value == types.float32 else from_float16


@kernel
def from_bfloat16(bits: np.uint16) -> np.float32:
    """Return the float32 of a bfloat16's bits."""
    value: np.float32 = float_of_bits(np.uint32(bits) << _16)
    return value


@kernel
def to_bfloat16(value: np.float32) -> np.uint16:
    """Return the bits of the bfloat16 nearest to a float32, of two equally near ones the even one."""
    bits: np.uint32 = bits_of_float(value)
    nearest: np.uint16 = np.uint16((bits + _BELOW_HALF + ((bits >> _16) & _ONE)) >> _16)
    return nearest
