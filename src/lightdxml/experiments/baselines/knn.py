"""Nearest neighbors: no training, a lower bound for what training must achieve."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines.base import Method, Ranked, Settings, rank_chunks, top_k_sparse
from lightdxml.persistence import arrays

_CHUNK_COSINES = 1 << 22


class KNN(Method):
    """The nearest training documents by TF-IDF cosine vote for their labels, weighted by the cosine.

    20 neighbors are enough to favor labels that several neighbors share, and few enough to keep rare labels. Among
    equally near documents the earlier one votes.
    """

    name = "knn"
    about = "labels of the 20 nearest training documents by TF-IDF cosine"
    defaults: ClassVar[Settings] = {"neighbors": 20}

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Build an inverted index of the documents. The seed is not used."""
        self._threads = threads
        with self.phase("index"):
            self._index = csr_matrix(X.T, dtype=np.float32)
            self._Y = csr_matrix(Y, dtype=np.float32, copy=True)

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Rank labels by the sum of the cosines of the neighbors that have them."""
        chunk_size = _CHUNK_COSINES // max(1, self._Y.shape[0])
        return rank_chunks(
            lambda part: top_k_sparse(self._votes(part), k), X, k, chunk_size=chunk_size, threads=self._threads
        )

    def _votes(self, X: csr_matrix) -> csr_matrix:
        neighbors, cosines = top_k_sparse(csr_matrix(X, dtype=np.float32) @ self._index, self.settings["neighbors"])
        found = neighbors >= 0
        indptr = np.concatenate([[0], np.cumsum(found.sum(axis=1))])
        weights = csr_matrix((cosines[found], neighbors[found], indptr), shape=(X.shape[0], self._Y.shape[0]))
        return weights @ self._Y

    def save(self, folder: Path) -> None:
        """Write the training documents, which are the model."""
        content = {
            f"{name}_{part}": getattr(matrix, part)
            for name, matrix in (("documents", self._index), ("labels", self._Y))
            for part in ("data", "indices", "indptr")
        }
        arrays.write(folder / "knn.safetensors", content)
