"""Streaming top-k against a stable sort."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lightdxml.kernels import topk


def best(products: NDArray[np.float32], k: int, capacity: int, calls: int) -> list[list[int]]:
    """Return the row ids of the best k of each row, from candidates that arrive last ones first."""
    n, m = products.shape
    keys, counts = np.zeros((n, capacity), dtype=np.uint64), np.zeros(n, dtype=np.int64)
    bounds = np.full(n, -np.inf, dtype=np.float32)
    for row_ids in reversed(np.array_split(np.arange(m, dtype=np.int32), calls)):
        topk.push_topk(np.ascontiguousarray(products[:, row_ids]), np.arange(n), row_ids, k, keys, counts, bounds)
    topk.select_topk(k, keys, counts)
    assert (counts >= k).all()
    return [(np.sort(row[:k]) & np.uint64(0xFFFFFFFF)).tolist() for row in keys]


@pytest.mark.parametrize("capacity", [9, 10, 16, 200])
@pytest.mark.parametrize("seed", range(5))
def test_the_best_are_kept_and_ties_go_to_the_lower_row_id(capacity: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Few different numbers of both signs, with both zeros among them.
    products = (rng.integers(-9, 10, (6, 150)) * rng.choice([-0.25, 0.25], (6, 150))).astype(np.float32)
    expected = np.argsort(-products, axis=1, kind="stable")[:, :7]
    assert best(products, 7, capacity, calls=4) == expected.tolist()


def test_nan_ranks_last() -> None:
    products = np.array([[np.nan, -np.inf, 1.0, np.nan, -3.0, np.inf]], dtype=np.float32)
    for capacity in (6, 7, 20):
        assert best(products, 4, capacity, calls=2) == [[5, 2, 4, 1]]


def test_only_nan_still_gives_k_candidates() -> None:
    assert best(np.full((2, 9), np.nan, dtype=np.float32), 3, 5, calls=3) == [[0, 1, 2]] * 2


def test_keys_keep_products_and_order() -> None:
    products = np.array([[-np.inf, -1.5, -1e-42, 0.0, 1e-42, 0.25, np.inf, np.nan]], dtype=np.float32)
    row_ids, keys = np.arange(8, dtype=np.int32)[None], np.empty((1, 8), dtype=np.uint64)
    topk.pack_keys(products, row_ids, keys)
    unpacked, ids = np.empty_like(products), np.empty_like(row_ids)
    topk.unpack_keys(keys, unpacked, ids)
    np.testing.assert_array_equal(unpacked, products)
    np.testing.assert_array_equal(ids, row_ids)
    assert np.argsort(keys[0]).tolist() == [6, 5, 4, 3, 2, 1, 0, 7]


@pytest.mark.parametrize("k", [1, 2, 30, 49, 50])
@pytest.mark.parametrize("bins", [1, 7, 1024])
def test_the_kth_largest_value_is_exact(k: int, bins: int) -> None:
    values = np.random.default_rng(k).standard_normal((20, 50), dtype=np.float32)
    values[10:] = np.round(values[10:])
    values[19] = 0.25
    found = topk.kth_largest(values, k, np.empty(bins, dtype=np.int64))
    np.testing.assert_array_equal(found, -np.sort(-values, axis=1)[:, k - 1])


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 3e38, 1e-44])
def test_values_that_have_no_histogram_are_all_above_the_kth_largest(odd: float) -> None:
    values = np.zeros((1, 9), dtype=np.float32)
    values[0, 3] = odd
    if odd == 3e38:
        values[0, 5] = -odd
    found = topk.kth_largest(values, 4, np.empty(1024, dtype=np.int64))
    assert not (values < found[:, None]).any()
