"""The label encoder against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.views.dense import label_encoder


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
    found = label_encoder.layer_gradients(encoder, of_product)

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
