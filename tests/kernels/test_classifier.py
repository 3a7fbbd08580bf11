"""The sampled one-vs-all step against dense NumPy and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.config import Config
from lightdxml.kernels import adam, ova
from lightdxml.training import classifier


def dense_loss(X: NDArray[Any], W: NDArray[Any], Y: NDArray[Any], weight: NDArray[Any]) -> float:
    """Binary cross-entropy with logits of all pairs, in float64."""
    scores = X.astype(np.float64) @ W[:, :-1].T.astype(np.float64) + W[:, -1]
    return float((weight * (np.logaddexp(0, scores) - scores * Y)).sum())


def batch(rng: np.random.Generator, B: int = 6, L: int = 5, D: int = 7) -> tuple[Any, Any, Any]:
    X = rng.normal(size=(B, D)).astype(np.float32)
    W = rng.normal(size=(L, D + 1)).astype(np.float32)
    Y = csr_matrix((rng.random((B, L)) < 0.4).astype(np.float32))
    return X, W, Y


def run_step(
    X: NDArray[Any],
    W: NDArray[Any],
    Y: csr_matrix,
    shortlists: NDArray[Any],
    rate: float = 0.0,
    square: NDArray[np.float32] | None = None,
) -> tuple[float, NDArray[np.float32], classifier.Classifier]:
    """One step through the module that training uses, without the features."""
    config = Config(D=X.shape[1], batch_size=len(X), random_negatives=0)
    usual = np.zeros(len(W), dtype=np.float32) if square is None else square.copy()
    state = classifier.Classifier(W.copy(), adam.first_means(W), usual)
    room = classifier.scratch(Y, shortlists.shape[1], 0, config)
    rows = np.arange(len(X), dtype=np.int64)
    nowhere = np.empty(0, dtype=np.int32)
    n = classifier._pairs_by_label(room, Y, rows, shortlists, nowhere, config, np.random.default_rng(0))
    loss, gradient = classifier._step(state, room, n, X, np.float32(rate))
    return loss, gradient, state


def all_labels(B: int, L: int) -> NDArray[np.int32]:
    return np.tile(np.arange(L, dtype=np.int32), (B, 1))


@pytest.mark.parametrize("seed", range(3))
def test_loss_with_all_labels_is_the_full_one_vs_all_loss(seed: int) -> None:
    X, W, Y = batch(np.random.default_rng(seed))
    loss, _, _ = run_step(X, W, Y, all_labels(*Y.shape))
    assert loss == pytest.approx(dense_loss(X, W, Y.toarray(), np.ones(Y.shape)), rel=1e-5)


def test_only_positives_and_shortlisted_labels_count() -> None:
    X, W, Y = batch(np.random.default_rng(4))
    shortlists = np.array([[0, -1], [1, 2], [2, 0], [-1, -1], [4, 3], [0, 4]], dtype=np.int32)
    weight = Y.toarray().copy()
    for i, row in enumerate(shortlists):
        weight[i, row[row >= 0]] = 1
    loss, _, _ = run_step(X, W, Y, shortlists)
    assert loss == pytest.approx(dense_loss(X, W, Y.toarray(), weight), rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_gradient_to_the_documents_agrees_with_finite_differences(seed: int) -> None:
    X, W, Y = batch(np.random.default_rng(seed))
    _, gradient, _ = run_step(X, W, Y, all_labels(*Y.shape))
    numeric = np.empty_like(X, dtype=np.float64)
    step = 1e-4
    for i in np.ndindex(X.shape):
        up, down = X.astype(np.float64), X.astype(np.float64)
        up[i] += step
        down[i] -= step
        ones = np.ones(Y.shape)
        numeric[i] = (dense_loss(up, W, Y.toarray(), ones) - dense_loss(down, W, Y.toarray(), ones)) / (2 * step)
    # The step averages over the batch.
    np.testing.assert_allclose(gradient * len(X), numeric, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("documents", [6, 1])
def test_weights_move_as_adam_with_one_step_size_a_row_moves_them(documents: int) -> None:
    X, W, Y = batch(np.random.default_rng(1), B=documents)
    _, _, state = run_step(X, W, Y, all_labels(*Y.shape), rate=float(adam.corrected_rate(0.1, 1)))
    scores = X @ W[:, :-1].T + W[:, -1]
    error = (1 / (1 + np.exp(-scores)) - Y.toarray()) / len(X)
    gradient = np.concatenate([error.T @ X, error.sum(axis=0)[:, None]], axis=1)
    means = (state.mean.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(means, 0.1 * gradient, rtol=2**-8, atol=1e-6)
    # The first step is the learning rate, times the gradient over its root mean square.
    size = np.sqrt((gradient**2).mean(axis=1, keepdims=True))
    np.testing.assert_allclose(state.W, W - 0.1 * gradient / size, rtol=1e-3, atol=1e-4)


def test_labels_that_would_hardly_move_are_passed_over_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    X, W, Y = batch(np.random.default_rng(1))
    usual = np.array([0, 1e5, 0, 1e5, 0], dtype=np.float32)
    moved = []
    for large in (1 << 28, 0):
        monkeypatch.setattr(classifier, "_LARGE", large)
        loss, gradient, state = run_step(X, W, Y, all_labels(*Y.shape), 0.1, square=usual)
        moved.append((loss, gradient, (state.W != W).any(axis=1).tolist()))
    assert moved[0][0] == moved[1][0]
    assert moved[0][2] == [True] * 5
    assert moved[1][2] == [True, False, True, False, True]
    assert not np.allclose(moved[0][1], moved[1][1])


def test_labels_outside_the_batch_are_not_touched() -> None:
    X, W, Y = batch(np.random.default_rng(2), L=6)
    Y = Y.tolil()
    Y[:, 5] = 0
    shortlists = np.zeros((len(X), 1), dtype=np.int32)
    _, _, state = run_step(X, W, csr_matrix(Y), shortlists, rate=0.1)
    np.testing.assert_array_equal(state.W[5], W[5])


def test_huge_scores_give_a_finite_loss() -> None:
    X, W, Y = batch(np.random.default_rng(0))
    loss, gradient, _ = run_step(X * 1e4, W * 1e4, Y, all_labels(*Y.shape))
    assert np.isfinite(loss)
    assert np.isfinite(gradient).all()


def test_random_negatives_are_weighted_and_never_positives() -> None:
    Y = csr_matrix(np.eye(4, 50, dtype=np.float32))
    config = Config(D=2, batch_size=4, random_negatives=20, random_weight=7.0)
    room = classifier.scratch(Y, 0, 0, config)
    rows, none = np.arange(4), np.empty((4, 0), dtype=np.int32)
    classifier._pairs_by_label(room, Y, rows, none, np.empty(0, dtype=np.int32), config, np.random.default_rng(0))
    for b in range(4):
        first, last = room.pointers[b], room.pointers[b + 1]
        labels, weights = room.labels[first:last], room.weights[first:last]
        assert len(set(labels.tolist())) == len(labels)
        assert labels[0] == b
        assert weights.tolist() == [1.0] + [7.0] * (len(labels) - 1)


def test_labels_everywhere_are_candidates_once() -> None:
    Y = csr_matrix(np.eye(3, dtype=np.float32))
    config = Config(D=2, batch_size=3, random_negatives=0)
    everywhere = np.array([0, 2], dtype=np.int32)
    room = classifier.scratch(Y, 1, 2, config)
    shortlists = np.array([[1], [0], [-1]], dtype=np.int32)
    classifier._pairs_by_label(room, Y, np.arange(3), shortlists, everywhere, config, np.random.default_rng(0))
    found = [sorted(room.labels[room.pointers[b] : room.pointers[b + 1]].tolist()) for b in range(3)]
    assert found == [[0, 1, 2], [0, 1, 2], [0, 2]]


def test_invert_is_the_transpose() -> None:
    matrix = csr_matrix((np.random.default_rng(0).random((20, 9)) < 0.3).astype(np.float32))
    counts = np.zeros(9, dtype=np.int32)
    found, pointers = np.empty(9, dtype=np.int32), np.empty(10, dtype=np.int64)
    rows, places = np.empty(matrix.nnz, dtype=np.int32), np.empty(matrix.nnz, dtype=np.int64)
    n = ova.invert(matrix.indptr.astype(np.int64), matrix.indices, counts, found, pointers, rows, places)
    transposed = csr_matrix(matrix.T)
    assert not counts.any()
    for c in range(n):
        expected = transposed.indices[transposed.indptr[found[c]] : transposed.indptr[found[c] + 1]]
        assert rows[pointers[c] : pointers[c + 1]].tolist() == expected.tolist()
        assert (matrix.indices[places[pointers[c] : pointers[c + 1]]] == found[c]).all()
