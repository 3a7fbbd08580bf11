"""Sparse linear classifiers of many classes by dual coordinate descent, each against the documents of its group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import inverted_index, linear, parallel
from lightdxml.kernels.precision import as_bits, rounded
from lightdxml.kernels.sparse import Csr, Pattern, read_only
from lightdxml.persistence.arrays import Arrays
from lightdxml.views.base import expect, in_range
from lightdxml.views.linear.inverted import InvertedIndex, n_blocks
from lightdxml.views.linear.options import SolverOptions

if TYPE_CHECKING:
    from lightdxml.training.run import TrainingData

_MIN_SIZE = np.float32(1e-6)
_ROWS = 4096
# A part of the classes is the unit of work of a thread, of progress and of checkpoints: well below a second each.
# Classes are independent, so their number changes no result.
_MIN_PARTS, _PART_WORK = 64, 5_000_000


@dataclass(frozen=True)
class Weights:
    """Weights of some classes, one class after the other."""

    classes: NDArray[np.int32]
    counts: NDArray[np.int64]
    columns: NDArray[np.int32]
    weights: NDArray[np.float32]
    biases: NDArray[np.float32]

    def arrays(self) -> Arrays:
        """Return all arrays by name, for a checkpoint."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


def no_weights(classes: NDArray[np.int32], bias: float) -> Weights:
    """Return classes that have this bias and no weights.

    >>> no_weights(np.array([7], dtype=np.int32), -1.0).counts.tolist()
    [0]
    """
    biases = np.full(len(classes), bias, dtype=np.float32)
    return Weights(classes, np.zeros(len(classes), np.int64), np.empty(0, np.int32), np.empty(0, np.float32), biases)


def restore_weights(arrays: Arrays, classes: NDArray[np.int32], n_features: int) -> Weights:
    """Return weights of these classes from arrays that may come from a checkpoint, or raise a `ValueError`."""
    found = Weights(**{one.name: arrays[one.name] for one in fields(Weights)})
    n, total = len(classes), int(found.counts.sum())
    for name, size, kind in (
        ("classes", n, np.int32), ("counts", n, np.int64), ("columns", total, np.int32),
        ("weights", total, np.float32), ("biases", n, np.float32),
    ):  # fmt: skip
        expect(arrays[name], name, (size,), kind)
    if not np.array_equal(found.classes, classes):
        raise ValueError("its weights are of other labels")
    if not in_range(found.counts, 0, n_features + 1) or not in_range(found.columns, 0, n_features):
        raise ValueError("its weights are of features that do not exist")
    if not np.isfinite(found.weights).all() or not np.isfinite(found.biases).all():
        raise ValueError("its weights are not finite")
    return found


@dataclass(frozen=True)
class Documents:
    """Documents as the kernel takes them."""

    X: csr_matrix
    arrays: Csr
    squares: NDArray[np.float32]
    usual: NDArray[np.float32]
    weights: NDArray[np.float32]

    @staticmethod
    def of(X: csr_matrix, weights: NDArray[np.float32] | None = None) -> Documents:
        """Return documents with their squared norms, and the usual size of each feature relative to all features.

        `weights` are how much each document counts; None if all count the same.
        """
        squares = np.empty(X.shape[0], dtype=np.float32)
        totals, counts = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        # In blocks of rows: X may be in a file because memory has no space for another copy.
        for start, stop in parallel.fixed_chunks(X.shape[0], _ROWS):
            rows = X[start:stop]
            squares[start:stop] = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
            totals += np.bincount(rows.indices, rows.data.astype(np.float64) ** 2, X.shape[1])
            counts += np.bincount(rows.indices, minlength=X.shape[1])
        mean = totals.sum() / max(1, counts.sum())
        usual = np.sqrt(totals / np.maximum(counts, 1) / (mean or 1)).astype(np.float32)
        # Words of names that no document has.
        usual[counts == 0] = 1
        if weights is None:
            weights = np.ones(X.shape[0], dtype=np.float32)
        return Documents(X, Csr.of(X), squares, usual, weights)

    def thresholds(self, options: SolverOptions) -> NDArray[np.float32]:
        """Return the size below which a weight is pruned, by feature."""
        by_feature: NDArray[np.float32] = np.float32(options.prune_rel) / np.maximum(self.usual, _MIN_SIZE)
        np.maximum(by_feature, np.float32(options.prune_abs), out=by_feature)
        return by_feature


def solver_documents(data: TrainingData) -> Documents:
    """Return the documents to train on as the solver takes them; computed once."""
    return data.memo("documents", lambda: Documents.of(data.X, data.weights))


@dataclass(frozen=True)
class Problem:
    """Classes to train, each against the documents of its group.

    Attributes
    ----------
    documents
        The documents.
    label_to_docs
        The documents of every class, its positives.
    classes
        The classes to train, those of one group one after the other.
    groups, members
        The group of every class, and the documents of every group, among which are those of its classes.
    cost
        Cost C of an error.
    solver
        How they are trained.
    seed
        Seed of the order of documents.
    prior
        Weights of every class towards which it is regularized, where it starts; None for zero.
    own
        A document of every class that it is not trained on, -1 for none; None if no class has one.
    prior_biases
        The bias of every class towards which it is regularized; None for that of the solver.
    is_solved, first_new
        Whether the prior of every class solves the problem of all documents before `first_new`; None if none does.
    """

    documents: Documents
    label_to_docs: csr_matrix
    classes: NDArray[np.int32]
    groups: NDArray[np.int32]
    members: Pattern
    cost: float
    solver: SolverOptions
    seed: int
    prior: csr_matrix | None = None
    own: NDArray[np.int32] | None = None
    prior_biases: NDArray[np.float32] | None = None
    is_solved: NDArray[np.uint8] | None = None
    first_new: int = 0

    def parts(self) -> list[NDArray[np.int32]]:
        """Return the classes in parts of nearly equal work, without cutting a block that is trained together."""
        own = self.groups[self.classes]
        firsts = np.flatnonzero(np.diff(own, prepend=-1))
        within = np.arange(len(own)) - np.repeat(firsts, np.diff(np.append(firsts, len(own))))
        starts = np.flatnonzero(within % linear.LANES == 0)
        sizes = np.diff(self.members.indptr)[own[starts]].astype(np.int64)
        return _parts(self.classes, starts, sizes, self.documents)

    def solve(self, classes: NDArray[np.int32]) -> Weights:
        """Train some of the classes: whole blocks, as `parts` returns them."""
        n_features, options = self.documents.X.shape[1], self.solver
        W, documents = np.zeros((n_features, linear.LANES), np.float32), self.documents
        solver = linear.Solver(
            self.cost, options.bias, options.bias_rate, options.max_iter, options.tolerance, self.seed, options.hard
        )
        positives, members = Pattern.of(self.label_to_docs), self.members.read_only()
        prior = Csr.of(csr_matrix((0, n_features), dtype=np.float32) if self.prior is None else self.prior)
        empty = tuple(np.empty(0, dtype=kind) for kind in (np.float32, np.uint8, np.int32))
        by_class = tuple(
            read_only(none if given is None else given)
            for given, none in zip((self.prior_biases, self.is_solved, self.own), empty, strict=True)
        )
        by_document = read_only(documents.squares), read_only(documents.weights)
        groups, thresholds = read_only(self.groups), read_only(documents.thresholds(options))

        def train(some: NDArray[np.int32], biases: NDArray[np.float32], *out: NDArray[Any]) -> int:
            return linear.train_classes(
                read_only(some), positives, groups, members, documents.arrays, *by_document, solver, prior, by_class[0],
                by_class[1], self.first_new, by_class[2], thresholds, linear.MAX_COPIED, W, biases, *out,
            )  # fmt: skip

        return in_pieces(train, classes, linear.LANES * n_features + 100_000)


def _parts(
    classes: NDArray[np.int32], starts: NDArray[np.int64], sizes: NDArray[np.int64], documents: Documents
) -> list[NDArray[np.int32]]:
    """Cut classes into parts of nearly equal work, which begin at some of these positions.

    `sizes` are the numbers of documents between one position and the next.
    """
    per_document = documents.X.nnz / max(1, documents.X.shape[0])
    n_parts = max(_MIN_PARTS, int(sizes.sum() * per_document) // _PART_WORK)
    cuts = np.searchsorted(np.cumsum(sizes), np.linspace(0, sizes.sum(), n_parts + 1)[1:-1])
    return [part for part in np.split(classes, np.append(starts, len(classes))[cuts]) if len(part)]


def in_pieces(train: Callable[..., int], classes: NDArray[np.int32], size: int) -> Weights:
    """Train classes into buffers of this size, as many as it takes, and join what they hold."""
    pieces = []
    while len(classes):
        columns, weights = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.float32)
        counts, biases = np.zeros(len(classes), dtype=np.int64), np.zeros(len(classes), dtype=np.float32)
        n = train(classes, biases, columns, weights, counts)
        used = int(counts[:n].sum())
        pieces.append(Weights(classes[:n], counts[:n], columns[:used].copy(), weights[:used].copy(), biases[:n]))
        classes = classes[n:]
    return joined(pieces)


def solve(problem: Problem, after: Callable[[int], object] | None = None) -> Weights:
    """Train all classes of a problem at once, without checkpoints; `after` is called now and then and may stop it."""
    return joined(parallel.run(problem.solve, problem.parts(), after))


def joined(pieces: list[Weights]) -> Weights:
    """Return several sets of weights as one; the list is emptied, to release each set when it has been copied."""
    n, total = sum(len(piece.classes) for piece in pieces), sum(len(piece.weights) for piece in pieces)
    every = Weights(
        np.empty(n, dtype=np.int32),
        np.empty(n, dtype=np.int64),
        np.empty(total, dtype=np.int32),
        np.empty(total, dtype=np.float32),
        np.empty(n, dtype=np.float32),
    )
    while pieces:
        piece = pieces.pop()
        for name, array in piece.arrays().items():
            end = total if name in ("columns", "weights") else n
            getattr(every, name)[end - len(array) : end] = array
        n, total = n - len(piece.classes), total - len(piece.weights)
    return every


def inverted_rows(rows: csr_matrix, precision: str = "float32") -> InvertedIndex:
    """Return an index of the rows of a matrix, without biases.

    >>> inverted_rows(csr_matrix([[0.0, 2.0]], dtype=np.float32)).weights.tolist()
    [2.0]
    """
    classes, counts = np.arange(rows.shape[0], dtype=np.int32), np.diff(rows.indptr).astype(np.int64)
    no_biases = np.zeros(rows.shape[0], dtype=np.float32)
    weights = Weights(classes, counts, rows.indices, rows.data, no_biases)
    return inverted([weights], rows.shape[1], rows.shape[0], precision, 0.0, classes[:0])


def inverted(
    trained: Sequence[Weights], n_features: int, n_classes: int, precision: str, bias: float, dense: NDArray[np.int32]
) -> InvertedIndex:
    """Return weights as an inverted index; classes that were not trained get this bias.

    Parameters
    ----------
    trained
        Weights of classes. Of a class that occurs several times the last one counts.
    n_features, n_classes
        The size of the index.
    precision
        The floating-point type of the weights.
    bias
        The bias of classes without weights.
    dense
        Classes that can rank high without a feature in common with the document.
    """
    biases, source = np.full(n_classes, bias, dtype=np.float32), np.full(n_classes, -1, dtype=np.int64)
    for number, part in enumerate(trained):
        biases[part.classes], source[part.classes] = part.biases, number
    starts, counts = np.zeros(n_classes, dtype=np.int64), np.zeros(n_classes, dtype=np.int64)
    totals = np.zeros((n_blocks(n_classes), n_features), dtype=np.int64)
    for number, part in enumerate(trained):
        own = source[part.classes] == number
        classes = part.classes[own]
        starts[classes], counts[classes] = (np.cumsum(part.counts) - part.counts)[own], part.counts[own]
        inverted_index.count_features(classes, starts[classes], counts[classes], part.columns, totals)
    ends = np.cumsum(totals).reshape(totals.shape)
    positions = ends - totals
    indptr = np.concatenate([positions[:, :1] if n_features else np.zeros((len(totals), 1), np.int64), ends], axis=1)
    # Rounded before they are copied: an index in float32 would take twice the memory.
    rounded_parts = [rounded(part.weights, precision) for part in trained]
    # In float32, all of them, if a part would overflow in float16.
    kind = np.result_type(precision, *(part.dtype for part in rounded_parts))
    weights = [as_bits(part.astype(kind, copy=False)) for part in rounded_parts]
    out = np.empty(totals.sum(), dtype=np.uint16), np.empty(totals.sum(), dtype=kind)
    # In the order of classes, so that the classes of each feature ascend.
    known = np.flatnonzero(source >= 0).astype(np.int32)
    for run in np.split(known, np.flatnonzero(np.diff(source[known])) + 1) if len(known) else ():
        number = int(source[run[0]])
        columns, to = trained[number].columns, (out[0], as_bits(out[1]))
        inverted_index.fill(run, starts[run], counts[run], columns, weights[number], positions, *to)
    return InvertedIndex(indptr, *out, biases, dense)
