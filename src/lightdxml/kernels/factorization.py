"""Factors of a matrix of which only some entries are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import fast_kernel
from lightdxml.kernels.sparse import Csr


@fast_kernel
def descend(
    start: int,
    stop: int,
    known: Csr,
    rate: np.float32,
    others: NDArray[np.float32],
    factors: NDArray[np.float32],
    errors: NDArray[np.float64],
) -> None:
    """Take a gradient step on the factors of rows start … stop: half the squared error of their known entries falls.

    Parameters
    ----------
    known
        The known entries: an entry is to be the product of the factors of its row and of its column.
    rate
        The step size.
    others
        The factors of the columns.
    factors
        The factors of the rows; changed in place.
    errors
        Receives the squared error of each row before the step.
    """
    indptr, columns, values = known
    gradient = np.empty(factors.shape[1], np.float32)
    for i in range(start, stop):
        own, error = factors[i], np.float32(0.0)
        gradient[:] = np.float32(0.0)
        for p in range(indptr[i], indptr[i + 1]):
            other, product = others[columns[p]], np.float32(0.0)
            for d in range(own.size):
                product += own[d] * other[d]
            residual = product - values[p]
            error += residual * residual
            for d in range(own.size):
                gradient[d] += residual * other[d]
        for d in range(own.size):
            own[d] -= rate * gradient[d]
        errors[i] = error
