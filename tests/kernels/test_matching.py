"""The best leaves of a tree against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml.kernels.matching import best_leaves, group_documents
from lightdxml.kernels.sparse import Csr, Pattern
from lightdxml.views.linear.solver import inverted_rows

FEATURES = 30


def brute_force(X: np.ndarray, W: np.ndarray, levels: tuple[int, ...], size: int) -> np.ndarray:
    penalties = -(np.maximum(0, 1 - X @ W.T) ** 2).astype(np.float32)
    scores, first = np.zeros((len(X), 1), np.float32), 0
    for n in levels:
        scores = np.repeat(scores, n // scores.shape[1], axis=1) + penalties[:, first : first + n]
        first += n
    # Of equals the lower leaf.
    order = np.lexsort((np.broadcast_to(np.arange(scores.shape[1]), scores.shape), -scores), axis=1)
    return np.sort(order[:, :size], axis=1)


@pytest.mark.parametrize("levels", [(4,), (4, 16), (2, 8, 32)])
@pytest.mark.parametrize("size", [1, 3, 4])
@pytest.mark.parametrize("grain", [0.5, 2.0], ids=["few ties", "many ties"])
def test_the_best_leaves_are_those_of_brute_force(levels: tuple[int, ...], size: int, grain: float) -> None:
    rng = np.random.default_rng(len(levels) * size)
    n = sum(levels)
    # Multiples of a power of 2, whose sums are exact in any order.
    W = (rng.integers(-2, 3, (n, FEATURES)) * grain / 2).astype(np.float32)
    X = (rng.random((50, FEATURES)) < 0.2).astype(np.float32)
    index = inverted_rows(csr_matrix(W))
    found = np.empty((len(X), size), np.int32)
    best_leaves(0, len(X), Csr.of(csr_matrix(X)), index.postings, index.biases, np.array(levels), found)
    np.testing.assert_array_equal(found, brute_force(X, W, levels, size))


def test_documents_are_in_their_clusters_and_in_those_of_their_labels_once() -> None:
    clusters = np.array([[0, 2], [2, 2], [1, 0]], dtype=np.int32)
    labels = Pattern.of(csr_matrix(np.array([[1, 1, 0], [0, 0, 1], [0, 1, 0]], dtype=np.float32)))
    of_label = np.array([2, 3, -1], dtype=np.int32)
    ends, none = np.zeros(4, dtype=np.int64), np.empty(0, dtype=np.int32)
    group_documents(clusters, labels, of_label, ends, none)
    assert ends.tolist() == [2, 1, 2, 2]
    starts, documents = np.array([0, 2, 3, 5]), np.full(7, -1, dtype=np.int32)
    group_documents(clusters, labels, of_label, starts, documents)
    assert documents.tolist() == [0, 2, 2, 0, 1, 0, 2]
    assert starts.tolist() == [2, 3, 5, 7]
