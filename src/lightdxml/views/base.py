"""What a view is: one way to see how well a label fits a document.

A label's score combines what several views say about it. A view lives in one folder with its model and its training,
and owns everything about itself: candidates, log-scores, explanations, storage, its memory and its line in `info`.
`lightdxml.views.registry` lists all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.sparse import Csr
from lightdxml.persistence.arrays import Arrays

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from lightdxml.config import Config
    from lightdxml.kernels.sparse import FeatureRows
    from lightdxml.training.run import Run, TrainingData
    from lightdxml.views.lesson import Lesson
    from lightdxml.views.names.forms import NameForms

T = TypeVar("T")


@dataclass
class Batch:
    """Documents to score, and what several views compute from them, once.

    Attributes
    ----------
    X
        Features of the documents: canonical CSR float32 with unit rows.
    own
        A label per document that it cannot have, because it is that label; -1 for none. None if there are no such
        labels.
    allowed
        Which labels may be proposed, one value per label of the model; None for all of them.
    """

    X: csr_matrix | FeatureRows
    own: NDArray[np.int32] | None = None
    allowed: NDArray[np.bool] | None = None
    _memo: dict[Any, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @cached_property
    def documents(self) -> Csr:
        """The features of the documents, as kernels take them."""
        return Csr.of(self.X)

    def shared(self, key: Any, compute: Callable[[], T]) -> T:
        """Return what `compute` returns, computed once per batch and key."""
        if key not in self._memo:
            self._memo[key] = compute()
        value: T = self._memo[key]
        return value


@dataclass(frozen=True)
class Proposal:
    """Candidate labels of a view.

    Attributes
    ----------
    labels
        Documents × candidates, without those that were known before; -1 for none.
    log_scores
        Log-scores of the known labels and, after them, of the proposed ones: finding candidates computes both.
    """

    labels: NDArray[np.int32]
    log_scores: NDArray[np.float32]


@dataclass(frozen=True)
class Contributions:
    """A log-score as a sum: `base`, what a document without features would get, plus one term per feature."""

    base: float
    features: NDArray[np.float64]


@dataclass(frozen=True)
class ModelSizes:
    """What the arrays of every view of a model must fit: numbers of features and labels."""

    n_features: int
    n_labels: int


@dataclass(frozen=True)
class NewLabels:
    """Labels that a trained model gets without training, by their names.

    Attributes
    ----------
    names
        The names of all labels as features. Features for new words come after those of the model.
    n_labels
        Number of labels. New ones come after those of the model.
    untrained
        Labels that are known by their names alone, ascending: new ones, and others without training documents whose
        names have changed.
    examples
        Trained labels that are most like these, ascending: what they have is what a name is worth.
    renamed
        Labels of the model whose names have changed.
    expected_documents
        About how many training documents contain each name, if its terms are independent.
    """

    names: NameForms
    n_labels: int
    untrained: NDArray[np.int32]
    examples: NDArray[np.int32]
    renamed: NDArray[np.int32]
    expected_documents: NDArray[np.int32]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.names.terms.shape[1])


@dataclass(frozen=True)
class ViewMemory:
    """The memory of one view, in bytes.

    Attributes
    ----------
    training
        What training adds at its peak.
    kept
        What stays until the end of training: the view itself, and what its refit needs.
    refit
        What the refit on held-out documents adds at its peak.
    """

    training: int = 0
    kept: int = 0
    refit: int = 0


class View(Protocol):
    """One view of labels.

    Attributes
    ----------
    name
        How the view is called in weights, files and settings.
    about
        What it is, in a few words for people.
    requires
        Names of views without which it cannot be evaluated.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    requires: ClassVar[tuple[str, ...]]

    def propose(self, batch: Batch, known: NDArray[np.int32]) -> Proposal | None:
        """Return candidates that are allowed and not among the known ones of each document; None for none at all."""

    def log_score(self, batch: Batch, labels: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return the log-score, at most 0, of these labels of each document; any finite number for label -1."""

    def contributions(self, batch: Batch, label: int) -> Contributions:
        """Return how the log-score of a label comes about, for a batch of one document."""

    def arrays(self) -> Arrays:
        """Return all arrays that make up the view, by the names under which they are stored."""

    def facts(self) -> dict[str, Any]:
        """Return everything else that is stored, for JSON."""

    @classmethod
    def restore(cls, arrays: Arrays, facts: dict[str, Any], sizes: ModelSizes) -> View:
        """Return the view that these arrays make up; raise a `ValueError` if they cannot: compiled code trusts them."""

    def check_values(self) -> None:
        """Raise a `ValueError` if numbers within quantized rows are not finite; other arrays are checked anyway."""

    def quantize(self, precision: str) -> View:
        """Return a smaller view that says nearly the same: `int8` or `float16`."""

    def with_labels(self, new: NewLabels) -> View:
        """Return the view with new labels and names, without training; trained weights stay as they are."""

    def learn(self, lesson: Lesson) -> View:
        """Return the view after it has learned new documents, labels and names; what they do not touch stays."""

    def summary(self) -> str:
        """Return what `lightdxml info` says about the view."""

    @classmethod
    def memory(cls, data: TrainingData, config: Config, spilled: bool) -> ViewMemory:
        """Return the bytes that the view needs in training, after it, and in its refit."""

    @classmethod
    def train(cls, run: Run, is_useful: Callable[[View], bool]) -> View | None:
        """Train the view on the training documents, after the cycle; None if it is of no use for these data.

        `is_useful` says whether a view adds enough precision on validation documents. It can be asked about a small
        version before an expensive one is trained.
        """

    def refit(self, run: Run) -> View:
        """Return the view, trained again with held-out documents if these can change it."""


# Upper bounds of training documents per group of labels.
FREQUENCY = (0, 1, 3, 8, 20, 100)


def groups_of(numbers: NDArray[np.integer], bounds: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return the group of each number: the first bound that it does not exceed.

    >>> groups_of(np.array([0, 1, 2, 1000]), FREQUENCY).tolist()
    [0, 1, 2, 6]
    """
    return np.searchsorted(np.array(bounds), numbers).astype(np.uint8)


def mean_slope(function: Callable[[float], float], start: float, step: float) -> float:
    """Return (f(start + step) − f(start)) / step, or the slope at `start` if the step is about 0.

    It splits a function of a sum into contributions that add up exactly: each term times the mean slope.

    >>> mean_slope(lambda x: x * x, 1.0, 2.0)
    4.0
    """
    if abs(step) < _FLAT:
        start, step = start + step / 2 - _FLAT, 2 * _FLAT
    return float(function(start + step) - function(start)) / step


_FLAT = 1e-6


def expect(array: NDArray[Any], name: str, shape: tuple[int, ...], *kinds: Any) -> NDArray[Any]:
    """Return an array if it has this shape and one of these types; raise a `ValueError` otherwise.

    >>> expect(np.zeros(3), "weights", (2,), np.float64)
    Traceback (most recent call last):
    ValueError: its array weights has shape (3,) and type float64
    """
    if array.shape != shape or array.dtype not in [np.dtype(kind) for kind in kinds]:
        raise ValueError(f"its array {name} has shape {array.shape} and type {array.dtype}")
    return array


def is_ascending(numbers: NDArray[Any]) -> bool:
    """Return whether numbers strictly increase."""
    # Compared, not subtracted: differences of large integers overflow.
    return bool((numbers[1:] > numbers[:-1]).all())


def in_range(numbers: NDArray[Any], low: int, high: int) -> bool:
    """Return whether low ≤ numbers < high."""
    return not numbers.size or bool(numbers.min() >= low and numbers.max() < high)


def is_indptr(indptr: NDArray[np.int64], n: int) -> bool:
    """Return whether an array divides n entries into rows."""
    return bool(len(indptr) and indptr[0] == 0 and indptr[-1] == n and (indptr[1:] >= indptr[:-1]).all())
