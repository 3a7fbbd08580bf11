"""Made-up documents."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix, hstack

TEXTS = ["a purring cat", "a barking dog", "a cat and a dog", "no pet"] * 10
NAMES = [["cat"], ["dog"], ["cat", "dog"], []] * 10


def topics(n: int = 300, labels: int = 12, seed: int = 0) -> tuple[csr_matrix, csr_matrix]:
    """Return documents with one to three labels: a feature of its own gives each label away, among noise."""
    rng = np.random.default_rng(seed)
    Y = np.zeros((n, labels), dtype=np.float32)
    X = (rng.random((n, labels + 30)) < 0.1).astype(np.float32)
    for i in range(n):
        chosen = rng.choice(labels, rng.integers(1, 4), replace=False)
        Y[i, chosen] = 1
        X[i, chosen] = 3
    return csr_matrix(X), csr_matrix(Y)


def words(n: int) -> list[str]:
    """Return names of labels or features: those of the labels of `topics` are the features that give them away."""
    return [f"word{i}" for i in range(n)]


def noisy_topics(n: int = 300, labels: int = 12, seed: int = 0) -> tuple[csr_matrix, csr_matrix]:
    """Return documents as of `topics` that are hard to tell apart: label j occurs in about 1 of j + 1 documents."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, labels + 1)
    chosen = rng.choice(labels, size=(n, 2), p=weights / weights.sum())
    Y = np.zeros((n, labels), dtype=np.float32)
    Y[np.arange(n)[:, None], chosen] = 1
    X = Y * (rng.random(Y.shape) < 0.7) + (rng.random(Y.shape) < 0.15)
    return csr_matrix(np.hstack([X, np.ones((n, 1))]), dtype=np.float32), csr_matrix(Y)


def with_rare_label(X: csr_matrix, Y: csr_matrix, at: int) -> tuple[csr_matrix, csr_matrix]:
    """Give one document a feature and a label that no other document has: the last ones."""
    new = csr_matrix(([1.0], ([at], [0])), shape=(X.shape[0], 1), dtype=np.float32)
    return csr_matrix(hstack([X, 3 * new])), csr_matrix(hstack([Y, new]))


def rows_of(Y: csr_matrix) -> list[list[int]]:
    """Return the labels of each document as a list."""
    return [Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist() for i in range(Y.shape[0])]
