"""The interface of all methods in the benchmark, and what several of them share."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import parallel, votes
from lightdxml.kernels.sparse import Pattern

Settings = Mapping[str, Any]
Ranked = tuple[NDArray[np.int32], NDArray[np.float32]]


class TooLargeError(ValueError):
    """The data is too large for this method."""


class Method(ABC):
    """A method for extreme multi-label classification.

    It takes TF-IDF features and binary labels, and ranks labels.

    Parameters
    ----------
    settings
        Changes to `defaults`.

    Attributes
    ----------
    name
        Its name in commands and tables.
    package, distribution
        The module that it needs, which is also the name of our extra that installs it, and its name on PyPI if that is
        another one.
    unit_rows
        Whether it takes features in rows of length 1, or as they are.
    defaults
        All settings and their default values, which are those of the method's authors.
    phases
        Training seconds per phase.
    """

    name: ClassVar[str]
    package: ClassVar[str] = ""
    distribution: ClassVar[str] = ""
    unit_rows: ClassVar[bool] = True
    defaults: ClassVar[Settings] = {}

    def __init__(self, **settings: Any) -> None:
        for name in settings:
            if name not in self.defaults:
                raise ValueError(f"{self.name} has no setting {name!r}: choose from {', '.join(self.defaults)}")
        self.settings: dict[str, Any] = {**self.defaults, **settings}
        self.phases: dict[str, float] = {}

    @classmethod
    def missing(cls) -> str:
        """Return how to install the package that the method needs; nothing if it is installed."""
        if not cls.package or find_spec(cls.package):
            return ""
        return f'{cls.package} is not installed: pip install "lightdxml[{cls.package}]"'

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent in the `with` block to a phase."""
        start = time.perf_counter()
        yield
        self.phases[name] = self.phases.get(name, 0.0) + time.perf_counter() - start

    @abstractmethod
    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train; raise a `TooLargeError` if the data is too large for this method."""

    @abstractmethod
    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Return the top k labels per document, best first, and their scores; label -1 and score 0 for none."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write everything that prediction needs into an empty folder. Its size is the model size."""

    def with_other_betas(self) -> Iterator[tuple[float, Method]]:
        """Yield the trained method with other values of β, if its settings ask for them."""
        yield from ()


def rank_chunks(rank: Callable[[slice], Ranked], n: int, k: int, chunk_size: int) -> Ranked:
    """Rank chunks of n documents in parallel. The chunks do not depend on the number of threads."""
    labels, scores = np.empty((n, k), dtype=np.int32), np.empty((n, k), dtype=np.float32)

    def fill(bounds: tuple[int, int]) -> None:
        rows = slice(*bounds)
        labels[rows], scores[rows] = rank(rows)

    parallel.run(fill, parallel.fixed_chunks(n, max(1, chunk_size)))
    return labels, scores


def ranked_pairs(rows: Iterable[Iterable[tuple[int, float]]], n: int, k: int) -> Ranked:
    """Return n rows of at most k pairs (label, score) as two arrays, padded with -1 and 0.

    >>> ranked_pairs([[(4, 0.5)], []], 2, 2)[0].tolist()
    [[4, -1], [-1, -1]]
    """
    labels, scores = np.full((n, k), -1, dtype=np.int32), np.zeros((n, k), dtype=np.float32)
    for i, row in enumerate(rows):
        for j, (label, score) in enumerate(row):
            labels[i, j], scores[i, j] = label, score
    return labels, scores


def label_votes(neighbors: NDArray[np.int32], cosines: NDArray[np.float32], Y: csr_matrix, k: int) -> Ranked:
    """Return the k labels with the most votes: each neighbor, a row of Y or -1, votes for its labels with its cosine.

    >>> Y = csr_matrix(np.eye(2, dtype=np.float32))
    >>> label_votes(np.array([[1, 0]], dtype=np.int32), np.array([[0.5, 0.25]], dtype=np.float32), Y, 3)[0].tolist()
    [[1, 0, -1]]
    """
    labels, counted = np.empty((len(neighbors), k), dtype=np.int32), np.empty((len(neighbors), k), dtype=np.float32)
    document_labels = Pattern.of(Y)

    def fill(first: int, last: int) -> None:
        totals = np.zeros(Y.shape[1], dtype=np.float32)
        votes.count(first, last, neighbors, cosines, document_labels, totals, labels, counted)

    parallel.over(fill, len(neighbors))
    return labels, counted
