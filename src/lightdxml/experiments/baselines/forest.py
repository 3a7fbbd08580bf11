"""What FastXML and CRAFTML share: trees of documents, each of whose leaves votes for its labels."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines.base import Method, Ranked
from lightdxml.kernels import forest, parallel
from lightdxml.kernels.forest import Trees
from lightdxml.kernels.sparse import Csr
from lightdxml.model.blend import top_k
from lightdxml.persistence import arrays
from lightdxml.validation import check_labels


class Forest(Method):
    """The mean of the leaves that a document reaches. It has the settings `trees` and `leaf_size`."""

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Grow the trees, each from its own seed."""
        with parallel.use_threads(threads):
            with self.phase("compile"):
                toy = csr_matrix(np.eye(4, dtype=np.float32))
                type(self)(**{**self.settings, "trees": 1, "leaf_size": 1})._train(toy, toy, 0)
            self._train(X, check_labels(Y), seed)

    def _train(self, X: csr_matrix, Y: csr_matrix, seed: int) -> None:
        self._n_labels = Y.shape[1]
        seeds = [np.random.SeedSequence((seed, tree)) for tree in range(self.settings["trees"])]
        with self.phase("trees"):
            self._trees, self._roots = forest.joined(self._grow(X, Y, seeds))

    @abstractmethod
    def _grow(self, X: csr_matrix, Y: csr_matrix, seeds: list[np.random.SeedSequence]) -> list[Trees]:
        """Grow a tree from each of these seeds."""

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Rank labels by their mean share in the leaves."""
        return top_k(*self._best(X, k), k)

    def _best(self, X: csr_matrix, k: int) -> Ranked:
        """Return the k labels of the highest scores in any order, -1 for none, and their scores."""
        found, scores = np.empty((X.shape[0], k), dtype=np.int32), np.empty((X.shape[0], k), dtype=np.float32)
        documents = rows_of(X)

        def fill(start: int, stop: int) -> None:
            self._fill(start, stop, documents, np.zeros(self._n_labels), found, scores)

        parallel.over(fill, X.shape[0])
        return found, scores

    @abstractmethod
    def _fill(
        self,
        start: int,
        stop: int,
        X: Csr,
        totals: NDArray[np.float64],
        found: NDArray[np.int32],
        scores: NDArray[np.float32],
    ) -> None:
        """Fill found[start:stop] with the best labels, and `scores` with their scores; totals are workspace of 0."""

    def save(self, folder: Path) -> None:
        """Write the trees."""
        content: dict[str, NDArray[Any]] = {"children": self._trees.children, "roots": self._roots}
        for name, rows in (("weights", self._trees.weights), ("labels", self._trees.labels)):
            content |= {f"{name}.{part}": array for part, array in rows._asdict().items()}
        arrays.write(folder / "trees.safetensors", content)


def rows_of(X: csr_matrix) -> Csr:
    """Return the arrays of a matrix of any type."""
    return Csr(X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False), X.data.astype(np.float32, copy=False))
