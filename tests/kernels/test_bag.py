"""Embedding bag, centroids and the label loss against dense NumPy and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, random_array

from lightdxml.config import Config
from lightdxml.encoder import Encoder, Residual, encode
from lightdxml.kernels import bag
from lightdxml.training import embedding, label_encoder


def sparse(rng: np.random.Generator, rows: int, columns: int) -> csr_matrix:
    return csr_matrix(random_array((rows, columns), density=0.4, rng=rng, dtype=np.float32))


def test_embedding_is_the_weighted_sum_of_word_vectors() -> None:
    rng = np.random.default_rng(0)
    X, E = sparse(rng, 2500, 30), rng.normal(size=(30, 8)).astype(np.float32)
    np.testing.assert_allclose(encode(Encoder(E), X), X @ E, rtol=1e-4, atol=1e-5)
    relu = np.maximum(X @ E, 0)
    np.testing.assert_allclose(encode(Encoder(E, relu=True), X), relu, rtol=1e-4, atol=1e-5)
    R, b = rng.normal(size=(8, 8)).astype(np.float32), rng.normal(size=8).astype(np.float32)
    expected = relu + np.maximum(relu @ R.T + b, 0)
    np.testing.assert_allclose(encode(Encoder(E, True, Residual(R, b)), X), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("settings", [{}, {"relu": True}, {"relu": True, "residual": True}], ids=str)
def test_backward_is_the_gradient_of_forward(settings: dict[str, bool]) -> None:
    """Adam's mean after one step is a tenth of the gradient: compare it with finite differences."""
    rng = np.random.default_rng(1)
    X, config = sparse(rng, 5, 6), Config(D=4, dropout=0.0, **settings)  # type: ignore[arg-type]
    state = embedding.start(6, config, rng, rng.normal(size=(6, 4)).astype(np.float32))
    if state.encoder.residual is not None:
        state.encoder.residual.bias[:] = 0.1
    start = state.encoder.copy("float32")
    direction = rng.normal(size=(5, 4)).astype(np.float32)

    def value(vectors: NDArray[np.float64]) -> float:
        z = X.toarray().astype(np.float64) @ vectors
        z = np.maximum(z, 0) if start.relu else z
        if start.residual is not None:
            z = z + np.maximum(z @ start.residual.R.T + start.residual.bias, 0)
        return float((z * direction).sum())

    batch = embedding.forward(state, X, 0.0, rng)
    embedding.backward(state, batch, direction, np.float32(0.0))
    numeric = np.zeros((6, 4))
    for i in np.ndindex(6, 4):
        up, down = start.vectors.astype(np.float64), start.vectors.astype(np.float64)
        up[i] += 1e-5
        down[i] -= 1e-5
        numeric[i] = (value(up) - value(down)) / 2e-5
    means = (state.mean.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(means * 10, numeric, rtol=1e-2, atol=1e-3)


def test_dropout_zeroes_its_share_and_keeps_the_mean() -> None:
    rng = np.random.default_rng(0)
    state = embedding.start(1, Config(D=100), rng, np.ones((1, 100), dtype=np.float32))
    out = embedding.forward(state, csr_matrix(np.ones((200, 1), dtype=np.float32)), 0.25, rng).embedding
    assert (out == 0).mean() == pytest.approx(0.25, abs=0.02)
    assert out.mean() == pytest.approx(1.0, abs=0.02)


def test_residual_keeps_spectral_norm_one() -> None:
    rng = np.random.default_rng(0)
    state = embedding.start(6, Config(D=4, residual=True), rng, None)
    for _ in range(20):
        batch = embedding.forward(state, sparse(rng, 5, 6), 0.5, rng)
        embedding.backward(state, batch, rng.normal(size=(5, 4)).astype(np.float32), np.float32(0.1))
        assert state.encoder.residual is not None
        assert np.linalg.norm(state.encoder.residual.R, 2) == pytest.approx(1.0, abs=1e-3)


def test_centroids_are_means_and_zero_without_documents() -> None:
    rng = np.random.default_rng(0)
    Y = csr_matrix([[1, 1, 0], [1, 0, 0], [0, 1, 0]], dtype=np.float32)
    X = rng.normal(size=(3, 4)).astype(np.float32)
    mu = label_encoder.centroids(csr_matrix(Y.T), X)
    np.testing.assert_allclose(mu, [X[:2].mean(0), X[[0, 2]].mean(0), np.zeros(4)], rtol=1e-5)


def test_label_loss_and_its_gradient_follow_the_formula() -> None:
    rng = np.random.default_rng(0)
    Y = csr_matrix((rng.random((8, 3)) < 0.5).astype(np.float32))
    X, Z = rng.normal(size=(8, 4)).astype(np.float32), rng.normal(size=(3, 4)).astype(np.float32)
    documents, labels = csr_matrix(Y.T), np.array([2, 0, 1])

    def loss(z: NDArray[np.float64]) -> float:
        distances = ((X[:, None].astype(np.float64) - z[None]) ** 2).sum(-1)
        return float((np.log1p(distances) * Y.toarray()[:, labels]).sum())

    dZ = np.empty_like(Z)
    got = bag.pull(0, 3, labels, documents.indptr.astype(np.int64), documents.indices, X, Z, dZ)
    assert got == pytest.approx(loss(Z.astype(np.float64)), rel=1e-5)
    for i in np.ndindex(Z.shape):
        up, down = Z.astype(np.float64), Z.astype(np.float64)
        up[i] += 1e-5
        down[i] -= 1e-5
        assert dZ[i] == pytest.approx((loss(up) - loss(down)) / 2e-5, rel=1e-3, abs=1e-4)


def test_label_encoder_training_lowers_its_loss() -> None:
    rng = np.random.default_rng(0)
    Y = csr_matrix((rng.random((200, 20)) < 0.1).astype(np.float32))
    X = rng.normal(size=(200, 8)).astype(np.float32) + 2
    documents, labels = csr_matrix(Y.T), np.arange(20)
    mu = label_encoder.centroids(documents, X) * 0.5
    encoder = label_encoder.start(8)
    losses = [label_encoder.train_epoch(encoder, documents, labels, mu, X, 0.01, rng) for _ in range(60)]
    assert losses[-1] < losses[0] - 0.1


def test_gradients_of_both_layers_follow_from_that_of_their_product() -> None:
    rng = np.random.default_rng(0)
    encoder = label_encoder.start(4)
    for layer in encoder.layers:
        layer += rng.normal(size=layer.shape).astype(np.float32)
    mu, pulled = (rng.normal(size=(9, 4)).astype(np.float32) for _ in range(2))
    of_product = np.concatenate([pulled.T @ mu, pulled.sum(axis=0)[:, None]], axis=1)
    found = label_encoder.to_layers(encoder, of_product)

    def loss(layers: list[NDArray[np.float64]]) -> float:
        hidden = mu @ layers[0][:, :-1].T + layers[0][:, -1]
        return float(((hidden @ layers[1][:, :-1].T + layers[1][:, -1]) * pulled).sum())

    for number in range(2):
        for place in np.ndindex(4, 5):
            sides = []
            for step in (1e-4, -1e-4):
                layers = [layer.astype(np.float64) for layer in encoder.layers]
                layers[number][place] += step
                sides.append(loss(layers))
            assert found[number][place] == pytest.approx((sides[0] - sides[1]) / 2e-4, rel=1e-3, abs=1e-3)
