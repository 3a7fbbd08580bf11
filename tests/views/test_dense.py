"""The paper's two views: encoder, label encoder, classifier and nearness."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.kernels.precision import dequantize, dequantize_classifier, rounded
from lightdxml.validation import check_features
from lightdxml.views.base import Batch, NewLabels
from lightdxml.views.dense import label_encoder, train_classifier
from lightdxml.views.dense.classifier import ClassifierView
from lightdxml.views.dense.encoder import embeddings_of, encode, normalized
from lightdxml.views.dense.nearness import NearnessView
from lightdxml.views.dense.options import DenseOptions
from lightdxml.views.names.forms import NameForms
from tests.support.configs import PAPER
from tests.support.data import topics
from tests.support.indexes import needs_rabitq

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module", name="X")
def unseen_documents() -> csr_matrix:
    return check_features(topics(30, seed=3)[0])


def dense_views(model: LightDXML) -> tuple[ClassifierView, NearnessView]:
    classifier, nearness = model.model_.views["classifier"], model.model_.views["nearness"]
    assert isinstance(classifier, ClassifierView)
    assert isinstance(nearness, NearnessView)
    return classifier, nearness


def test_both_views_share_the_embeddings_of_a_batch(four_views: LightDXML, X: csr_matrix) -> None:
    classifier, nearness = dense_views(four_views)
    batch = Batch(X)
    assert embeddings_of(classifier.encoder, batch) is embeddings_of(nearness.encoder, batch)


def test_log_scores_are_the_formulas_of_the_paper(paper_model: LightDXML, X: csr_matrix) -> None:
    classifier, nearness = dense_views(paper_model)
    labels = np.tile(np.arange(12, dtype=np.int32), (X.shape[0], 1))
    embeddings = encode(classifier.encoder, X).astype(np.float64)
    W = dequantize_classifier(classifier.W).astype(np.float64)
    logits = embeddings @ W[:, :-1].T + W[:, -1]
    np.testing.assert_allclose(classifier.log_score(Batch(X), labels), -np.logaddexp(0, -logits), rtol=1e-4, atol=1e-4)
    cosines = normalized(encode(classifier.encoder, X)) @ dequantize(nearness.index.vectors).T.astype(np.float64)
    np.testing.assert_allclose(nearness.log_score(Batch(X), labels), cosines - 1, atol=1e-3)


def test_the_shortlist_is_the_nearest_labels(paper_model: LightDXML, X: csr_matrix) -> None:
    _, nearness = dense_views(paper_model)
    proposal = nearness.propose(Batch(X), np.empty((X.shape[0], 0), dtype=np.int32))
    assert proposal is not None
    assert proposal.labels.shape == (X.shape[0], 8)
    labels = np.tile(np.arange(12, dtype=np.int32), (X.shape[0], 1))
    every = np.sort(nearness.log_score(Batch(X), labels), axis=1)[:, ::-1]
    np.testing.assert_array_equal(proposal.log_scores, every[:, :8])


def test_the_classifier_proposes_nothing(paper_model: LightDXML, X: csr_matrix) -> None:
    assert dense_views(paper_model)[0].propose(Batch(X), np.empty((X.shape[0], 0), dtype=np.int32)) is None


@pytest.mark.parametrize("settings", [{"dense.relu": True}, {"dense.relu": True, "dense.residual": True}], ids=str)
def test_explanations_add_up_with_other_encoders(
    documents: tuple[csr_matrix, csr_matrix], X: csr_matrix, settings: dict[str, Any]
) -> None:
    model = LightDXML(options=PAPER | {"epochs": 2} | settings).fit(*documents)
    for view in dense_views(model):
        log_scores = view.log_score(Batch(X), np.tile(np.arange(12, dtype=np.int32), (X.shape[0], 1)))
        for i, label in ((0, 0), (1, 5), (2, 11)):
            parts = view.contributions(Batch(X[i]), label)
            assert parts.base + parts.features.sum() == pytest.approx(log_scores[i, label], abs=1e-4)


def test_a_label_without_an_embedding_is_as_far_as_can_be(paper_model: LightDXML, X: csr_matrix) -> None:
    _, nearness = dense_views(paper_model)
    fewer = replace(nearness, labels=nearness.labels + 1)
    assert (fewer.log_score(Batch(X), np.zeros((X.shape[0], 1), dtype=np.int32)) == -2).all()
    parts = fewer.contributions(Batch(X[0]), 0)
    assert parts.base == -2
    assert not parts.features.any()


def test_centroids_are_means_and_the_label_encoder_starts_from_them() -> None:
    Y = csr_matrix(RNG.random((20, 6)) < 0.3, dtype=np.float32)
    embeddings = RNG.normal(size=(20, 4)).astype(np.float32)
    counts = np.maximum(Y.sum(axis=0).A1, 1)
    mu = label_encoder.centroids(csr_matrix(Y.T), embeddings)
    np.testing.assert_allclose(mu, (Y.T @ embeddings) / counts[:, None], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(label_encoder.embed(label_encoder.start(4), mu), mu)


def test_learning_rates_decay_as_described() -> None:
    cosine = DenseOptions(learning_rate=1.0, epochs=10)
    rates = [train_classifier.learning_rate(cosine, epoch, 0.5) for epoch in range(10)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 0.98
    assert rates[-1] < 0.02
    steps = DenseOptions(learning_rate=1.0, epochs=30, schedule="steps")
    assert [train_classifier.learning_rate(steps, epoch, 0.5) for epoch in (13, 14, 21, 25)] == [1, 0.5, 0.25, 0.125]


def test_numbers_that_float16_cannot_hold_stay_float32() -> None:
    assert rounded(np.array([7e4, 1], dtype=np.float32), "float16").dtype == np.float32
    assert rounded(np.array([6e4, 1], dtype=np.float32), "float16").dtype == np.float16
    assert rounded(np.array([1], dtype=np.float32), "float32").dtype == np.float32


@pytest.mark.parametrize("index", ["exact", pytest.param("rabitq", marks=needs_rabitq)])
def test_a_new_label_lies_where_a_document_of_its_name_would(index: str, X: csr_matrix) -> None:
    _, nearness = dense_views(LightDXML(options=PAPER | {"index": index}).fit(*topics()))
    terms = csr_matrix((np.ones(13, np.float32), (np.arange(13), [*range(12), 20])), shape=(13, 42))
    names, none = NameForms(terms, np.arange(13, dtype=np.int32)), np.empty(0, dtype=np.int32)
    grown = nearness.with_labels(
        NewLabels(names, 13, np.array([12], dtype=np.int32), none, none, np.zeros(13, np.int32))
    )
    assert grown.index.kind == index
    assert grown.log_score(Batch(terms[12]), np.array([[12]], dtype=np.int32))[0, 0] == pytest.approx(0, abs=1e-3)
    every = np.tile(np.arange(12, dtype=np.int32), (X.shape[0], 1))
    np.testing.assert_array_equal(grown.log_score(Batch(X), every), nearness.log_score(Batch(X), every))
