"""SLICE: shortlists of labels by dense features, and a classifier per label on the documents that shortlist it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds
from scipy.special import expit

from lightdxml.experiments.baselines.base import Method, Ranked, Settings
from lightdxml.index import ExactIndex, cosines
from lightdxml.kernels import blas, parallel
from lightdxml.kernels.sparse import Pattern
from lightdxml.model.blend import top_k
from lightdxml.persistence import arrays
from lightdxml.views.dense.encoder import normalized
from lightdxml.views.linear.options import SolverOptions
from lightdxml.views.linear.solver import Documents, Problem, Weights, solve

_ROWS, _ROUNDING = 4096, 1e-6


class Slice(Method):
    """SLICE (Jain et al., 2019): nearest label centroids, then linear support vector machines.

    It is made for dense features, such as the mean of a document's word vectors. Here they are the coordinates of the
    TF-IDF features in the `dim` first right singular vectors. Shortlists are exact; the authors search a graph (HNSW).
    A document without features shortlists the first labels.
    """

    name = "slice"
    defaults: ClassVar[Settings] = {
        "dim": 300, "shortlist_size": 300, "C": 1.0, "tolerance": 0.1, "max_iter": 20, "threshold": 1e-6,
    }  # fmt: skip

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train all labels that have documents."""
        with parallel.use_threads(threads), blas.on_one_thread():
            with self.phase("compile"):
                toy = csr_matrix(np.eye(4, dtype=np.float32))
                Slice(**self.settings)._train(toy, toy, seed)
            self._train(csr_matrix(X, dtype=np.float32), csr_matrix(Y, dtype=np.float32), seed)

    def _train(self, X: csr_matrix, Y: csr_matrix, seed: int) -> None:
        with self.phase("features"):
            self._basis = singular_vectors(X, self.settings["dim"])
            embeddings = self._embed(X)
        with self.phase("shortlists"):
            self._labels = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1])).astype(np.int32)
            Y = csr_matrix(Y[:, self._labels])
            self._index = ExactIndex(normalized(np.asarray(Y.T @ embeddings)))
            members = training_sets(self._index.search(embeddings, self.settings["shortlist_size"])[0], Y)
        with self.phase("classifiers"):
            self._W, self._biases = self._classifiers(embeddings, members, csr_matrix(Y.T), seed)
        # How steep the second part of a score is: the mean length of the weights.
        squares = np.einsum("ij,ij->i", self._W, self._W, dtype=np.float64) + self._biases**2
        self._steepness = np.float32(np.sqrt(squares).mean() if len(squares) else 0)

    def _embed(self, X: csr_matrix) -> NDArray[np.float32]:
        """Return the unit embeddings of documents."""
        embeddings = np.empty((X.shape[0], self._basis.shape[1]), dtype=np.float32)

        def fill(bounds: tuple[int, int]) -> None:
            embeddings[slice(*bounds)] = X[slice(*bounds)] @ self._basis

        parallel.run(fill, parallel.fixed_chunks(X.shape[0], _ROWS))
        return normalized(embeddings)

    def _classifiers(
        self, embeddings: NDArray[np.float32], members: csr_matrix, label_to_docs: csr_matrix, seed: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the weights and biases of all labels, each trained on its own documents."""
        cost, max_iter, tolerance, threshold = (
            self.settings[name] for name in ("C", "max_iter", "tolerance", "threshold")
        )
        labels = np.arange(len(self._labels), dtype=np.int32)
        solver = SolverOptions(max_iter, prune_abs=threshold, prune_rel=0.0, tolerance=tolerance)
        documents = Documents.of(csr_matrix(embeddings))
        return dense(
            solve(Problem(documents, label_to_docs, labels, labels, Pattern.of(members), cost, solver, seed)),
            (len(labels), embeddings.shape[1]),
        )

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Rank the labels of the shortlist by σ(margin) + σ(steepness × cosine)."""
        embeddings = self._embed(csr_matrix(X, dtype=np.float32))
        near, nearness = self._index.search(embeddings, self.settings["shortlist_size"])
        margins = cosines(self._W, embeddings, near) + self._biases[near]
        labels, scores = top_k(self._labels[near], expit(margins) + expit(self._steepness * nearness), k)
        return labels, np.where(labels >= 0, scores, np.float32(0))

    def save(self, folder: Path) -> None:
        """Write everything that prediction needs, the singular vectors included."""
        content = {"basis": self._basis, "labels": self._labels, "centroids": self._index.vectors}
        content |= {"weights": self._W, "biases": self._biases, "steepness": np.atleast_1d(self._steepness)}
        arrays.write(folder / "slice.safetensors", content)


def singular_vectors(X: csr_matrix, dim: int) -> NDArray[np.float32]:
    """Return the right singular vectors of the highest singular values, features × dim, or as many as there are.

    >>> np.abs(singular_vectors(csr_matrix([[0, 2.0], [0, 0]]), 1)).tolist()
    [[0.0], [1.0]]
    """
    X, rng = X.astype(np.float64), np.random.default_rng(0)
    n, least = X.shape[0], min(X.shape)
    # As many random sums of rows span all rows, unless their rank is higher.
    basis, triangle = np.linalg.qr(X.T @ rng.standard_normal((n, min(n, dim))))
    if dim < least and _n_large(np.abs(triangle.diagonal())) == dim:
        # Without a start of its own, ARPACK's would be random; so would be what it finds beyond the rank.
        found = svds(X, dim, v0=rng.random(least))[2][::-1]
    else:
        _, values, own = np.linalg.svd(X @ basis, full_matrices=False)
        found = own[: max(1, _n_large(values))] @ basis.T
    return np.ascontiguousarray(found.T, dtype=np.float32)


def _n_large(values: NDArray[np.float64]) -> int:
    """Return how many values are more than rounding errors of the largest one."""
    return int(np.count_nonzero(values > _ROUNDING * values.max(initial=0)))


def training_sets(shortlists: NDArray[np.int32], Y: csr_matrix) -> csr_matrix:
    """Return labels × documents: the documents that have each label or shortlist it.

    >>> Y = csr_matrix(np.array([[1, 0], [0, 1], [0, 0]], dtype=np.float32))
    >>> training_sets(np.array([[1], [1], [1]], dtype=np.int32), Y).indices.tolist()
    [0, 0, 1, 2]
    """
    n, k = shortlists.shape
    found = csr_matrix((np.ones(n * k, np.float32), shortlists.ravel(), k * np.arange(n + 1)), Y.shape)
    # Transposing counts entries by label: documents ascend.
    members = csr_matrix((found + Y).T)
    members.sort_indices()
    return members


def dense(weights: Weights, shape: tuple[int, int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return sparse weights of all classes as a matrix, and the biases."""
    W, biases = np.zeros(shape, dtype=np.float32), np.zeros(shape[0], dtype=np.float32)
    W[np.repeat(weights.classes, weights.counts), weights.columns] = weights.weights
    biases[weights.classes] = weights.biases
    return W, biases
