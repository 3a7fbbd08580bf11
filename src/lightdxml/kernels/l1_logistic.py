"""Logistic regression with an L1 penalty on sparse columns, by Newton steps: the newGLMNET method of LIBLINEAR.

Each Newton step minimizes a quadratic model of the loss plus the penalty by coordinate descent over the columns, and a
line search makes sure that the objective falls. Columns whose weight is 0 and stays there are left out (Yuan, Ho and
Lin 2012). Everything is in float64 except the values of the columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import fast_kernel, kernel
from lightdxml.kernels.randomness import next_below
from lightdxml.kernels.sparse import Csr

# Added to every second derivative, so that none is 0.
_DAMPING = 1e-12
# The share of the expected decrease that a step must achieve, and how often it is halved for that.
_SUFFICIENT, _MAX_HALVINGS = 0.01, 20
# The longest and the shortest step of one coordinate.
_MAX_STEP, _MIN_STEP = 10.0, 1e-12
# How strict coordinate descent becomes when a single pass was enough.
_STRICTER = 0.25


class Limits(NamedTuple):
    """When to stop.

    Attributes
    ----------
    newton_steps, passes
        The most Newton steps, and the most passes over the columns in each of them.
    tolerance
        The violation of the optimality conditions at which to stop, relative to the violation at weights of 0.
    """

    newton_steps: int
    passes: int
    tolerance: float


class _Columns(NamedTuple):
    """What is known about each column: its weight, the weight to try, both derivatives of the loss, and an order."""

    weights: NDArray[np.float64]
    trial: NDArray[np.float64]
    slopes: NDArray[np.float64]
    curvatures: NDArray[np.float64]
    order: NDArray[np.int32]


class _Rows(NamedTuple):
    """What is known about each row: its w·x, its loss, both derivatives of the loss, and the change of w·x to try."""

    margins: NDArray[np.float64]
    losses: NDArray[np.float64]
    slopes: NDArray[np.float64]
    curvatures: NDArray[np.float64]
    changes: NDArray[np.float64]


@kernel
def fit(
    X: Csr, positive: NDArray[np.bool_], costs: NDArray[np.float64], limits: Limits, state: NDArray[np.uint64]
) -> NDArray[np.float64]:
    """Return the weights w that minimize |w|₁ + Σ cost log(1 + exp(−y w·x)), one per column.

    Parameters
    ----------
    X
        The columns: the rows with an entry, and its value.
    positive
        Which rows have y = 1; the others have −1.
    costs
        The cost of each row.
    state
        The random state (`next_below`): columns are visited in random order.
    """
    n_columns, n_rows = X.indptr.size - 1, positive.size
    zeros = np.zeros((4, n_columns), np.float64)
    columns = _Columns(zeros[0], zeros[1], zeros[2], zeros[3], np.arange(n_columns).astype(np.int32))
    of_rows = np.zeros((5, n_rows), np.float64)
    rows = _Rows(of_rows[0], of_rows[1], of_rows[2], of_rows[3], of_rows[4])
    _move(rows, 0.0, positive, costs)
    largest, at_start, inner = np.inf, 0.0, 1.0
    for step in range(limits.newton_steps):
        active, largest, violation = _differentiate(X, columns, rows, largest / n_rows)
        if step == 0:
            at_start = violation
        if violation <= limits.tolerance * at_start:
            break
        passes = _descend(X, columns, rows, active, inner * at_start, limits.passes, state)
        _search_line(X, columns, rows, positive, costs)
        if passes == 1:
            inner *= _STRICTER
    return columns.weights


@kernel
def _move(rows: _Rows, share: float, positive: NDArray[np.bool_], costs: NDArray[np.float64]) -> None:
    """Add this share of the changes to all margins, and compute losses and derivatives there."""
    for i in range(costs.size):
        margin = rows.margins[i] + share * rows.changes[i]
        rows.margins[i] = margin
        # Of the exponential only the one that cannot overflow.
        small = np.exp(-abs(margin))
        near, far = 1 / (1 + small), small / (1 + small)
        probability, other = (near, far) if margin >= 0 else (far, near)
        rows.losses[i] = costs[i] * _loss(margin if positive[i] else -margin)
        rows.slopes[i] = -costs[i] * other if positive[i] else costs[i] * probability
        rows.curvatures[i] = costs[i] * probability * other


@kernel
def _loss(margin: float) -> float:
    """Return log(1 + exp(−margin))."""
    loss: float = np.log1p(np.exp(-abs(margin))) + max(-margin, 0.0)
    return loss


@fast_kernel
def _product(X: Csr, column: int, of_rows: NDArray[np.float64]) -> float:
    total = 0.0
    for p in range(X.indptr[column], X.indptr[column + 1]):
        total += X.values[p] * of_rows[X.indices[p]]
    return total


@fast_kernel
def _square_product(X: Csr, column: int, of_rows: NDArray[np.float64]) -> float:
    total = 0.0
    for p in range(X.indptr[column], X.indptr[column + 1]):
        total += X.values[p] * X.values[p] * of_rows[X.indices[p]]
    return total


@fast_kernel
def _curved_product(X: Csr, column: int, curvatures: NDArray[np.float64], changes: NDArray[np.float64]) -> float:
    total = 0.0
    for p in range(X.indptr[column], X.indptr[column + 1]):
        total += X.values[p] * curvatures[X.indices[p]] * changes[X.indices[p]]
    return total


@kernel
def _violation(weight: float, slope: float) -> float:
    """Return by how much a weight violates the optimality conditions.

    A weight of 0 is optimal if the slope of the loss is between −1 and 1: by how much it stays within is negative.
    """
    if weight > 0:
        return abs(slope + 1)
    if weight < 0:
        return abs(slope - 1)
    return abs(slope) - 1


@kernel
def _differentiate(X: Csr, columns: _Columns, rows: _Rows, slack: float) -> tuple[int, float, float]:
    """Compute the derivatives at the weights, and move the columns that may change to the front of the order.

    Returns how many these are, and the largest and the total violation. A column with a weight of 0 is left out if its
    slope has more than this slack.
    """
    order = columns.order
    active, largest, total = order.size, 0.0, 0.0
    at = 0
    while at < active:
        j = order[at]
        columns.slopes[j] = slope = _product(X, j, rows.slopes)
        violation = _violation(columns.weights[j], slope)
        if violation < -slack and columns.weights[j] == 0:
            active -= 1
            order[at], order[active] = order[active], j
            continue
        columns.curvatures[j] = _DAMPING + _square_product(X, j, rows.curvatures)
        largest, total = max(largest, violation), total + max(violation, 0.0)
        at += 1
    return active, largest, total


@kernel
def _descend(
    X: Csr,
    columns: _Columns,
    rows: _Rows,
    active: int,
    enough: float,
    max_passes: int,
    state: NDArray[np.uint64],
) -> int:
    """Minimize the quadratic model over the first columns of the order; return the number of passes.

    It stops after a pass over all of them in which the total violation is not more than `enough`.
    """
    order = columns.order
    rows.changes[:] = 0.0
    n, slack = active, np.inf
    for passes in range(1, max_passes + 1):
        for at in range(n):
            other = at + next_below(state, n - at)
            order[at], order[other] = order[other], order[at]
        largest, total, at = 0.0, 0.0, 0
        while at < n:
            j = order[at]
            violation = _improve(X, columns, rows, j, slack)
            if violation < -slack:
                n -= 1
                order[at], order[n] = order[n], j
                continue
            largest, total = max(largest, violation), total + max(violation, 0.0)
            at += 1
        slack = largest / rows.margins.size
        if total <= enough:
            if n == active:
                return passes
            # The columns that were left out are checked as well.
            n, slack = active, np.inf
    return max_passes


@kernel
def _improve(X: Csr, columns: _Columns, rows: _Rows, j: int, slack: float) -> float:
    """Minimize the quadratic model over one column; return by how much it violated the optimality conditions."""
    before, curvature = columns.trial[j], columns.curvatures[j]
    slope = columns.slopes[j] + _DAMPING * (before - columns.weights[j])
    slope += _curved_product(X, j, rows.curvatures, rows.changes)
    violation = _violation(before, slope)
    if before == 0 and violation <= 0:
        return violation
    if slope + 1 < curvature * before:
        change = -(slope + 1) / curvature
    elif slope - 1 > curvature * before:
        change = -(slope - 1) / curvature
    else:
        change = -before
    if abs(change) >= _MIN_STEP:
        change = min(max(change, -_MAX_STEP), _MAX_STEP)
        columns.trial[j] = before + change
        for p in range(X.indptr[j], X.indptr[j + 1]):
            rows.changes[X.indices[p]] += change * X.values[p]
    return violation


@kernel
def _search_line(
    X: Csr, columns: _Columns, rows: _Rows, positive: NDArray[np.bool_], costs: NDArray[np.float64]
) -> None:
    """Go from the weights towards those to try, as far as the objective falls by enough."""
    weights, trial = columns.weights, columns.trial
    expected, before = 0.0, 0.0
    for j in range(weights.size):
        expected += columns.slopes[j] * (trial[j] - weights[j]) + abs(trial[j]) - abs(weights[j])
        before += abs(weights[j])
    share = 1.0
    for _ in range(_MAX_HALVINGS):
        gain = -before
        for j in range(weights.size):
            gain += abs(weights[j] + share * (trial[j] - weights[j]))
        for i in range(costs.size):
            margin = rows.margins[i] + share * rows.changes[i]
            gain += costs[i] * _loss(margin if positive[i] else -margin) - rows.losses[i]
        if gain <= _SUFFICIENT * share * expected:
            break
        share *= 0.5
    else:
        share = 0.0
    for j in range(weights.size):
        weights[j] = trial[j] = trial[j] if share == 1 else weights[j] + share * (trial[j] - weights[j])
    _move(rows, share, positive, costs)
