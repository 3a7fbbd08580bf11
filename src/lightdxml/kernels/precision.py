"""Arrays of 16-bit and 8-bit numbers: float16 and int8 for storage, bfloat16 for training; arithmetic is in float32.

Numba has no 16-bit floats. Arrays of them are passed to kernels as uint16, and converted to float32 by integer
arithmetic that every CPU can do with SIMD. A row of int8 has a scale, and in a classifier a bias. Both are stored at
the end of the row as the bytes of float32, so that a row is contiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel

_SIGN, _REST = np.uint32(0x8000), np.uint32(0x7FFF)
# The exponents of float16 start at -14, those of float32 at -126: the shifted bits are 2^112 times too small.
_EXPONENT_SHIFT = np.float32(2.0**112)
_BELOW_HALF = np.uint32(0x7FFF)
_ONE = np.uint32(1)
# Bytes at the end of an int8 row.
SCALE_BYTES = BIAS_BYTES = 4
_LARGEST, _ROWS = np.float32(127), 8192
_13, _16 = np.uint32(13), np.uint32(16)


def _reinterpret(source: Any, target: Any) -> Any:
    """Return an intrinsic that returns the number of another type with the same bits."""

    def define(_: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(target))

        return target(source), generate

    return intrinsic(define)


float_of_bits: Any = _reinterpret(types.uint32, types.float32)
bits_of_float: Any = _reinterpret(types.float32, types.uint32)


def rounded(array: NDArray[np.float32], precision: str) -> NDArray[Any]:
    """Return a copy in the precision of the stored model; in float32 if float16 would overflow.

    >>> rounded(np.array([0.1], dtype=np.float32), "float16").dtype
    dtype('float16')
    """
    fits = precision == "float16" and bool(max(array.max(initial=0), -array.min(initial=0)) < np.finfo(np.float16).max)
    return array.astype(np.float16 if fits else np.float32)


def quantize_int8(rows: NDArray[np.float32], biases: NDArray[np.float32] | None = None) -> NDArray[np.int8]:
    """Return rows as int8, each followed by its scale, and by its bias if biases are given.

    >>> quantize_int8(np.array([[1.27, -0.5]], dtype=np.float32))[:, :2].tolist()
    [[127, -50]]
    """
    n, width = rows.shape
    out = np.empty((n, width + SCALE_BYTES + (0 if biases is None else BIAS_BYTES)), dtype=np.int8)
    # In chunks: a large model in float32 would need several times its memory.
    for first in range(0, n, _ROWS):
        part = rows[first : first + _ROWS]
        scales = np.abs(part).max(axis=1, initial=0).astype(np.float32) / _LARGEST
        steps = np.rint(part / np.where(scales > 0, scales, 1)[:, None])
        # The scale of denormal numbers is too coarse.
        out[first : first + _ROWS, :width] = np.clip(steps, -_LARGEST, _LARGEST)
        out[first : first + _ROWS, width : width + SCALE_BYTES] = scales[:, None].view(np.int8)
    if biases is not None:
        out[:, width + SCALE_BYTES :] = np.ascontiguousarray(biases, dtype=np.float32)[:, None].view(np.int8)
    return out


def row_width(array: NDArray[Any]) -> int:
    """Return the dimensions of stored vectors.

    >>> row_width(quantize_int8(np.ones((2, 3), dtype=np.float32))), row_width(np.ones((2, 3)))
    (3, 3)
    """
    columns = int(array.shape[1])
    return columns - SCALE_BYTES if array.dtype == np.int8 else columns


def dequantize(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Return stored vectors of any precision as float32.

    >>> dequantize(quantize_int8(np.array([[1.27, -0.5]], dtype=np.float32))).round(3).tolist()
    [[1.2699999809265137, -0.5]]
    """
    if rows.dtype != np.int8:
        return np.ascontiguousarray(rows, dtype=np.float32)
    scales = np.ascontiguousarray(rows[:, -SCALE_BYTES:]).view(np.float32)
    values: NDArray[np.float32] = rows[:, :-SCALE_BYTES] * scales
    return values


def dequantize_classifier(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Return a stored classifier of any precision as float32, the biases in the last column.

    >>> dequantize_classifier(quantize_int8(np.array([[1.27]], dtype=np.float32), np.array([-4.0]))).round(2).tolist()
    [[1.2699999809265137, -4.0]]
    """
    if rows.dtype != np.int8:
        return np.ascontiguousarray(rows, dtype=np.float32)
    biases = np.ascontiguousarray(rows[:, -BIAS_BYTES:]).view(np.float32)
    return np.concatenate([dequantize(rows[:, :-BIAS_BYTES]), biases], axis=1)


def row_scale(row: NDArray[Any], at: int) -> Any:
    """Return the scale of a row, whose bytes start at `at` in a row of int8; 1 for other precisions."""
    return float_of_bytes(row, at) if row.dtype == np.int8 else np.float32(1.0)


@overload(row_scale, inline="always")
def _row_scale(row: Any, at: Any) -> Any:
    def stored(row: Any, at: Any) -> Any:
        return float_of_bytes(row, at)

    def one(row: Any, at: Any) -> Any:
        return np.float32(1.0)

    return stored if row.dtype == types.int8 else one


def row_bias(row: NDArray[Any], at: int) -> Any:
    """Return the bias of a row of a classifier, whose weights end at `at`."""
    return float_of_bytes(row, at + SCALE_BYTES) if row.dtype == np.int8 else widen(row[at])


@overload(row_bias, inline="always")
def _row_bias(row: Any, at: Any) -> Any:
    def stored(row: Any, at: Any) -> Any:
        return float_of_bytes(row, at + SCALE_BYTES)

    def last(row: Any, at: Any) -> Any:
        return widen(row[at])

    return stored if row.dtype == types.int8 else last


@kernel
def float_of_bytes(row: NDArray[np.int8], at: int) -> np.float32:
    """Return the float32 whose four bytes, in little-endian order, start at `at`."""
    bits = np.uint32(0)
    for i in range(4):
        bits |= np.uint32(np.uint8(row[at + i])) << np.uint32(8 * i)
    value: np.float32 = float_of_bits(bits)
    return value


def as_bits(array: NDArray[Any]) -> NDArray[Any]:
    """Return the bits of a float16 array, which kernels can `widen`; other arrays unchanged.

    >>> as_bits(np.ones(1, dtype=np.float16)).dtype, as_bits(np.ones(1, dtype=np.float32)).dtype
    (dtype('uint16'), dtype('float32'))
    """
    return array.view(np.uint16) if array.dtype == np.float16 else array


def widen(value: Any) -> Any:
    """Return a stored number as float32: float32, int8 without its scale, or the bits of a float16.

    >>> float(widen(np.float16(0.5).view(np.uint16)))
    0.5
    """
    return (
        np.float32(value) if isinstance(value, np.float32 | np.int8) else np.float32(np.uint16(value).view(np.float16))
    )


@overload(widen, inline="always")
def _widen(value: Any) -> Any:
    def from_float32(value: Any) -> Any:
        return value

    def from_float16(value: Any) -> Any:
        bits = np.uint32(value)
        size = float_of_bits((bits & _REST) << _13) * _EXPONENT_SHIFT
        return float_of_bits(bits_of_float(size) | ((bits & _SIGN) << _16))

    def from_int8(value: Any) -> Any:
        return np.float32(value)

    if value == types.int8:
        return from_int8
    return from_float32 if value == types.float32 else from_float16


@kernel
def from_bfloat16(bits: np.uint16) -> np.float32:
    """Return the float32 of a bfloat16's bits."""
    value: np.float32 = float_of_bits(np.uint32(bits) << _16)
    return value


@kernel
def to_bfloat16(value: np.float32) -> np.uint16:
    """Return the bits of the nearest bfloat16, with ties to even."""
    bits: np.uint32 = bits_of_float(value)
    nearest: np.uint16 = np.uint16((bits + _BELOW_HALF + ((bits >> _16) & _ONE)) >> _16)
    return nearest
