"""AnnexML (Tagami, 2017): local embeddings in which documents are near to those with similar labels, by cosine."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags_array

from lightdxml.experiments.baselines.base import Settings
from lightdxml.experiments.baselines.embedded import EmbeddedNeighbors, one_cluster
from lightdxml.kernels import annexml, parallel
from lightdxml.kernels.annexml import Ftrl
from lightdxml.kernels.sparse import Csr
from lightdxml.model.blend import top_k
from lightdxml.views.base import Batch
from lightdxml.views.dense.encoder import normalized
from lightdxml.views.linear.inverted import search
from lightdxml.views.linear.solver import inverted_rows

# Pairs of documents per document that the partition looks at, and the places for the weights of its classifiers.
_PAIRS, _PLACES = 5000, 1 << 24
# Rows of weights are a multiple of this long, with zeros at the end: SIMD takes twice as long for a remainder.
_LANES = 32
_DRAWS = 1 << 30


class AnnexML(EmbeddedNeighbors):
    """AnnexML; the settings are its author's, the same for all data sets.

    Nearest neighbors are exact, which is the author's `pred_type` 0, and not those of a graph. One cluster takes all
    documents, where the author's code reads uninitialized memory, and empty documents have the embedding 0. Documents
    that are equally good neighbors by their labels are taken in their order, not in that of a hash table.
    """

    name = "annexml"
    defaults: ClassVar[Settings] = {
        "learners": 15,
        "documents_per_cluster": 6000,
        "neighbors": 10,
        "partition_epochs": 10,
        "l1": 4.0,
        "epochs": 10,
        "dim": 50,
        "rate": 0.1,
        "gamma": 10.0,
    }

    def compile(self) -> None:
        """Train a toy."""
        toy = csr_matrix(np.ones((4, 4), dtype=np.float32))
        small = {"learners": 1, "documents_per_cluster": 2, "partition_epochs": 1, "epochs": 1}
        AnnexML(**{**self.settings, **small}).train(toy, toy, 0)

    def partition(self, X: csr_matrix, Y: csr_matrix, rngs: list[np.random.Generator]) -> list[csr_matrix]:
        """Return the weights of classifiers, one per cluster, that take a document together with its neighbors."""
        n, k = X.shape[0], self.settings["neighbors"]
        n_clusters = max(1, n // self.settings["documents_per_cluster"])
        if n_clusters == 1:
            return [one_cluster(X.shape[1])] * len(rngs)
        rate, l1 = np.float32(self.settings["rate"]), np.float32(self.settings["l1"])
        documents, positives = Csr.of(X), label_neighbors(Y, k, _PAIRS * n)

        def train(rng: np.random.Generator) -> csr_matrix:
            state = start_partition(X, rng.choice(n, n_clusters, replace=False), rate, l1)
            for _ in range(self.settings["partition_epochs"]):
                order, negatives = rng.permutation(n), rng.integers(n, size=(n, k), dtype=np.int32)
                draws = rng.integers(_DRAWS, size=n, dtype=np.int32)
                annexml.partition_epoch(order, documents, positives, negatives, draws, n_clusters, rate, l1, state)
            # Weights that share a place are equal.
            return csr_matrix(np.resize(state.weights, (X.shape[1], n_clusters)))

        return parallel.run(train, rngs)

    def embed(
        self, X: csr_matrix, Y: csr_matrix, rng: np.random.Generator
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Train embeddings, and return them at length 1."""
        n, n_features = X.shape
        k, dim = self.settings["neighbors"], self.settings["dim"]
        gamma, rate = float(self.settings["gamma"]), np.float32(self.settings["rate"])
        weights = np.zeros((n_features, -(-dim // _LANES) * _LANES), dtype=np.float32)
        bound = 1 / math.sqrt(max(1.0, X.nnz / max(1, n)))
        weights[:, :dim] = rng.uniform(-bound, bound, (n_features, dim))
        squares = np.ones_like(weights)
        documents, positives = Csr.of(X), label_neighbors(Y, k)
        for _ in range(self.settings["epochs"] if n else 0):
            order, negatives = rng.permutation(n), rng.integers(n, size=(n, k), dtype=np.int32)
            annexml.embedding_epoch(order, documents, positives, negatives, gamma, rate, weights, squares)
        weights = np.ascontiguousarray(weights[:, :dim])
        return weights, normalized(X @ weights)


def start_partition(X: csr_matrix, chosen: NDArray[np.int64], rate: np.float32, l1: np.float32) -> Ftrl:
    """Return classifiers whose weights are the features of the chosen documents, one per cluster."""
    n_places = min(X.shape[1] * len(chosen), _PLACES)
    weights, sums = np.zeros((2, n_places), dtype=np.float32)
    some = X[chosen].tocoo()
    places = (some.col.astype(np.int64) * len(chosen) + some.row) % n_places
    weights[places] = some.data
    sums[places] = some.data / rate + np.copysign(l1, some.data)
    return Ftrl(weights, np.ones(n_places, dtype=np.float32), sums)


def label_neighbors(Y: csr_matrix, k: int, max_pairs: int | None = None) -> NDArray[np.int32]:
    """Return k documents per document, those with the most of its labels among theirs; -1 if none has one.

    The score of a document is the share of its labels that are also labels of the other one. Where fewer than k have
    one, they are taken again. If there are more pairs of documents with a common label than `max_pairs`, the most
    frequent labels do not count.

    >>> label_neighbors(csr_matrix(np.array([[1, 0], [1, 1], [1, 0]], dtype=np.float32)), 2).tolist()
    [[2, 1], [0, 2], [0, 1]]
    """
    shares = csr_matrix(diags_array((1 / np.maximum(1, np.diff(Y.indptr))).astype(np.float32)) @ Y)
    if max_pairs is not None:
        kept = rarest(np.bincount(Y.indices, minlength=Y.shape[1]), max_pairs)
        shares, Y = csr_matrix(shares[:, kept]), csr_matrix(Y[:, kept])
    own = np.arange(Y.shape[0], dtype=np.int32)[:, None]
    found, scores, _ = search(inverted_rows(shares), Batch(Y), k, own)
    best, _ = top_k(found, scores, k)
    counts = np.maximum(1, (best >= 0).sum(axis=1))
    return np.take_along_axis(best, np.arange(k) % counts[:, None], axis=1)


def rarest(frequencies: NDArray[np.int64], max_pairs: int) -> NDArray[np.int64]:
    """Return the rarest labels, in ascending order: as many as make up at most that many pairs of documents.

    >>> rarest(np.array([3, 2, 2]), 4).tolist()
    [1, 2]
    """
    order = np.argsort(frequencies, kind="stable")
    pairs = np.cumsum(frequencies[order] ** 2 - frequencies[order])
    return np.sort(order[: np.searchsorted(pairs, max_pairs, "right")])
