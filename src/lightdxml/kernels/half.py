"""Numbers of 16 bits in arrays: float16 to keep, bfloat16 to train with; computing is done in float32.

Numba has no 16-bit floats of its own: arrays of them are handed to kernels as uint16, and turned into float32 by
integer arithmetic that every processor's vector units can do.
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


def readable(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of float16 as its bits, which kernels can `widen`; any other as it is.

    >>> readable(np.ones(1, dtype=np.float16)).dtype, readable(np.ones(1, dtype=np.float32)).dtype
    (dtype('uint16'), dtype('float32'))
    """
    return array.view(np.uint16) if array.dtype == np.float16 else array


def widen(value: Any) -> Any:
    """Return a number of an array as float32: float32 as it is, uint16 as the float16 with these bits.

    >>> float(widen(np.float16(0.5).view(np.uint16)))
    0.5
    """
    return value if isinstance(value, np.float32) else np.float32(np.uint16(value).view(np.float16))


@overload(widen, inline="always")
def _widen(value: Any) -> Any:
    def as_it_is(value: Any) -> Any:
        return value

    def from_float16(value: Any) -> Any:
        bits = np.uint32(value)
        size = float_of_bits((bits & _REST) << _13) * _SCALE
        return float_of_bits(bits_of_float(size) | ((bits & _SIGN) << _16))

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
