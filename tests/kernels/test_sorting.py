"""Sorting within kernels against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from lightdxml.kernels.sorting import sort_by_score, sort_with_values

SIZES = [0, 1, 2, 3, 5, 8, 17, 100, 1000]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("distinct", [2, 10**6])
def test_ids_are_sorted_and_values_move_with_them(n: int, distinct: int) -> None:
    rng = np.random.default_rng(n)
    ids = rng.integers(0, distinct, n).astype(np.int32)
    moved, values, alone = ids.copy(), ids.astype(np.float64) / 3, ids.copy()
    sort_with_values(moved, values)
    sort_with_values(alone, alone)
    np.testing.assert_array_equal(alone, np.sort(ids))
    np.testing.assert_array_equal(moved, np.sort(ids))
    np.testing.assert_array_equal(values, np.sort(ids).astype(np.float64) / 3)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("distinct", [2, 10**6])
def test_a_sort_by_score_is_descending_and_stable(n: int, distinct: int) -> None:
    rng = np.random.default_rng(n)
    scores, ids = rng.integers(0, distinct, n).astype(np.float64), np.arange(n, dtype=np.int32)
    order = np.argsort(-scores, kind="stable")
    expected = scores[order]
    sort_by_score(ids, scores)
    np.testing.assert_array_equal(ids, order)
    np.testing.assert_array_equal(scores, expected)
