"""Streaming top-k against a stable sort."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lightdxml.kernels import topk


def best(products: NDArray[np.float32], k: int, capacity: int, calls: int) -> list[list[int]]:
    """Return the row ids of the best k of each row, from candidates that arrive last ones first."""
    n, m = products.shape
    top = topk.TopK.empty(n, k)._replace(keys=np.zeros((n, capacity), dtype=np.uint64))
    for row_ids in reversed(np.array_split(np.arange(m, dtype=np.int32), calls)):
        topk.push_topk(np.ascontiguousarray(products[:, row_ids]), np.arange(n), row_ids, top)
    assert (top.counts >= k).all()
    row_ids, _ = topk.unpack(topk.best_keys([top.best()], k))
    return [row.tolist() for row in row_ids]


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
    row_ids = np.arange(8, dtype=np.int32)[None]
    keys = topk.pack(row_ids, products)
    ids, unpacked = topk.unpack(keys)
    np.testing.assert_array_equal(unpacked, products)
    np.testing.assert_array_equal(ids, row_ids)
    assert np.argsort(keys[0]).tolist() == [6, 5, 4, 3, 2, 1, 0, 7]
