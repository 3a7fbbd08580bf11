from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csc_matrix

from lightdxml.kernels import l1_logistic
from lightdxml.kernels.l1_logistic import Limits
from lightdxml.kernels.sparse import Csr

EXACT = Limits(newton_steps=100, passes=100, tolerance=1e-8)
AS_IN_FASTXML = Limits(newton_steps=10, passes=10, tolerance=0.01)


def problem(seed: int, n: int = 60, columns: int = 25) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, columns)) < 0.3, rng.uniform(-1, 2, (n, columns)), 0).astype(np.float32)
    truth = rng.normal(size=columns) * (rng.random(columns) < 0.3)
    return X.astype(np.float64), X @ truth + 0.5 * rng.normal(size=n) > 0


def fit(
    X: NDArray[np.float64], positive: NDArray[np.bool_], costs: NDArray[np.float64], limits: Limits
) -> NDArray[np.float64]:
    columns = csc_matrix(X.astype(np.float32))
    rows = Csr(columns.indptr.astype(np.int64), columns.indices, columns.data)
    return l1_logistic.fit(rows, positive, costs, limits, np.array([1], dtype=np.uint64))


def objective(
    w: NDArray[np.float64], X: NDArray[np.float64], positive: NDArray[np.bool_], costs: NDArray[np.float64]
) -> float:
    margins = np.where(positive, 1, -1) * (X @ w)
    return float(np.abs(w).sum() + costs @ np.logaddexp(0, -margins))


def proximal_gradient(
    X: NDArray[np.float64], positive: NDArray[np.bool_], costs: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Minimize the same objective slowly: gradient steps that cannot overshoot, each followed by soft thresholding."""
    rate = 4 / np.linalg.eigvalsh(X.T @ (costs[:, None] * X))[-1]
    w = np.zeros(X.shape[1])
    for _ in range(20_000):
        probabilities = 1 / (1 + np.exp(-X @ w))
        w = w - rate * (X.T @ (costs * (probabilities - positive)))
        w = np.sign(w) * np.maximum(np.abs(w) - rate, 0)
    return w


@pytest.mark.parametrize("seed", range(3))
def test_the_solution_is_that_of_a_slow_method(seed: int) -> None:
    X, positive = problem(seed)
    costs = np.where(positive, 1.5, 0.8)
    expected = proximal_gradient(X, positive, costs)
    found = fit(X, positive, costs, EXACT)
    assert 0 < (expected != 0).sum() < X.shape[1]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_limits_of_fastxml_come_near_the_optimum() -> None:
    X, positive = problem(3)
    costs = np.full(len(X), 2.0)
    best = objective(fit(X, positive, costs, EXACT), X, positive, costs)
    assert objective(fit(X, positive, costs, AS_IN_FASTXML), X, positive, costs) < 1.001 * best


def test_weights_are_zero_if_errors_cost_too_little() -> None:
    X, positive = problem(4)
    assert not fit(X, positive, np.full(len(X), 1e-3), EXACT).any()


def test_separable_rows_of_large_values_give_finite_weights() -> None:
    X = np.array([[1e4, 0], [-1e4, 1e4]])
    w = fit(X, np.array([True, False]), np.full(2, 1e3), AS_IN_FASTXML)
    assert np.isfinite(w).all()
    assert ((X @ w > 0) == [True, False]).all()


def test_a_column_without_rows_gets_no_weight() -> None:
    X, positive = problem(5)
    X[:, 3] = 0
    assert fit(X, positive, np.ones(len(X)), EXACT)[3] == 0
