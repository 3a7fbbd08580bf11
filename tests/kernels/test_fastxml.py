from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import fastxml, forest
from lightdxml.kernels.fastxml import Documents, Growth
from lightdxml.kernels.forest import Trees
from lightdxml.kernels.l1_logistic import Limits
from lightdxml.kernels.randomness import next_below
from lightdxml.kernels.sparse import Csr

N, FEATURES, LABELS = 80, 30, 12
DISCOUNTS = 1 / np.log2(np.arange(2, LABELS + 2))
LIMITS = Limits(newton_steps=10, passes=10, tolerance=0.01)


def sparse(dense: NDArray[np.float64], kind: type = np.float64) -> Csr:
    return Csr.of(csr_matrix(dense.astype(kind)))


def documents(seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64], Documents]:
    """Return features, what labels gain, and both as kernels take them; some documents have no features or labels."""
    rng = np.random.default_rng(seed)
    truth = rng.random((N, LABELS)) < rng.uniform(0.05, 0.6, LABELS)
    truth[5] = False
    worth = rng.uniform(1, 3, LABELS) * truth
    X = (rng.random((N, FEATURES)) < 0.2) + truth.astype(np.float64) @ (rng.random((LABELS, FEATURES)) < 0.1)
    X[7] = 0
    X[:, -1] = 1
    labels = sparse(worth)
    return X, worth, Documents(sparse(X, np.float32), labels, labels.values)


def growth(**changes: int) -> Growth:
    sizes = {"leaf_size": 4, "leaf_labels": 5} | changes
    return Growth(FEATURES, LABELS, sizes["leaf_size"], sizes["leaf_labels"], 1.0, LIMITS)


def leaf_of(tree: Trees, x: NDArray[np.float64]) -> int:
    node = 0
    while tree.children[node, 0] >= 0:
        own = slice(*tree.weights.indptr[node : node + 2])
        product = tree.weights.values[own].astype(np.float64) @ x[tree.weights.indices[own]]
        node = tree.children[node, int(product >= 0)]
    return node


def labels_of(tree: Trees, leaf: int) -> NDArray[np.float64]:
    own, scores = slice(*tree.labels.indptr[leaf : leaf + 2]), np.zeros(LABELS)
    scores[tree.labels.indices[own]] = tree.labels.values[own]
    return scores


def sides_in_numpy(sides: NDArray[np.bool_], gains: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Let documents change sides until nDCG grows by less than 1e-6."""
    active = np.flatnonzero(gains.any(axis=0))
    gains, sides, before = gains[:, active], sides.copy(), -np.inf
    while True:
        worth, total = [], 0.0
        for side in (False, True):
            sums = gains[sides == side].sum(axis=0)
            order = np.lexsort((active, -sums))
            worth.append(DISCOUNTS[np.argsort(order)])
            total += sums @ worth[-1]
        better = gains @ (worth[1] - worth[0])
        sides = np.where(better == 0, sides, better > 0)
        if total / len(sides) - before < 1e-6:
            return sides
        before = total / len(sides)


@pytest.mark.parametrize("seed", range(5))
def test_sides_are_those_of_a_plain_version(seed: int) -> None:
    _, gains, all_documents = documents(seed)
    members = np.random.default_rng(seed).permutation(N)[:50].astype(np.int32)
    state = np.array([seed], dtype=np.uint64)
    slots, none = np.full(LABELS, -1, dtype=np.int32), np.empty(0, dtype=np.int32)
    random = np.array([next_below(state, 2) == 1 for _ in members])
    state[0] = seed
    workspace = fastxml._Workspace(none, slots, none, np.empty(0, dtype=np.float32))
    sides = fastxml._label_sides(members, all_documents, DISCOUNTS, workspace, state)
    np.testing.assert_array_equal(sides, sides_in_numpy(random, gains[members]))
    assert (sides != random).any()
    assert (slots == -1).all()


def test_a_leaf_has_the_mean_of_the_documents_that_reach_it() -> None:
    X, worth, all_documents = documents()
    tree = fastxml.grow(all_documents, DISCOUNTS, growth(leaf_labels=LABELS), 3)
    leaves = np.array([leaf_of(tree, x) for x in X])
    assert len(np.unique(leaves)) > 8
    assert set(leaves) == set(np.flatnonzero(tree.children[:, 0] < 0))
    for leaf in np.unique(leaves):
        np.testing.assert_allclose(labels_of(tree, leaf), worth[leaves == leaf].mean(axis=0), rtol=1e-6)


def test_a_leaf_keeps_its_best_labels() -> None:
    _, worth, all_documents = documents()
    tree = fastxml.grow(all_documents, DISCOUNTS, growth(leaf_size=N, leaf_labels=3), 0)
    mean = worth.mean(axis=0)
    assert len(tree.children) == 1
    assert set(tree.labels.indices) == set(np.argsort(-mean)[:3])


def test_documents_that_cannot_be_told_apart_stay_together() -> None:
    _, _, some = documents()
    alike = Documents(sparse(np.ones((N, FEATURES)), np.float32), some.labels, some.gains)
    tree = fastxml.grow(alike, DISCOUNTS, growth(), 0)
    assert len(tree.children) == 1


def test_a_label_of_all_documents_reaches_every_leaf() -> None:
    X, worth, _ = documents()
    worth[:, 2] = 1
    labels = sparse(worth)
    tree = fastxml.grow(Documents(sparse(X, np.float32), labels, labels.values), DISCOUNTS, growth(leaf_labels=12), 0)
    for leaf in np.flatnonzero(tree.children[:, 0] < 0).tolist():
        assert labels_of(tree, leaf)[2] == 1


def test_documents_without_labels_give_a_tree_without_labels() -> None:
    X, worth, _ = documents()
    labels = sparse(0 * worth)
    tree = fastxml.grow(Documents(sparse(X, np.float32), labels, labels.values), DISCOUNTS, growth(), 0)
    assert tree.labels.indices.size == 0


def test_the_mean_of_several_trees_is_ranked() -> None:
    X, _, all_documents = documents()
    trees = [fastxml.grow(all_documents, DISCOUNTS, growth(), seed) for seed in range(3)]
    joined, roots = forest.joined(trees)
    found, scores = np.empty((N, LABELS), dtype=np.int32), np.empty((N, LABELS), dtype=np.float32)
    x, totals = np.zeros(FEATURES, dtype=np.float32), np.zeros(LABELS)
    x[-1] = 1
    without_bias = X.copy()
    without_bias[:, -1] = 0
    fastxml.rank(0, N, sparse(without_bias, np.float32), joined, roots, x, totals, found, scores)
    assert not x[:-1].any()
    assert not totals.any()
    for i in range(N):
        expected = np.mean([labels_of(tree, leaf_of(tree, X[i])) for tree in trees], axis=0)
        got = np.zeros(LABELS)
        got[found[i][found[i] >= 0]] = scores[i][found[i] >= 0]
        np.testing.assert_allclose(got, expected, rtol=1e-6)
