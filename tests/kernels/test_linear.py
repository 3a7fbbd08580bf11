"""Dual coordinate descent of sixteen classes at a time, against LIBLINEAR and against its own objective."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, random
from sklearn.svm import LinearSVC

from lightdxml.kernels import linear
from lightdxml.kernels.linear import Solver
from lightdxml.kernels.sparse import Csr, Pattern

N, V = 80, 25
COST = 0.5
Trained = tuple[NDArray[np.float64], NDArray[np.float32]]


def documents(seed: int) -> csr_matrix:
    return csr_matrix(random(N, V, 0.3, format="csr", random_state=seed, dtype=np.float32))


def train(
    X: csr_matrix,
    truth: NDArray[np.bool_],
    groups: list[int],
    prune_below: float = 0.0,
    max_copied: int = linear.MAX_COPIED,
    bias: tuple[float, float] = (0.0, 1.0),
    prior: csr_matrix | None = None,
    own: list[int] | None = None,
    document_weights: NDArray[np.float32] | None = None,
    prior_biases: list[float] | None = None,
    solved: list[int] | None = None,
    first_new: int = 0,
    max_iter: int = 2000,
) -> Trained:
    """Train classes as exactly as possible, a group on the documents of its classes; return weights and biases."""
    prior = csr_matrix((0, V), dtype=np.float32) if prior is None else prior
    of = np.array(groups, dtype=np.int32)
    members = csr_matrix(np.array([truth[:, of == group].any(axis=1) for group in range(max(groups) + 1)], np.float32))
    squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float32).ravel()
    n = truth.shape[1]
    each = np.ones(X.shape[0], np.float32) if document_weights is None else document_weights
    W, biases = np.zeros((V, linear.LANES), np.float32), np.empty(n, np.float32)
    columns, weights = np.empty(10_000, np.int32), np.empty(10_000, np.float32)
    counts = np.zeros(n, np.int64)
    done = linear.train_classes(
        np.arange(n, dtype=np.int32), Pattern.of(csr_matrix(truth.T)), of, Pattern.of(members), Csr.of(X), squares,
        each, Solver(COST, *bias, max_iter, 1e-5, 0, 0.0), Csr.of(prior), np.array(prior_biases or [], np.float32),
        np.array(solved or [], np.uint8), first_new, np.array(own or [], np.int32),
        np.full(V, prune_below, np.float32), max_copied, W, biases, columns, weights, counts,
    )  # fmt: skip
    assert done == n
    assert not W.any()
    found, at = np.zeros((n, V)), 0
    for i, count in enumerate(counts):
        found[i, columns[at : at + count]] = weights[at : at + count]
        at += count
    return found, biases


@pytest.mark.parametrize("max_copied", [linear.MAX_COPIED, 0])
def test_weights_of_documents_are_those_of_liblinear(max_copied: int) -> None:
    rng = np.random.default_rng(2)
    X, truth, each = documents(2), rng.random((N, 1)) < 0.4, rng.uniform(0.1, 3, N).astype(np.float32)
    # Another class, so that all documents are in the group.
    both = np.hstack([truth, ~truth])
    found, biases = train(X, both, [0, 0], max_copied=max_copied, document_weights=each)
    svc = LinearSVC(C=COST, dual=True, tol=1e-8, max_iter=100_000).fit(X, truth[:, 0], sample_weight=each)
    np.testing.assert_allclose(found[0], svc.coef_[0], atol=3e-3)
    assert biases[0] == pytest.approx(svc.intercept_[0], abs=3e-3)


def peer(X: csr_matrix, y: NDArray[np.bool_]) -> tuple[NDArray[np.float64], float]:
    svc = LinearSVC(C=COST, dual=True, tol=1e-8, max_iter=100_000).fit(X, y)
    return svc.coef_[0], svc.intercept_[0]


# Documents that are too many to copy: another order, the same solution.
@pytest.mark.parametrize("max_copied", [linear.MAX_COPIED, 0])
@pytest.mark.parametrize("groups", [[0], [0] * 16, [0] * 19, [0] * 3 + [1] * 2 + [2] * 17], ids=str)
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


@pytest.mark.parametrize("max_copied", [linear.MAX_COPIED, 0])
@pytest.mark.parametrize("bias", [(-1.0, 0.0), (-1.0, 0.3), (0.0, 1.0)], ids=str)
def test_the_solution_is_optimal_with_a_prior_and_an_anchored_bias(bias: tuple[float, float], max_copied: int) -> None:
    X, truth = documents(5), np.random.default_rng(5).random((N, 3)) < 0.3
    prior = csr_matrix(csr_matrix(truth.T.astype(np.float32)) @ X) * np.float32(0.1)
    members = truth.any(axis=1)
    found, biases = train(X, truth, [0] * 3, max_copied=max_copied, bias=bias, prior=prior)

    def objective(i: int, w: NDArray[np.float64], b: float) -> float:
        y = np.where(truth[members, i], 1.0, -1.0)
        lost = np.maximum(0, 1 - y * (X[members] @ w + b)) ** 2 * COST
        moved = (b - bias[0]) ** 2 / (2 * bias[1]) if bias[1] else 0.0
        return float(((w - prior[i].toarray()[0]) ** 2).sum() / 2 + moved + lost.sum())

    rng = np.random.default_rng(0)
    for i in range(3):
        least = objective(i, found[i], float(biases[i]))
        for _ in range(50):
            step = 0.01 * rng.normal(size=V + 1)
            other = float(biases[i]) + (step[-1] if bias[1] else 0.0)
            assert objective(i, found[i] + step[:-1], other) > least - 1e-6
    if not bias[1]:
        assert (biases == bias[0]).all()


@pytest.mark.parametrize("max_copied", [linear.MAX_COPIED, 0])
def test_a_class_is_not_trained_on_its_own_document(max_copied: int) -> None:
    X, truth = documents(6), np.random.default_rng(6).random((N, 3)) < 0.3
    truth[:, 0] |= ~truth[:, 1:].any(axis=1)  # all documents are in the group
    own = [int(np.flatnonzero(~truth[:, 0])[0]), -1, int(np.flatnonzero(truth[:, 2])[1])]
    found, biases = train(X, truth, [0] * 3, max_copied=max_copied, own=own)
    for i, document in enumerate(own):
        rows = np.arange(N) != document
        w, b = peer(X[rows], truth[rows, i])
        np.testing.assert_allclose(found[i], w, atol=3e-3)
        assert biases[i] == pytest.approx(b, abs=3e-3)


@pytest.mark.parametrize("max_copied", [linear.MAX_COPIED, 0])
def test_a_prior_on_words_that_no_document_has_stays(max_copied: int) -> None:
    X, truth = documents(7).tolil(), np.random.default_rng(7).random((N, 2)) < 0.5
    X[:, 3] = 0
    prior = csr_matrix(([0.5, 0.05], ([0, 1], [3, 3])), shape=(2, V), dtype=np.float32)
    found, _ = train(csr_matrix(X), truth, [0, 0], prune_below=0.1, max_copied=max_copied, prior=prior)
    assert found[:, 3].tolist() == [0.5, 0]


@pytest.mark.parametrize("max_copied", [linear.MAX_COPIED, 0])
def test_a_solution_of_all_documents_stays_as_it_is(max_copied: int) -> None:
    X, truth, how = _problem(max_copied)
    found = train(X, truth, [0] * 20, **how)
    # It contains the prior, and what the documents have added to it.
    anchored = {**how, "prior": csr_matrix(found[0].astype(np.float32)), "prior_biases": found[1].tolist()}
    again = train(X, truth, [0] * 20, solved=[1] * 20, first_new=N, **anchored)
    np.testing.assert_allclose(again[0], found[0], atol=2e-3)
    np.testing.assert_allclose(again[1], found[1], atol=2e-3)


@pytest.mark.parametrize("max_copied", [linear.MAX_COPIED, 0])
def test_descent_from_the_solution_of_earlier_documents_comes_near_that_of_all(max_copied: int) -> None:
    X, truth, how = _problem(max_copied)
    first = N - 10
    earlier = {**how, "document_weights": how["document_weights"][:first]}
    before, expected = train(X[:first], truth[:first], [0] * 20, **earlier), train(X, truth, [0] * 20, **how)
    anchored = {**how, "prior": csr_matrix(before[0].astype(np.float32)), "prior_biases": before[1].tolist()}
    found = train(X, truth, [0] * 20, solved=[1] * 20, first_new=first, **anchored)
    assert np.abs(found[0] - expected[0]).mean() < 0.1 * np.abs(before[0] - expected[0]).mean()


def _problem(max_copied: int) -> tuple[csr_matrix, NDArray[np.bool_], dict[str, Any]]:
    rng = np.random.default_rng(7)
    X, truth = documents(7), rng.random((N, 20)) < 0.3
    each = rng.uniform(0.5, 2, N).astype(np.float32)
    prior = csr_matrix(rng.normal(0, 0.3, (20, V)).astype(np.float32))
    return X, truth, {"max_copied": max_copied, "prior": prior, "bias": (-1.0, 0.3), "document_weights": each}


def test_classes_whose_solution_is_not_known_start_from_the_prior() -> None:
    rng = np.random.default_rng(8)
    X, truth = documents(8), rng.random((N, 3)) < 0.3
    expected = train(X, truth, [0, 0, 0])
    weights = expected[0].copy()
    weights[1] = 0
    biases = [float(expected[1][0]), 0.0, float(expected[1][2])]
    anchored = {"prior": csr_matrix(weights.astype(np.float32)), "prior_biases": biases}
    found = train(X, truth, [0, 0, 0], solved=[1, 0, 1], first_new=N, **anchored)
    np.testing.assert_allclose(found[0], expected[0], atol=3e-3)


def test_each_class_is_drawn_to_its_own_bias() -> None:
    X, truth = documents(9), np.ones((N, 2), dtype=bool)
    _, biases = train(X, truth, [0, 0], bias=(0.0, 0.0), prior_biases=[0.25, -0.5])
    assert biases.tolist() == [0.25, -0.5]
