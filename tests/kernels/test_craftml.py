from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, random_array

from lightdxml.kernels import craftml, forest
from lightdxml.kernels.craftml import Growth
from lightdxml.kernels.forest import Trees
from lightdxml.kernels.sparse import Csr

N, FEATURES, LABELS, BUCKETS = 90, 40, 12, 16
HASHED_BY = 5


def growth(**changes: Any) -> Growth:
    plain = Growth(
        leaf_size=4, feature_buckets=BUCKETS, label_buckets=LABELS, clusters=3, rounds=2, sample=1000, kept_share=0.1,
        least_kept=3,
    )  # fmt: skip
    return plain._replace(**changes)


def sparse(dense: NDArray[np.float64]) -> Csr:
    return Csr.of(csr_matrix(dense.astype(np.float32)))


def dense(rows: Csr, n_columns: int) -> NDArray[np.float64]:
    matrix = csr_matrix((rows.values, rows.indices, rows.indptr), (rows.indptr.size - 1, n_columns))
    return np.asarray(matrix.toarray(), dtype=np.float64)


def unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


@pytest.fixture(name="X")
def features() -> NDArray[np.float64]:
    X = random_array((N, FEATURES), density=0.2, rng=np.random.default_rng(0)).toarray()
    X[7] = 0
    return np.asarray(X, dtype=np.float32).astype(np.float64)


@pytest.fixture(name="Y")
def labels(X: NDArray[np.float64]) -> NDArray[np.float64]:
    Y = (X @ np.random.default_rng(1).standard_normal((FEATURES, LABELS)) > 1).astype(np.float64)
    Y[5] = 0
    return Y


def projection() -> NDArray[np.float64]:
    signs = np.zeros((FEATURES, BUCKETS))
    for feature in range(FEATURES):
        bucket, sign = craftml._bucket(feature, BUCKETS, HASHED_BY)
        signs[feature, bucket] = sign
    return signs


def test_features_of_a_bucket_are_added_up_with_signs(X: NDArray[np.float64]) -> None:
    signs = projection()
    assert (signs.any(axis=0)).sum() > BUCKETS / 2
    assert {-1, 1} <= set(signs.ravel())
    found = dense(craftml.hashed(sparse(X), BUCKETS, HASHED_BY), BUCKETS)
    np.testing.assert_allclose(found, unit(X @ signs), atol=1e-6)


def test_label_clusters_are_those_of_a_plain_version(Y: NDArray[np.float64]) -> None:
    members, rows = np.random.default_rng(0).permutation(N)[:60].astype(np.int32), unit(Y)
    sums = craftml._no_sums(LABELS, 3)
    start, n = craftml._start(members, sparse(rows), 3, sums, np.array([4], dtype=np.uint64))
    assert n == 3
    expected = start.copy()
    for _ in range(2):
        own = np.unique(expected)
        centroids = unit(np.array([rows[members[expected == c]].sum(axis=0) for c in own]))
        expected = np.argmax(rows[members] @ centroids.T, axis=1)
    found, n = craftml._label_clusters(members, sparse(rows), growth(), sums, np.array([4], dtype=np.uint64))
    np.testing.assert_array_equal(found, np.unique(expected, return_inverse=True)[1])
    assert n == len(np.unique(expected)) > 1
    assert not sums.values.any()
    assert not sums.is_touched.any()


def test_starts_are_different_documents() -> None:
    members, state = np.arange(6, dtype=np.int32), np.array([1], dtype=np.uint64)
    rows = sparse(np.eye(3)[[0, 1, 0, 2, 1, 0]])
    start, n = craftml._start(members, rows, 5, craftml._no_sums(3, 5), state)
    assert n == 3
    assert len({tuple(start[own].tolist()) for own in ([0, 2, 5], [1, 4], [3])}) == 3
    assert start[0] == start[2] == start[5]


@pytest.mark.parametrize(("share", "least"), [(0.1, 3), (0.5, 3), (1.0, 1)])
def test_centroids_keep_their_greatest_entries(X: NDArray[np.float64], share: float, least: int) -> None:
    X[:, ::2] *= -1
    members, clusters = np.arange(N, dtype=np.int32), (np.arange(N) % 2).astype(np.int32)
    own, sums = growth(feature_buckets=FEATURES, kept_share=share, least_kept=least), craftml._no_sums(FEATURES, 3)
    found = dense(craftml._centroids(members, clusters, 2, sparse(X), own, sums), FEATURES)
    for c in range(2):
        total = X[clusters == c].sum(axis=0)
        kept = np.argsort(np.where(total == 0, np.inf, -total), kind="stable")[
            : max(least, int(np.ceil(share * (total != 0).sum())))
        ]
        expected = np.zeros(FEATURES)
        expected[kept] = total[kept]
        np.testing.assert_allclose(found[c], unit(expected[None])[0], rtol=1e-5)


def leaf_of(tree: Trees, x: NDArray[np.float64]) -> int:
    node, centroids = 0, dense(tree.weights, BUCKETS)
    while tree.children[node, 0] >= 0:
        children = np.arange(tree.children[node, 0], tree.children[node, 1] + 1)
        node = children[np.argmax(centroids[children] @ x)]
    return node


def grown(X: NDArray[np.float64], Y: NDArray[np.float64], own: Growth, seed: int = 0) -> Trees:
    rows = craftml.hashed(sparse(X), BUCKETS, HASHED_BY)
    return craftml.grow(rows, sparse(unit(Y)), sparse(Y), own, seed)


@pytest.mark.parametrize("sample", [1000, 20])
def test_a_leaf_has_the_mean_of_the_documents_that_reach_it(
    X: NDArray[np.float64], Y: NDArray[np.float64], sample: int
) -> None:
    tree = grown(X, Y, growth(sample=sample))
    leaves = np.array([leaf_of(tree, x) for x in unit(X @ projection())])
    assert len(np.unique(leaves)) > 8
    assert set(leaves) == set(np.flatnonzero(tree.children[:, 0] < 0))
    for leaf in np.unique(leaves):
        np.testing.assert_allclose(dense(tree.labels, LABELS)[leaf], Y[leaves == leaf].mean(axis=0), rtol=1e-6)


def test_documents_that_cannot_be_told_apart_stay_together(Y: NDArray[np.float64]) -> None:
    assert len(grown(np.ones((N, FEATURES)), Y, growth()).children) == 1


def test_documents_without_labels_give_a_tree_without_labels(X: NDArray[np.float64]) -> None:
    assert grown(X, np.zeros((N, LABELS)), growth()).labels.indices.size == 0


def test_the_mean_of_several_trees_is_ranked(X: NDArray[np.float64], Y: NDArray[np.float64]) -> None:
    trees = [grown(X, Y, growth(), seed) for seed in range(3)]
    joined, roots = forest.joined(trees)
    found, scores = np.empty((N, LABELS), dtype=np.int32), np.empty((N, LABELS), dtype=np.float32)
    x, totals, seeds = np.zeros(BUCKETS, dtype=np.float32), np.zeros(LABELS), np.full(3, HASHED_BY)
    craftml.rank(0, N, sparse(X), joined, roots, seeds, x, totals, found, scores)
    assert not x.any()
    assert not totals.any()
    for i, own in enumerate(unit(X @ projection())):
        expected = np.mean([dense(tree.labels, LABELS)[leaf_of(tree, own)] for tree in trees], axis=0)
        got = np.zeros(LABELS)
        got[found[i][found[i] >= 0]] = scores[i][found[i] >= 0]
        np.testing.assert_allclose(got, expected, rtol=1e-6)
