"""A part of the classifier: neighboring labels, with all that a training step needs to know of them.

The labels are divided into a fixed number of parts, wherever these are: a step sends the embeddings of a batch to all
parts, and adds up their gradients in a fixed order. So neither threads nor machines change a bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import classifier as kernels
from lightdxml.kernels.adam import AdamRows
from lightdxml.kernels.sparse import Groups, Pattern, read_only
from lightdxml.views.dense.options import DenseOptions


class Labels(NamedTuple):
    """What parts are created from: weights of all labels, and the labels of all documents."""

    weights: AdamRows
    Y: csr_matrix
    options: DenseOptions


class Shortlists(NamedTuple):
    """The shortlists of some of n documents, from `first` on: labels near each of them, -1 for none."""

    first: int
    n: int
    rows: NDArray[np.int32]


class EmbeddedBatch(NamedTuple):
    """Documents of a batch with their embeddings, the seed of the random negatives, and the learning rate."""

    rows: NDArray[np.int32]
    embeddings: NDArray[np.float32]
    seed: int
    rate: np.float32


@dataclass
class Buffers:
    """The (document, label) pairs of one batch, by document and by label."""

    pairs: kernels.Pairs
    by_label: Groups

    @staticmethod
    def of(n_pairs: int, n_documents: int) -> Buffers:
        """Return buffers for so many pairs."""
        return Buffers(
            kernels.Pairs(
                indptr=np.empty(n_documents + 1, dtype=np.int64),
                labels=np.empty(n_pairs, dtype=np.int32),
                targets=np.empty(n_pairs, dtype=np.float32),
                weights=np.empty(n_pairs, dtype=np.float32),
            ),
            Groups(
                columns=np.empty(n_pairs, dtype=np.int32),
                indptr=np.empty(n_pairs + 1, dtype=np.int64),
                rows=np.empty(n_pairs, dtype=np.int32),
                positions=np.empty(n_pairs, dtype=np.int64),
            ),
        )


@dataclass
class ClassifierPart:
    """Labels `first` … `last` − 1 of `n_labels`: their weights with Adam's moments, and a workspace.

    Shortlists have labels of other parts, too, if parts share them.
    """

    first: int
    last: int
    n_labels: int
    weights: AdamRows
    positives: Pattern
    options: DenseOptions
    shortlists: Pattern
    buffers: Buffers
    stamps: NDArray[np.int64]
    counts: NDArray[np.int32]
    gradient: NDArray[np.float32]
    stamp: int = 0
    pieces: list[NDArray[np.int32]] = field(default_factory=list)


def create(labels: Labels, bounds: tuple[int, int]) -> ClassifierPart:
    """Return a part. Its weights are those of all labels, unless these are read-only: then it has a copy."""
    (first, last), (weights, Y, options) = bounds, labels
    B = min(options.batch_size, Y.shape[0])
    return ClassifierPart(
        first, last, Y.shape[1], _own(weights, first, last), Pattern.of(Y), options,
        Pattern.empty(0), Buffers.of(B, B), np.full(last - first, -1, dtype=np.int64),
        np.zeros(last - first, dtype=np.int32), np.empty((B, options.dim), dtype=np.float32),
    )  # fmt: skip


def _own(weights: AdamRows, first: int, last: int) -> AdamRows:
    rows, means, squares = weights.rows[first:last], weights.means[first:last], weights.squares[first:last]
    if weights.rows.flags.writeable:
        return AdamRows(rows, means, squares)
    return AdamRows(rows.copy(), means.copy(), squares.copy())


def share_shortlists(part: ClassifierPart, shortlists: Pattern) -> None:
    """Train on these shortlists from now on, which all parts share."""
    part.shortlists = shortlists


def take_shortlists(part: ClassifierPart, some: Shortlists) -> None:
    """Train on these shortlists from now on, which come some documents at a time: the part keeps its own labels."""
    first, n, rows = some
    if first == 0:
        part.shortlists, part.pieces = Pattern.empty(n), []
    is_own = (rows >= part.first) & (rows < part.last)
    indptr = part.shortlists.indptr
    indptr[first + 1 : first + 1 + len(rows)] = indptr[first] + np.cumsum(is_own.sum(axis=1))
    part.pieces.append(rows[is_own])
    if first + len(rows) == n:
        part.shortlists, part.pieces = Pattern(indptr, np.concatenate(part.pieces)), []


def train(part: ClassifierPart, batch: EmbeddedBatch) -> tuple[float, NDArray[np.float32]]:
    """Update the weights of the batch's labels; return the summed loss and the gradient to the embeddings."""
    n, options, X = len(batch.rows), part.options, read_only(batch.embeddings)
    by_document = _pairs(part, batch)
    n_labels = kernels.group_by_column(by_document, part.counts, part.buffers.by_label)
    norms = np.einsum("bd,bd->b", X, X) + np.float32(1)
    is_lazy = 4 * part.n_labels * (options.dim + 1) > options.lazy_bytes
    min_gradient = np.float32(options.lazy_ratio**2 if is_lazy else 0)
    gradient = part.gradient[:n]
    gradient.fill(0)
    loss = kernels.train_step(
        0, n_labels, part.buffers.by_label, part.buffers.pairs, X, norms, part.weights, np.float32(1 / n), batch.rate,
        min_gradient, gradient,
    )  # fmt: skip
    return loss, gradient


def _pairs(part: ClassifierPart, batch: EmbeddedBatch) -> Pattern:
    """Collect the batch's pairs with labels of this part: P_i, S_k(x_i), and a share of the random negatives."""
    n, options = len(batch.rows), part.options
    share = options.random_negatives * (part.last - part.first) / part.n_labels
    negatives = kernels.RandomNegatives(share, options.random_weight, batch.seed)
    shortlists = part.shortlists.read_only()
    while True:
        found = kernels.collect_pairs(
            read_only(batch.rows), part.positives, shortlists, part.first, negatives, part.stamps,
            part.stamp, part.buffers.pairs,
        )  # fmt: skip
        part.stamp += n
        pairs = part.buffers.pairs
        if found <= len(pairs.labels):
            return Pattern(pairs.indptr[: n + 1], pairs.labels)
        part.buffers = Buffers.of(found + found // 4, len(pairs.indptr) - 1)


def weights_of(part: ClassifierPart, _: None) -> AdamRows:
    """Return weights and moments."""
    return part.weights


def largest_weight(part: ClassifierPart, _: None) -> float:
    """Return the largest absolute weight, without a copy of the array; NaN if there is one."""
    rows = part.weights.rows
    return float(np.maximum(rows.max(initial=0), -rows.min(initial=0)))


def bounds_of(Y: csr_matrix, options: DenseOptions) -> Sequence[tuple[int, int]]:
    """Divide the labels into parts with about the same number of pairs per epoch.

    Examples
    --------
    >>> Y = csr_matrix(np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 1]], dtype=np.float32))
    >>> bounds_of(Y, DenseOptions(parts=2, shortlist_size=1, random_negatives=0))
    [(0, 1), (1, 4)]
    """
    frequency = np.bincount(Y.indices, minlength=Y.shape[1])
    # Labels are about as often in a shortlist as they are right.
    often = 1 + Y.shape[0] * options.shortlist_size / max(1, Y.nnz)
    work = frequency * often + Y.shape[0] * options.random_negatives / max(1, Y.shape[1])
    before = np.concatenate([[0.0], np.cumsum(work)])
    cuts = np.searchsorted(before, before[-1] * np.arange(1, options.parts) / options.parts)
    return list(pairwise([0, *cuts.tolist(), Y.shape[1]]))
