"""The decorators that compile kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of arrays and scalars on first use, and cache the machine code on disk.

    It runs without the interpreter lock, so that Python threads can share the work. Arithmetic is strict IEEE (no
    `fastmath`): the same input gives the same bits.
    """
    return cast("Callable[P, R]", numba.njit(cache=True, nogil=True)(function))


def fast_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `kernel`, but allow reordered sums and fused multiply-adds.

    Sums over an array need this to use SIMD. The order is fixed at compile time: the same machine code gives the same
    bits. NaN and infinity keep their meaning.
    """
    return cast("Callable[P, R]", numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})(function))
