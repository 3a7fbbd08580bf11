from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines import annexml
from lightdxml.experiments.baselines.annexml import AnnexML
from tests.support.bench import documents


@pytest.mark.parametrize("max_pairs", [None, 60])
def test_neighbors_have_the_greatest_shares_of_common_labels(max_pairs: int | None) -> None:
    rng = np.random.default_rng(0)
    Y = (rng.random((30, 9)) < 0.15).astype(np.float32)
    Y[4] = 0
    frequencies = Y.sum(axis=0)
    order = np.argsort(frequencies, kind="stable")
    pairs = np.cumsum(frequencies[order] ** 2 - frequencies[order])
    kept = np.sort(order[pairs <= (np.inf if max_pairs is None else max_pairs)])
    assert (len(kept) == 9) == (max_pairs is None)
    found = annexml.label_neighbors(csr_matrix(Y), 4, max_pairs)
    sizes = Y.sum(axis=1)
    for i in range(30):
        scores = (Y[:, kept] @ Y[i, kept]) / np.maximum(1, sizes)
        scores[i] = 0
        best = np.lexsort([np.arange(30), -scores.round(5)])
        best = best[scores[best] > 0][:4]
        assert found[i].tolist() == (np.resize(best, 4).tolist() if len(best) else [-1] * 4)


@pytest.mark.parametrize(("max_pairs", "nearest"), [(13, [1, 0, -1, -1]), (14, [1, 0, 3, 2])])
def test_frequent_labels_with_too_many_pairs_make_no_neighbors(max_pairs: int, nearest: list[int]) -> None:
    Y = csr_matrix(np.array([[1, 1], [1, 1], [1, 0], [1, 0]], dtype=np.float32))  # 12 pairs and 2
    assert annexml.label_neighbors(Y, 1, max_pairs)[:, 0].tolist() == nearest


def test_no_label_makes_neighbors_if_each_has_too_many_pairs() -> None:
    assert (annexml.label_neighbors(csr_matrix(np.ones((5, 2), dtype=np.float32)), 2, 19) == -1).all()


def test_small_data_has_one_cluster() -> None:
    X, Y = documents(np.random.default_rng(0), 50)
    learner = AnnexML(learners=1, epochs=1)
    learner.fit(X, Y, seed=0, threads=1)
    assert len(learner._learners[0].clusters) == 1


def test_classifiers_start_at_documents() -> None:
    X, _ = documents(np.random.default_rng(0), 20)
    state = annexml.start_partition(X, np.array([7, 3]), np.float32(0.1), np.float32(4))
    start = state.weights.reshape(-1, 2)
    np.testing.assert_array_equal(start.T, X[[7, 3]].toarray())
    # FTRL makes the same weights of its sums.
    sums = state.sums.reshape(-1, 2)
    np.testing.assert_allclose(0.1 * np.sign(sums) * np.maximum(np.abs(sums) - 4, 0), start, atol=1e-6)


def test_the_partition_keeps_documents_of_a_topic_together() -> None:
    rng = np.random.default_rng(0)
    topics = np.arange(400) % 2
    X, Y = np.zeros((400, 40), dtype=np.float32), np.zeros((400, 20), dtype=np.float32)
    for i, topic in enumerate(topics):
        X[i, 20 * topic + rng.choice(20, 6, replace=False)] = 6**-0.5
        Y[i, 10 * topic + rng.choice(10, 3, replace=False)] = 1
    learner = AnnexML(learners=4, documents_per_cluster=200, epochs=1)
    learner.fit(csr_matrix(X), csr_matrix(Y), seed=0, threads=2)
    mixed = [min(topics[c.members].mean(), 1 - topics[c.members].mean()) for u in learner._learners for c in u.clusters]
    assert np.mean(mixed) < 0.2


def test_embeddings_have_length_one_and_those_of_empty_documents_zero() -> None:
    X, Y = documents(np.random.default_rng(0), 40)
    dense = X.toarray()
    dense[7] = 0
    learner = AnnexML(learners=1, epochs=1)
    learner.fit(csr_matrix(dense), Y, seed=0, threads=1)
    lengths = np.linalg.norm(learner._learners[0].clusters[0].vectors, axis=1)
    np.testing.assert_allclose(np.delete(lengths, 7), 1, rtol=1e-5)
    assert lengths[7] == 0
