"""Predictions of a model next to the true labels: candidates, accuracy by label frequency, confusions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import parallel
from lightdxml.metrics import Counts, binary_labels, threshold_counts
from lightdxml.model import thresholds
from lightdxml.model.candidates import Candidates, find_candidates
from lightdxml.model.model import Model, best_labels
from lightdxml.text import tfidf
from lightdxml.validation import check_features
from lightdxml.views.base import Batch

DEPTH = 10
TOP = 5
THRESHOLDS = np.linspace(0, 1, 101)
_DOCUMENTS = 8192
# With more pairs of a missed and a wrong label, confusions are counted on fewer documents, to save memory.
_MAX_PAIRS = 20_000_000
# Where the bins of label frequencies begin, and the end of the last one.
_BINS = (0, 1, 2, 4, *(step * 10**power + 1 for power in range(1, 9) for step in (1, 3)))


@dataclass(frozen=True, eq=False)
class Measured:
    """The best labels of some documents, and the true ones.

    Attributes
    ----------
    Y
        The true labels, 0/1, without ignored pairs. Labels that the model does not know come after its own.
    ranked, scores
        The first labels of every document, best first, and their scores; -1 and 0 for none.
    reach
        The percentage of true labels that are candidates.
    at_thresholds
        How many labels are true, kept, and both at each of `THRESHOLDS`.
    """

    Y: csr_matrix
    ranked: NDArray[np.int32]
    scores: NDArray[np.float32]
    reach: float
    at_thresholds: Counts


def measure(model: Model, X: Any, Y: csr_matrix, ignore: csr_matrix | None = None, depth: int = DEPTH) -> Measured:
    """Find and rank the candidates of every document.

    Parameters
    ----------
    model
        A trained model.
    X
        Texts or features.
    Y
        The true labels, in the columns of the model.
    ignore
        Pairs that count neither as correct nor as wrong, in the shape of Y; labels ranked below them move up.
    depth
        How many labels to keep of each document.

    Examples
    --------
    >>> from lightdxml import LightDXML
    >>> texts, labels = ["a purring cat", "a barking dog"] * 10, [["cat"], ["dog"]] * 10
    >>> trained = LightDXML(dim=8, epochs=20, random_state=1).fit(texts, labels)
    >>> measure(trained.model_, ["the cat"], csr_matrix([[1, 0]])).ranked[0, :3].tolist()
    [0, 1, -1]
    """
    Y = binary_labels(Y, "Y")
    if ignore is not None:
        ignore = binary_labels(ignore, "ignore")
        Y = binary_labels(Y - Y.multiply(ignore), "Y")
    ranked = np.empty((Y.shape[0], depth), dtype=np.int32)
    scores = np.empty((Y.shape[0], depth), dtype=np.float32)
    counts, reached = np.zeros((3, len(THRESHOLDS)), dtype=np.int64), 0
    # The candidates of all documents would not fit into memory.
    for start, stop in parallel.fixed_chunks(Y.shape[0], _DOCUMENTS):
        part = slice(start, stop)
        candidates = _candidates(model, X[part])
        if ignore is not None:
            _remove(candidates.labels, ignore[part])
        reached += Y[part].multiply(_as_matrix(candidates.labels, Y.shape[1])).nnz
        labels, values = best_labels(model, candidates, thresholds.DEPTH)
        found = threshold_counts(Y[part], labels, values, THRESHOLDS)
        counts += (found.true, found.predicted, found.right)
        ranked[part], scores[part] = labels[:, :depth], values[:, :depth]
    return Measured(Y, ranked, scores, 100 * reached / max(1, Y.nnz), Counts(*counts))


def _candidates(model: Model, X: Any) -> Candidates:
    """Return all candidates that the views propose; none for a document without features."""
    features = check_features(X, model.n_features) if model.vectorizer is None else tfidf.transform(model.vectorizer, X)
    candidates = find_candidates(model.views, Batch(features))
    return replace(candidates, labels=np.where(np.diff(features.indptr)[:, None] > 0, candidates.labels, np.int32(-1)))


def _remove(labels: NDArray[np.int32], ignore: csr_matrix) -> None:
    """Replace ignored labels by -1."""
    for row in np.flatnonzero(np.diff(ignore.indptr)):
        labels[row, np.isin(labels[row], ignore.indices[ignore.indptr[row] : ignore.indptr[row + 1]])] = -1


def _as_matrix(labels: NDArray[np.int32], n_labels: int) -> csr_matrix:
    """Return a table of labels as a 0/1 matrix."""
    rows, columns = np.nonzero(labels >= 0)
    ones = np.ones(len(rows), dtype=np.int8)
    return csr_matrix((ones, (rows, labels[rows, columns])), shape=(len(labels), n_labels))


@dataclass(frozen=True)
class Bin:
    """Labels of about the same frequency in training, and how they fare in the first predictions."""

    name: str
    labels: int
    pairs: int
    predicted: int
    found: int

    @property
    def recall(self) -> float | None:
        """The percentage of true pairs that are predicted; None if there are no true pairs."""
        return 100 * self.found / self.pairs if self.pairs else None

    @property
    def precision(self) -> float | None:
        """The percentage of predictions that are true; None if there are no predictions."""
        return 100 * self.found / self.predicted if self.predicted else None


@dataclass(frozen=True, eq=False)
class Outcome:
    """Counts per label in the first predictions, and the pairs of labels that are confused most often.

    Attributes
    ----------
    true, predicted, found
        Documents per label: with the label, with the label predicted, and with both.
    confusions
        Two labels, and the number of documents in which the first is missed and the second wrongly predicted.
    step
        Confusions are counted on every `step`-th document.
    """

    true: NDArray[np.int64]
    predicted: NDArray[np.int64]
    found: NDArray[np.int64]
    confusions: list[tuple[int, int, int]]
    step: int = 1

    @property
    def wrong(self) -> NDArray[np.int64]:
        """How often each label is predicted and not true."""
        return self.predicted - self.found

    @property
    def missed(self) -> NDArray[np.int64]:
        """How often each label is true and not predicted."""
        return self.true - self.found


def outcome(measured: Measured, k: int = TOP, limit: int = 20) -> Outcome:
    """Count per label in the first k predictions, and list the labels that are confused most often.

    Examples
    --------
    >>> ranked = np.array([[1], [1]], dtype=np.int32)
    >>> scores, counts = np.ones((2, 1), dtype=np.float32), Counts(*np.ones((3, 1), dtype=np.int64))
    >>> counted = outcome(Measured(csr_matrix([[1, 0], [0, 1]]), ranked, scores, 100.0, counts))
    >>> counted.confusions, counted.found.tolist()
    ([(0, 1, 1)], [0, 1])
    """
    Y = measured.Y
    predicted = _as_matrix(measured.ranked[:, :k], Y.shape[1])
    found = csr_matrix(Y.multiply(predicted))
    missed, wrong = (binary_labels(matrix - found, "Y").astype(np.int32) for matrix in (Y, predicted))
    n_pairs = int(np.diff(missed.indptr).astype(np.int64) @ np.diff(wrong.indptr))
    step = max(1, math.ceil(n_pairs / _MAX_PAIRS))
    together = csr_matrix(missed[::step].T @ wrong[::step])
    together.sort_indices()
    pairs = together.tocoo()
    first = np.argsort(-pairs.data, kind="stable")[:limit]
    confusions = np.column_stack([pairs.row[first], pairs.col[first], pairs.data[first]])
    true, given, both = (np.bincount(matrix.indices, minlength=Y.shape[1]) for matrix in (Y, predicted, found))
    return Outcome(true, given, both, [(missed, wrong, n) for missed, wrong, n in confusions.tolist()], step)


def most(counts: NDArray[np.int64], limit: int = 10) -> list[int]:
    """Return the labels with the highest counts above 0; of equals the lower id first.

    >>> most(np.array([2, 0, 5, 2]))
    [2, 0, 3]
    """
    order = np.argsort(-counts, kind="stable")[:limit]
    return [j for j in order.tolist() if counts[j] > 0]


def by_frequency(counted: Outcome, frequency: NDArray[np.int64]) -> list[Bin]:
    """Return accuracy by label frequency, rarest labels first.

    Examples
    --------
    >>> counts = np.array([4, 2, 1])
    >>> [part] = by_frequency(Outcome(counts, counts, np.array([2, 1, 0]), []), np.array([5, 6, 7]))
    >>> part.name, part.labels, round(part.recall or 0)
    ('4–10', 3, 43)
    """
    bin_of = np.searchsorted(_BINS, frequency, side="right") - 1
    sums = [
        np.bincount(bin_of, weights=values, minlength=len(_BINS) - 1).astype(np.int64).tolist()
        for values in (np.ones(len(frequency)), counted.true, counted.predicted, counted.found)
    ]
    names = [f"{a:,}" if a + 1 == b else f"{a:,}–{b - 1:,}" for a, b in pairwise(_BINS)]
    bins = [Bin(name, *numbers) for name, *numbers in zip(names, *sums, strict=True)]
    # Labels without training documents matter only if documents have them.
    return [part for i, part in enumerate(bins) if part.labels and (i > 0 or part.pairs)]
