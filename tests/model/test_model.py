"""Prediction: rankings, scores, explanations, and metrics that hold for the model that is saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML, Predictor, load
from lightdxml.config import PRESETS
from lightdxml.metrics import evaluate, inverse_propensity
from lightdxml.model.blend import LogisticBlend
from lightdxml.model.model import predict
from lightdxml.validation import check_features, check_labels, split
from tests.support.configs import FOUR_VIEWS, PAPER, SMALL
from tests.support.data import noisy_topics, topics
from tests.support.indexes import needs_rabitq

Documents = tuple[csr_matrix, csr_matrix]


@pytest.fixture(params=["four_views", "paper_model"])
def model(request: pytest.FixtureRequest) -> LightDXML:
    found: LightDXML = request.getfixturevalue(request.param)
    return found


def test_the_best_labels_come_first_with_scores_from_0_to_1(model: LightDXML) -> None:
    X, Y = topics(100, seed=1)
    labels, scores = model.rank(X, 12)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert ((scores >= 0) & (scores <= 1)).all()
    assert ((labels >= 0) == (scores > 0)).all()
    assert evaluate(Y, labels, k=1)["P@1"] > 80


@pytest.mark.parametrize("tail", [0.0, 0.7])
def test_one_document_at_a_time_gets_the_bits_of_a_batch(model: LightDXML, tail: float) -> None:
    X, _ = topics(30, seed=3)
    labels, scores = model.rank(X, 5, tail=tail)
    for i in range(30):
        one, score = model.rank(X[i], 5, tail=tail)
        np.testing.assert_array_equal(one[0], labels[i])
        np.testing.assert_array_equal(score[0], scores[i])


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_predictions_do_not_depend_on_the_number_of_threads(model: LightDXML, n_jobs: int) -> None:
    X, _ = topics(50, seed=3)
    other = LightDXML(n_jobs=n_jobs)
    other.model_ = model.model_
    for found, expected in zip(other.rank(X, 5), model.rank(X, 5), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("index", ["exact", pytest.param("rabitq", marks=needs_rabitq)])
@pytest.mark.parametrize("k", [2, 4])
def test_one_document_gets_the_bits_of_a_batch_among_equal_labels(k: int, index: str) -> None:
    """Labels that always occur together have equal embeddings: which of them are candidates must not differ."""
    X, Y = topics(100)
    triplets = csr_matrix(np.repeat(Y.toarray(), 3, axis=1))
    trained = LightDXML(shortlist_size=k, index=index, options=PAPER | {"epochs": 2}).fit(X, triplets)
    labels, scores = trained.rank(X, k)
    for i in range(0, 100, 3):
        one, score = trained.rank(X[i], k)
        np.testing.assert_array_equal(one[0], labels[i])
        np.testing.assert_array_equal(score[0], scores[i])


def test_a_document_without_features_gets_no_label(model: LightDXML) -> None:
    X = csr_matrix(topics(4)[0].toarray() * np.array([[1], [0], [1], [0]]))
    labels, scores = model.rank(X, 3)
    assert (labels[[1, 3]] == -1).all()
    assert (scores[[1, 3]] == 0).all()
    assert (labels[[0, 2]] >= 0).all()
    assert model.explain(X[1], 3) == [[]]


def test_more_documents_than_one_chunk_are_predicted_alike(model: LightDXML, monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = topics(50, seed=3)
    expected = model.rank(X, 5)
    monkeypatch.setattr("lightdxml.model.model._DOCUMENTS", 7)
    for found, one in zip(model.rank(X, 5), expected, strict=True):
        np.testing.assert_array_equal(found, one)


def test_views_without_a_weight_are_not_evaluated(four_views: LightDXML) -> None:
    X = check_features(topics(5)[0])
    trained = four_views.model_
    # The blend gives the tree no weight: a model without it predicts the same.
    assert isinstance(trained.blend, LogisticBlend)
    slopes = {name: own for name, own in trained.blend.slopes.items() if name != "tree"}
    blend = replace(trained.blend, slopes=slopes)
    views = {name: view for name, view in trained.views.items() if name != "tree"}
    without = replace(trained, blend=blend, views=views)
    for found, expected in zip(predict(without, X), predict(replace(trained, blend=blend), X), strict=True):
        np.testing.assert_array_equal(found, expected)


# Small versions of the paper's settings: its blend, encoder, schedule and negatives.
SHORT = {"dim": 16, "shortlist_size": 8, "epochs": 2, "dense.label_epochs": 1, "dense.refresh_every": 1}
CHOSEN = {"blend.fit": True, "blend.min_gain": 0, "blend.min_errors": 0, "blend.tail_documents": 10}
# One and three trees. Choices are not given: they are made.
ONE_TREE = FOUR_VIEWS | CHOSEN | {"tree.max_trees": 1}
THREE_TREES = FOUR_VIEWS | CHOSEN | {"tree.max_trees": 3}


def trees_of(model: LightDXML) -> int:
    view = model.model_.views.get("tree")
    return 0 if view is None else int(view.facts()["trees"])


@pytest.mark.parametrize("held_out", [True, False], ids=["held-out documents", "dev part"])
@pytest.mark.parametrize(
    ("settings", "trees"), [(SMALL, 0), (PAPER, 0), (ONE_TREE, 1), (THREE_TREES, 3)], ids=["default", "paper", "1", "3"]
)
def test_metrics_are_those_of_the_saved_model(
    tmp_path: Path, held_out: bool, settings: dict[str, Any], trees: int
) -> None:
    """They once were those of one tree, and three were shipped with other weights."""
    X, Y = topics()
    estimator = LightDXML(options=settings | {"refit": False, "validation_fraction": 0.2})
    if held_out:
        parts = split(check_features(X), check_labels(Y), estimator.config(300))
        estimator.fit(X, Y)
    else:
        parts = X, Y, *topics(120, seed=5)
        estimator.fit(X, Y, dev=parts[2:])
    check_metrics(estimator, parts, tmp_path)
    assert trees_of(estimator) == trees


@pytest.mark.parametrize("preset", [name for name in PRESETS if name.startswith("paper/")])
def test_metrics_of_the_papers_presets_are_those_of_the_saved_model(tmp_path: Path, preset: str) -> None:
    X, Y = noisy_topics()
    dev = noisy_topics(120, seed=5)
    estimator = LightDXML(preset, options=SHORT).fit(X, Y, dev=dev)
    check_metrics(estimator, (X, Y, *dev), tmp_path)
    assert estimator.model_.blend.kind == "paper"
    assert estimator.model_.blend.weights["classifier"] == PRESETS[preset].blend.beta


def check_metrics(trained: LightDXML, parts: tuple[csr_matrix, ...], folder: Path) -> None:
    trained.save(folder / "model")
    saved = load(folder / "model")
    _, Y, X_validation, Y_validation = parts
    # Validation documents do not count in the frequencies with which they are ranked.
    frequency = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int32)
    before_refit = Predictor(replace(saved.model_, label_frequency=frequency, n_documents=Y.shape[0]))
    (curve,) = (entry["curve"] for entry in saved.history_ if entry["phase"] == "tail")
    assert saved.model_.metrics == pytest.approx(curve[0][1])
    for tail, measured in curve[::5]:
        ranked, _ = before_refit.rank(X_validation, 5, tail=tail)
        found = evaluate(Y_validation, ranked, k=(1, 3, 5), inv_propensity=inverse_propensity(Y))
        assert found == pytest.approx(measured)
