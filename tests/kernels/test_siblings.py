"""Dual coordinate descent of eight classes at a time, against LIBLINEAR."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, random
from sklearn.svm import LinearSVC

from lightdxml.kernels import siblings
from lightdxml.kernels.linear import Solver
from lightdxml.kernels.sparse import Csr, Pattern

N, V = 80, 25
COSTS = (0.5, 0.25)
Trained = tuple[NDArray[np.float64], NDArray[np.float32]]


def documents(seed: int) -> csr_matrix:
    return csr_matrix(random(N, V, 0.3, format="csr", random_state=seed, dtype=np.float32))


def train(
    X: csr_matrix,
    truth: NDArray[np.bool_],
    groups: list[int],
    prune_below: float = 0.0,
    max_copied: int = siblings.MAX_COPIED,
) -> Trained:
    """Train classes as exactly as possible, a group on the documents of its classes; return weights and biases."""
    of = np.array(groups, dtype=np.int32)
    members = csr_matrix(np.array([truth[:, of == group].any(axis=1) for group in range(max(groups) + 1)], np.float32))
    squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float32).ravel()
    n = truth.shape[1]
    W, biases = np.zeros((V, siblings.LANES), np.float32), np.empty(n, np.float32)
    columns, weights = np.empty(10_000, np.int32), np.empty(10_000, np.float32)
    counts = np.zeros(n, np.int64)
    done = siblings.train_siblings(
        np.arange(n, dtype=np.int32), Pattern.of(csr_matrix(truth.T)), of, Pattern.of(members), Csr.of(X), squares,
        Solver(COSTS, 0.0, 2000, 1e-5, 0), np.full(V, prune_below, np.float32), max_copied, W, biases, columns,
        weights, counts,
    )  # fmt: skip
    assert done == n
    assert not W.any()
    found, at = np.zeros((n, V)), 0
    for i, count in enumerate(counts):
        found[i, columns[at : at + count]] = weights[at : at + count]
        at += count
    return found, biases


def peer(X: csr_matrix, y: NDArray[np.bool_]) -> tuple[NDArray[np.float64], float]:
    svc = LinearSVC(C=1.0, class_weight={1: COSTS[0], 0: COSTS[1]}, dual=True, tol=1e-8, max_iter=100_000).fit(X, y)
    return svc.coef_[0], svc.intercept_[0]


# Documents that are too many to copy: another order, the same solution.
@pytest.mark.parametrize("max_copied", [siblings.MAX_COPIED, 0])
@pytest.mark.parametrize("groups", [[0], [0] * 8, [0] * 11, [0] * 3 + [1] * 2 + [2] * 9], ids=str)
def test_every_class_has_the_weights_of_liblinear(groups: list[int], max_copied: int) -> None:
    X, truth = documents(1), np.random.default_rng(1).random((N, len(groups))) < 0.4
    found, biases = train(X, truth, groups, max_copied=max_copied)
    for i, group in enumerate(groups):
        rows = truth[:, np.array(groups) == group].any(axis=1)
        if truth[rows, i].all():
            continue  # LIBLINEAR needs two classes
        w, b = peer(X[rows], truth[rows, i])
        np.testing.assert_allclose(found[i], w, atol=3e-3)
        assert biases[i] == pytest.approx(b, abs=3e-3)


def test_a_class_without_negatives_has_a_bias_that_accepts() -> None:
    found, biases = train(documents(2), np.ones((N, 1), dtype=bool), [0])
    assert biases[0] > 0
    assert np.isfinite(found).all()


def test_small_weights_are_dropped() -> None:
    X, truth = documents(3), np.random.default_rng(3).random((N, 9)) < 0.3
    whole, _ = train(X, truth, [0] * 9)
    pruned, _ = train(X, truth, [0] * 9, prune_below=0.1)
    np.testing.assert_array_equal(pruned, np.where(np.abs(whole) >= np.float32(0.1), whole, 0))
    assert 0 < np.count_nonzero(pruned) < np.count_nonzero(whole)
