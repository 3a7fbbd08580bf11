"""Random numbers within kernels."""

from __future__ import annotations

import numpy as np

from lightdxml.kernels import randomness


def test_blocks_are_shuffled_and_the_incomplete_one_stays_last() -> None:
    order = np.arange(50, dtype=np.int32)
    randomness.shuffle(order, 50, 16, np.uint64(3))
    assert sorted(order.tolist()) == list(range(50))
    assert order[48:].tolist() == [48, 49]
    firsts = order[:48:16]
    np.testing.assert_array_equal(order[:48].reshape(3, 16), firsts[:, None] + np.arange(16))


def test_streams_of_neighboring_numbers_are_unlike() -> None:
    first = [randomness.uniform(np.uint64(randomness.stream(0, number))) for number in range(2000)]
    assert all(0 <= one < 1 for one in first)
    assert len(set(first)) == 2000
    assert abs(np.mean(first) - 0.5) < 0.03
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.08


def test_numbers_below_a_bound_are_all_reached() -> None:
    state, found = np.uint64(randomness.stream(1, 0)), set()
    for _ in range(200):
        state = np.uint64(randomness.advance(state))
        found.add(randomness.below(state, 7))
    assert found == set(range(7))


def test_all_numbers_below_the_limit_are_about_as_frequent() -> None:
    state = np.array([5], dtype=np.uint64)
    counts = np.bincount([randomness.next_below(state, 7) for _ in range(7000)], minlength=7)
    assert len(counts) == 7
    assert np.abs(counts - 1000).max() < 150


def test_the_state_determines_the_numbers() -> None:
    one, other = np.array([3], dtype=np.uint64), np.array([3], dtype=np.uint64)
    assert [randomness.next_below(one, 100) for _ in range(20)] == [
        randomness.next_below(other, 100) for _ in range(20)
    ]
