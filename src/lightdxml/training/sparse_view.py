"""The sparse view's training: first against the labels nearby, then against those that it wrongly puts on top.

The most frequent labels are trained on all documents and learn a bias. For all others that would take too long, and
with hard negatives alone a learnt bias says yes to everything else: theirs is fixed, and says no to a document without
a word of theirs. Documents that were set aside for validation are learnt in the end: labels with three documents miss
each one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from lightdxml import sparse_view
from lightdxml.config import Config
from lightdxml.kernels import linear as kernels
from lightdxml.kernels import parallel
from lightdxml.progress import Progress
from lightdxml.sparse_view import SparseView
from lightdxml.training import linear
from lightdxml.training.linear import Against, Care, Documents, Weights

_BIAS = -1.0
# Of errors on labels that are trained on all documents: which is best depends on how noisy labels are.
_COSTS_ON_ALL = ((0.25, 0.25), (0.5, 0.5), (1.0, 1.0))
# It is seen on so many of these labels, on one document in so many.
_TRIED, _HELD_BACK = 16, 5
_ON_ALL, _SECOND = Care(8, 0.05, 0.035), Care(20, 0.05, 0.035)
# The first round only has to tell what is confused.
_FIRST = Care(4, 0.15, 0.14)
_MINED = 8192
# What it takes to look at a document, in words.
_A_DOCUMENT = 25


@dataclass(frozen=True)
class Trained:
    """A view, and what it takes to teach it more documents.

    Attributes
    ----------
    view
        The view itself.
    on_all, rest
        The weights of the frequent labels and of the others.
    near, confused
        Of each document, labels that stand near it and labels that the first round confused with its own.
    """

    view: SparseView
    on_all: Weights
    rest: Weights
    near: NDArray[np.int32]
    confused: NDArray[np.int32]


def train(X: csr_matrix, Y: csr_matrix, shortlists: NDArray[np.int32], config: Config, progress: Progress) -> Trained:
    """Train on documents whose shortlists S_k say which labels are near."""
    documents, documents_of = Documents.of(X), csr_matrix(Y.T)
    work = X.nnz + _A_DOCUMENT * X.shape[0]
    frequent, rest = shared_out(np.diff(documents_of.indptr), work, config.sparse_work)
    with progress.phase("sparse view: frequent labels", len(frequent)) as bar:
        costs = _costs_on_all(documents, Y, frequent, config.seed)
        everything = linear.all_of(np.arange(X.shape[0], dtype=np.int32), Y.shape[1], costs)
        on_all = linear.train(documents, documents_of, frequent, everything, _ON_ALL, config.seed)
        bar.advance(len(frequent))
    near = shortlists[:, : config.near_negatives]
    with progress.phase("sparse view: first round", len(rest)) as bar:
        negatives = _negatives(Y, near, near[:, :0], rest, config)
        once = linear.train(documents, documents_of, rest, negatives, _FIRST, config.seed)
        first = linear.inverted([once], (X.shape[1], Y.shape[1]), "float32", _BIAS, frequent[:0])
        bar.advance(len(rest))
    with progress.phase("sparse view: what it confuses", X.shape[0]) as bar:
        confused = np.empty((X.shape[0], min(config.sparse_negatives, Y.shape[1])), dtype=np.int32)
        for start, stop in parallel.fixed_chunks(X.shape[0], _MINED):
            confused[start:stop] = _confused(first, X[start:stop], Y[start:stop], confused.shape[1])
            bar.advance(stop - start)
    del first
    with progress.phase("sparse view: second round", len(rest)) as bar:
        negatives = _negatives(Y, near, confused, rest, config)
        second = linear.train(documents, documents_of, rest, negatives, _SECOND, config.seed)
        bar.advance(len(rest))
    view = _view([on_all, second], Y.shape[1], X.shape[1], config)
    return Trained(view, on_all, second, near, confused)


def _costs_on_all(documents: Documents, Y: csr_matrix, frequent: NDArray[np.int32], seed: int) -> tuple[float, float]:
    """Return the costs by which some frequent labels find their documents best among those held back."""
    tried = frequent[:: max(1, len(frequent) // _TRIED)][:_TRIED]
    back = np.arange(Y.shape[0]) % _HELD_BACK == 0
    others = np.flatnonzero(~back).astype(np.int32)
    documents_of = csr_matrix((diags((~back).astype(np.float32)) @ Y).T)
    documents_of.eliminate_zeros()
    held, truth = documents.X[back], Y[back][:, tried].toarray()
    found = []
    for costs in _COSTS_ON_ALL:
        against = linear.all_of(others, Y.shape[1], costs)
        weights = linear.train(documents, documents_of, tried, against, _ON_ALL, seed)
        margins = (held @ weights.matrix(held.shape[1]).T).toarray() + weights.biases
        found.append(_average_precision(margins, truth))
    return _COSTS_ON_ALL[int(np.argmax(found))]


def _average_precision(scores: NDArray[np.float32], truth: NDArray[np.float32]) -> float:
    """Return the mean over labels, by column, of the precision at each document that is right.

    >>> _average_precision(np.array([[3.0], [2.0], [1.0]]), np.array([[1.0], [0.0], [1.0]])).__round__(3)
    0.833
    """
    right = np.take_along_axis(truth, np.argsort(-scores, axis=0, kind="stable"), axis=0)
    precision = np.cumsum(right, axis=0) / np.arange(1, len(right) + 1)[:, None]
    return float(((precision * right).sum(axis=0) / np.maximum(right.sum(axis=0), 1)).sum() / max(1, right.shape[1]))


def learn_more(
    trained: Trained,
    X: csr_matrix,
    Y: csr_matrix,
    n_more: int,
    shortlists: NDArray[np.int32],
    config: Config,
    progress: Progress,
) -> SparseView:
    """Teach a view the last documents of X and Y, whose shortlists are given; the others it was trained on.

    Only labels of theirs are trained anew, and no frequent one, to which a few documents more add nothing.
    """
    X_more, Y_more = X[-n_more:], Y[-n_more:]
    labels = np.setdiff1d(Y_more.indices, trained.on_all.classes).astype(np.int32)
    with progress.phase("sparse view: documents set aside", len(labels)) as bar:
        near = np.concatenate([trained.near, shortlists[:, : config.near_negatives]])
        confused = np.concatenate(
            [trained.confused, _confused(trained.view, X_more, Y_more, trained.confused.shape[1])]
        )
        negatives = _negatives(Y, near, confused, labels, config)
        anew = linear.train(Documents.of(X), csr_matrix(Y.T), labels, negatives, _SECOND, config.seed)
        bar.advance(len(labels))
    return _view([trained.on_all, trained.rest.without(labels), anew], Y.shape[1], X.shape[1], config)


def shared_out(frequency: NDArray[np.int64], one: int, work: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the labels to train on all documents, where one takes so much work, and the others that have documents.

    >>> frequent, rest = shared_out(np.array([3, 0, 5, 1]), one=10, work=20)
    >>> frequent.tolist(), rest.tolist()
    ([0, 2], [3])
    """
    known = int(np.count_nonzero(frequency))
    order = np.argsort(-frequency, kind="stable")[:known].astype(np.int32)
    n = min(known, work // max(1, one))
    return np.sort(order[:n]), np.sort(order[n:])


def _confused(view: SparseView, X: csr_matrix, Y: csr_matrix, n: int) -> NDArray[np.int32]:
    """Return the n labels that a view puts on top of each document without their being its own."""
    return sparse_view.find(view, X, n, _padded(Y)).labels


def _padded(Y: csr_matrix) -> NDArray[np.int32]:
    """Return each document's labels as a row of a table, -1 for none."""
    counts = np.diff(Y.indptr)
    table = np.full((Y.shape[0], int(counts.max(initial=0))), -1, dtype=np.int32)
    table[np.arange(table.shape[1]) < counts[:, None]] = Y.indices
    return table


def _negatives(
    Y: csr_matrix, near: NDArray[np.int32], confused: NDArray[np.int32], labels: NDArray[np.int32], config: Config
) -> Against:
    """Return what speaks against these labels: the documents that they stand near, or were confused with."""
    wanted = np.zeros(Y.shape[1], dtype=bool)
    wanted[labels] = True
    counts, pointers = np.zeros(Y.shape[1], dtype=np.int64), np.zeros(Y.shape[1] + 1, dtype=np.int64)
    right = Y.indptr.astype(np.int64), Y.indices
    kernels.negatives_of_labels(near, confused, *right, wanted, counts, np.empty(0, dtype=np.int32))
    np.cumsum(counts, out=pointers[1:])
    documents = np.empty(pointers[-1], dtype=np.int32)
    if len(documents):
        kernels.negatives_of_labels(near, confused, *right, wanted, pointers[:-1].copy(), documents)
    costs = config.sparse_cost, config.sparse_cost * config.sparse_negative_cost
    return Against(np.arange(Y.shape[1], dtype=np.int32), pointers, documents, costs, _BIAS)


def _view(trained: list[Weights], n_labels: int, n_features: int, config: Config) -> SparseView:
    """Return the view of all weights; those trained first may win without a word of theirs."""
    return linear.inverted(trained, (n_features, n_labels), config.precision, _BIAS, trained[0].classes)
