"""One linear support vector machine for each label: the plain method that all others are to beat in time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils.parallel import Parallel, delayed

from lightdxml.persistence import arrays
from lightdxml.experiments.baselines.base import Method, TooLargeError
from lightdxml.kernels import parallel
from lightdxml.model import sigmoid, top

_MOST_CELLS = 30_000_000
_MOST_WEIGHTS = 1_000_000_000
# Starting processes takes some seconds: for less than this, one is faster.
_CELLS_FOR_PROCESSES = 2_000_000
_SCORES = 1 << 22


class OVA(Method):
    """scikit-learn's LinearSVC (LIBLINEAR) for each label against the rest, with its default settings.

    A label without documents is never answered; one that all documents have gets the margin 1 everywhere. Scores are
    σ(margin). Several labels are trained at once in processes, not threads: LIBLINEAR's random numbers are shared by
    all threads of a process, and the same seed would not give the same answer.
    """

    name = "ova"
    about = "a linear support vector machine for each label against the rest (scikit-learn, LIBLINEAR)"
    defaults: ClassVar[Mapping[str, Any]] = {
        "C": 1.0,
        "penalty": "l2",
        "loss": "squared_hinge",
        "dual": "auto",
        "tol": 0.0001,
        "max_iter": 1000,
    }

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train one label after the other.

        Raises
        ------
        TooLargeError
            With more than 30 million pairs of a document and a label, or more than a billion weights.
        """
        _check_size(X.shape[0], Y.shape[1], X.shape[1])
        self._threads = threads
        columns = csr_matrix(Y).tocsc()
        counts = np.diff(columns.indptr)
        self._labels = np.flatnonzero(counts > 0).astype(np.int32)
        self._weights = np.zeros((len(self._labels), X.shape[1]), dtype=np.float32)
        self._biases = np.ones(len(self._labels), dtype=np.float32)
        with self.phase("train"), warnings.catch_warnings():
            # Some labels need more than the default number of rounds: that is the default's doing, not a fault.
            warnings.simplefilter("ignore", ConvergenceWarning)
            places = np.flatnonzero(counts[self._labels] < X.shape[0])
            targets = (_target(columns, label) for label in self._labels[places])
            for place, machine in zip(places, self._machines(X, targets, len(places), seed), strict=True):
                self._weights[place], self._biases[place] = machine.coef_[0], machine.intercept_[0]

    def _machines(self, X: csr_matrix, targets: Iterator[NDArray[np.int8]], n: int, seed: int) -> Any:
        """Return an iterator over the trained machines of n targets, in order."""
        # What LinearSVC makes of features, made once and not for each label.
        parts = X.data.astype(np.float64), X.indices.astype(np.int32), X.indptr.astype(np.int32)
        X = csr_matrix(parts, shape=X.shape)
        processes = self._threads if X.shape[0] * n >= _CELLS_FOR_PROCESSES else 1
        run = Parallel(n_jobs=processes, return_as="generator")
        return run(delayed(LinearSVC(random_state=seed, **self.settings).fit)(X, y) for y in targets)

    def rank(self, X: csr_matrix, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Rank labels by their margins."""
        labels = np.full((X.shape[0], k), -1, dtype=np.int32)
        scores = np.zeros((X.shape[0], k), dtype=np.float32)
        if not len(self._labels):
            return labels, scores
        X = csr_matrix(X, dtype=np.float32)
        with parallel.use_threads(self._threads):
            for start, stop in parallel.fixed_chunks(X.shape[0], max(1, _SCORES // len(self._labels))):
                margins = np.asarray(X[start:stop] @ self._weights.T) + self._biases
                candidates = np.tile(self._labels, (stop - start, 1))
                labels[start:stop], best = top(candidates, np.ascontiguousarray(margins, dtype=np.float32), k)
                scores[start:stop] = np.where(labels[start:stop] >= 0, sigmoid(best), 0)
        return labels, scores

    def save(self, folder: Path) -> None:
        """Write the weights of all labels."""
        content = {"labels": self._labels, "weights": self._weights, "biases": self._biases}
        arrays.write(folder / "ova.safetensors", content)


def _check_size(n_documents: int, n_labels: int, n_features: int) -> None:
    if n_documents * n_labels > _MOST_CELLS:
        raise TooLargeError(
            f"ova trains on every document for every label, and {n_documents:,} documents × {n_labels:,} labels are "
            f"more than {_MOST_CELLS:,}: leave it out"
        )
    if n_labels * n_features > _MOST_WEIGHTS:
        raise TooLargeError(
            f"ova has a weight for every label and feature, and {n_labels:,} labels × {n_features:,} features are more "
            f"than {_MOST_WEIGHTS:,}: leave it out"
        )


def _target(columns: Any, label: int) -> NDArray[np.int8]:
    """Return which documents have the label, from labels as CSC."""
    target = np.zeros(columns.shape[0], dtype=np.int8)
    target[columns.indices[columns.indptr[label] : columns.indptr[label + 1]]] = 1
    return target
