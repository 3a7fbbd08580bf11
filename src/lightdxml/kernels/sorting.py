"""Sorting within kernels. NumPy's functions take seconds to compile in each kernel that uses them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel


@kernel
def sort_with_values(ids: NDArray[np.int32], values: NDArray[Any]) -> None:
    """Sort ids in place, in ascending order, and values with them: Shell's sort, whose gaps are about powers of 9/4."""
    gap = 1
    while gap < ids.size:
        gap = gap * 9 // 4 + 1
    while gap > 1:
        gap = max(1, (gap - 1) * 4 // 9)
        for i in range(gap, ids.size):
            one, value = ids[i], values[i]
            j = i
            while j >= gap and ids[j - gap] > one:
                ids[j], values[j] = ids[j - gap], values[j - gap]
                j -= gap
            ids[j], values[j] = one, value


@kernel
def sort_by_score(ids: NDArray[np.int32], scores: NDArray[np.float64]) -> None:
    """Sort ids in place by descending scores, which are sorted too; ids of equal scores keep their order.

    A merge sort from the bottom up.
    """
    n = ids.size
    from_ids, from_scores = ids, scores
    to_ids, to_scores = np.empty(n, np.int32), np.empty(n, np.float64)
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            a, b = start, middle
            for i in range(start, stop):
                if b == stop or (a < middle and from_scores[a] >= from_scores[b]):
                    to_ids[i], to_scores[i] = from_ids[a], from_scores[a]
                    a += 1
                else:
                    to_ids[i], to_scores[i] = from_ids[b], from_scores[b]
                    b += 1
        from_ids, from_scores, to_ids, to_scores = to_ids, to_scores, from_ids, from_scores
        width *= 2
    for i in range(n):
        ids[i], scores[i] = from_ids[i], from_scores[i]
