"""Linear classifiers on the words themselves, of as many classes as there are, each against documents of its group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix

from lightdxml.config import Precision
from lightdxml.encoder import rounded
from lightdxml.kernels import linear, parallel
from lightdxml.sparse_view import SparseView

_TOLERANCE = 0.1
_TINY = np.float32(1e-6)
# Classes are shared out among threads in so many parts; their number changes no result.
_PARTS = 64
_SQUARED = 4096


@dataclass(frozen=True)
class Care:
    """How far to go with a class.

    Attributes
    ----------
    passes
        Over its documents.
    smallest
        A weight below it is left out.
    least
        One is also left out if, times how large its word usually is beside all others, it is below this: the words that
        stand everywhere have a weight of nearly every class, which changes no order and takes most of the time to read.
    """

    passes: int
    smallest: float
    least: float


@dataclass(frozen=True)
class Weights:
    """Weights of some classes, one class after the other."""

    classes: NDArray[np.int32]
    counts: NDArray[np.int64]
    columns: NDArray[np.int32]
    weights: NDArray[np.float32]
    biases: NDArray[np.float32]

    def matrix(self, n_features: int) -> csr_matrix:
        """Return them as a matrix, a row a class."""
        pointers = np.concatenate([[0], np.cumsum(self.counts)])
        return csr_matrix((self.weights, self.columns, pointers), shape=(len(self.classes), n_features))

    def without(self, classes: NDArray[np.int32]) -> Weights:
        """Return the weights of all classes but these."""
        kept = ~np.isin(self.classes, classes)
        each = np.repeat(kept, self.counts)
        return Weights(self.classes[kept], self.counts[kept], self.columns[each], self.weights[each], self.biases[kept])


@dataclass(frozen=True)
class Documents:
    """The documents as the kernel takes them."""

    X: csr_matrix
    pointers: NDArray[np.int64]
    squares: NDArray[np.float32]
    usual: NDArray[np.float32]

    @staticmethod
    def of(X: csr_matrix) -> Documents:
        """Return them with the squared length of each, and the size of each word where it stands beside all others."""
        squares = np.empty(X.shape[0], dtype=np.float32)
        totals, counts = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        # Some rows at a time: X may be in a file because there is no room for another one.
        for start, stop in parallel.fixed_chunks(X.shape[0], _SQUARED):
            rows = X[start:stop]
            squares[start:stop] = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
            totals += np.bincount(rows.indices, rows.data.astype(np.float64) ** 2, X.shape[1])
            counts += np.bincount(rows.indices, minlength=X.shape[1])
        mean = totals.sum() / max(1, counts.sum())
        usual = np.sqrt(totals / np.maximum(counts, 1) / (mean or 1)).astype(np.float32)
        return Documents(X, X.indptr.astype(np.int64), squares, usual)

    def smallest(self, care: Care) -> NDArray[np.float32]:
        """Return below what size a weight is left out, by word."""
        by_word: NDArray[np.float32] = np.float32(care.least) / np.maximum(self.usual, _TINY)
        np.maximum(by_word, np.float32(care.smallest), out=by_word)
        return by_word


@dataclass(frozen=True)
class Against:
    """What speaks against classes, and what an error costs.

    Attributes
    ----------
    groups
        The group of every class.
    pointers, documents
        The documents of one group after the other: those that are not a class's own speak against it.
    costs
        Of an error on a positive, and on a negative.
    bias
        That of every class; None to learn it.
    """

    groups: NDArray[np.int32]
    pointers: NDArray[np.int64]
    documents: NDArray[np.int32]
    costs: tuple[float, float]
    bias: float | None


def all_of(documents: NDArray[np.int32], n_classes: int, costs: tuple[float, float]) -> Against:
    """Return that all these documents speak against every class that is not theirs; biases are learnt."""
    pointers = np.array([0, len(documents)], dtype=np.int64)
    return Against(np.zeros(n_classes, dtype=np.int32), pointers, documents, costs, None)


def train(
    documents: Documents,
    documents_of: csr_matrix,
    classes: NDArray[np.int32],
    against: Against,
    care: Care,
    seed: int,
) -> Weights:
    """Train some of the classes, whose own documents are the rows of `documents_of`."""
    work = np.diff(documents_of.indptr)[classes].astype(np.int64)
    work += np.diff(against.pointers)[against.groups[classes]]
    cuts = np.searchsorted(np.cumsum(work), np.linspace(0, work.sum(), _PARTS + 1)[1:-1])
    parts = [part for part in np.split(classes, cuts) if len(part)]
    done = parallel.run(lambda part: _train_part(documents, documents_of, part, against, care, seed), parts)
    return joined([piece for pieces in done for piece in pieces])


def _train_part(
    documents: Documents,
    documents_of: csr_matrix,
    classes: NDArray[np.int32],
    against: Against,
    care: Care,
    seed: int,
) -> list[Weights]:
    """Train the classes of one part, as many at a time as there is room for."""
    X = documents.X
    room, smallest = np.zeros(X.shape[1], dtype=np.float32), documents.smallest(care)
    pieces = []
    while len(classes):
        columns = np.empty(2 * X.shape[1] + 100_000, dtype=np.int32)
        weights = np.empty(len(columns), dtype=np.float32)
        counts, biases = np.zeros(len(classes), dtype=np.int64), np.zeros(len(classes), dtype=np.float32)
        n = linear.train_labels(
            classes, documents_of.indptr.astype(np.int64), documents_of.indices,
            against.groups, against.pointers, against.documents, against.bias is None,
            documents.pointers, X.indices, X.data, documents.squares, against.costs, against.bias or 0.0,
            care.passes, _TOLERANCE, smallest, seed, room, columns, weights, counts, biases,
        )  # fmt: skip
        used = int(counts[:n].sum())
        pieces.append(Weights(classes[:n], counts[:n], columns[:used].copy(), weights[:used].copy(), biases[:n]))
        classes = classes[n:]
    return pieces


def joined(pieces: Sequence[Weights]) -> Weights:
    """Return the weights of several as one."""
    return Weights(
        np.concatenate([np.empty(0, dtype=np.int32), *(piece.classes for piece in pieces)]),
        np.concatenate([np.empty(0, dtype=np.int64), *(piece.counts for piece in pieces)]),
        np.concatenate([np.empty(0, dtype=np.int32), *(piece.columns for piece in pieces)]),
        np.concatenate([np.empty(0, dtype=np.float32), *(piece.weights for piece in pieces)]),
        np.concatenate([np.empty(0, dtype=np.float32), *(piece.biases for piece in pieces)]),
    )


def inverted(
    trained: Sequence[Weights],
    sizes: tuple[int, int],
    precision: Precision,
    bias: float,
    everywhere: NDArray[np.int32],
) -> SparseView:
    """Return the inverted index of weights: by word, in the order of classes; classes not trained have this bias.

    Parameters
    ----------
    trained
        Weights of classes, none of them twice.
    sizes
        How many features and how many classes there are.
    precision
        How weights are kept.
    bias
        That of classes that were not trained.
    everywhere
        Classes that may win without a word of theirs.
    """
    n_features, n_classes = sizes
    every = joined(trained)
    order = np.argsort(every.classes, kind="stable")
    # A sort by counting, for which a comparing one would take ten times as long.
    by_word = csc_matrix(every.matrix(n_features)[order])
    biases = np.full(n_classes, bias, dtype=np.float32)
    biases[every.classes] = every.biases
    classes = every.classes[order][by_word.indices]
    return SparseView(by_word.indptr.astype(np.int64), classes, rounded(by_word.data, precision), biases, everywhere)
