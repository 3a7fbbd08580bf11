"""What a method must do to be compared: one small base class, which the contract test holds all methods to."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix


class TooLargeError(ValueError):
    """Data of a size that a method is not meant for."""


class Method(ABC):
    """One method of extreme classification, behind the same calls as all others.

    A method takes a matrix of TF-IDF features (rows of length 1) and a matrix of labels (ones), and ranks labels.

    Parameters
    ----------
    settings
        What to change of the class's `defaults`.

    Attributes
    ----------
    name, about
        How it is called, and what it is, in one line.
    packages
        The modules that it needs besides this package's own dependencies.
    distributions
        What these come in, by the names under which versions are known.
    install
        The command that installs them.
    defaults
        Its settings, those of its authors, by name.
    reproducible
        Whether the same seed gives the same answer, at any number of threads.
    phases
        The seconds that each of its phases took while it was trained.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    packages: ClassVar[tuple[str, ...]] = ()
    distributions: ClassVar[tuple[str, ...]] = ()
    install: ClassVar[str] = ""
    defaults: ClassVar[Mapping[str, Any]] = {}
    reproducible: ClassVar[bool] = True

    def __init__(self, **settings: Any) -> None:
        for name in settings:
            if name not in self.defaults:
                known = ", ".join(self.defaults) or "none"
                raise ValueError(f"{self.name} has no setting {name!r}: known are {known}")
        self.settings: dict[str, Any] = {**self.defaults, **settings}
        self.phases: dict[str, float] = {}

    @classmethod
    def missing(cls) -> list[str]:
        """Return the modules that are not installed."""
        return [package for package in cls.packages if find_spec(package) is None]

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the seconds that the inside of the `with` takes to the phase of this name."""
        start = time.perf_counter()
        yield
        self.phases[name] = self.phases.get(name, 0.0) + time.perf_counter() - start

    @abstractmethod
    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train.

        Raises
        ------
        TooLargeError
            Where the method is not meant for so much data.
        """

    @abstractmethod
    def rank(self, X: csr_matrix, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return documents × k labels, best first, and their scores; label -1 and score 0 for none."""

    def along(self, setting: str, values: Sequence[Any]) -> Iterator[tuple[Any, Method]]:
        """Yield the trained method with each of these values of a setting that needs no new training."""
        raise ValueError(f"{setting!r} of {self.name} cannot be changed after training")

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write all that prediction needs into an empty folder: its size is what is compared."""


def best_of_rows(scores: csr_matrix, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the k columns of each row with the highest positive scores, best first, the lower column of equals first.

    >>> best_of_rows(csr_matrix([[0.0, 0.5, 0.9], [0.0, 0.0, 0.0]]), 2)[0].tolist()
    [[2, 1], [-1, -1]]
    """
    labels = np.full((scores.shape[0], k), -1, dtype=np.int32)
    values = np.zeros((scores.shape[0], k), dtype=np.float32)
    for i in range(scores.shape[0]):
        row = slice(scores.indptr[i], scores.indptr[i + 1])
        columns, data = scores.indices[row], scores.data[row]
        columns, data = columns[data > 0], data[data > 0]
        best = np.lexsort((columns, -data))[:k]
        labels[i, : len(best)], values[i, : len(best)] = columns[best], data[best]
    return labels, values


def ranked_pairs(
    rows: Iterable[Iterable[tuple[int, float]]], n: int, k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return n rows of (label, score) pairs, best first and at most k of them, as two arrays; -1 and 0 for none.

    >>> ranked_pairs([[(4, 0.5)], []], 2, 2)[0].tolist()
    [[4, -1], [-1, -1]]
    """
    labels = np.full((n, k), -1, dtype=np.int32)
    scores = np.zeros((n, k), dtype=np.float32)
    for i, row in enumerate(rows):
        for place, (label, score) in enumerate(row):
            labels[i, place], scores[i, place] = label, score
    return labels, scores
