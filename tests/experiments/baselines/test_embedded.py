"""Tests of what SLEEC and AnnexML share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from lightdxml.data import load
from lightdxml.experiments.baselines import METHODS
from lightdxml.experiments.baselines.embedded import Cluster, EmbeddedNeighbors, Learner
from lightdxml.metrics import evaluate
from lightdxml.validation import check_features, check_labels
from tests.support.bench import documents

SMALL: dict[str, dict[str, Any]] = {
    "sleec": {"learners": 2, "clusters": 3, "label_neighbors": 20, "dim": 8, "neighbors": 5, "C": 1.0},
    "annexml": {"learners": 2, "documents_per_cluster": 60, "neighbors": 5, "epochs": 3, "partition_epochs": 3},
}


def trained(name: str, X: csr_matrix, Y: csr_matrix, threads: int = 2) -> EmbeddedNeighbors:
    learner = METHODS[name](**SMALL[name])
    assert isinstance(learner, EmbeddedNeighbors)
    learner.fit(X, Y, seed=3, threads=threads)
    return learner


def test_neighbors_are_the_nearest_of_the_nearest_cluster() -> None:
    rng = np.random.default_rng(0)
    X = csr_matrix(random_array((30, 6), density=0.5, rng=rng, dtype=np.float32))
    centers = csr_matrix(rng.standard_normal((6, 2)).astype(np.float32))
    clusters = []
    for members, features in (([4, 9, 2], [0, 2, 5]), (list(range(10, 40)), [1, 2, 3, 4])):
        vectors = rng.standard_normal((len(members), 10)).astype(np.float32)
        weights = rng.standard_normal((len(features), 9)).astype(np.float32)
        ids, columns = np.array(members, dtype=np.int32), np.array(features, dtype=np.int32)
        clusters.append(Cluster(ids, columns, weights, vectors))
    found = Learner(centers, clusters).neighbors(X, 4)
    chosen = (X @ centers).toarray().argmax(axis=1)
    assert set(chosen) == {0, 1}
    for i in range(30):
        cluster = clusters[chosen[i]]
        z = X.toarray()[i, cluster.features] @ cluster.weights
        best = np.argsort(-(cluster.vectors[:, :9] @ z + cluster.vectors[:, 9]))[:4]
        assert found[i].tolist() == [*cluster.members[best], -1][:4]


def test_each_neighbor_has_a_vote_for_each_of_its_labels() -> None:
    rng = np.random.default_rng(0)
    (X, Y), (X_test, _) = documents(rng, 200), documents(rng, 20)
    learner = trained("annexml", X, Y)
    labels, votes = learner.rank(X_test, 6)
    for i, voters in enumerate(learner.voters(X_test)):
        counts = Y.toarray()[voters[voters >= 0]].sum(axis=0)
        ordered = np.lexsort([np.arange(len(counts)), -counts])[:6]
        np.testing.assert_array_equal(votes[i], counts[ordered])
        np.testing.assert_array_equal(labels[i], np.where(counts[ordered] > 0, ordered, -1))


@pytest.mark.parametrize("name", SMALL)
def test_the_same_seed_gives_the_same_model_with_any_number_of_threads(name: str) -> None:
    X, Y = documents(np.random.default_rng(1), 200)
    one, two = (trained(name, X, Y, threads) for threads in (1, 2))
    for first, second in zip(one._learners, two._learners, strict=True):
        assert (first.centers != second.centers).nnz == 0
        for a, b in zip(first.clusters, second.clusters, strict=True):
            for array in vars(a):
                np.testing.assert_array_equal(getattr(a, array), getattr(b, array))


@pytest.mark.parametrize("name", SMALL)
def test_learners_differ(name: str) -> None:
    X, Y = documents(np.random.default_rng(1), 200)
    first, second = trained(name, X, Y)._learners
    assert (first.centers != second.centers).nnz > 0


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("kept", [0, 1, 3, 7])
def test_few_documents_of_which_most_are_empty_or_without_labels(name: str, kept: int) -> None:
    X, Y = (matrix[:15].toarray() for matrix in documents(np.random.default_rng(1), 15))
    X[kept + 4 :], Y[kept:] = 0, 0
    learner = METHODS[name](**{**SMALL[name], "neighbors": 20})
    learner.fit(csr_matrix(X), csr_matrix(Y), seed=0, threads=2)
    labels, votes = learner.rank(csr_matrix(X), 5)
    assert ((labels >= 0) == (votes > 0)).all()
    assert (kept > 0) == (labels >= 0).any()


@pytest.mark.parametrize("name", SMALL)
def test_features_that_training_has_not_seen_are_ignored(name: str) -> None:
    X, Y = (matrix.toarray() for matrix in documents(np.random.default_rng(1), 200))
    unseen = X.copy()
    X[:, :20], unseen[:, 20:] = 0, 0
    learner = trained(name, csr_matrix(X), csr_matrix(Y))
    more, less = (learner.rank(csr_matrix(some), 5) for some in (X + unseen, X))
    np.testing.assert_array_equal(more[0], less[0])


@pytest.mark.parametrize(
    ("name", "settings", "least"),
    [
        ("sleec", {"label_neighbors": 60, "dim": 50}, 61.0),
        ("annexml", {"learners": 2, "epochs": 2}, 58.0),
    ],
)
def test_bibtex_is_learned(name: str, settings: dict[str, int], least: float, shared_data: Path) -> None:
    """With less effort than by default. Nearest neighbors without training have a P@1 of 57.2."""
    data = load(shared_data / "bibtex")
    assert data.test is not None
    learner = METHODS[name](**settings)
    learner.fit(check_features(data.train.X), check_labels(data.train.Y), seed=0, threads=2)
    ranked, _ = learner.rank(check_features(data.test.X), 1)
    assert evaluate(check_labels(data.test.Y), ranked, k=(1,))["P@1"] > least
