"""The sparse view's kernels against LIBLINEAR and against dense products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, random
from sklearn.svm import LinearSVC

from lightdxml.kernels import linear, postings
from lightdxml.sparse_view import SparseView, find

COSTS = (0.5, 0.25)


def train(
    X: csr_matrix,
    positives: list[int],
    negatives: list[int] | None,
    smallest: float = 0.0,
    room: int = 10_000,
    *,
    compiled: bool = True,
) -> tuple[NDArray[np.float64], float]:
    """Train one label as exactly as possible; return its weights and its bias."""
    squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float32).ravel()
    own = np.array(positives, dtype=np.int32)
    against = np.array(range(X.shape[0]) if negatives is None else negatives, dtype=np.int32)
    pointers = np.array([0, len(against)], dtype=np.int64)
    columns, weights = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.float32)
    counts, biases = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.float32)
    scratch = np.zeros(X.shape[1], dtype=np.float32)
    function: Any = linear.train_labels
    n = (function if compiled else function.py_func)(
        np.zeros(1, dtype=np.int32), np.array([0, len(own)], dtype=np.int64), own,
        np.zeros(1, dtype=np.int32), pointers, against, negatives is None,
        X.indptr.astype(np.int64), X.indices, X.data, squares, COSTS, -1.0, 2000, 1e-5,
        np.full(X.shape[1], smallest, dtype=np.float32), 0, scratch, columns, weights, counts, biases,
    )  # fmt: skip
    assert n == 1
    assert not scratch.any()
    found = np.zeros(X.shape[1])
    found[columns[: counts[0]]] = weights[: counts[0]]
    return found, float(biases[0])


def documents(seed: int, n: int = 60) -> csr_matrix:
    X = random(n, 25, 0.3, format="csr", random_state=seed, dtype=np.float32)
    return csr_matrix(X, dtype=np.float32)


@pytest.mark.parametrize("seed", range(3))
def test_a_label_on_all_documents_is_what_liblinear_makes_of_it(seed: int) -> None:
    X = documents(seed)
    y = np.random.default_rng(seed).random(60) < 0.3
    w, b = train(X, np.flatnonzero(y).tolist(), None)
    peer = LinearSVC(C=1.0, class_weight={1: COSTS[0], 0: COSTS[1]}, dual=True, tol=1e-8, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(w, peer.coef_[0], atol=2e-3)
    assert b == pytest.approx(peer.intercept_[0], abs=2e-3)


def test_a_fixed_bias_stays_and_the_solution_is_the_best_one() -> None:
    X = documents(5)
    positives, negatives = list(range(10)), list(range(20, 50))
    w, b = train(X, positives, negatives)
    assert b == -1

    def objective(v: NDArray[Any]) -> float:
        margins = X @ v + b
        lost = COSTS[0] * np.maximum(0, 1 - margins[positives]) ** 2
        return float(v @ v / 2 + lost.sum() + COSTS[1] * (np.maximum(0, 1 + margins[negatives]) ** 2).sum())

    rng = np.random.default_rng(0)
    least = objective(w)
    assert all(objective(w + 0.01 * rng.normal(size=w.shape)) > least for _ in range(50))


def test_documents_that_do_not_fit_into_a_cache_are_learnt_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    X, positives, negatives = documents(4), list(range(0, 60, 7)), list(range(60))
    gathered, bias = train(X, positives, negatives)
    monkeypatch.setattr(linear, "_FEW", 10)
    monkeypatch.setattr(linear, "_BLOCK", 4)
    scattered, other_bias = train(X, positives, negatives, compiled=False)
    np.testing.assert_allclose(scattered, gathered, atol=1e-4)
    assert other_bias == bias == -1


def test_every_document_stands_once_in_an_order_of_blocks() -> None:
    order = np.arange(50, dtype=np.int32)
    linear._shuffle(order, 16, np.uint64(3))
    assert sorted(order.tolist()) == list(range(50))
    assert order[48:].tolist() == [48, 49], "what is left over stays"
    firsts = order[:48:16]
    np.testing.assert_array_equal(order[:48].reshape(3, 16), firsts[:, None] + np.arange(16))


def test_small_weights_are_left_out() -> None:
    X = documents(2)
    whole, _ = train(X, list(range(8)), list(range(8, 60)))
    pruned, _ = train(X, list(range(8)), list(range(8, 60)), smallest=0.1)
    np.testing.assert_array_equal(pruned, np.where(np.abs(whole) >= np.float32(0.1), whole, 0))
    assert 0 < np.count_nonzero(pruned) < np.count_nonzero(whole)


@pytest.mark.parametrize("precision", [np.float32, np.float16])
def test_scores_are_those_of_the_dense_product(precision: Any) -> None:
    rng = np.random.default_rng(3)
    W = np.where(rng.random((12, 25)) < 0.3, rng.normal(size=(12, 25)), 0).astype(precision)
    by_word = csr_matrix(W.T.astype(np.float32))
    biases = rng.normal(size=12).astype(np.float32)
    everywhere = np.array([1, 4], dtype=np.int32)
    view = SparseView(
        by_word.indptr.astype(np.int64), by_word.indices, by_word.data.astype(precision), biases, everywhere
    )
    X = documents(7, 40)
    others = rng.integers(-1, 12, (40, 1)).astype(np.int32)
    found = find(view, X, 4, others)
    truth = X.toarray().astype(np.float64) @ W.T.astype(np.float64) + biases
    reached = ((X.toarray() != 0).astype(int) @ (W.T != 0).astype(int) > 0) | np.isin(np.arange(12), everywhere)
    for i in range(40):
        given = others[i, 0]
        if given >= 0:
            assert found.other_scores[i, 0] == pytest.approx(truth[i, given], abs=1e-4)
        allowed = [j for j in range(12) if reached[i, j] and j != given]
        expected = sorted(allowed, key=lambda j: -truth[i, j])[:4]
        chosen = found.labels[i][found.labels[i] >= 0]
        assert sorted(chosen.tolist()) == sorted(expected)
        np.testing.assert_allclose(found.scores[i][found.labels[i] >= 0], truth[i, chosen], atol=1e-4)


def test_more_labels_than_there_are_leave_places_empty() -> None:
    labels, scores = np.empty(3, dtype=np.int32), np.empty(3, dtype=np.float32)
    assert postings.push(labels, scores, 0, 7, 0.5) == 1
    view = SparseView(
        np.zeros(26, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32),
        np.zeros(5, dtype=np.float32), np.array([2], dtype=np.int32),
    )  # fmt: skip
    found = find(view, documents(1, 2), 9)
    assert found.labels.shape == (2, 5)
    assert [sorted(row) for row in found.labels.tolist()] == [[-1, -1, -1, -1, 2]] * 2


def test_of_equal_scores_the_lower_labels_are_kept_in_any_order() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.integers(0, 3, 40).astype(np.float32)
        expected = sorted(range(40), key=lambda i: (-scores[i], i))[:10]
        found, heap, size = np.empty(10, dtype=np.int32), np.empty(10, dtype=np.float32), 0
        for label in rng.permutation(40):
            size = postings.push(found, heap, size, label, scores[label])
        assert sorted(found.tolist()) == sorted(expected)
