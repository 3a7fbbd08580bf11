"""The labels of the nearest training documents: no training, and a floor for what training must be worth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from lightdxml.persistence import arrays
from lightdxml.experiments.baselines.base import Method, best_of_rows
from lightdxml.kernels import parallel

_COSINES = 1 << 22


class KNN(Method):
    """Votes of the training documents nearest by the cosine of TF-IDF, each vote weighted by its cosine.

    20 documents vote: enough that a label of several neighbours stands out, few enough that rare labels are not
    outvoted. Of equally near documents the earlier one votes.
    """

    name = "knn"
    about = "the labels of the 20 training documents nearest by the cosine of TF-IDF"
    defaults: ClassVar[Mapping[str, Any]] = {"neighbours": 20}

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Turn the features around, for each the documents that have it; the seed plays no part."""
        self._threads = threads
        with self.phase("index"):
            self._documents = csr_matrix(X.T, dtype=np.float32)
            self._Y = csr_matrix(Y, dtype=np.float32, copy=True)

    def rank(self, X: csr_matrix, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Rank labels by the sum of the cosines of the neighbours that have them."""
        X = csr_matrix(X, dtype=np.float32)
        chunks = parallel.fixed_chunks(X.shape[0], max(1, _COSINES // max(1, self._documents.shape[1])))
        if not chunks:
            return best_of_rows(csr_matrix((0, self._Y.shape[1]), dtype=np.float32), k)
        with parallel.use_threads(self._threads):
            votes = parallel.run(lambda chunk: self._votes(X[chunk[0] : chunk[1]]), chunks)
        return best_of_rows(csr_matrix(vstack(votes)), k)

    def _votes(self, X: csr_matrix) -> csr_matrix:
        """Return documents × labels: what the nearest neighbours say."""
        cosines = X @ self._documents
        cosines.sort_indices()
        return _largest_of_rows(cosines, self.settings["neighbours"]) @ self._Y

    def save(self, folder: Path) -> None:
        """Write the training documents, which are the model."""
        content = {
            f"{name}_{part}": getattr(matrix, part)
            for name, matrix in (("documents", self._documents), ("labels", self._Y))
            for part in ("data", "indices", "indptr")
        }
        arrays.write(folder / "knn.safetensors", content)


def _largest_of_rows(matrix: csr_matrix, n: int) -> csr_matrix:
    """Keep the n largest entries of each row, of equal ones those of the lower columns; indices must be sorted.

    >>> _largest_of_rows(csr_matrix([[0.5, 0.9, 0.5]]), 2).toarray().tolist()
    [[0.5, 0.9, 0.0]]
    """
    kept = []
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        values = matrix.data[start:stop]
        if len(values) > n:
            # Only those that reach the n-th largest value are put in order.
            reach = np.flatnonzero(values >= np.partition(values, len(values) - n)[len(values) - n])
            places = np.sort(reach[np.argsort(-values[reach], kind="stable")[:n]])
        else:
            places = np.arange(len(values))
        kept.append(start + places)
    places = np.concatenate(kept) if kept else np.empty(0, dtype=np.int64)
    pointers = np.concatenate([[0], np.cumsum([len(row) for row in kept])])
    return csr_matrix((matrix.data[places], matrix.indices[places], pointers), shape=matrix.shape)
