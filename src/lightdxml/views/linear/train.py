"""Training of the linear view: against labels near a document first, then against the hard negatives this yields.

The most frequent labels are trained on all documents and learn a bias. For all other labels that would take too long.
They are trained on positives and hard negatives, with a fixed negative bias: a learned one would accept every document
that is no hard negative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from lightdxml.kernels import linear as kernels
from lightdxml.kernels.sparse import Pattern
from lightdxml.persistence.arrays import Arrays
from lightdxml.views.base import Batch, expect, in_range
from lightdxml.views.linear.inverted import InvertedIndex, search
from lightdxml.views.linear.model import LinearView
from lightdxml.views.linear.options import (
    COST_TRIAL,
    FINAL_ROUND,
    FIRST_ROUND,
    FREQUENT,
    LinearOptions,
    SolverOptions,
)
from lightdxml.views.linear.solver import Documents, Negatives, Problem, SiblingProblem, Weights, inverted, solve
from lightdxml.views.linear.steps import solve_step, solved

if TYPE_CHECKING:
    from lightdxml.config import Config
    from lightdxml.training.run import Run, TrainingData

_PHASE = "linear view"
_FREQUENT, _FIRST, _FINAL, _HARD = "frequent labels", "first round", "final round", "hard negatives"
_CHUNK = 8192


def train(run: Run) -> LinearView:
    """Train the view on the training documents; its steps are checkpointed."""
    data, options, seed = run.data, run.config.linear, run.config.random_state
    documents = solver_documents(data)
    frequent, rest = split_by_frequency(data.label_frequency, data.X, options)

    def all_documents() -> SiblingProblem:
        cost, every = frequent_cost(data, run.config)[0], np.ones(data.X.shape[0], dtype=bool)
        return on_documents(documents, every, data.label_to_docs, frequent, cost, FREQUENT)

    def hard_problem(hard: NDArray[np.int32], solver: Any) -> Problem:
        negatives = negatives_of(data.Y, _near(run), hard, rest, options)
        return Problem(documents, data.label_to_docs, rest, negatives, solver, seed)

    def first_round() -> InvertedIndex:
        nothing = np.empty((data.X.shape[0], 0), dtype=np.int32)
        first = solve_step(run, _PHASE, _FIRST, rest, lambda: hard_problem(nothing, FIRST_ROUND))
        return _inverted([first], run, "float32", frequent[:0])

    on_all = solve_step(run, _PHASE, _FREQUENT, frequent, all_documents)
    hard = _hard_negatives(run, first_round)
    run.forget(_PHASE, _FIRST)
    final = solve_step(run, _PHASE, _FINAL, rest, lambda: hard_problem(hard, FINAL_ROUND))
    return LinearView(_inverted([on_all, final], run, run.config.precision, on_all.classes), options.proposals)


def refit(view: LinearView, run: Run) -> LinearView:
    """Train the labels of held-out documents again, with these documents.

    Frequent labels stay: a few documents more add nothing to them.
    """
    data, every, options = run.data, run.all_data, run.config.linear
    frequent, rest = split_by_frequency(data.label_frequency, data.X, options)
    on_all, final = solved(run, _PHASE, _FREQUENT, frequent), solved(run, _PHASE, _FINAL, rest)
    labels = np.setdiff1d(data.Y_validation.indices, frequent).astype(np.int32)

    def problem() -> Problem:
        held_out = _wrong_labels(view.index, data.X_validation, data.Y_validation, options.hard_negatives)
        hard = np.concatenate([run.product(_PHASE, _HARD)["labels"], held_out])
        near = np.concatenate([_near(run), run.dense.nearest(data.X_validation, _near(run).shape[1])])
        negatives, seed = negatives_of(every.Y, near, hard, labels, options), run.config.random_state
        return Problem(solver_documents(every), every.label_to_docs, labels, negatives, FINAL_ROUND, seed)

    again = solve_step(run, f"refit {_PHASE}", "labels of held-out documents", labels, problem)
    # Of a label that was trained twice the last weights count.
    trained = [on_all, final, again]
    return LinearView(_inverted(trained, run, run.config.precision, on_all.classes), options.proposals)


def on_documents(
    documents: Documents,
    chosen: NDArray[np.bool_],
    label_to_docs: csr_matrix,
    labels: NDArray[np.int32],
    cost: float,
    solver: SolverOptions,
) -> SiblingProblem:
    """Return the problem of training labels on all chosen documents."""
    groups, members = np.zeros(label_to_docs.shape[0], dtype=np.int32), csr_matrix(chosen[None], dtype=np.float32)
    return SiblingProblem(documents, label_to_docs, labels, groups, members, cost, solver, seed=0)


def solver_documents(data: TrainingData) -> Documents:
    """Return the documents to train on as the solver takes them; computed once."""
    return data.memo("documents", lambda: Documents.of(data.X))


def _near(run: Run) -> NDArray[np.int32]:
    """Return the labels nearest to each training document."""
    return run.dense.shortlists[:, : run.config.linear.shortlist_negatives]


def _inverted(trained: list[Weights], run: Run, precision: str, dense: NDArray[np.int32]) -> InvertedIndex:
    data = run.data
    return inverted(trained, data.X.shape[1], data.n_labels, precision, run.config.linear.bias, dense)


def split_by_frequency(
    frequency: NDArray[np.integer[Any]], X: csr_matrix, options: LinearOptions
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the labels to train on all documents, as many as the work allows, and the others that have documents."""
    work = X.nnz + options.document_work * X.shape[0]
    known = int(np.count_nonzero(frequency))
    order = np.argsort(-frequency, kind="stable")[:known].astype(np.int32)
    n = min(known, options.frequent_work // max(1, work))
    return np.sort(order[:n]), np.sort(order[n:])


def frequent_cost(data: TrainingData, config: Config) -> tuple[float, float]:
    """Return the cost with which frequent labels rank held-out documents best, and how many weights a label then keeps.

    It is computed once per `data`, on some of the labels.
    """
    return data.memo(("frequent cost", config.linear), lambda: _choose_cost(data, config))


def _choose_cost(data: TrainingData, config: Config) -> tuple[float, float]:
    Y, documents, options = data.Y, solver_documents(data), config.linear
    frequent, _ = split_by_frequency(data.label_frequency, data.X, options)
    tried = frequent[:: max(1, len(frequent) // options.tried_labels)][: options.tried_labels]
    held = np.arange(Y.shape[0]) % options.held_out_every == 0
    label_to_docs = csr_matrix((diags((~held).astype(np.float32)) @ Y).T)
    label_to_docs.eliminate_zeros()
    X_held, truth = documents.X[held], Y[held][:, tried].toarray()
    outcomes = []
    for cost in options.frequent_costs:
        weights = solve(on_documents(documents, ~held, label_to_docs, tried, cost, COST_TRIAL))
        margins = (X_held @ weights.matrix(X_held.shape[1]).T).toarray() + weights.biases
        kept = len(weights.weights) / max(1, len(tried))
        outcomes.append((mean_average_precision(margins, truth), (cost, kept)))
    # The first of equals, the lowest cost.
    return max(outcomes, key=lambda outcome: outcome[0])[1]


def mean_average_precision(scores: NDArray[np.float32], truth: NDArray[np.float32]) -> float:
    """Return the average precision of each column, in the mean.

    >>> mean_average_precision(np.array([[3.0], [2.0], [1.0]]), np.array([[1.0], [0.0], [1.0]])).__round__(3)
    0.833
    """
    right = np.take_along_axis(truth, np.argsort(-scores, axis=0, kind="stable"), axis=0)
    precision = np.cumsum(right, axis=0) / np.arange(1, len(right) + 1)[:, None]
    return float(((precision * right).sum(axis=0) / np.maximum(right.sum(axis=0), 1)).sum() / max(1, right.shape[1]))


def _hard_negatives(run: Run, first_round: Callable[[], InvertedIndex]) -> NDArray[np.int32]:
    """Return the wrong labels that the first round ranks highest for each training document."""
    data, n = run.data, min(run.config.linear.hard_negatives, run.data.n_labels)
    index = None if run.is_done(_PHASE, _HARD) else first_round()

    def mine(bounds: tuple[int, int]) -> Arrays:
        assert index is not None
        rows = slice(*bounds)
        return {"labels": _wrong_labels(index, data.X[rows], data.Y[rows], n)}

    def check(product: Arrays) -> NDArray[np.int32]:
        found = expect(product["labels"], "hard negatives", (data.X.shape[0], n), np.int32)
        if not in_range(found, -1, data.n_labels):
            raise ValueError("its hard negatives are labels that do not exist")
        return found

    return run.chunks(_PHASE, _HARD, data.X.shape[0], _CHUNK, mine, check)


def _wrong_labels(index: InvertedIndex, X: csr_matrix, Y: csr_matrix, n: int) -> NDArray[np.int32]:
    """Return the n best-ranked labels of each document that are not its own."""
    return search(index, Batch(X), n, _padded(Y))[0]


def _padded(Y: csr_matrix) -> NDArray[np.int32]:
    """Return each document's labels as a row of a table, filled up with -1."""
    counts = np.diff(Y.indptr)
    table = np.full((Y.shape[0], int(counts.max(initial=0))), -1, dtype=np.int32)
    table[np.arange(table.shape[1]) < counts[:, None]] = Y.indices
    return table


def negatives_of(
    Y: csr_matrix,
    near: NDArray[np.int32],
    hard: NDArray[np.int32],
    labels: NDArray[np.int32],
    options: LinearOptions,
) -> Negatives:
    """Return the negatives of these labels: documents that have them as near labels or as hard negatives."""
    n_labels = Y.shape[1]
    wanted = np.zeros(n_labels, dtype=bool)
    wanted[labels] = True
    counts, indptr = np.zeros(n_labels, dtype=np.int64), np.zeros(n_labels + 1, dtype=np.int64)
    own = Pattern.of(Y)
    kernels.group_negatives(near, hard, own, wanted, counts, np.empty(0, dtype=np.int32))
    np.cumsum(counts, out=indptr[1:])
    documents = np.empty(indptr[-1], dtype=np.int32)
    if len(documents):
        kernels.group_negatives(near, hard, own, wanted, indptr[:-1].copy(), documents)
    groups = np.arange(n_labels, dtype=np.int32)
    return Negatives(groups, indptr, documents, (options.cost, options.negative_cost), options.bias)
