"""Algorithm 1: its schedule, what it learns, what it keeps, and its edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml.config import PRESETS, changed
from lightdxml.kernels import parallel
from lightdxml.metrics import evaluate
from lightdxml.model.model import Model, predict
from lightdxml.training.plan import plan, shortlist_length
from lightdxml.validation import check_features
from lightdxml.views.dense.classifier import ClassifierView
from lightdxml.views.dense.nearness import NearnessView
from tests.support.configs import small
from tests.support.data import noisy_topics, topics
from tests.support.indexes import needs_rabitq
from tests.support.trainings import bits, train

RABITQ = pytest.param({"index": "rabitq"}, marks=needs_rabitq)


def classifier_of(model: Model) -> ClassifierView:
    view = model.views["classifier"]
    assert isinstance(view, ClassifierView)
    return view


def nearness_of(model: Model) -> NearnessView:
    view = model.views["nearness"]
    assert isinstance(view, NearnessView)
    return view


def test_it_learns_data_with_a_known_answer(documents: tuple[csr_matrix, csr_matrix]) -> None:
    model, _ = train(documents, small(epochs=30, linear=False))
    X, Y = topics(seed=1)
    ranked, _ = predict(model, check_features(X), 3)
    assert evaluate(Y, ranked, k=1)["P@1"] > 97


@pytest.mark.parametrize("settings", [{}, {"dense.relu": True, "dense.residual": True}, RABITQ], ids=str)
def test_the_same_seed_gives_the_same_bits_at_any_number_of_threads(settings: dict[str, Any]) -> None:
    data, found = topics(120), []
    for threads in (1, 2, 4):
        with parallel.use_threads(threads):
            found.append(bits(train(data, changed(small(epochs=3, linear=False), settings))[0]))
    assert found[0] == found[1] == found[2]


def test_another_seed_gives_another_model() -> None:
    data = topics(60)
    one, other = (train(data, small(epochs=1, linear=False, random_state=seed))[0] for seed in (1, 2))
    assert not np.array_equal(classifier_of(one).W, classifier_of(other).W)


@pytest.mark.parametrize(
    ("epochs", "label_epochs", "refresh_every"), [(16, 8, 8), (21, 6, 9), (5, 2, 2), (3, 1, 7), (4, 0, 2)]
)
def test_there_are_as_many_epochs_as_in_the_papers_formula(epochs: int, label_epochs: int, refresh_every: int) -> None:
    settings = {"epochs": epochs, "dense__label_epochs": label_epochs, "dense__refresh_every": refresh_every}
    config = small(linear=False, **settings)
    _, history = train(topics(60), config)
    phases = [entry["phase"] for entry in history]
    assert phases.count("classifier") == epochs
    assert phases.count("label encoder") == label_epochs * (epochs // refresh_every + 1)
    assert phases.count("classifier") + phases.count("label encoder") == config.dense.total_epochs
    # The index is refreshed before the first epoch, every ê_label epochs, and after the last one.
    assert phases.count("index") == phases.count("validation") == 1 + -(-epochs // refresh_every)
    # After the last refresh nothing uses the shortlists of training documents.
    assert phases.count("shortlist") == phases.count("index") - 1


def test_the_plan_has_as_many_epochs_as_the_settings() -> None:
    config = small(epochs=7, dense__refresh_every=3)
    steps = plan(config.dense)
    assert [step.epoch for step in steps if step.kind == "classifier"] == list(range(7))
    assert sum(step.kind == "refresh" for step in steps) == 7 // 3 + 1
    assert [shortlist_length(config.dense, at) for at in (0, len(steps) - 1)] == [8, 0]


def test_the_views_of_the_best_validation_are_kept() -> None:
    # At a rate this high every epoch is a gamble.
    rough = {"epochs": 4, "learning_rate": 2.0, "dense__schedule": "steps", "dense__refresh_every": 1, "linear": False}
    model, history = train(noisy_topics(), small(**rough))
    validations = [entry for entry in history if entry["phase"] == "validation"]
    accuracies = [max(sum(one[f"P@{k}"] for k in (1, 3, 5)) for _, one in entry["curve"]) for entry in validations]
    best = max(range(len(accuracies)), key=lambda i: (accuracies[i], i))
    assert best < len(validations) - 1, "the last one is not the best: only then does the test say something"
    # The model ships in 16 bits, the cycle validates in 32.
    assert model.metrics["P@1"] == pytest.approx(validations[best]["P@1"], abs=7)
    assert model.blend.weights["classifier"] == validations[best]["beta"]
    assert [entry["kept"] for entry in validations][best:] == [True] + [False] * (len(validations) - best - 1)


def test_beta_is_the_given_one() -> None:
    model, history = train(topics(60), small(epochs=1, linear=False, beta=0.35))
    assert model.blend.weights["classifier"] == 0.35
    (validation, *_) = (entry for entry in history if entry["phase"] == "validation")
    assert [beta for beta, _ in validation["curve"]] == [0.35]


def test_labels_without_documents_are_not_in_the_index(documents: tuple[csr_matrix, csr_matrix]) -> None:
    X, Y = documents
    wide = csr_matrix((Y.data, Y.indices, Y.indptr), shape=(Y.shape[0], 40))
    model, _ = train((X, wide), small(epochs=1, linear=False))
    assert nearness_of(model).labels.tolist() == list(range(12))
    assert predict(model, check_features(X), 40)[0].max() < 12


EDGES: dict[str, tuple[Any, Any]] = {
    "one document": ([[1, 0]], [[1, 0]]),
    "one label": ([[1, 0], [0, 1], [1, 1]], [[1], [1], [0]]),
    "documents without features": ([[0, 0], [0, 0], [1, 0]], [[1, 0], [0, 1], [1, 0]]),
    "no features at all": ([[0, 0]] * 25, [[1, 0]] * 25),
    "documents without labels": ([[1, 0], [0, 1], [1, 1]], [[0, 0], [0, 0], [1, 0]]),
    "equal documents": ([[1, 2]] * 30, [[1, 0]] * 15 + [[0, 1]] * 15),
    "one document with a label": ([[0, 1]] * 30, [[1, 0]] + [[0, 0]] * 29),
}
TREES = {
    "dense": "never",
    "linear.work": 0,
    "linear.min_clusters": 1,
    "tree.branching": 2,
    "tree.max_leaf": 1,
    "blend.min_documents": 1,
    "blend.fit": False,
    "blend.min_gain": 0,
    "blend.min_errors": 0,
}


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"linear": False, "dense.residual": True, "dense.relu": True},
        {"shortlist_size": 1, "linear.proposals": 0},
        {"validation_fraction": 0.0, "dense.label_epochs": 0},
        TREES,
        TREES | {"dense": "always"},
        RABITQ,
    ],
    ids=["default", "residual", "short", "no validation", "no dense views", "trees", "rabitq"],
)
def test_edges_are_trained_and_predicted(name: str, settings: dict[str, Any]) -> None:
    X, Y = (np.array(table) for table in EDGES[name])
    model, _ = train((X, Y), changed(small(epochs=2), settings))
    labels, scores = predict(model, check_features(X), k=5)
    assert labels.shape == (len(X), 5)
    assert np.isfinite(scores).all()
    assert ((labels >= 0) == (scores > 0)).all()
    assert labels.max() < Y.shape[1]
    # A document without features gets no label: a guess would look like an answer.
    assert ((labels[:, 0] >= 0) == X.any(axis=1)).all()


def test_training_starts_from_given_word_vectors() -> None:
    vectors = np.random.default_rng(0).normal(size=(42, 16)).astype(np.float32)
    model, _ = train(topics(60), small(epochs=1, learning_rate=1e-9, linear=False), vectors=vectors)
    np.testing.assert_allclose(classifier_of(model).encoder.vectors, vectors, rtol=1e-3)
    before = vectors.copy()
    train(topics(60), small(epochs=1, linear=False), vectors=vectors)
    np.testing.assert_array_equal(vectors, before)


def test_vectors_that_float16_cannot_hold_are_kept_in_float32() -> None:
    vectors = np.full((42, 16), 1e5, dtype=np.float32)
    model, _ = train(topics(60), small(epochs=1, linear=False), vectors=vectors)
    assert classifier_of(model).encoder.vectors.dtype == np.float32


def test_the_papers_preset_trains() -> None:
    short = {"epochs": 2, "dense.refresh_every": 1, "dense.label_epochs": 1, "dim": 16}
    model, _ = train(topics(60), changed(PRESETS["paper/EURLex-4K"], short))
    assert model.blend.weights["classifier"] == 0.75
    assert classifier_of(model).encoder.residual is not None


@needs_rabitq
def test_codes_find_most_of_the_exact_shortlists() -> None:
    _, history = train(topics(300, labels=60), small(epochs=2, index="rabitq", linear=False))
    found = [entry for entry in history if entry["phase"] == "shortlist"]
    assert {entry["kind"] for entry in found} == {"rabitq"}
    assert min(entry["recall"] for entry in found) > 0.9
