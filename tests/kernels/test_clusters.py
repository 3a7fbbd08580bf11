"""Products with centres, and the best of many products, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lightdxml.kernels import clusters


def best_of(products: NDArray[np.float32], k: int, room: int, blocks: int) -> list[list[int]]:
    """Return the places of the best k of each row, which come in blocks that begin with the last one."""
    n, m = products.shape
    found, counts = np.zeros((n, room), dtype=np.uint64), np.zeros(n, dtype=np.int64)
    bounds = np.full(n, -np.inf, dtype=np.float32)
    rows = np.arange(n)
    for places in reversed(np.array_split(np.arange(m, dtype=np.int32), blocks)):
        part = np.ascontiguousarray(products[:, places])
        clusters.keep_best(part, part.view(np.uint32), rows, places, k, found, counts, bounds)
    clusters.finish(k, found, counts)
    assert (counts >= k).all()
    return [(np.sort(keys[:k]) & np.uint64(0xFFFFFFFF)).tolist() for keys in found]


@pytest.mark.parametrize("room", [8, 15, 200])
@pytest.mark.parametrize("seed", range(5))
def test_the_best_products_are_kept_in_order_and_of_equals_the_first(room: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Few different numbers, of both signs, with both zeros among them.
    products = (rng.integers(-9, 10, (6, 150)) * rng.choice([-0.25, 0.25], (6, 150))).astype(np.float32)
    expected = np.argsort(-products, axis=1, kind="stable")[:, :7]
    assert best_of(products, 7, room, blocks=4) == expected.tolist()


def test_what_is_no_number_comes_last() -> None:
    products = np.array([[np.nan, -np.inf, 1.0, np.nan, -3.0, np.inf]], dtype=np.float32)
    for room in (5, 6, 20):
        assert best_of(products, 4, room, blocks=2) == [[5, 2, 4, 1]]


def test_nothing_but_no_numbers_still_gives_as_many_as_asked_for() -> None:
    assert best_of(np.full((2, 9), np.nan, dtype=np.float32), 3, 4, blocks=3) == [[0, 1, 2]] * 2


@pytest.mark.parametrize("D", [1, 5, 37, 300])
def test_a_product_has_the_same_bits_wherever_its_document_stands(D: int) -> None:
    rng = np.random.default_rng(D)
    documents = rng.standard_normal((7, D), dtype=np.float32)
    centres = rng.standard_normal((21, D), dtype=np.float32)
    together = np.empty((7, 21), dtype=np.float32)
    clusters.products(0, 7, documents, centres, together)
    np.testing.assert_allclose(together, documents @ centres.T, atol=1e-4)
    for row in range(7):
        alone = np.empty((1, 21), dtype=np.float32)
        clusters.products(0, 1, documents[row : row + 1], centres, alone)
        np.testing.assert_array_equal(alone[0], together[row])


@pytest.mark.parametrize("probes", [1, 2, 30, 49, 50])
@pytest.mark.parametrize("steps", [1, 7, 1024])
def test_the_last_of_the_nearest_clusters_is_told_exactly(probes: int, steps: int) -> None:
    rng = np.random.default_rng(probes)
    nearness = rng.standard_normal((20, 50), dtype=np.float32)
    nearness[10:] = np.round(nearness[10:])
    nearness[19] = 0.25
    found = clusters.nearest_clusters(nearness, probes, np.empty(steps, dtype=np.int64))
    np.testing.assert_array_equal(found, -np.sort(-nearness, axis=1)[:, probes - 1])


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 3e38, 1e-44])
def test_where_nearness_cannot_be_counted_in_steps_no_cluster_is_left_out(odd: float) -> None:
    nearness = np.zeros((1, 9), dtype=np.float32)
    nearness[0, 3] = odd
    if odd == 3e38:
        nearness[0, 5] = -odd
    found = clusters.nearest_clusters(nearness, 4, np.empty(1024, dtype=np.int64))
    assert not (nearness < found[:, None]).any()
