"""The paper's two views: encoder, label encoder, classifier and nearness."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.kernels.precision import dequantize, dequantize_classifier
from lightdxml.validation import check_features
from lightdxml.views.base import Batch
from lightdxml.views.dense import label_encoder, train_classifier, train_encoder
from lightdxml.views.dense.classifier import ClassifierView
from lightdxml.views.dense.encoder import Encoder, Residual, embeddings_of, encode, normalized, rounded
from lightdxml.views.dense.nearness import NearnessView
from lightdxml.views.dense.options import DenseOptions
from tests.support.configs import PAPER
from tests.support.data import topics

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module", name="X")
def unseen_documents() -> csr_matrix:
    return check_features(topics(30, seed=3)[0])


def dense_views(model: LightDXML) -> tuple[ClassifierView, NearnessView]:
    classifier, nearness = model.model_.views["classifier"], model.model_.views["nearness"]
    assert isinstance(classifier, ClassifierView)
    assert isinstance(nearness, NearnessView)
    return classifier, nearness


def test_an_embedding_is_the_weighted_sum_of_word_vectors(X: csr_matrix) -> None:
    vectors = RNG.normal(size=(X.shape[1], 5)).astype(np.float32)
    expected = X @ vectors
    np.testing.assert_allclose(encode(Encoder(vectors), X), expected, rtol=1e-4, atol=1e-5)
    relu = np.maximum(expected, 0)
    np.testing.assert_allclose(encode(Encoder(vectors, relu=True), X), relu, rtol=1e-4, atol=1e-5)
    R, bias = RNG.normal(size=(5, 5)).astype(np.float32), RNG.normal(size=5).astype(np.float32)
    with_residual = relu + np.maximum(relu @ R.T + bias, 0)
    found = encode(Encoder(vectors, relu=True, residual=Residual(R, bias)), X)
    np.testing.assert_allclose(found, with_residual, rtol=1e-4, atol=1e-4)


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
    cosines = normalized(embeddings) @ dequantize(nearness.index.vectors).T.astype(np.float64)
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


def test_gradients_of_the_two_layers_follow_from_that_of_their_product() -> None:
    encoder = label_encoder.start(3)
    for layer in encoder.layers:
        layer += RNG.normal(size=layer.shape).astype(np.float32)
    weights = RNG.normal(size=(3, 4)).astype(np.float32)

    def loss() -> float:
        """A function whose gradient to both layers as one is `weights`."""
        first, second = (layer.astype(np.float64) for layer in encoder.layers)
        product = second[:, :-1] @ first
        product[:, -1] += second[:, -1]
        return float((product * weights).sum())

    for layer, gradient in zip(encoder.layers, label_encoder.layer_gradients(encoder, weights), strict=True):
        for place in np.ndindex(layer.shape):
            before = layer[place]
            layer[place] = before + np.float32(0.5)
            up = loss()
            layer[place] = before - np.float32(0.5)
            down = loss()
            layer[place] = before
            assert gradient[place] == pytest.approx(up - down, rel=1e-3, abs=1e-3)


def test_training_the_label_encoder_brings_labels_nearer_to_their_documents() -> None:
    X, Y = topics(200)
    label_to_docs, embeddings = csr_matrix(Y.T), X.toarray() @ RNG.normal(size=(42, 8)).astype(np.float32)
    mu, encoder = label_encoder.centroids(label_to_docs, embeddings), label_encoder.start(8)
    rng = np.random.default_rng(0)
    losses = [
        label_encoder.train_epoch(encoder, label_to_docs, np.arange(12), mu, embeddings, 0.02, rng) for _ in range(15)
    ]
    assert losses[-1] < losses[0]


def test_the_residual_layer_keeps_its_spectral_norm_of_1() -> None:
    X, Y = topics(100)
    options = DenseOptions(dim=8, residual=True, relu=True, batch_size=20, random_negatives=2)
    rng = np.random.default_rng(0)
    features = train_encoder.start(X.shape[1], options, rng, None)
    classifier = train_classifier.start(Y.shape[1], options, rng)
    near = np.tile(np.arange(4, dtype=np.int32), (100, 1))
    buffers = train_classifier.workspace(Y, 4, options)
    for _ in range(10):
        rows = rng.permutation(100)[:20]
        train_classifier.train_batch(classifier, features, buffers, X, Y, rows, near, options, 0.1, rng)
    assert features.encoder.residual is not None
    R = features.encoder.residual.R
    assert not np.allclose(R, np.eye(8))
    assert np.linalg.svd(R, compute_uv=False)[0] == pytest.approx(1, abs=1e-3)


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
