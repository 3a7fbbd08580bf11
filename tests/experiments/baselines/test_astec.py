"""Astec and its re-ranker, which LightDXML can have too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.config import Config, changed
from lightdxml.experiments.baselines import astec, reranker
from lightdxml.experiments.baselines.astec import Astec
from lightdxml.experiments.baselines.ours import Ours
from lightdxml.experiments.baselines.reranker import Scored
from lightdxml.kernels import adam
from lightdxml.views.dense.train_classifier import Classifier
from tests.support.bench import documents

SMALL: dict[str, Any] = {
    "dim": 16, "surrogate_epochs": 6, "epochs": 6, "reranker_epochs": 4, "dense.batch_size": 32, "shortlist_size": 20,
}  # fmt: skip
OURS: dict[str, Any] = {"dim": 16, "epochs": 2, "reranker": True, "reranker_epochs": 2}

Data = tuple[csr_matrix, csr_matrix]


@pytest.fixture(scope="module")
def data() -> Data:
    return documents(np.random.default_rng(1), 300)


def test_modules_are_timed_as_in_the_papers_table(data: Data) -> None:
    trained = Astec(**SMALL)
    trained.fit(*data, seed=0, threads=2)
    assert list(trained.phases) == ["compile", "M1", "M2", "M3+M4", "validation", "re-ranker"]
    ours = Ours(**OURS)
    ours.fit(*data, seed=0, threads=2)
    assert {"M1", "M2", "M3+M4", "re-ranker"} <= set(ours.phases)


def test_word_vectors_are_frozen_after_the_surrogate_task(data: Data) -> None:
    seen: list[NDArray[np.float32]] = []

    class Watched(Astec):
        def _build_shortlists(self, features: Any, *rest: Any) -> NDArray[np.int32]:
            seen.append(features.vectors.copy())
            return super()._build_shortlists(features, *rest)

    trained = Watched(**SMALL, reranker=False)
    trained.fit(*data, seed=0, threads=2)
    np.testing.assert_array_equal(trained._features.vectors, seen[0].astype(np.float16))
    assert trained._residual is not None
    assert not np.array_equal(trained._residual.R, np.eye(16))
    assert np.linalg.svd(trained._residual.R, compute_uv=False)[0] == pytest.approx(1, abs=1e-3)


def test_a_training_document_does_not_vote_for_its_own_labels() -> None:
    identity = csr_matrix(np.eye(40, dtype=np.float32))
    changes = {"document_share": 1.0, "shortlist_size": 40, "reranker": False, "validation_fraction": 0.0}
    trained = Astec(**{**SMALL, **changes})
    trained.fit(identity, identity, seed=0, threads=1)
    own = np.arange(40, dtype=np.int32)
    directions = trained._documents.vectors.astype(np.float32)
    assert (trained._nearest(directions)[0][:, 0] == own).all()
    assert not (trained._nearest(directions, own)[0][:, 0] == own).any()


def test_the_reranker_excludes_the_own_votes_of_training_documents_only(data: Data) -> None:
    seen: list[tuple[int, Any]] = []

    class Watched(Astec):
        def _candidates(self, X: csr_matrix, own: Any = None) -> Scored:
            seen.append((X.shape[0], own))
            return super()._candidates(X, own)

    Watched(**SMALL).fit(*data, seed=0, threads=1)
    (held, none), (n, own) = seen
    assert (held, none, n) == (15, None, 285)
    np.testing.assert_array_equal(own, np.arange(285))


def test_the_surrogate_gradient_is_that_of_the_cross_entropy() -> None:
    rng = np.random.default_rng(0)
    W, E = rng.normal(size=(5, 4)).astype(np.float32), rng.normal(size=(6, 3)).astype(np.float32)
    truth = (rng.random((6, 5)) < 0.4).astype(np.float32)

    def loss(embeddings: NDArray[np.float64]) -> float:
        logits = embeddings @ W[:, :-1].T + W[:, -1]
        return float((np.logaddexp(0, logits) - logits * truth).sum() / 6)

    state = Classifier(W.copy(), adam.zero_means(W), np.zeros(5, dtype=np.float32))
    gradient = astec._update_clusters(state, E, truth, np.float32(0))
    for i, d in np.ndindex(6, 3):
        step = np.zeros((6, 3))
        step[i, d] = 1e-4
        assert gradient[i, d] == pytest.approx((loss(E + step) - loss(E - step)) / 2e-4, abs=1e-4)


def test_the_reranker_learns_which_labels_were_wrongly_on_top() -> None:
    X = csr_matrix(np.eye(4, dtype=np.float32)[np.arange(80) % 2])
    Y = csr_matrix(np.eye(4, dtype=np.float32)[2 * (np.arange(80) % 2)])

    def first(some: csr_matrix, own: Any = None) -> Scored:
        """Rank label 1 first, whatever the document."""
        n = some.shape[0]
        labels = np.tile(np.array([1, 0, 2, -1], dtype=np.int32), (n, 1))
        logits = np.tile(np.array([3, 1, 1, -np.inf], dtype=np.float32), (n, 1))
        return Scored(labels, np.zeros((n, 4), dtype=np.float32), logits)

    options = changed(Config(), {"dim": 8, "dense.batch_size": 8, "dense.dropout": 0.0}).dense
    settings = {"reranker_epochs": 10, "reranker_rate": 0.05, "reranker_halved_at": 10, "reranker_depth": 3}
    second = reranker.train((X, Y, X, Y), first, first(X), 1.0, options, settings, np.random.default_rng(0))
    assert second.share > 0
    labels, _ = reranker.rank(X[:2], 1, first, 1.0, second)
    assert labels.tolist() == [[0], [2]]


@pytest.mark.parametrize("learner", [Astec(**SMALL), Ours(**OURS)], ids=("astec", "lightdxml"))
def test_a_document_without_features_gets_no_labels(learner: Any, data: Data) -> None:
    X, Y = data
    learner.fit(X, Y, seed=0, threads=1)
    labels, scores = learner.rank(csr_matrix((2, X.shape[1]), dtype=np.float32), 5)
    assert (labels == -1).all()
    assert (scores == 0).all()


def test_other_values_of_beta_are_ranked_without_new_training(data: Data) -> None:
    trained = Ours(dim=16, epochs=2, linear=False, tree=False, beta=0.5, other_betas=[0.0, 0.5])
    trained.fit(*data, seed=0, threads=1)
    (none, nearness), (half, same) = trained.with_other_betas()
    assert (none, half) == (0.0, 0.5)
    np.testing.assert_array_equal(same.rank(data[0], 5)[1], trained.rank(data[0], 5)[1])
    assert not np.array_equal(nearness.rank(data[0], 5)[1], trained.rank(data[0], 5)[1])
