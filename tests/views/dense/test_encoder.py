"""The encoder and its training against dense NumPy and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, random_array

from lightdxml.views.dense import train_encoder
from lightdxml.views.dense.encoder import Encoder, Residual, encode
from lightdxml.views.dense.options import DenseOptions


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
    X, options = sparse(rng, 5, 6), DenseOptions(dim=4, dropout=0.0, **settings)  # type: ignore[arg-type]
    state = train_encoder.start(6, options, rng, rng.normal(size=(6, 4)).astype(np.float32))
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

    batch = train_encoder.forward(state, X, 0.0, rng)
    train_encoder.backward(state, batch, direction, np.float32(0.0))
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
    state = train_encoder.start(1, DenseOptions(dim=100), rng, np.ones((1, 100), dtype=np.float32))
    out = train_encoder.forward(state, csr_matrix(np.ones((200, 1), dtype=np.float32)), 0.25, rng).embedding
    assert (out == 0).mean() == pytest.approx(0.25, abs=0.02)
    assert out.mean() == pytest.approx(1.0, abs=0.02)


def test_residual_keeps_spectral_norm_one() -> None:
    rng = np.random.default_rng(0)
    state = train_encoder.start(6, DenseOptions(dim=4, residual=True), rng, None)
    for _ in range(20):
        batch = train_encoder.forward(state, sparse(rng, 5, 6), 0.5, rng)
        train_encoder.backward(state, batch, rng.normal(size=(5, 4)).astype(np.float32), np.float32(0.1))
        assert state.encoder.residual is not None
        assert np.linalg.norm(state.encoder.residual.R, 2) == pytest.approx(1.0, abs=1e-3)
