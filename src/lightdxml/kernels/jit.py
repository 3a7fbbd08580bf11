"""The decorators that compile kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

from lightdxml.kernels.cache import KernelCache

# Its types do not know `no_cfunc_wrapper`: nobody calls kernels from C, and every wrapper takes time to compile.
_njit: Any = numba.njit

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of arrays and scalars on first use, and cache the machine code on disk.

    It runs without the interpreter lock, so that Python threads can share the work. Arithmetic is strict IEEE (no
    `fastmath`): the same input gives the same bits.
    """
    return _cached(cast("Callable[P, R]", _njit(nogil=True, no_cfunc_wrapper=True)(function)))


def fast_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `kernel`, but allow reordered sums and fused multiply-adds.

    Sums over an array need this to use SIMD. The order is fixed at compile time: the same machine code gives the same
    bits. NaN and infinity keep their meaning.
    """
    flags = {"reassoc", "contract", "nsz"}
    return _cached(cast("Callable[P, R]", _njit(nogil=True, fastmath=flags, no_cfunc_wrapper=True)(function)))


def _cached(function: Callable[P, R]) -> Callable[P, R]:
    # Instead of `cache=True`, which fails where no folder can be written, and reads folders that others can write.
    dispatcher = cast("Any", function)
    if not hasattr(dispatcher, "py_func"):
        return function  # NUMBA_DISABLE_JIT is set
    dispatcher._cache = KernelCache(dispatcher.py_func)
    return function
