"""Lazy Adam on one row: only rows that a batch touches are read and written."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import fast_kernel

KEEP_MEAN = np.float32(0.9)
KEEP_SQUARE = np.float32(0.999)
_TINY = np.float32(1e-8)
_ONE = np.float32(1.0)


@fast_kernel
def adam_row(
    row: NDArray[np.float32],
    mean: NDArray[np.float32],
    square: NDArray[np.float32],
    gradient: NDArray[np.float32],
    rate: np.float32,
) -> None:
    """Move a row against its gradient; `rate` holds the correction for the first steps already."""
    for d in range(row.size):
        g = gradient[d]
        m = mean[d] * KEEP_MEAN + (_ONE - KEEP_MEAN) * g
        s = square[d] * KEEP_SQUARE + (_ONE - KEEP_SQUARE) * g * g
        mean[d] = m
        square[d] = s
        row[d] -= rate * m / (np.sqrt(s) + _TINY)


def corrected_rate(rate: float, step: int) -> np.float32:
    """Return the learning rate of the step (from 1) with Adam's correction for means that began at zero.

    >>> float(corrected_rate(1.0, 10_000).round(3))
    1.0
    """
    mean_share = 1.0 - float(KEEP_MEAN) ** step
    square_share = 1.0 - float(KEEP_SQUARE) ** step
    corrected: np.float32 = np.float32(rate * math.sqrt(square_share) / mean_share)
    return corrected
