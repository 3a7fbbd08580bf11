"""Sparse classifiers by primal-dual coordinate descent."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, random

from lightdxml.experiments.baselines.ppdsparse import columns_by_value
from lightdxml.kernels import primal_dual, randomness
from lightdxml.kernels.primal_dual import Solver
from lightdxml.kernels.sparse import Csr, Pattern

N, V = 80, 12


def documents(n: int = N, n_features: int = V, density: float = 0.6) -> csr_matrix:
    return csr_matrix(random(n, n_features, density, "csr", np.float32, np.random.default_rng(0)))


def train(X: csr_matrix, truth: NDArray[np.bool_], solver: Solver) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Return the weights and biases of classes; `truth` is documents × classes."""
    n, n_features = truth.shape[1], X.shape[1]
    classes, biases, counts = np.arange(n, dtype=np.int32), np.zeros(n, np.float32), np.zeros(n, np.int64)
    columns, weights = np.empty(n * n_features, np.int32), np.empty(n * n_features, np.float32)
    squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float32).ravel()
    positives = Pattern.of(csr_matrix(truth.T))
    done = primal_dual.train_classes(
        classes, positives, Csr.of(X), squares, columns_by_value(X), solver, biases, columns, weights, counts
    )
    assert done == n
    found, used = np.zeros((n, n_features)), counts.sum()
    found[np.repeat(classes, counts), columns[:used]] = weights[:used]
    return found, biases


def objective(w: NDArray[np.float64], b: float, X: csr_matrix, y: NDArray[np.float64], solver: Solver) -> float:
    errors = np.maximum(0, 1 - y * (X @ w + b))
    return float(solver.l1 * np.abs(w).sum() + (w @ w + b * b) / 2 + solver.cost * (errors**2).sum())


def minimum(X: csr_matrix, y: NDArray[np.float64], solver: Solver) -> float:
    """Minimize with positive and negative parts of the weights as separate variables, which are at least 0."""
    n = X.shape[1]

    def value(z: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        w, b = z[:n] - z[n:-1], z[-1]
        slope = -2 * solver.cost * y * np.maximum(0, 1 - y * (X @ w + b))
        smooth = X.T @ slope + w
        gradient = np.concatenate([smooth + solver.l1, -smooth + solver.l1, [slope.sum() + b]])
        errors = np.maximum(0, 1 - y * (X @ w + b))
        return float(solver.l1 * z[:-1].sum() + (w @ w + b * b) / 2 + solver.cost * (errors**2).sum()), gradient

    bounds = [(0, None)] * (2 * n) + [(None, None)]
    return float(minimize(value, np.zeros(2 * n + 1), jac=True, bounds=bounds, options={"maxiter": 5000}).fun)


@pytest.mark.parametrize(("cost", "l1"), [(1.0, 0.1), (0.1, 0.01), (1.0, 0.0)])
def test_the_minimum_is_found(cost: float, l1: float) -> None:
    X, solver = documents(), Solver(cost, l1, 3000, 0.0, 0)
    truth = np.random.default_rng(1).random((N, 3)) < (0.05, 0.2, 0.5)
    weights, biases = train(X, truth, solver)
    for i in range(3):
        y = np.where(truth[:, i], 1.0, -1.0)
        assert objective(weights[i], biases[i], X, y, solver) == pytest.approx(minimum(X, y, solver), rel=1e-3)


def test_thirty_passes_with_sampled_weights_come_near_the_minimum() -> None:
    X, solver = documents(400, 500, 0.1), Solver(1.0, 0.01, 30, 0.0, 0)
    truth = np.random.default_rng(1).random((400, 2)) < 0.1
    weights, biases = train(X, truth, solver)
    assert (np.count_nonzero(weights, axis=1) > 200).all()  # so that they are sampled
    for i in range(2):
        y = np.where(truth[:, i], 1.0, -1.0)
        assert objective(weights[i], biases[i], X, y, solver) < 1.1 * minimum(X, y, solver)


def test_small_weights_are_dropped() -> None:
    X, truth = documents(), np.random.default_rng(1).random((N, 3)) < 0.2
    every, biases = train(X, truth, Solver(1.0, 0.1, 30, 0.0, 0))
    large, others = train(X, truth, Solver(1.0, 0.1, 30, 0.3, 0))
    np.testing.assert_array_equal(large, np.where(np.abs(every) > 0.3, every, 0))
    np.testing.assert_array_equal(others, np.where(np.abs(biases) > 0.3, biases, 0))
    assert 0 < np.count_nonzero(large) < np.count_nonzero(every)


def test_a_class_does_not_depend_on_those_before_it() -> None:
    X, truth = documents(), np.random.default_rng(1).random((N, 3)) < 0.2
    solver = Solver(1.0, 0.1, 30, 0.01, 0)
    together = train(X, truth, solver)[0]
    other = truth.copy()
    other[:, :2] = ~truth[:, :2]
    np.testing.assert_array_equal(train(X, other, solver)[0][2], together[2])
    # The seed matters.
    assert (train(X, truth, solver._replace(seed=1))[0] != together).any()


def test_estimates_of_weights_are_right_in_the_mean() -> None:
    weights = np.array([0.5, -2.0, 0.01, 1.0, -0.1])
    total, n, draws = np.zeros(5), 4000, 3
    for number in range(n):
        estimate = weights.copy()
        primal_dual.sample(estimate, draws, np.uint64(randomness.stream(0, number)))
        # Every draw adds the same.
        times = np.abs(estimate) * draws / np.abs(weights).sum()
        np.testing.assert_allclose(times, times.round(), atol=1e-12)
        assert times.sum() == pytest.approx(draws)
        total += estimate
    np.testing.assert_allclose(total / n, weights, atol=0.1)


def test_the_same_state_gives_the_same_estimate() -> None:
    weights = np.random.default_rng(0).normal(size=300)
    one, two = weights.copy(), weights.copy()
    states = [primal_dual.sample(some, 15, np.uint64(7)) for some in (one, two)]
    np.testing.assert_array_equal(one, two)
    assert states[0] == states[1]


@pytest.mark.parametrize(("weight", "expected"), [(2.0, {0: 8.0, 3: 6.0}), (-1.0, {1: -1.0, 4: -2.0})])
def test_of_long_columns_the_entries_are_read_that_raise_scores_most(weight: float, expected: dict[int, float]) -> None:
    X = csr_matrix(np.array([[4.0], [1.0], [2.5], [3.0], [2.0]], dtype=np.float32))
    work = primal_dual._Work(
        np.zeros(1), np.zeros(1, np.bool_), np.empty(1, np.int32), np.zeros(5), np.zeros(5, np.uint8), np.zeros(5),
        np.empty(5, np.int32), np.empty(5, np.int32),
    )  # fmt: skip
    feature = np.zeros(1, np.int32)
    n = primal_dual._score(feature, np.array([weight]), columns_by_value(X), 2, work)
    assert {int(i): float(work.scores[i]) for i in work.scored[:n]} == expected


def test_a_class_of_all_documents_and_one_of_an_empty_document_are_trained() -> None:
    dense = documents().toarray()
    dense[5] = 0
    X = csr_matrix(dense)
    truth = np.zeros((N, 2), dtype=bool)
    truth[:, 0], truth[5, 1] = True, True
    weights, biases = train(X, truth, Solver(1.0, 0.1, 30, 0.01, 0))
    assert ((X @ weights[0] + biases[0]) > 0).all()
    assert (weights[1] <= 0).all()
    assert np.isfinite(biases).all()
