"""The decorator that compiles a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of arrays and scalars on first use, and keep the machine code on disk.

    It runs without the interpreter lock, so that plain Python threads can share the work. Arithmetic is strict
    IEEE (no `fastmath`): the same input gives the same bits.
    """
    return cast("Callable[P, R]", numba.njit(cache=True, nogil=True)(function))


def fast_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile as `kernel` does, with sums that may be taken in another order and fused multiply-adds.

    Only so can a sum over an array use the processor's vector units. The order is fixed when the code is compiled:
    the same machine code gives the same bits. NaN and infinity keep their meaning.
    """
    return cast("Callable[P, R]", numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})(function))
