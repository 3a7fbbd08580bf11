"""16-bit numbers: all of them, and all that round to them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.precision import from_bfloat16, to_bfloat16, widen
from lightdxml.kernels.jit import kernel


@kernel
def widen_all(bits: NDArray[np.uint16], out: NDArray[np.float32]) -> None:
    for i in range(bits.size):
        out[i] = widen(bits[i])


@kernel
def through_bfloat16(values: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    for i in range(values.size):
        out[i] = from_bfloat16(to_bfloat16(values[i]))


def test_every_finite_float16_is_widened_exactly() -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    out = np.empty(len(halves), dtype=np.float32)
    widen_all(halves.view(np.uint16), out)
    np.testing.assert_array_equal(out.view(np.uint32), halves.astype(np.float32).view(np.uint32))


def test_float32_arrays_are_read_as_they_are() -> None:
    values = np.array([0.1, -3e38], dtype=np.float32)
    out = np.empty_like(values)
    widen_all(values, out)  # type: ignore[arg-type]
    np.testing.assert_array_equal(out, values)


def test_bfloat16_rounds_to_the_nearest_and_keeps_zero() -> None:
    values = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    values[0] = 0
    out = np.empty_like(values)
    through_bfloat16(values, out)
    assert out[0] == 0
    np.testing.assert_allclose(out, values, rtol=2**-8)
