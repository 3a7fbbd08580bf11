"""16-bit and 8-bit numbers: conversion and rounding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel
from lightdxml.kernels.precision import (
    dequantize,
    dequantize_classifier,
    float_of_bytes,
    from_bfloat16,
    quantize_int8,
    row_bias,
    row_scale,
    to_bfloat16,
    widen,
)


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


def test_float32_numbers_are_unchanged() -> None:
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


def test_int8_is_off_by_half_a_step_at_most() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 33)).astype(np.float32)
    steps = np.abs(rows).max(axis=1, keepdims=True) / 127
    assert (np.abs(dequantize(quantize_int8(rows)) - rows) <= 0.5001 * steps).all()
    both = dequantize_classifier(quantize_int8(rows, np.arange(20, dtype=np.float32)))
    np.testing.assert_array_equal(both[:, :-1], dequantize(quantize_int8(rows)))
    np.testing.assert_array_equal(both[:, -1], np.arange(20))


def test_int8_rows_of_zeros_and_of_denormal_numbers_stay_small() -> None:
    assert not dequantize(quantize_int8(np.zeros((2, 3), dtype=np.float32))).any()
    tiny = np.array([[1e-45, -4e-45]], dtype=np.float32)
    assert np.abs(dequantize(quantize_int8(tiny))).max() < 1e-40


def test_python_and_compiled_code_read_the_same_scale_and_bias() -> None:
    rows = np.random.default_rng(0).normal(size=(1, 5)).astype(np.float32)
    row = quantize_int8(rows, np.array([-4.5], dtype=np.float32))[0]
    assert row_scale(row, 5) == float_of_bytes(row, 5) == np.float32(np.abs(rows).max() / np.float32(127))
    assert row_bias(row, 5) == float_of_bytes(row, 9) == np.float32(-4.5)
