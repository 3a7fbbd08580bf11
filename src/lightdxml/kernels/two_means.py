"""Balanced spherical 2-means: a set of sparse rows of length 1 in two halves that point in two directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel


@kernel
def halve(
    members: NDArray[np.int32],
    first: int,
    second: int,
    pointers: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    rounds: int,
    tolerance: float,
    sum_a: NDArray[np.float64],
    sum_b: NDArray[np.float64],
) -> None:
    """Put the members in an order whose first half, the larger by one if they are odd, is one cluster.

    Parameters
    ----------
    members
        Numbers of rows; put in order.
    first, second
        The two members (by place) with whose directions to begin.
    pointers, columns, values
        The rows.
    rounds, tolerance
        How many rounds at most, and below which gain in mean cosine to stop.
    sum_a, sum_b
        Scratch, one entry a column, all zero; left all zero.
    """
    n = members.size
    half = (n + 1) // 2
    scores = np.empty(n, np.float64)
    a, b = members[first], members[second]
    _add_row(a, pointers, columns, values, sum_a)
    _add_row(b, pointers, columns, values, sum_b)
    for i in range(n):
        scores[i] = _product(members[i], pointers, columns, values, sum_a) - _product(
            members[i], pointers, columns, values, sum_b
        )
    _clear_row(a, pointers, columns, sum_a)
    _clear_row(b, pointers, columns, sum_b)
    before = -np.inf
    for _ in range(rounds):
        members[:] = members[np.argsort(-scores, kind="mergesort")]
        for i in range(n):
            _add_row(members[i], pointers, columns, values, sum_a if i < half else sum_b)
        # |s|² is the sum of x·s over the rows x that make up s.
        square_a = square_b = 0.0
        for i in range(half):
            square_a += _product(members[i], pointers, columns, values, sum_a)
        for i in range(half, n):
            square_b += _product(members[i], pointers, columns, values, sum_b)
        length_a, length_b = np.sqrt(square_a), np.sqrt(square_b)
        for i in range(n):
            towards_a = _product(members[i], pointers, columns, values, sum_a) / max(length_a, 1e-30)
            towards_b = _product(members[i], pointers, columns, values, sum_b) / max(length_b, 1e-30)
            scores[i] = towards_a - towards_b
        for i in range(n):
            _clear_row(members[i], pointers, columns, sum_a if i < half else sum_b)
        # The sum of all members' cosines to their own direction.
        if length_a + length_b - before < tolerance * n:
            break
        before = length_a + length_b


@kernel
def _add_row(
    row: int,
    pointers: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    target: NDArray[np.float64],
) -> None:
    for i in range(pointers[row], pointers[row + 1]):
        target[columns[i]] += values[i]


@kernel
def _clear_row(row: int, pointers: NDArray[np.int64], columns: NDArray[np.int32], target: NDArray[np.float64]) -> None:
    for i in range(pointers[row], pointers[row + 1]):
        target[columns[i]] = 0.0


@kernel
def _product(
    row: int,
    pointers: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    other: NDArray[np.float64],
) -> float:
    total = 0.0
    for i in range(pointers[row], pointers[row + 1]):
        total += values[i] * other[columns[i]]
    return total
