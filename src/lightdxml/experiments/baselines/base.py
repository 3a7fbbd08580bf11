"""The interface of all methods in the benchmark."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import parallel

Settings = Mapping[str, Any]
Ranked = tuple[NDArray[np.int32], NDArray[np.float32]]


class TooLargeError(ValueError):
    """The data is too large for this method."""


class Method(ABC):
    """A method for extreme multi-label classification.

    It takes L2-normalized TF-IDF features and binary labels, and ranks labels.

    Parameters
    ----------
    settings
        Changes to `defaults`.

    Attributes
    ----------
    name, about
        Its name, and a description in one line.
    packages, distributions, install
        The modules that it needs, the packages on PyPI that contain them, and the command that installs them.
    defaults
        All settings and their default values, which are those of the method's authors.
    reproducible
        Whether the same seed gives the same result with any number of threads.
    phases
        Training seconds per phase.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    packages: ClassVar[tuple[str, ...]] = ()
    distributions: ClassVar[tuple[str, ...]] = ()
    install: ClassVar[str] = ""
    defaults: ClassVar[Settings] = {}
    reproducible: ClassVar[bool] = True

    def __init__(self, **settings: Any) -> None:
        for name in settings:
            if name not in self.defaults:
                raise ValueError(f"{self.name} has no setting {name!r}: choose from {', '.join(self.defaults)}")
        self.settings: dict[str, Any] = {**self.defaults, **settings}
        self.phases: dict[str, float] = {}

    @classmethod
    def missing(cls) -> list[str]:
        """Return the modules that are not installed."""
        return [package for package in cls.packages if find_spec(package) is None]

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent in the `with` block to a phase."""
        start = time.perf_counter()
        yield
        self.phases[name] = self.phases.get(name, 0.0) + time.perf_counter() - start

    @abstractmethod
    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train.

        Raises
        ------
        TooLargeError
            If the data is too large for this method.
        """

    @abstractmethod
    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Return the top k labels per document, best first, and their scores; label -1 and score 0 for none."""

    def along(self, setting: str, values: Sequence[Any]) -> Iterator[tuple[Any, Method]]:
        """Yield the trained method with each value of a setting that needs no new training."""
        raise ValueError(f"{setting!r} of {self.name} cannot be changed after training")

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write everything that prediction needs into an empty folder. Its size is the model size."""


def rank_chunks(
    rank: Callable[[csr_matrix], Ranked], X: csr_matrix, k: int, *, chunk_size: int, threads: int
) -> Ranked:
    """Rank chunks of documents in parallel. The chunks do not depend on the number of threads."""
    labels = np.empty((X.shape[0], k), dtype=np.int32)
    scores = np.empty((X.shape[0], k), dtype=np.float32)

    def fill(rows: tuple[int, int]) -> None:
        labels[slice(*rows)], scores[slice(*rows)] = rank(X[slice(*rows)])

    with parallel.use_threads(threads):
        parallel.run(fill, parallel.fixed_chunks(X.shape[0], max(1, chunk_size)))
    return labels, scores


def top_k_sparse(scores: csr_matrix, k: int) -> Ranked:
    """Return the columns of the k highest positive scores per row, and the scores. Ties go to the lower column.

    >>> top_k_sparse(csr_matrix([[0.0, 0.5, 0.9], [0.0, 0.0, 0.0]]), 2)[0].tolist()
    [[2, 1], [-1, -1]]
    """
    labels = np.full((scores.shape[0], k), -1, dtype=np.int32)
    values = np.zeros((scores.shape[0], k), dtype=np.float32)
    for i in range(scores.shape[0]):
        row = slice(scores.indptr[i], scores.indptr[i + 1])
        columns, data = scores.indices[row], scores.data[row]
        # Sort only what reaches the k-th highest score.
        smallest = np.partition(data, -k)[-k] if len(data) > k else 0.0
        kept = (data > 0) & (data >= smallest)
        columns, data = columns[kept], data[kept]
        best = np.lexsort((columns, -data))[:k]
        labels[i, : len(best)], values[i, : len(best)] = columns[best], data[best]
    return labels, values


def ranked_pairs(rows: Iterable[Iterable[tuple[int, float]]], n: int, k: int) -> Ranked:
    """Return n rows of at most k pairs (label, score) as two arrays, padded with -1 and 0.

    >>> ranked_pairs([[(4, 0.5)], []], 2, 2)[0].tolist()
    [[4, -1], [-1, -1]]
    """
    labels = np.full((n, k), -1, dtype=np.int32)
    scores = np.zeros((n, k), dtype=np.float32)
    for i, row in enumerate(rows):
        for j, (label, score) in enumerate(row):
            labels[i, j], scores[i, j] = label, score
    return labels, scores
