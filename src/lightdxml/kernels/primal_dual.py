"""Sparse linear classifiers by primal-dual coordinate descent on active sets, one class at a time (Yen et al. 2017).

The weights of a class are soft(v, l1), where v is the sum of its documents, each times its dual and its target. Most
documents have a dual of 0. So a pass visits only an active set: the positives, and the negatives that score highest.
These are found by the columns of the largest weights, drawn at random. The time of a class does not depend on the
number of all documents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels import randomness
from lightdxml.kernels.inverted_index import push
from lightdxml.kernels.jit import fast_kernel, kernel
from lightdxml.kernels.sparse import Csr, Pattern

_POSITIVE, _ACTIVE, _SCORED = np.uint8(1), np.uint8(2), np.uint8(4)
# Random negatives per positive to start with, and the share of all documents that one search adds at most.
_NEGATIVES, _SHARE = 10, 10
# A search adds this many negatives at least, and reads this many times as many entries of a column at most.
_LEAST_ADDED, _READ = 100, 10
# More weights than this are sampled, one draw for every 20 of them.
_MAX_EXACT, _PER_DRAW = 200, 20
_MIN_CHANGE = 1e-6


class Solver(NamedTuple):
    """How classes are trained: minimize l1 |w|₁ + (|w|² + b²)/2 + Σ cost max(0, 1 − y (w·x + b))².

    Attributes
    ----------
    cost, l1
        The cost of an error, and the weight of the L1 norm, which the bias b is not part of.
    passes
        Passes over the active set, with a search before each but the first.
    prune
        Weights up to this absolute value are dropped in the end.
    seed
        Seed of the first negatives, of the order of documents, and of the draws of weights.
    """

    cost: float
    l1: float
    passes: int
    prune: float
    seed: int


class _Work(NamedTuple):
    """What training a class needs; all zero before and after, up to the lists, of which only the first entries count.

    Attributes
    ----------
    sums, is_touched, touched
        Per feature v, and whether it is in the list of features of documents that have had a dual.
    duals, marks, scores
        Per document: the dual, whether it is positive, active and scored, and the score.
    active, scored
        Lists of documents.
    """

    sums: NDArray[np.float64]
    is_touched: NDArray[np.bool_]
    touched: NDArray[np.int32]
    duals: NDArray[np.float64]
    marks: NDArray[np.uint8]
    scores: NDArray[np.float64]
    active: NDArray[np.int32]
    scored: NDArray[np.int32]


@kernel
def train_classes(
    classes: NDArray[np.int32],
    positives: Pattern,
    X: Csr,
    squares: NDArray[np.float32],
    by_value: Csr,
    solver: Solver,
    biases: NDArray[np.float32],
    columns: NDArray[np.int32],
    weights: NDArray[np.float32],
    counts: NDArray[np.int64],
) -> int:
    """Train classes and store their weights.

    Parameters
    ----------
    classes, positives
        The classes to train, and the documents of every class.
    X, squares
        The documents, and the squared norm of each.
    by_value
        The documents of each feature, those of the highest values first.
    solver
        Costs and passes.
    biases
        Receives the bias of each class.
    columns, weights, counts
        Receive the columns, in any order, and the weights of one class after the other, and the number of each.

    Returns
    -------
    int
        How many classes were trained before `columns` might be too short for the next.
    """
    n_documents, n_features = squares.size, by_value.indptr.size - 1
    work = _Work(
        np.zeros(n_features, np.float64), np.zeros(n_features, np.bool_), np.empty(n_features, np.int32),
        np.zeros(n_documents, np.float64), np.zeros(n_documents, np.uint8), np.zeros(n_documents, np.float64),
        np.empty(n_documents, np.int32), np.empty(n_documents, np.int32),
    )  # fmt: skip
    used = 0
    for i in range(classes.size):
        if columns.size - used < n_features:
            return i
        first, last = positives.indptr[classes[i]], positives.indptr[classes[i] + 1]
        state = randomness.stream(solver.seed, classes[i])
        bias, n_touched = _train(positives.indices[first:last], X, squares, by_value, solver, state, work)
        counts[i] = 0
        biases[i] = bias if abs(bias) > solver.prune else 0.0
        for at in range(n_touched):
            feature = work.touched[at]
            weight = soft(work.sums[feature], solver.l1)
            work.sums[feature], work.is_touched[feature] = 0.0, False
            if abs(weight) > solver.prune:
                columns[used], weights[used] = feature, weight
                used += 1
                counts[i] += 1
    return classes.size


@kernel
def soft(value: float, l1: float) -> float:
    """Return a value moved towards 0 by l1."""
    if value > l1:
        return value - l1
    return value + l1 if value < -l1 else 0.0


@kernel
def _train(
    positives: NDArray[np.int32],
    X: Csr,
    squares: NDArray[np.float32],
    by_value: Csr,
    solver: Solver,
    state: np.uint64,
    work: _Work,
) -> tuple[float, int]:
    """Train a class; return its bias and the number of touched features, which are for the caller to reset."""
    for document in positives:
        work.marks[document] = _POSITIVE
    n, state = _start(positives, state, work)
    bias, n_touched = 0.0, 0
    for number in range(solver.passes):
        if number > 0:
            n = _keep(n, work)
            n, state = _add_best(n, n_touched, by_value, solver.l1, state, work)
        state = randomness.shuffle(work.active, n, 1, state)
        bias, n_touched = _descend(n, X, squares, solver, bias, n_touched, work)
    for at in range(n):
        work.marks[work.active[at]] = 0
        work.duals[work.active[at]] = 0.0
    return bias, n_touched


@kernel
def _start(positives: NDArray[np.int32], state: np.uint64, work: _Work) -> tuple[int, np.uint64]:
    """Make the first active set, of the positives and of random negatives; return its size and the random state."""
    n_documents, n = work.marks.size, positives.size
    for at in range(n):
        work.active[at] = positives[at]
        work.marks[positives[at]] |= _ACTIVE
    wanted = min(_NEGATIVES * n, most_added(n_documents), n_documents - n)
    while n < positives.size + wanted:
        state = randomness.advance(state)
        document = randomness.below(state, n_documents)
        if work.marks[document] == 0:
            work.marks[document] = _ACTIVE
            work.active[n] = document
            n += 1
    return n, state


@kernel
def most_added(n_documents: int) -> int:
    """Return how many negatives become active at once, at most: a tenth of all documents, but one of a few."""
    return max(1, n_documents // _SHARE)


@fast_kernel
def _descend(
    n: int, X: Csr, squares: NDArray[np.float32], solver: Solver, bias: float, n_touched: int, work: _Work
) -> tuple[float, int]:
    """Make a step for each of n active documents; return the bias and the number of touched features."""
    indptr, indices, values = X
    sums, l1, half = work.sums, solver.l1, 0.5 / solver.cost
    for at in range(n):
        document = work.active[at]
        first, last = indptr[document], indptr[document + 1]
        y = 1.0 if work.marks[document] & _POSITIVE else -1.0
        score = bias
        for p in range(first, last):
            score += soft(sums[indices[p]], l1) * values[p]
        dual = work.duals[document]
        # The bias is one more feature, whose value is 1.
        step = (y * score - 1 + half * dual) / (squares[document] + 1 + half)
        change = max(dual - step, 0.0) - dual
        if abs(change) <= _MIN_CHANGE:
            continue
        work.duals[document] = dual + change
        bias += change * y
        for p in range(first, last):
            feature = indices[p]
            sums[feature] += change * y * values[p]
            if not work.is_touched[feature]:
                work.is_touched[feature] = True
                work.touched[n_touched] = feature
                n_touched += 1
    return bias, n_touched


@kernel
def _keep(n: int, work: _Work) -> int:
    """Reduce the active set to positives and to documents with a dual above 0; return its size."""
    kept = 0
    for at in range(n):
        document = work.active[at]
        if work.duals[document] > 0 or work.marks[document] & _POSITIVE:
            work.active[kept] = document
            kept += 1
        else:
            work.marks[document] = 0
    return kept


@kernel
def _add_best(n: int, n_touched: int, by_value: Csr, l1: float, state: np.uint64, work: _Work) -> tuple[int, np.uint64]:
    """Add the negatives with the highest scores to n active documents; return how many these are, and the state."""
    features, estimates = np.empty(n_touched, np.int32), np.empty(n_touched, np.float64)
    size = 0
    for at in range(n_touched):
        weight = soft(work.sums[work.touched[at]], l1)
        if weight != 0:
            features[size], estimates[size] = work.touched[at], weight
            size += 1
    if size > _MAX_EXACT:
        state = sample(estimates[:size], size // _PER_DRAW, state)
    wanted = min(max(n, _LEAST_ADDED), most_added(work.marks.size))
    n_scored = _score(features[:size], estimates[:size], by_value, _READ * wanted, work)
    best, best_scores, found = np.empty(wanted, np.int32), np.empty(wanted, np.float32), 0
    for at in range(n_scored):
        document = work.scored[at]
        found = push(best, best_scores, found, document, np.float32(work.scores[document]))
        work.marks[document], work.scores[document] = 0, 0.0
    for at in range(found):
        work.active[n + at] = best[at]
        work.marks[best[at]] = _ACTIVE
    return n + found, state


@kernel
def sample(weights: NDArray[np.float64], draws: int, state: np.uint64) -> np.uint64:
    """Replace weights by a sparse estimate of them, which is right in the mean; return the next random state.

    The chance of a weight to be drawn is in proportion to its absolute value. Each draw adds the same to the estimate.
    """
    ends, total = np.empty(weights.size, np.float64), 0.0
    for i in range(weights.size):
        total += abs(weights[i])
        ends[i] = total
    estimate = np.zeros(weights.size, np.float64)
    for _ in range(draws):
        state = randomness.advance(state)
        wanted = randomness.uniform(state) * total
        low, high = 0, weights.size - 1
        while low < high:
            middle = (low + high) // 2
            if ends[middle] <= wanted:
                low = middle + 1
            else:
                high = middle
        estimate[low] += total / draws if weights[low] > 0 else -total / draws
    weights[:] = estimate
    return state


@kernel
def _score(features: NDArray[np.int32], weights: NDArray[np.float64], by_value: Csr, longest: int, work: _Work) -> int:
    """Compute scores of documents that are neither positive nor active; return how many there are in `work.scored`.

    Of a column with more entries than `longest` those count that raise scores most: the highest values or, if the
    weight is negative, the lowest.
    """
    indptr, documents, values = by_value
    n = 0
    for at in range(features.size):
        weight = weights[at]
        if weight == 0:
            continue
        first, last = indptr[features[at]], indptr[features[at] + 1]
        if last - first > longest:
            if weight > 0:
                last = first + longest
            else:
                first = last - longest
        for p in range(first, last):
            document = documents[p]
            mark = work.marks[document]
            if mark & (_POSITIVE | _ACTIVE):
                continue
            if mark == 0:
                work.marks[document] = _SCORED
                work.scored[n] = document
                n += 1
            work.scores[document] += weight * values[p]
    return n
