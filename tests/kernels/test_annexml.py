from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, random_array

from lightdxml.kernels import annexml
from lightdxml.kernels.annexml import Ftrl
from lightdxml.kernels.sparse import Csr

GAMMA = 10.0


def documents(rng: np.random.Generator) -> csr_matrix:
    """Return eight documents of which the last one is empty."""
    X = random_array((8, 12), density=0.4, rng=rng, dtype=np.float32).toarray()
    X[7] = 0
    return csr_matrix(X)


def objective(X: NDArray[Any], W: NDArray[Any], i: int, positives: list[int], negatives: list[int]) -> float:
    """Return the log-likelihood that document i prefers each positive to all negatives."""
    Z = X @ W
    cosines = Z @ Z[i] / (np.maximum(np.linalg.norm(Z, axis=1), 1e-30) * np.linalg.norm(Z[i]))
    odds = np.exp(GAMMA * cosines)
    return float(sum(np.log(odds[p] / (odds[p] + odds[negatives].sum())) for p in positives))


def one_turn(
    X: csr_matrix, i: int, positives: list[int], negatives: list[int], W: Any, squares: Any, rate: float
) -> None:
    n = X.shape[0]
    near, far = (np.tile(np.array(some, dtype=np.int32), (n, 1)) for some in (positives, negatives))
    annexml.embedding_epoch(np.array([i]), Csr.of(X), near, far, GAMMA, np.float32(rate), W, squares)


@pytest.mark.parametrize("negatives", [[4, 5, 6], [1, 1, 0], [5, 6, 7]])
def test_a_turn_follows_the_gradient_of_the_objective(negatives: list[int]) -> None:
    rng = np.random.default_rng(0)
    X = documents(rng)
    W, positives = rng.standard_normal((12, 3)), [1, 2, 2]
    moved = W.astype(np.float32)
    # Sums of squares this large do not grow: the step is the gradient times rate / 10⁶.
    one_turn(X, 0, positives, negatives, moved, np.full(W.shape, 1e12, dtype=np.float32), 1e5)
    dense, numeric = X.toarray().astype(np.float64), np.zeros_like(W)
    for at in np.ndindex(*W.shape):
        step = np.zeros_like(W)
        step[at] = 1e-6
        higher, lower = (objective(dense, W + s, 0, positives, negatives) for s in (step, -step))
        numeric[at] = (higher - lower) / 2e-6
    np.testing.assert_allclose((moved - W) / 0.1, numeric, rtol=1e-3, atol=2e-4 * np.abs(numeric).max())


def test_steps_are_those_of_adagrad() -> None:
    X = csr_matrix(np.eye(3, dtype=np.float32))
    W = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    before, squares = W.copy(), np.ones_like(W)
    one_turn(X, 0, [2], [1], W, squares, 0.5)
    # Documents 1 and 2 have one feature and one update each.
    for j in (1, 2):
        gradient = np.sqrt(squares[j] - 1)
        np.testing.assert_allclose(np.abs(W[j] - before[j]), 0.5 * gradient / np.sqrt(squares[j]), rtol=2e-3, atol=1e-4)
    assert (squares[0] > 1).all()


def test_documents_without_features_or_positives_change_nothing() -> None:
    X = documents(np.random.default_rng(0))
    W = np.ones((12, 3), dtype=np.float32)
    squares = W.copy()
    one_turn(X, 7, [1], [2], W, squares, 0.1)
    one_turn(X, 0, [-1], [2], W, squares, 0.1)
    assert (W == 1).all()
    assert (squares == 1).all()


def partition(X: csr_matrix, state: Ftrl, draws: list[int], n_clusters: int) -> None:
    one, other, turn = np.array([[1]], dtype=np.int32), np.array([[2]], dtype=np.int32), np.array([0])
    annexml.partition_epoch(
        turn,
        Csr.of(X),
        one,
        other,
        np.array(draws, dtype=np.int32),
        n_clusters,
        np.float32(0.5),
        np.float32(0.25),
        state,
    )


def test_the_nearest_cluster_takes_positives_by_a_step_of_ftrl() -> None:
    X = csr_matrix(np.array([[1, 0, 0], [0, 2, 0], [0, 0, 3]], dtype=np.float32))
    # Features × clusters: document 0 is nearer to cluster 1.
    weights = np.array([[0.1, 0.2], [0, 0.3], [0, 0.4]], dtype=np.float32)
    state = Ftrl(weights.ravel().copy(), np.ones(6, dtype=np.float32), np.zeros(6, dtype=np.float32))
    partition(X, state, [0], 2)
    moved = state.weights.reshape(3, 2)
    np.testing.assert_array_equal(moved[:, 0], weights[:, 0])
    assert moved[0, 1] == weights[0, 1]
    for feature, value, target in ((1, 2.0, 1.0), (2, 3.0, 0.0)):
        w = float(weights[feature, 1])
        g = (target - 1 / (1 + np.exp(-w * value))) * value
        z = g + (np.sqrt(1 + g * g) - 1) / 0.5 * w
        expected = 0.5 * np.sign(z) * max(abs(z) - 0.25, 0) / np.sqrt(1 + g * g)
        assert moved[feature, 1] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("draw", [0, 1, 2, 5])
def test_a_draw_decides_among_equally_near_clusters(draw: int) -> None:
    X = csr_matrix(np.eye(3, dtype=np.float32))
    state = Ftrl(np.zeros(9, dtype=np.float32), np.ones(9, dtype=np.float32), np.zeros(9, dtype=np.float32))
    partition(X, state, [draw], 3)
    assert np.flatnonzero(state.weights.reshape(3, 3).any(axis=0)).tolist() == [draw % 3]


def test_weights_share_places_if_there_are_too_few() -> None:
    X = csr_matrix(np.eye(3, dtype=np.float32))
    state = Ftrl(np.zeros(4, dtype=np.float32), np.ones(4, dtype=np.float32), np.zeros(4, dtype=np.float32))
    partition(X, state, [0], 2)
    # The positive has places 2 and 3; the negative, with place 4, meets document 0.
    assert state.weights[2] > 0 > state.weights[0]
