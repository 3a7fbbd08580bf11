"""Balanced spherical 2-means: bisect a set of sparse unit rows into two clusters of equal size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel


@kernel
def bisect(
    members: NDArray[np.int32],
    first: int,
    second: int,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    max_iter: int,
    tolerance: float,
    sum_a: NDArray[np.float64],
    sum_b: NDArray[np.float64],
) -> None:
    """Reorder the members so that the first half, with the middle one if there is one, is one cluster.

    Parameters
    ----------
    members
        Row ids; reordered in place.
    first, second
        Positions of the two members whose directions are the first centers.
    indptr, indices, values
        The rows.
    max_iter, tolerance
        The most iterations, and the gain in mean cosine below which to stop.
    sum_a, sum_b
        Workspace with one entry per column, all zero before and after.
    """
    n = members.size
    half = (n + 1) // 2
    scores = np.empty(n, np.float64)
    a, b = members[first], members[second]
    _add_row(a, indptr, indices, values, sum_a)
    _add_row(b, indptr, indices, values, sum_b)
    for i in range(n):
        scores[i] = _product(members[i], indptr, indices, values, sum_a) - _product(
            members[i], indptr, indices, values, sum_b
        )
    _clear_row(a, indptr, indices, sum_a)
    _clear_row(b, indptr, indices, sum_b)
    before = -np.inf
    for _ in range(max_iter):
        members[:] = members[np.argsort(-scores, kind="mergesort")]
        for i in range(n):
            _add_row(members[i], indptr, indices, values, sum_a if i < half else sum_b)
        # |s|² is the sum of x·s over the rows x whose sum is s.
        square_a = square_b = 0.0
        for i in range(half):
            square_a += _product(members[i], indptr, indices, values, sum_a)
        for i in range(half, n):
            square_b += _product(members[i], indptr, indices, values, sum_b)
        length_a, length_b = np.sqrt(square_a), np.sqrt(square_b)
        for i in range(n):
            cosine_a = _product(members[i], indptr, indices, values, sum_a) / max(length_a, 1e-30)
            cosine_b = _product(members[i], indptr, indices, values, sum_b) / max(length_b, 1e-30)
            scores[i] = cosine_a - cosine_b
        for i in range(n):
            _clear_row(members[i], indptr, indices, sum_a if i < half else sum_b)
        # The sum of the cosines of all members with the center of their cluster.
        if length_a + length_b - before < tolerance * n:
            break
        before = length_a + length_b


@kernel
def _add_row(
    row: int,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    target: NDArray[np.float64],
) -> None:
    for i in range(indptr[row], indptr[row + 1]):
        target[indices[i]] += values[i]


@kernel
def _clear_row(row: int, indptr: NDArray[np.int64], indices: NDArray[np.int32], target: NDArray[np.float64]) -> None:
    for i in range(indptr[row], indptr[row + 1]):
        target[indices[i]] = 0.0


@kernel
def _product(
    row: int,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    other: NDArray[np.float64],
) -> float:
    total = 0.0
    for i in range(indptr[row], indptr[row + 1]):
        total += values[i] * other[indices[i]]
    return total
