"""One-vs-all: a linear support vector machine per label."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils.parallel import Parallel, delayed

from lightdxml.experiments.baselines.base import Method, Ranked, Settings, TooLargeError, rank_chunks
from lightdxml.kernels import ranking
from lightdxml.persistence import arrays

_MAX_PAIRS = 30_000_000
_MAX_WEIGHTS = 1_000_000_000
# Starting processes takes seconds: with less work, one process is faster.
_MIN_PAIRS_FOR_PROCESSES = 2_000_000
_CHUNK_SCORES = 1 << 22


class OVA(Method):
    """scikit-learn's LinearSVC (LIBLINEAR) for each label against the rest, with default settings.

    A label without documents is never predicted. A label of all documents has the margin 1. Scores are σ(margin).
    Training uses processes, not threads: the threads of a process share LIBLINEAR's random numbers, so that the same
    seed would not give the same model.
    """

    name = "ova"
    about = "one-vs-all linear support vector machines (scikit-learn, LIBLINEAR)"
    defaults: ClassVar[Settings] = {"C": 1.0, "loss": "squared_hinge", "tol": 0.0001, "max_iter": 1000}

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train one label after another.

        Raises
        ------
        TooLargeError
            With more than 30 million pairs of document and label, or more than a billion weights.
        """
        _check_size("documents", X.shape[0], "labels", Y.shape[1], _MAX_PAIRS)
        _check_size("labels", Y.shape[1], "features", X.shape[1], _MAX_WEIGHTS)
        self._threads = threads
        columns = csr_matrix(Y).tocsc()
        counts = np.diff(columns.indptr)
        self._labels = np.flatnonzero(counts > 0).astype(np.int32)
        self._weights = np.zeros((X.shape[1], len(self._labels)), dtype=np.float32)
        self._biases = np.ones(len(self._labels), dtype=np.float32)
        trainable = np.flatnonzero(counts[self._labels] < X.shape[0])
        targets = (columns[:, [label]].toarray().ravel() for label in self._labels[trainable])
        with self.phase("train"), warnings.catch_warnings():
            # Some labels do not converge within the default number of iterations.
            warnings.simplefilter("ignore", ConvergenceWarning)
            for i, trained in zip(trainable, self._train(X, targets, len(trainable), seed), strict=True):
                self._weights[:, i], self._biases[i] = trained.coef_[0], trained.intercept_[0]

    def _train(self, X: csr_matrix, targets: Iterator[NDArray[np.float32]], n: int, seed: int) -> Any:
        """Return an iterator over the trained classifiers of n targets, in order."""
        # LinearSVC would convert the features again for every label.
        parts = X.data.astype(np.float64), X.indices.astype(np.int32), X.indptr.astype(np.int32)
        X = csr_matrix(parts, shape=X.shape)
        processes = self._threads if X.shape[0] * n >= _MIN_PAIRS_FOR_PROCESSES else 1
        run = Parallel(n_jobs=processes, return_as="generator")
        return run(delayed(LinearSVC(random_state=seed, **self.settings).fit)(X, y) for y in targets)

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Rank labels by their margins."""
        chunk_size = _CHUNK_SCORES // max(1, len(self._labels))
        return rank_chunks(lambda part: self._rank(part, k), X, k, chunk_size=chunk_size, threads=self._threads)

    def _rank(self, X: csr_matrix, k: int) -> Ranked:
        scores = np.asarray(X @ self._weights + self._biases, dtype=np.float32, order="C")
        labels, margins = np.empty((X.shape[0], k), dtype=np.int32), np.empty((X.shape[0], k), dtype=np.float32)
        candidates = np.tile(self._labels, (X.shape[0], 1))
        ranking.top_of_rows(0, X.shape[0], candidates, scores, labels, margins)
        return labels, np.where(labels >= 0, expit(margins), np.float32(0))

    def save(self, folder: Path) -> None:
        """Write the weights of all labels."""
        content = {"labels": self._labels, "weights": self._weights, "biases": self._biases}
        arrays.write(folder / "ova.safetensors", content)


def _check_size(one: str, n: int, other: str, m: int, limit: int) -> None:
    if n * m > limit:
        raise TooLargeError(f"ova is limited to {one} × {other} of {limit:,}, not {n:,} × {m:,}: leave it out")
