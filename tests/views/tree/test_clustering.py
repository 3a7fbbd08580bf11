"""Balanced clusters of labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml.kernels import parallel
from lightdxml.views.tree.clustering import balanced_clusters, cluster_labels, label_centroids


def directions(rng: np.random.Generator, centres: int, each: int, width: int = 40) -> csr_matrix:
    """Make unit rows around some directions that share no column."""
    rows = np.zeros((centres * each, width), dtype=np.float32)
    part = width // centres
    for i in range(len(rows)):
        start = (i % centres) * part
        rows[i, start : start + part] = 1 + 0.3 * rng.random(part)
    rows += 0.01 * rng.random(rows.shape)
    return csr_matrix(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@pytest.mark.parametrize("seed", range(4))
def test_two_directions_are_separated(seed: int) -> None:
    rows = directions(np.random.default_rng(seed), centres=2, each=20)
    found = balanced_clusters(rows, np.arange(40, dtype=np.int32), 2, seed)
    assert len(set(found[::2])) == len(set(found[1::2])) == 1
    assert found[0] != found[1]


def test_clusters_differ_by_at_most_one_in_size() -> None:
    rows = directions(np.random.default_rng(0), centres=4, each=13)
    sizes = np.bincount(balanced_clusters(rows, np.arange(52, dtype=np.int32), 8, 0), minlength=8)
    assert sizes.max() - sizes.min() <= 1


def test_bisection_raises_the_cosine_with_the_own_center() -> None:
    rng = np.random.default_rng(3)
    rows = csr_matrix(np.maximum(rng.normal(size=(200, 30)), 0).astype(np.float32))
    rows = csr_matrix(rows.multiply(1 / np.sqrt(rows.multiply(rows).sum(axis=1))), dtype=np.float32)

    def agreement(clusters: np.ndarray) -> float:
        return float(sum(np.linalg.norm(rows[np.flatnonzero(clusters == c)].sum(axis=0)) for c in range(2)))

    found = balanced_clusters(rows, np.arange(200, dtype=np.int32), 2, 0)
    assert agreement(found) > max(agreement(rng.permutation(found)) for _ in range(20)) + 1


def test_clusters_do_not_depend_on_threads() -> None:
    rows = directions(np.random.default_rng(1), centres=5, each=30)
    found = []
    for threads in (1, 3):
        with parallel.use_threads(threads):
            found.append(balanced_clusters(rows, np.arange(150, dtype=np.int32), 16, 5).tolist())
    assert found[0] == found[1]


def test_more_clusters_than_labels_leave_some_empty() -> None:
    rows = directions(np.random.default_rng(1), centres=3, each=1)
    found = balanced_clusters(rows, np.arange(3, dtype=np.int32), 8, 0)
    assert len(set(found.tolist())) == 3


def test_cluster_labels_are_the_clusters_of_the_labels_of_a_document() -> None:
    Y = csr_matrix(np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]], dtype=np.float32))
    found = cluster_labels(Y, np.array([0, 0, 1, -1], dtype=np.int32), 2)
    assert found.toarray().tolist() == [[1, 0], [1, 1], [0, 0]]


def test_centroids_have_length_one_or_are_zero() -> None:
    X = csr_matrix(np.array([[1, 0], [0, 1]], dtype=np.float32))
    Y = csr_matrix(np.array([[1, 1, 0], [1, 0, 0]], dtype=np.float32))
    half = np.sqrt(0.5)
    np.testing.assert_allclose(label_centroids(X, Y).toarray(), [[half, half], [1, 0], [0, 0]], rtol=1e-6)
