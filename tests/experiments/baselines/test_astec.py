"""Astec and its re-ranker: its modules, its shortlists, and gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines import reranker, surrogate
from lightdxml.experiments.baselines.astec import Astec
from lightdxml.experiments.baselines.ours import Ours
from lightdxml.experiments.baselines.reranker import Scored
from lightdxml.experiments.baselines.surrogate import Schedule
from lightdxml.index import factory
from lightdxml.kernels import adam
from lightdxml.progress import Progress
from lightdxml.views.dense import train_classifier
from lightdxml.views.dense.options import DenseOptions
from tests.support.bench import documents
from tests.support.indexes import needs_rabitq

SMALL: dict[str, Any] = {"D": 16, "surrogate_epochs": 6, "epochs": 6, "reranker_epochs": 4, "batch_size": 32, "k": 20}


@pytest.fixture(scope="module")
def data() -> tuple[csr_matrix, csr_matrix]:
    return documents(np.random.default_rng(1), 300)


def test_modules_are_timed_as_in_the_papers_table(data: tuple[csr_matrix, csr_matrix]) -> None:
    trained = Astec(**SMALL)
    trained.fit(*data, seed=0, threads=2)
    assert list(trained.phases) == ["compile", "M1", "M2", "M3+M4", "validation", "re-ranker"]
    ours = Ours(dim=16, epochs=2, reranker=True, reranker_epochs=2)
    ours.fit(*data, seed=0, threads=2)
    assert {"M1", "M2", "M3+M4", "re-ranker"} <= set(ours.phases)


def test_word_vectors_stay_as_the_surrogate_task_left_them(data: tuple[csr_matrix, csr_matrix]) -> None:
    seen: list[np.ndarray] = []

    class Watched(Astec):
        def _shortlists(self, features: Any, *rest: Any) -> Any:
            seen.append(features.vectors.copy())
            return super()._shortlists(features, *rest)

    trained = Watched(**SMALL, reranker=False)
    trained.fit(*data, seed=0, threads=2)
    np.testing.assert_array_equal(trained._trained.surrogate.vectors, seen[0].astype(np.float16))
    residual = trained._trained.residual.R
    assert not np.array_equal(residual, np.eye(16))
    assert np.linalg.svd(residual, compute_uv=False)[0] == pytest.approx(1, abs=1e-3)


def test_a_training_document_does_not_vote_for_its_own_labels(data: tuple[csr_matrix, csr_matrix]) -> None:
    """Otherwise shortlists of training documents have all right labels at the top, unlike those of new documents."""
    X = csr_matrix(np.eye(40, dtype=np.float32))
    Y = csr_matrix(np.eye(40, dtype=np.float32))
    trained = Astec(**{**SMALL, "document_share": 1.0, "k": 40, "reranker": False, "validation": 0.0})
    trained.fit(X, Y, seed=0, threads=1)
    found = trained._trained.found
    own = np.arange(40, dtype=np.int32)
    directions = found.documents.vectors.astype(np.float32)
    with_own, _ = trained._near(found, directions)
    without, _ = trained._near(found, directions, own=own)
    assert (with_own[:, 0] == own).all()
    assert not (without[:, 0] == own).any()


def test_the_surrogate_step_is_the_gradient_of_its_loss() -> None:
    rng = np.random.default_rng(0)
    W = rng.normal(size=(5, 4)).astype(np.float32)
    E = rng.normal(size=(6, 3)).astype(np.float32)
    truth = csr_matrix((rng.random((6, 5)) < 0.4).astype(np.float32))

    def loss(embeddings: np.ndarray) -> float:
        scores = embeddings.astype(np.float64) @ W[:, :-1].T + W[:, -1]
        return float((np.logaddexp(0, scores) - scores * truth.toarray()).sum() / 6)

    state = train_classifier.Classifier(W.copy(), adam.zero_means(W), np.zeros(5, dtype=np.float32))
    total, gradient = surrogate._step(state, E, truth, np.float32(0))
    assert total / 6 == pytest.approx(loss(E), rel=1e-5)
    for i in range(6):
        for d in range(3):
            up, down = E.astype(np.float64), E.astype(np.float64)
            up[i, d] += 1e-4
            down[i, d] -= 1e-4
            assert gradient[i, d] == pytest.approx((loss(up) - loss(down)) / 2e-4, abs=1e-4)


def test_the_reranker_learns_from_wrong_labels_at_the_top() -> None:
    """A first network that always puts label 1 on top: the second learns that it is wrong."""
    X = csr_matrix(np.eye(4, dtype=np.float32)[np.arange(80) % 2])
    Y = csr_matrix(np.eye(4, dtype=np.float32)[2 * (np.arange(80) % 2)])

    def first(some: csr_matrix, own: Any = None) -> Scored:
        n = some.shape[0]
        labels = np.tile(np.array([1, 0, 2, -1], dtype=np.int32), (n, 1))
        logits = np.tile(np.array([3, 1, 1, -np.inf], dtype=np.float32), (n, 1))
        return Scored(labels, np.zeros((n, 4), dtype=np.float32), logits)

    options = DenseOptions(dim=8, batch_size=8, dropout=0.0, random_negatives=0)
    schedule = Schedule(10, 0.05, ())
    second = reranker.train(X, Y, first, 1.0, 3, options, schedule, np.random.default_rng(0), Progress(show=False))
    metrics = reranker.choose_share(second, X, Y, first(X), 1.0, np.ones(4))
    assert metrics["P@1"] == 100
    assert second.share > 0
    reranked = reranker.rerank(second, X[:2], first(X[:2]), 1.0)
    best = reranked.labels[np.arange(2), reranked.logits.argmax(axis=1)]
    assert best.tolist() == [0, 2]


def test_a_training_document_does_not_vote_for_its_own_labels_in_the_reranker(
    data: tuple[csr_matrix, csr_matrix],
) -> None:
    seen: list[tuple[int, Any]] = []

    class Watched(Astec):
        def _candidates(self, X: csr_matrix, own: Any = None) -> Scored:
            seen.append((X.shape[0], own))
            return super()._candidates(X, own)

    Watched(**SMALL).fit(*data, seed=0, threads=1)
    (held, none), (n, own), (_, after) = seen
    assert (held, n) == (15, 285)
    np.testing.assert_array_equal(own, np.arange(285))
    assert none is None
    assert after is None


def test_kernels_are_compiled_before_the_first_module(
    data: tuple[csr_matrix, csr_matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the time it takes would count for a module."""
    toys: list[tuple[set[str], tuple[int, ...]]] = []
    train = Astec._train

    def watched(self: Astec, X: csr_matrix, *rest: Any) -> None:
        train(self, X, *rest)
        toys.append((set(self.phases), X.shape))

    monkeypatch.setattr(Astec, "_train", watched)
    trained = Astec(**SMALL)
    trained.fit(*data, seed=0, threads=1)
    modules = {"M1", "M2", "M3+M4", "validation", "re-ranker"}
    assert toys == [(modules, (4, 4)), (modules | {"compile"}, data[0].shape)]


@pytest.mark.parametrize("learner", [Astec(**SMALL), Ours(dim=8, epochs=1, reranker=True, reranker_epochs=1)])
def test_a_document_without_features_gets_no_labels(learner: Any, data: tuple[csr_matrix, csr_matrix]) -> None:
    X, Y = data
    learner.fit(X, Y, seed=0, threads=1)
    labels, scores = learner.rank(csr_matrix((2, X.shape[1]), dtype=np.float32), 5)
    assert (labels == -1).all()
    assert (scores == 0).all()


@pytest.mark.parametrize("clusters", [0, 3, 2.0])
def test_clusters_must_be_a_power_of_two(clusters: Any) -> None:
    with pytest.raises(ValueError, match=f"clusters is {clusters}: it must be a power of two"):
        Astec(clusters=clusters)


@needs_rabitq
def test_the_codes_of_both_indexes_are_saved(
    data: tuple[csr_matrix, csr_matrix], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factory, "EXACT_LIMIT", 4)
    trained = Astec(**SMALL, reranker=False)
    trained.fit(*data, seed=0, threads=1)
    trained.save(tmp_path)
    saved = load_file(tmp_path / "astec.safetensors")
    for name in ("index", "documents"):
        assert {f"{name}_{part}" for part in ("row_ids", "signs", "codes")} <= set(saved)
    assert len(saved["documents_row_ids"]) == len(saved["documents"])
