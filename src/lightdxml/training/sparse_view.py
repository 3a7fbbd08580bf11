"""The sparse view's training: first against the labels nearby, then against those that it wrongly puts on top.

The most frequent labels are trained on all documents and learn a bias. For all others that would take too long, and
with hard negatives alone a learnt bias says yes to everything else: theirs is fixed, and says no to a document without
a word of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import sparse_view
from lightdxml.config import Config, Precision
from lightdxml.encoder import rounded
from lightdxml.kernels import linear, parallel
from lightdxml.progress import Progress
from lightdxml.sparse_view import SparseView

_BIAS = -1.0


@dataclass(frozen=True)
class _Care:
    """How far to go: passes over a label's documents, and below what size a weight is left out."""

    passes: int
    smallest: float


_TOLERANCE = 0.1
_ON_ALL, _SECOND = _Care(8, 0.05), _Care(20, 0.05)
# The first round only has to tell what is confused.
_FIRST = _Care(4, 0.15)
# Labels are shared out among threads in so many parts; their number changes no result.
_PARTS = 64
_MINED = 8192


@dataclass(frozen=True)
class _Weights:
    """Weights of some labels, one label after the other."""

    labels: NDArray[np.int32]
    counts: NDArray[np.int64]
    columns: NDArray[np.int32]
    weights: NDArray[np.float32]
    biases: NDArray[np.float32]


@dataclass(frozen=True)
class _Data:
    """The documents as the kernel takes them."""

    X: csr_matrix
    pointers: NDArray[np.int64]
    squares: NDArray[np.float32]
    documents_of: csr_matrix

    @staticmethod
    def of(X: csr_matrix, Y: csr_matrix) -> _Data:
        squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float32).ravel()
        return _Data(X, X.indptr.astype(np.int64), squares, csr_matrix(Y.T))


def train(
    X: csr_matrix, Y: csr_matrix, shortlists: NDArray[np.int32], config: Config, progress: Progress
) -> SparseView:
    """Train on documents whose shortlists S_k say which labels are near."""
    data = _Data.of(X, Y)
    frequent, rest = shared_out(np.diff(data.documents_of.indptr), X.nnz, config.sparse_work)
    with progress.phase("sparse view: frequent labels", len(frequent)) as bar:
        on_all = _train(data, frequent, None, config, _ON_ALL)
        bar.advance(len(frequent))
    near = shortlists[:, : config.sparse_negatives // 2]
    with progress.phase("sparse view: first round", len(rest)) as bar:
        once = _train(data, rest, _negatives(Y, near, near[:, :0], rest), config, _FIRST)
        first = _view([on_all, once], (X.shape[1], Y.shape[1]), "float32")
        bar.advance(len(rest))
    with progress.phase("sparse view: what it confuses", X.shape[0]) as bar:
        confused = np.empty((X.shape[0], min(config.sparse_negatives, Y.shape[1])), dtype=np.int32)
        for start, stop in parallel.fixed_chunks(X.shape[0], _MINED):
            confused[start:stop] = sparse_view.find(
                first, X[start:stop], confused.shape[1], _padded(Y[start:stop])
            ).labels
            bar.advance(stop - start)
    with progress.phase("sparse view: second round", len(rest)) as bar:
        second = _train(data, rest, _negatives(Y, near, confused, rest), config, _SECOND)
        bar.advance(len(rest))
    return _view([on_all, second], (X.shape[1], Y.shape[1]), config.precision)


def shared_out(frequency: NDArray[np.int64], n_entries: int, work: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the labels to train on all documents, which have so many words, and the others that have documents.

    >>> frequent, rest = shared_out(np.array([3, 0, 5, 1]), n_entries=10, work=20)
    >>> frequent.tolist(), rest.tolist()
    ([0, 2], [3])
    """
    known = int(np.count_nonzero(frequency))
    order = np.argsort(-frequency, kind="stable")[:known].astype(np.int32)
    n = min(known, work // max(1, n_entries))
    return np.sort(order[:n]), np.sort(order[n:])


def _padded(Y: csr_matrix) -> NDArray[np.int32]:
    """Return each document's labels as a row of a table, -1 for none."""
    counts = np.diff(Y.indptr)
    table = np.full((Y.shape[0], int(counts.max(initial=0))), -1, dtype=np.int32)
    table[np.arange(table.shape[1]) < counts[:, None]] = Y.indices
    return table


@dataclass(frozen=True)
class _Negatives:
    """By label, the documents near which it stands without being theirs."""

    pointers: NDArray[np.int64]
    documents: NDArray[np.int32]


def _negatives(
    Y: csr_matrix, near: NDArray[np.int32], confused: NDArray[np.int32], labels: NDArray[np.int32]
) -> _Negatives:
    """Return the negatives of these labels alone: those nearby, and those that were confused."""
    wanted = np.zeros(Y.shape[1], dtype=bool)
    wanted[labels] = True
    counts, pointers = np.zeros(Y.shape[1], dtype=np.int64), np.zeros(Y.shape[1] + 1, dtype=np.int64)
    right = Y.indptr.astype(np.int64), Y.indices
    linear.negatives_of_labels(near, confused, *right, wanted, counts, np.empty(0, dtype=np.int32))
    np.cumsum(counts, out=pointers[1:])
    documents = np.empty(pointers[-1], dtype=np.int32)
    if len(documents):
        linear.negatives_of_labels(near, confused, *right, wanted, pointers[:-1].copy(), documents)
    return _Negatives(pointers, documents)


def _train(
    data: _Data, labels: NDArray[np.int32], negatives: _Negatives | None, config: Config, care: _Care
) -> _Weights:
    """Train some labels against these documents, or against all."""
    work = np.diff(data.documents_of.indptr)[labels].astype(np.int64)
    work += data.X.shape[0] if negatives is None else np.diff(negatives.pointers)[labels]
    cuts = np.searchsorted(np.cumsum(work), np.linspace(0, work.sum(), _PARTS + 1)[1:-1])
    parts = [part for part in np.split(labels, cuts) if len(part)]
    done = parallel.run(lambda part: _train_part(data, part, negatives, config, care), parts)
    return _joined(labels, [piece for pieces in done for piece in pieces])


def _train_part(
    data: _Data, labels: NDArray[np.int32], negatives: _Negatives | None, config: Config, care: _Care
) -> list[_Weights]:
    """Train the labels of one part, as many at a time as there is room for."""
    X, documents_of = data.X, data.documents_of
    none = np.empty(0, dtype=np.int64)
    room = np.zeros(X.shape[1], dtype=np.float32)
    pieces = []
    while len(labels):
        columns = np.empty(2 * X.shape[1] + 100_000, dtype=np.int32)
        weights = np.empty(len(columns), dtype=np.float32)
        counts, biases = np.zeros(len(labels), dtype=np.int64), np.zeros(len(labels), dtype=np.float32)
        n = linear.train_labels(
            labels, documents_of.indptr.astype(np.int64), documents_of.indices,
            none if negatives is None else negatives.pointers,
            documents_of.indices if negatives is None else negatives.documents,
            data.pointers, X.indices, X.data, data.squares,
            (config.sparse_cost, config.sparse_cost * config.sparse_negative_cost),
            _BIAS, care.passes, _TOLERANCE, care.smallest, config.seed, room, columns, weights, counts, biases,
        )  # fmt: skip
        used = int(counts[:n].sum())
        pieces.append(_Weights(labels[:n], counts[:n], columns[:used].copy(), weights[:used].copy(), biases[:n]))
        labels = labels[n:]
    return pieces


def _joined(labels: NDArray[np.int32], pieces: Sequence[_Weights]) -> _Weights:
    if not pieces:
        nothing = np.empty(0, dtype=np.float32)
        return _Weights(labels, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32), nothing, nothing)
    return _Weights(
        np.concatenate([piece.labels for piece in pieces]),
        np.concatenate([piece.counts for piece in pieces]),
        np.concatenate([piece.columns for piece in pieces]),
        np.concatenate([piece.weights for piece in pieces]),
        np.concatenate([piece.biases for piece in pieces]),
    )


def _view(trained: Sequence[_Weights], sizes: tuple[int, int], precision: Precision) -> SparseView:
    """Return the inverted index of weights: by word, in the order of labels."""
    n_features, n_labels = sizes
    labels = np.concatenate([np.repeat(part.labels, part.counts) for part in trained])
    columns = np.concatenate([part.columns for part in trained])
    weights = np.concatenate([part.weights for part in trained])
    order = np.lexsort((labels, columns))
    pointers = np.zeros(n_features + 1, dtype=np.int64)
    np.cumsum(np.bincount(columns, minlength=n_features), out=pointers[1:])
    biases = np.full(n_labels, _BIAS, dtype=np.float32)
    for part in trained:
        biases[part.labels] = part.biases
    return SparseView(pointers, labels[order], rounded(weights[order], precision), biases, trained[0].labels)
