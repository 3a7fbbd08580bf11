"""Balanced spherical 2-means: bisect a set of sparse unit rows into two clusters of equal size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel
from lightdxml.kernels.sorting import sort_by_score
from lightdxml.kernels.sparse import Csr

_MIN_LENGTH = 1e-30


@kernel
def bisect(
    members: NDArray[np.int32],
    first: int,
    second: int,
    rows: Csr,
    max_iter: int,
    tolerance: float,
    sums: NDArray[np.float64],
) -> None:
    """Reorder the members so that the first half, with the middle one if there is one, is one cluster.

    Parameters
    ----------
    members
        Ids of rows; reordered in place.
    first, second
        Positions of the two members whose directions are the first centers.
    max_iter, tolerance
        The most iterations, and the gain in mean cosine below which to stop.
    sums
        Workspace, columns × 2, all zero before and after: both centers side by side share a cache line.
    """
    n = members.size
    half = (n + 1) // 2
    products = np.empty((n, 2), np.float64)
    _add_row(members[first], rows, sums, 0)
    _add_row(members[second], rows, sums, 1)
    _multiply(members, rows, sums, products)
    _clear(members, rows, sums)
    scores = np.empty(n, np.float64)
    for i in range(n):
        scores[i] = products[i, 0] - products[i, 1]
    before = -np.inf
    for _ in range(max_iter):
        sort_by_score(members, scores)
        for i in range(n):
            _add_row(members[i], rows, sums, 0 if i < half else 1)
        _multiply(members, rows, sums, products)
        _clear(members, rows, sums)
        # |s|² is the sum of x·s over the rows x whose sum is s.
        square_a = square_b = 0.0
        for i in range(half):
            square_a += products[i, 0]
        for i in range(half, n):
            square_b += products[i, 1]
        length_a, length_b = np.sqrt(square_a), np.sqrt(square_b)
        for i in range(n):
            scores[i] = products[i, 0] / max(length_a, _MIN_LENGTH) - products[i, 1] / max(length_b, _MIN_LENGTH)
        # The sum of the cosines of all members with the center of their cluster.
        if length_a + length_b - before < tolerance * n:
            break
        before = length_a + length_b


@kernel
def divide(members: NDArray[np.int32], sample: NDArray[np.int32], rows: Csr, sums: NDArray[np.float64]) -> None:
    """Reorder the members as `bisect` does, by the two centers of a sample that was bisected.

    `sums` is workspace as in `bisect`.
    """
    half = (sample.size + 1) // 2
    for i in range(sample.size):
        _add_row(sample[i], rows, sums, 0 if i < half else 1)
    products = np.empty((sample.size, 2), np.float64)
    _multiply(sample, rows, sums, products)
    square_a = square_b = 0.0
    for i in range(half):
        square_a += products[i, 0]
    for i in range(half, sample.size):
        square_b += products[i, 1]
    length_a, length_b = max(np.sqrt(square_a), _MIN_LENGTH), max(np.sqrt(square_b), _MIN_LENGTH)
    products = np.empty((members.size, 2), np.float64)
    _multiply(members, rows, sums, products)
    _clear(sample, rows, sums)
    scores = np.empty(members.size, np.float64)
    for i in range(members.size):
        scores[i] = products[i, 0] / length_a - products[i, 1] / length_b
    sort_by_score(members, scores)


@kernel
def _add_row(row: int, rows: Csr, sums: NDArray[np.float64], side: int) -> None:
    indptr, indices, values = rows
    for i in range(indptr[row], indptr[row + 1]):
        sums[indices[i], side] += values[i]


@kernel
def _multiply(members: NDArray[np.int32], rows: Csr, sums: NDArray[np.float64], products: NDArray[np.float64]) -> None:
    """Fill products with those of each member and both sums."""
    indptr, indices, values = rows
    for i in range(members.size):
        row = members[i]
        a = b = 0.0
        for p in range(indptr[row], indptr[row + 1]):
            a += values[p] * sums[indices[p], 0]
            b += values[p] * sums[indices[p], 1]
        products[i, 0], products[i, 1] = a, b


@kernel
def _clear(members: NDArray[np.int32], rows: Csr, sums: NDArray[np.float64]) -> None:
    """Set the sums of all columns of the members to 0."""
    indptr, indices, _ = rows
    total = 0
    for row in members:
        total += indptr[row + 1] - indptr[row]
    if total > len(sums):
        for column in range(len(sums)):
            sums[column, 0] = sums[column, 1] = 0.0
        return
    for row in members:
        for p in range(indptr[row], indptr[row + 1]):
            sums[indices[p], 0] = sums[indices[p], 1] = 0.0
