"""Two simple methods: nearest neighbors, and a linear support vector machine per label."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.special import expit

from lightdxml.experiments.baselines.base import Method, Ranked, Settings, TooLargeError, label_votes, rank_chunks
from lightdxml.model.blend import top_k
from lightdxml.persistence import arrays
from lightdxml.views.base import Batch
from lightdxml.views.linear.inverted import search
from lightdxml.views.linear.solver import inverted_rows

_MAX_PAIRS = 30_000_000
_MAX_WEIGHTS = 1_000_000_000
# Starting processes takes seconds: with less work, one process is faster.
_MIN_PAIRS_FOR_PROCESSES = 2_000_000
_CHUNK_SCORES = 1 << 22


class KNN(Method):
    """The nearest training documents by TF-IDF cosine vote for their labels, weighted by the cosine.

    No training: a lower bound for what training must achieve. 20 neighbors are enough to favor labels that several
    neighbors share, and few enough to keep rare labels. Among equally near documents the earlier one votes.
    """

    name = "knn"
    defaults: ClassVar[Settings] = {"neighbors": 20}

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Build an inverted index of the documents. The seed is not used."""
        with self.phase("index"):
            self._index = inverted_rows(csr_matrix(X, dtype=np.float32))
            self._Y = csr_matrix(Y, dtype=np.float32, copy=True)

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Rank labels by the sum of the cosines of the neighbors that have them."""
        batch = Batch(csr_matrix(X, dtype=np.float32))
        none = np.empty((len(batch), 0), dtype=np.int32)
        neighbors, cosines, _ = search(self._index, batch, self.settings["neighbors"], none)
        return label_votes(neighbors, cosines, self._Y, k)

    def save(self, folder: Path) -> None:
        """Write the training documents, which are the model."""
        labels = {"label_indptr": self._Y.indptr, "labels": self._Y.indices}
        arrays.write(folder / "knn.safetensors", {**self._index.arrays("documents"), **labels})


class OVA(Method):
    """scikit-learn's LinearSVC (LIBLINEAR) for each label against the rest, with default settings.

    A label without documents is never predicted. A label of all documents has the margin 1. Scores are σ(margin).
    Training uses processes, not threads: the threads of a process share LIBLINEAR's random numbers, so that the same
    seed would not give the same model.
    """

    name = "ova"
    package = "sklearn"
    distribution = "scikit-learn"
    defaults: ClassVar[Settings] = {"C": 1.0, "loss": "squared_hinge", "tol": 0.0001, "max_iter": 1000}

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train one label after another; at most 30 million pairs of document and label, or a billion weights."""
        from sklearn.exceptions import ConvergenceWarning

        _check_size("documents", X.shape[0], "labels", Y.shape[1], _MAX_PAIRS)
        _check_size("labels", Y.shape[1], "features", X.shape[1], _MAX_WEIGHTS)
        columns = csr_matrix(Y).tocsc()
        counts = np.diff(columns.indptr)
        self._labels = np.flatnonzero(counts > 0).astype(np.int32)
        self._weights = np.zeros((X.shape[1], len(self._labels)), dtype=np.float32)
        self._biases = np.ones(len(self._labels), dtype=np.float32)
        trainable = np.flatnonzero(counts[self._labels] < X.shape[0])
        targets = (columns[:, [label]].toarray().ravel() for label in self._labels[trainable])
        processes = threads if X.shape[0] * len(trainable) >= _MIN_PAIRS_FOR_PROCESSES else 1
        with self.phase("train"), warnings.catch_warnings():
            # Some labels do not converge within the default number of iterations.
            warnings.simplefilter("ignore", ConvergenceWarning)
            for i, trained in zip(trainable, self._train(X, targets, seed, processes), strict=True):
                self._weights[:, i], self._biases[i] = trained.coef_[0], trained.intercept_[0]

    def _train(self, X: csr_matrix, targets: Iterator[NDArray[np.float32]], seed: int, processes: int) -> Any:
        """Return an iterator over the trained classifiers, in order."""
        from sklearn.svm import LinearSVC
        from sklearn.utils.parallel import Parallel, delayed

        # LinearSVC would convert the features again for every label.
        parts = X.data.astype(np.float64), X.indices.astype(np.int32), X.indptr.astype(np.int32)
        X = csr_matrix(parts, shape=X.shape)
        run = Parallel(n_jobs=processes, return_as="generator")
        return run(delayed(LinearSVC(random_state=seed, **self.settings).fit)(X, y) for y in targets)

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Rank labels by their margins."""

        def rank(rows: slice) -> Ranked:
            margins = np.asarray(X[rows] @ self._weights + self._biases, dtype=np.float32, order="C")
            labels, best = top_k(np.tile(self._labels, (len(margins), 1)), margins, k)
            return labels, np.where(labels >= 0, expit(best), np.float32(0))

        return rank_chunks(rank, X.shape[0], k, _CHUNK_SCORES // max(1, len(self._labels)))

    def save(self, folder: Path) -> None:
        """Write the weights of all labels."""
        content = {"labels": self._labels, "weights": self._weights, "biases": self._biases}
        arrays.write(folder / "ova.safetensors", content)


def _check_size(one: str, n: int, other: str, m: int, limit: int) -> None:
    if n * m > limit:
        raise TooLargeError(f"ova is limited to {one} × {other} of {limit:,}, not {n:,} × {m:,}: leave it out")
