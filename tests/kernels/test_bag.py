"""Embedding bag, centroids and the label loss against dense NumPy and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, random_array

from lightdxml.kernels import bag
from lightdxml.kernels.precision import as_bits, dequantize, quantize_int8
from lightdxml.kernels.sparse import Csr, Pattern


def sparse(rng: np.random.Generator, rows: int, columns: int) -> csr_matrix:
    return csr_matrix(random_array((rows, columns), density=0.4, rng=rng, dtype=np.float32))


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_forward_is_the_weighted_sum_of_word_vectors(precision: str) -> None:
    rng = np.random.default_rng(0)
    X, E = sparse(rng, 50, 30), rng.normal(size=(30, 8)).astype(np.float32)
    stored = quantize_int8(E) if precision == "int8" else E.astype(precision)
    out = np.empty((50, 8), dtype=np.float32)
    bag.forward(0, 50, Csr.of(X), as_bits(stored), out)
    np.testing.assert_allclose(out, X @ dequantize(stored), rtol=1e-4, atol=1e-5)


def test_centroids_are_means_and_zero_without_documents() -> None:
    rng = np.random.default_rng(0)
    Y = csr_matrix([[1, 1, 0], [1, 0, 0], [0, 1, 0]], dtype=np.float32)
    X = rng.normal(size=(3, 4)).astype(np.float32)
    label_to_docs, mu = csr_matrix(Y.T), np.empty((3, 4), dtype=np.float32)
    bag.centroids(0, 3, Pattern.of(label_to_docs), X, mu)
    np.testing.assert_allclose(mu, [X[:2].mean(0), X[[0, 2]].mean(0), np.zeros(4)], rtol=1e-5)


def test_label_loss_and_its_gradient_follow_the_formula() -> None:
    rng = np.random.default_rng(0)
    Y = csr_matrix((rng.random((8, 3)) < 0.5).astype(np.float32))
    X, Z = rng.normal(size=(8, 4)).astype(np.float32), rng.normal(size=(3, 4)).astype(np.float32)
    label_to_docs, labels = csr_matrix(Y.T), np.array([2, 0, 1])

    def loss(z: NDArray[np.float64]) -> float:
        distances = ((X[:, None].astype(np.float64) - z[None]) ** 2).sum(-1)
        return float((np.log1p(distances) * Y.toarray()[:, labels]).sum())

    dZ = np.empty_like(Z)
    got = bag.label_loss(labels, Pattern.of(label_to_docs), X, Z, dZ)
    assert got == pytest.approx(loss(Z.astype(np.float64)), rel=1e-5)
    for i in np.ndindex(Z.shape):
        up, down = Z.astype(np.float64), Z.astype(np.float64)
        up[i] += 1e-5
        down[i] -= 1e-5
        assert dZ[i] == pytest.approx((loss(up) - loss(down)) / 2e-5, rel=1e-3, abs=1e-4)
