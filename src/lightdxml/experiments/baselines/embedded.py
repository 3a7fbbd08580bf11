"""What SLEEC and AnnexML share: clusters of documents with a linear embedding each, in which nearest neighbors vote.

Several learners partition the training documents, each in its own way. Documents of a cluster are embedded by a matrix
of their own. A new document goes to the nearest cluster of each learner, and the training documents nearest to it there
vote for their labels.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines.base import Method, Ranked, label_votes
from lightdxml.index import ExactIndex
from lightdxml.kernels import blas, parallel
from lightdxml.persistence import arrays

_DOCUMENTS = 4096


@dataclass(frozen=True)
class Cluster:
    """The training documents of a cluster and their embedding.

    Attributes
    ----------
    members
        Ids of the documents.
    features, weights
        The features that occur in them, ascending, and the embedding of each.
    vectors
        The embeddings of the documents. A document is the nearer to them, the greater the product. They may have one
        more dimension than the weights: what is added to the product.
    """

    members: NDArray[np.int32]
    features: NDArray[np.int32]
    weights: NDArray[np.float32]
    vectors: NDArray[np.float32]

    def neighbors(self, X: csr_matrix, k: int) -> NDArray[np.int32]:
        """Return the nearest k members of each document, nearest first, ties by id; fewer if there are fewer."""
        embeddings = within(X, self.features) @ self.weights
        missing = self.vectors.shape[1] - embeddings.shape[1]
        queries = np.pad(embeddings, ((0, 0), (0, missing)), constant_values=1)
        return self.members[ExactIndex(self.vectors).search(queries, k)[0]]


@dataclass(frozen=True)
class Learner:
    """A partition of the documents: each belongs to the cluster whose column of `centers` has the greatest product."""

    centers: csr_matrix
    clusters: list[Cluster]

    def neighbors(self, X: csr_matrix, k: int) -> NDArray[np.int32]:
        """Return the nearest k training documents of each document in its cluster, -1 for none."""
        found = np.full((X.shape[0], k), -1, dtype=np.int32)
        chosen = nearest_center(X, self.centers)
        for number in np.unique(chosen):
            rows = np.flatnonzero(chosen == number)
            some = self.clusters[number].neighbors(X[rows], k)
            found[rows, : some.shape[1]] = some
        return found


class EmbeddedNeighbors(Method):
    """A method of such learners. It has the settings `learners` and `neighbors`."""

    @abstractmethod
    def partition(self, X: csr_matrix, Y: csr_matrix, rngs: list[np.random.Generator]) -> list[csr_matrix]:
        """Return the centers of the learners with these random numbers."""

    @abstractmethod
    def embed(
        self, X: csr_matrix, Y: csr_matrix, rng: np.random.Generator
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the weights and the vectors of a cluster with these documents and the features that occur in them."""

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train all learners. Each of them, and each cluster, has random numbers of its own."""
        with parallel.use_threads(threads), blas.on_one_thread():
            with self.phase("compile"):
                self.compile()
            self.train(csr_matrix(X, dtype=np.float32), csr_matrix(Y, dtype=np.float32), seed)

    @abstractmethod
    def compile(self) -> None:
        """Train a toy, which compiles every kernel or loads it from disk."""

    def train(self, X: csr_matrix, Y: csr_matrix, seed: int) -> None:
        """Train all learners."""
        self._Y = Y
        with self.phase("partition"):
            rngs = [np.random.default_rng([seed, t]) for t in range(self.settings["learners"])]
            centers = self.partition(X, Y, rngs)
            chosen = parallel.run(lambda own: nearest_center(X, own), centers)
        units = [(t, c) for t, own in enumerate(centers) for c in range(own.shape[1])]

        def embed(unit: tuple[int, int]) -> Cluster:
            t, c = unit
            members = np.flatnonzero(chosen[t] == c).astype(np.int32)
            features = np.unique(X[members].indices)
            own, rng = within(X[members], features), np.random.default_rng([seed, t, c])
            return Cluster(members, features, *self.embed(own, Y[members], rng))

        with self.phase("embed"):
            clusters = iter(parallel.run(embed, units))
        self._learners = [Learner(own, [next(clusters) for _ in range(own.shape[1])]) for own in centers]

    def voters(self, X: csr_matrix) -> NDArray[np.int32]:
        """Return the neighbors of each document in all learners, -1 for none."""
        k = self.settings["neighbors"]
        found = parallel.run(lambda learner: learner.neighbors(X, k), self._learners)
        return np.concatenate(found, axis=1)

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Rank labels by the number of neighbors that have them; a neighbor in several learners counts for each."""
        voters = self.voters(csr_matrix(X, dtype=np.float32))
        return label_votes(voters, np.ones(voters.shape, dtype=np.float32), self._Y, k)

    def save(self, folder: Path) -> None:
        """Write everything that prediction needs, the labels and the embeddings of the training documents included."""
        content: dict[str, NDArray[Any]] = {"label_indptr": self._Y.indptr, "labels": self._Y.indices}
        for t, learner in enumerate(self._learners):
            centers = learner.centers
            content |= {f"{t}.indptr": centers.indptr, f"{t}.clusters": centers.indices, f"{t}.centers": centers.data}
            for c, cluster in enumerate(learner.clusters):
                content |= {f"{t}.{c}.{name}": array for name, array in vars(cluster).items()}
        arrays.write(folder / f"{self.name}.safetensors", content)


def within(X: csr_matrix, features: NDArray[np.int32]) -> csr_matrix:
    """Return the columns of ascending features, without those of other features.

    >>> within(csr_matrix([[0.0, 2.0, 3.0]]), np.array([1], dtype=np.int32)).toarray().tolist()
    [[2.0]]
    """
    at = np.searchsorted(features, X.indices)
    is_known = np.append(features, -1)[at] == X.indices
    indptr = np.concatenate([[0], np.cumsum(is_known)])[X.indptr]
    parts = X.data[is_known], at[is_known].astype(np.int32), indptr
    return csr_matrix(parts, shape=(X.shape[0], len(features)))


def nearest_center(X: csr_matrix, centers: csr_matrix) -> NDArray[np.int64]:
    """Return the column of `centers` with the greatest product for each document, the first one of several.

    >>> nearest_center(csr_matrix([[1.0, 0.0], [0.0, 0.0]]), csr_matrix([[1.0, 2.0], [0.0, 0.0]])).tolist()
    [1, 0]
    """
    chosen = np.zeros(X.shape[0], dtype=np.int64)
    for start, stop in parallel.fixed_chunks(X.shape[0], _DOCUMENTS):
        chosen[start:stop] = (X[start:stop] @ centers).toarray().argmax(axis=1)
    return chosen


def one_cluster(n_features: int) -> csr_matrix:
    """Return centers that put all documents into one cluster."""
    return csr_matrix((n_features, 1), dtype=np.float32)
