from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_matrix, random_array

from lightdxml.experiments.baselines import sleec
from lightdxml.experiments.baselines.sleec import SLEEC
from lightdxml.kernels import blas
from tests.support.bench import documents


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """BLAS as in training."""
    with blas.on_one_thread():
        yield


def test_label_products_are_those_of_the_nearest_documents_and_of_the_first_ones_where_too_few_share_labels() -> None:
    rng = np.random.default_rng(0)
    Y = (rng.random((40, 8)) < 0.2).astype(np.float32)
    Y[[3, 17]] = 0
    found = sleec.label_products(csr_matrix(Y), 15).toarray()
    unit = Y / np.maximum(1e-30, np.linalg.norm(Y, axis=1, keepdims=True))
    cosines = unit @ unit.T
    for i in range(40):
        near = np.lexsort([np.arange(40), -cosines[i].round(5)])[:15]
        expected = np.zeros(40)
        expected[near] = cosines[i, near] + 1e-10
        np.testing.assert_allclose(found[i], expected, rtol=1e-5)


def test_a_document_has_no_more_neighbors_than_there_are_documents() -> None:
    assert sleec.label_products(csr_matrix(np.ones((3, 2), dtype=np.float32)), 250).nnz == 9


@pytest.mark.parametrize("n", [3, 60, 500])
def test_the_decomposition_is_that_of_numpy(n: int) -> None:
    rng = np.random.default_rng(0)
    matrix = csr_matrix(random_array((n, n), density=0.1, rng=rng) + 9 * np.diag(0.97 ** np.arange(n)))
    left, right = sleec.truncated_svd(matrix, 10, rng)
    U, S, Vt = np.linalg.svd(matrix.toarray())
    assert left.shape == right.shape == (n, min(n, 10))
    np.testing.assert_allclose(left @ right.T, (U[:, :10] * S[:10]) @ Vt[:10], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(left, axis=0), np.sqrt(S[:10]), rtol=1e-6)


def test_the_decomposition_copes_with_a_low_rank() -> None:
    matrix = csr_matrix(block_diag([np.ones((50, 50))] * 4))
    left, right = sleec.truncated_svd(matrix, 20, np.random.default_rng(0))
    np.testing.assert_allclose(left @ right.T, matrix.toarray(), atol=1e-6)


def test_factors_stop_where_the_error_does_not_fall() -> None:
    rng = np.random.default_rng(0)
    Y = csr_matrix((rng.random((80, 12)) < 0.2).astype(np.float32))
    known = sleec.label_products(Y, 10)
    left = sleec.factors(known, 6, rng)
    # The same in plain NumPy.
    mask, values = known.toarray() != 0, known.toarray()
    U, V = sleec.truncated_svd(known, 6, np.random.default_rng(5))
    rate, before, older = 1 / (0.3 * np.linalg.norm(values)), np.inf, U
    for _ in range(200):
        residual = np.where(mask, U @ V.T - values, 0)
        error = np.sqrt((residual**2).sum() / known.nnz)
        if error < 1e-3 or before - error < 1e-4:
            U = older if error > before else U
            break
        before, older = error, U
        U = U - rate * residual @ V
        V = V - rate * np.where(mask, U @ V.T - values, 0).T @ U
    # Signs of singular vectors are arbitrary.
    np.testing.assert_allclose(left @ left.T, U @ U.T, atol=1e-3)


def test_the_regression_is_a_ridge_regression() -> None:
    rng = np.random.default_rng(0)
    X = csr_matrix(random_array((50, 70), density=0.2, rng=rng, dtype=np.float32))
    targets = rng.standard_normal((50, 3)).astype(np.float32)
    targets[:, 1] = 0
    dense = X.toarray().astype(np.float64)
    expected = np.linalg.solve(dense.T @ dense + np.eye(70) / 0.4, dense.T @ targets)
    np.testing.assert_allclose(sleec.regress(X, targets, 0.2, 1e-6, rng), expected, atol=1e-4)


def test_means_are_those_of_the_clusters_of_k_means() -> None:
    X = csr_matrix(np.kron(np.eye(3), np.ones((4, 2))).astype(np.float32))
    means = [sleec.cluster_means(X, 3, np.random.default_rng(seed)).toarray() for seed in range(8)]
    # Documents without a cluster of their own go to the first one.
    assert {mean.shape[1] for mean in means} <= {1, 2, 3}
    for mean in means:
        np.testing.assert_allclose(mean[::2], mean[1::2])
        np.testing.assert_allclose(mean[::2].max(axis=0).min(), 1 / (4 - mean.shape[1]), rtol=1e-6)


def test_more_clusters_than_documents_are_not_made() -> None:
    X = csr_matrix(np.eye(4, dtype=np.float32))
    assert sleec.cluster_means(X, 300, np.random.default_rng(0)).shape == (4, 4)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.7])
def test_the_given_shares_of_weights_and_embeddings_are_dropped(share: float) -> None:
    X, Y = documents(np.random.default_rng(0), 100)
    learner = SLEEC(learners=1, dim=8, label_neighbors=20, weights_pruned=share, embeddings_pruned=share)
    learner.fit(X, Y, seed=0, threads=1)
    (cluster,) = learner._learners[0].clusters
    n_zero = (cluster.weights == 0).sum()
    assert n_zero == max(0, np.ceil(share * cluster.weights.size) - 1)
    embeddings, lengths = cluster.vectors[:, :-1], cluster.vectors[:, -1]
    assert ((embeddings == 0).sum(axis=0) == np.ceil(share * 100)).all()
    np.testing.assert_allclose(lengths, -0.5 * (embeddings**2).sum(axis=1), rtol=1e-5)
    full = X[:, cluster.features] @ cluster.weights
    kept = embeddings != 0
    np.testing.assert_allclose(embeddings[kept], full[kept], rtol=1e-5)
    assert all(np.abs(full[~kept[:, d], d]).max(initial=0) <= np.abs(full[kept[:, d], d]).min() for d in range(8))


def test_where_neighbors_are_too_few_the_nearest_vote_again() -> None:
    X, Y = documents(np.random.default_rng(0), 5)
    learner = SLEEC(learners=2, clusters=1, neighbors=7)
    learner.fit(X, Y, seed=0, threads=1)
    for voters in learner.voters(X):
        for own in np.split(voters, 2):
            assert sorted(own[:5]) == [0, 1, 2, 3, 4]
            assert own[5:].tolist() == own[:2].tolist()


def test_settings_are_those_of_the_nearest_data_set_unless_given() -> None:
    X, Y = documents(np.random.default_rng(0), 60)
    learner = SLEEC(C=3.0)
    learner.fit(X, Y, seed=0, threads=1)
    assert learner.settings["C"] == 3.0
    assert learner.settings["label_neighbors"] == 250
    assert set(SLEEC.defaults.values()) == {None}
