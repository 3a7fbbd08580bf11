"""What methods with one sparse linear classifier per label share: the model, prediction and storage."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.special import expit

from lightdxml.experiments.baselines.base import Method, Ranked
from lightdxml.kernels import parallel
from lightdxml.model.blend import top_k
from lightdxml.persistence import arrays
from lightdxml.views.base import Batch
from lightdxml.views.linear.inverted import search
from lightdxml.views.linear.solver import Weights, inverted


class SparseOVA(Method):
    """One sparse linear classifier per label, stored by feature.

    All labels with documents compete for the first ranks, also those without a feature in common with the document;
    other labels are never predicted. Scores are σ(margin).
    """

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train all labels that have documents."""
        X, label_to_docs = csr_matrix(X, dtype=np.float32), csr_matrix(Y.T, dtype=np.float32)
        labels = np.flatnonzero(np.diff(label_to_docs.indptr)).astype(np.int32)
        with parallel.use_threads(threads):
            with self.phase("compile"):
                toy = csr_matrix(np.eye(4, dtype=np.float32))
                self._train(toy, toy, np.arange(4, dtype=np.int32), seed)
            with self.phase("train"):
                weights = self._train(X, label_to_docs, labels, seed)
            with self.phase("index"):
                self._index = inverted([weights], X.shape[1], Y.shape[1], "float32", 0.0, labels)

    @abstractmethod
    def _train(self, X: csr_matrix, label_to_docs: csr_matrix, labels: NDArray[np.int32], seed: int) -> Weights:
        """Return the weights of these labels."""

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Rank labels by their margins."""
        batch = Batch(csr_matrix(X, dtype=np.float32))
        none = np.empty((len(batch), 0), dtype=np.int32)
        labels, best = top_k(*search(self._index, batch, k, none)[:2], k)
        return labels, np.where(labels >= 0, expit(best), np.float32(0))

    def save(self, folder: Path) -> None:
        """Write the weights of all labels."""
        arrays.write(folder / f"{self.name}.safetensors", self._index.arrays("labels"))
