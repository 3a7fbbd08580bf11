"""SLEEC (Bhatia et al., 2015): local embeddings that keep the products of label vectors of neighboring documents."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags_array

from lightdxml.experiments.baselines.base import Settings
from lightdxml.experiments.baselines.embedded import EmbeddedNeighbors, nearest_center, one_cluster
from lightdxml.kernels import factorization, parallel, ridge
from lightdxml.kernels.sparse import Csr
from lightdxml.views.base import Batch
from lightdxml.views.linear.inverted import search
from lightdxml.views.linear.solver import inverted_rows

_NAMES = ("learners", "clusters", "label_neighbors", "dim", "weights_pruned", "embeddings_pruned", "C", "neighbors")
# The authors' settings by numbers of labels: Bibtex, Delicious, EURLex-4K and Wiki10-31K.
_ROWS = {
    159: (1, 1, 250, 100, 0.01, 0.01, 0.2, 25),
    983: (1, 1, 500, 100, 0.01, 0.01, 0.1, 70),
    3_993: (5, 3, 100, 100, 0.01, 0.01, 1.0, 8),
    30_938: (5, 5, 50, 75, 0.75, 0.5, 0.1, 11),
}
# The authors' defaults, which are for data sets of more documents.
_MANY, _DEFAULT = 100_000, (10, 300, 15, 50, 0.7, 0.7, 0.1, 10)
_CLUSTERING_ROUNDS, _ROUNDS = 7, 200
_TOLERANCE, _GAIN = 1e-3, 1e-4
_STEP = 0.3
# A product of 0 is an entry too.
_SMALL = np.float32(1e-10)
# The Lanczos method works on a quarter of the dimensions at once, and on four times as many in all, or on 400.
_PART, _TIMES, _LEAST, _NOISE = 4, 4, 400, 1e-12
# LIBLINEAR's for this problem, and how many targets one thread regresses on at a time.
_REGRESSION_TOLERANCE, _MOST_PASSES, _COLUMNS = 0.1, 1000, 32
_TINY = 1e-300


class SLEEC(EmbeddedNeighbors):
    """SLEEC; the settings are its authors'.

    Settings of None are those for that one of Bibtex, Delicious, EURLex-4K and Wiki10-31K that is nearest in the number
    of labels, or the authors' defaults if there are more than 100,000 documents.

    Like the authors' code, it factors the products of labels by gradient descent that starts from a singular value
    decomposition, and fits the factors by ridge regression, as LIBLINEAR does: the lasso penalty of the paper has no
    effect there. Other than there, ties go to the earlier document or cluster.
    """

    name = "sleec"
    defaults: ClassVar[Settings] = dict.fromkeys(_NAMES)

    def compile(self) -> None:
        """Train a toy."""
        toy = csr_matrix(np.eye(4, dtype=np.float32))
        SLEEC(**dict(zip(_NAMES, (1, 2, 2, 2, 0.0, 0.0, 1.0, 2), strict=True))).train(toy, toy, 0)

    def train(self, X: csr_matrix, Y: csr_matrix, seed: int) -> None:
        """Train with the settings for this data."""
        chosen = settings_for(*Y.shape)
        self.settings = {name: chosen[name] if value is None else value for name, value in self.settings.items()}
        super().train(X, Y, seed)

    def partition(self, X: csr_matrix, Y: csr_matrix, rngs: list[np.random.Generator]) -> list[csr_matrix]:
        """Return the means of the clusters that k-means finds."""
        return parallel.run(lambda rng: cluster_means(X, self.settings["clusters"], rng), rngs)

    def embed(
        self, X: csr_matrix, Y: csr_matrix, rng: np.random.Generator
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Find embeddings of the documents that keep the products of neighbors, and fit them by the features."""
        targets = factors(label_products(Y, self.settings["label_neighbors"]), self.settings["dim"], rng)
        weights = regress(X, targets, self.settings["C"], _REGRESSION_TOLERANCE, rng)
        sizes = np.sort(np.abs(weights[weights != 0]))
        weights[np.abs(weights) < _quantile(sizes, self.settings["weights_pruned"])] = 0
        embeddings = X @ weights
        pruned = math.ceil(self.settings["embeddings_pruned"] * len(embeddings))
        smallest = np.argsort(np.abs(embeddings), axis=0, kind="stable")[:pruned]
        np.put_along_axis(embeddings, smallest, 0, axis=0)
        # |x - y|² = |x|² - 2 (x·y - |y|²/2): the nearest y has the greatest value in parentheses.
        return weights, np.column_stack([embeddings, -0.5 * np.einsum("ij,ij->i", embeddings, embeddings)])

    def voters(self, X: csr_matrix) -> NDArray[np.int32]:
        """Return as many voters per learner; where there are fewer neighbors, the nearest ones vote again."""
        found = super().voters(X)
        k = self.settings["neighbors"]
        for learner in np.split(found, self.settings["learners"], axis=1):
            counts = np.maximum(1, (learner >= 0).sum(axis=1))
            learner[:] = np.take_along_axis(learner, np.arange(k) % counts[:, None], axis=1)
        return found


def settings_for(documents: int, labels: int) -> dict[str, Any]:
    """Return the authors' settings for a data set of this size.

    >>> [settings_for(*size)["clusters"] for size in ((4_880, 159), (45_000, 4_271), (1_000_000, 4_271))]
    [1, 3, 300]
    """
    nearest = min(_ROWS, key=lambda known: abs(math.log(known / max(1, labels))))
    return dict(zip(_NAMES, _DEFAULT if documents > _MANY else _ROWS[nearest], strict=True))


def cluster_means(X: csr_matrix, k: int, rng: np.random.Generator) -> csr_matrix:
    """Return the means, as columns, of at most k clusters that k-means finds, by the product with the mean."""
    if min(k, X.shape[0]) <= 1:
        return one_cluster(X.shape[1])
    centers = csr_matrix(X[rng.choice(X.shape[0], min(k, X.shape[0]), replace=False)].T)
    for _ in range(_CLUSTERING_ROUNDS):
        # Clusters that have become empty are dropped.
        _, chosen, counts = np.unique(nearest_center(X, centers), return_inverse=True, return_counts=True)
        shares = (1 / counts).astype(np.float32)[chosen]
        belongs = csr_matrix((shares, chosen, np.arange(len(chosen) + 1)), shape=(len(chosen), len(counts)))
        centers = csr_matrix(X.T @ belongs)
    return centers


def label_products(Y: csr_matrix, k: int) -> csr_matrix:
    """Return the cosines of the label vectors of each document and its k nearest ones, itself included."""
    n, k = Y.shape[0], min(k, Y.shape[0])
    lengths = np.sqrt(np.maximum(1, np.diff(Y.indptr))).astype(np.float32)
    unit = csr_matrix(diags_array(1 / lengths) @ Y)
    # The first k documents are found even if they share no label: with these, each document has k neighbors.
    index = replace(inverted_rows(unit), dense=np.arange(k, dtype=np.int32))
    found, products, _ = search(index, Batch(unit), k, np.empty((n, 0), dtype=np.int32))
    near = csr_matrix((products.ravel() + _SMALL, found.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    near.sort_indices()
    return near


def factors(known: csr_matrix, dim: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return the left factors of a square matrix whose entries are known where they are stored."""
    left, right = (np.ascontiguousarray(side, dtype=np.float32) for side in truncated_svd(known, dim, rng))
    rows, columns = Csr.of(known), Csr.of(csr_matrix(known.T))
    rate = np.float32(1 / (_STEP * np.linalg.norm(known.data.astype(np.float64))))
    before, error = np.inf, 0.0
    older = left
    for _ in range(_ROUNDS):
        moved = left.copy()
        error = math.sqrt(_descend(rows, rate, right, moved) / known.nnz)
        if error < _TOLERANCE or before - error < _GAIN:
            return older if error > before else left
        _descend(columns, rate, moved, right)
        before, older, left = error, left, moved
    return left


def _descend(known: Csr, rate: np.float32, others: NDArray[np.float32], own: NDArray[np.float32]) -> float:
    """Take a gradient step on the factors of all rows, and return the squared error before it."""
    errors = np.empty(len(own))
    parallel.over(lambda start, stop: factorization.descend(start, stop, known, rate, others, own, errors), len(own))
    return float(errors.sum())


def truncated_svd(
    matrix: csr_matrix, dim: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return U√S and V√S of the largest singular values of a square matrix, by a block Lanczos method.

    ARPACK and PROPACK fail, or draw random numbers of their own, where the rank is below the dimension.
    """
    rows = matrix.astype(np.float64)
    columns = csr_matrix(rows.T)
    n = rows.shape[0]
    dim, width = min(dim, n), -(-dim // _PART)
    basis = np.zeros((n, min(n, max(_LEAST, _TIMES * dim))), order="F")
    block = rng.standard_normal((n, width))
    for start in range(0, basis.shape[1], width):
        own, before = basis[:, start : start + width], basis[:, :start]
        # Once is not enough: what is left of a block may be all rounding.
        for _ in range(2):
            block = np.linalg.qr(block - before @ (before.T @ block))[0]
        own[:] = block[:, : own.shape[1]]
        block = rows @ (columns @ own)
        # With noise it has full rank even if nothing new is left.
        block = block / max(_TINY, np.linalg.norm(block)) + _NOISE * rng.standard_normal(block.shape)
    V, S, Wt = np.linalg.svd(columns @ basis, full_matrices=False)
    scales = np.sqrt(S[:dim])
    return basis @ Wt[:dim].T * scales, V[:, :dim] * scales


def regress(
    X: csr_matrix, targets: NDArray[np.float32], C: float, tolerance: float, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return the weights w of least ½|w|² + C Σ (x·w - z)² for each column z of the targets.

    As in LIBLINEAR, passes over the documents end when the gradients of the dual problem are at most this share of what
    they were in the first pass.
    """
    rows, penalty, n_targets = Csr.of(X), np.float32(0.5 / C), targets.shape[1]
    weights, dual = (np.zeros((n, n_targets), dtype=np.float32) for n in (X.shape[1], X.shape[0]))
    first, violations = np.empty(0), np.empty(n_targets)
    for number in range(_MOST_PASSES):
        order = rng.permutation(len(targets))

        def descend(columns: tuple[int, int], order: NDArray[np.int64] = order) -> None:
            ridge.descend(*columns, order, rows, targets, penalty, dual, weights, violations)

        parallel.run(descend, parallel.fixed_chunks(n_targets, _COLUMNS))
        if number == 0:
            first = violations.copy()
        if (violations <= tolerance * first).all():
            break
    return weights


def _quantile(ordered: NDArray[np.float32], share: float) -> float:
    """Return the number up to which this share of ascending numbers lies."""
    return float(ordered[max(0, math.ceil(share * len(ordered)) - 1)]) if len(ordered) else 0.0
