from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix, random_array

from lightdxml.kernels import ridge
from lightdxml.kernels.sparse import Csr


def test_each_turn_solves_for_the_dual_variables_of_its_row() -> None:
    rng = np.random.default_rng(0)
    X = csr_matrix(random_array((6, 9), density=0.5, rng=rng, dtype=np.float32))
    targets = rng.standard_normal((6, 5)).astype(np.float32)
    dual, weights = np.zeros((6, 5), dtype=np.float32), np.zeros((9, 5), dtype=np.float32)
    violations, order = np.full(5, -1.0), np.array([3, 0, 3, 5])
    ridge.descend(1, 4, order, Csr.of(X), targets, np.float32(2), dual, weights, violations)
    dense, expected, met = X.toarray(), np.zeros((6, 5)), np.zeros(5)
    for i in order:
        gradient = targets[i] - dense[i] @ (dense.T @ expected) - 2 * expected[i]
        expected[i, 1:4] += gradient[1:4] / (2 + dense[i] @ dense[i])
        met += np.abs(gradient)
    np.testing.assert_allclose(dual, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(weights, dense.T @ expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(violations, [-1, *met[1:4], -1], rtol=1e-5)
