"""Dual coordinate descent with a fixed bias, and lists of negatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, random

from lightdxml.kernels import linear
from lightdxml.kernels.sparse import Csr, Pattern

COSTS = (0.5, 0.25)


def train(
    X: csr_matrix,
    positives: list[int],
    negatives: list[int],
    prune_below: float = 0.0,
    *,
    compiled: bool = True,
) -> NDArray[np.float64]:
    """Train one label with a bias of -1 as exactly as possible; return its weights."""
    squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float32).ravel()
    own = np.array(positives, dtype=np.int32)
    others = np.array(negatives, dtype=np.int32)
    columns, weights = np.empty(10_000, dtype=np.int32), np.empty(10_000, dtype=np.float32)
    counts = np.zeros(1, dtype=np.int64)
    w = np.zeros(X.shape[1], dtype=np.float32)
    function: Any = linear.train_labels
    n = (function if compiled else function.py_func)(
        np.zeros(1, dtype=np.int32), Pattern(np.array([0, len(own)], dtype=np.int64), own),
        np.zeros(1, dtype=np.int32), Pattern(np.array([0, len(others)], dtype=np.int64), others), Csr.of(X), squares,
        linear.Solver(COSTS, -1.0, 2000, 1e-5, 0), np.full(X.shape[1], prune_below, dtype=np.float32), w, columns,
        weights, counts,
    )  # fmt: skip
    assert n == 1
    assert not w.any()
    found = np.zeros(X.shape[1])
    found[columns[: counts[0]]] = weights[: counts[0]]
    return found


def documents(seed: int, n: int = 60) -> csr_matrix:
    X = random(n, 25, 0.3, format="csr", random_state=seed, dtype=np.float32)
    return csr_matrix(X, dtype=np.float32)


def test_the_solution_is_optimal() -> None:
    X = documents(5)
    positives, negatives = list(range(10)), list(range(20, 50))
    w = train(X, positives, negatives)

    def objective(v: NDArray[Any]) -> float:
        margins = X @ v - 1
        lost = COSTS[0] * np.maximum(0, 1 - margins[positives]) ** 2
        return float(v @ v / 2 + lost.sum() + COSTS[1] * (np.maximum(0, 1 + margins[negatives]) ** 2).sum())

    rng = np.random.default_rng(0)
    least = objective(w)
    assert all(objective(w + 0.01 * rng.normal(size=w.shape)) > least for _ in range(50))


def test_documents_that_do_not_fit_in_the_cache_give_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    X, positives, negatives = documents(4), list(range(0, 60, 7)), list(range(60))
    gathered = train(X, positives, negatives)
    monkeypatch.setattr(linear, "_COPIED", 10)
    monkeypatch.setattr(linear, "_BLOCK", 4)
    scattered = train(X, positives, negatives, compiled=False)
    np.testing.assert_allclose(scattered, gathered, atol=1e-4)


def test_blocks_are_shuffled_and_the_incomplete_one_stays_last() -> None:
    order = np.arange(50, dtype=np.int32)
    linear.shuffle(order, 16, np.uint64(3))
    assert sorted(order.tolist()) == list(range(50))
    assert order[48:].tolist() == [48, 49]
    firsts = order[:48:16]
    np.testing.assert_array_equal(order[:48].reshape(3, 16), firsts[:, None] + np.arange(16))


def test_small_weights_are_dropped() -> None:
    X = documents(2)
    whole = train(X, list(range(8)), list(range(8, 60)))
    pruned = train(X, list(range(8)), list(range(8, 60)), prune_below=0.1)
    np.testing.assert_array_equal(pruned, np.where(np.abs(whole) >= np.float32(0.1), whole, 0))
    assert 0 < np.count_nonzero(pruned) < np.count_nonzero(whole)


def test_negatives_are_counted_and_listed_once_and_without_true_documents() -> None:
    near = np.array([[0, 1], [2, -1], [1, 2]], dtype=np.int32)
    hard = np.array([[1], [0], [-1]], dtype=np.int32)
    true_labels = Pattern(np.array([0, 1, 1, 2]), np.array([0, 2], dtype=np.int32))
    wanted, counts = np.array([True, True, True]), np.zeros(3, dtype=np.int64)
    linear.group_negatives(near, hard, true_labels, wanted, counts, np.empty(0, dtype=np.int32))
    assert counts.tolist() == [1, 2, 1]
    starts, documents = np.concatenate([[0], np.cumsum(counts)]), np.empty(4, dtype=np.int32)
    linear.group_negatives(near, hard, true_labels, wanted, starts[:-1].copy(), documents)
    assert documents.tolist() == [1, 0, 2, 1]
