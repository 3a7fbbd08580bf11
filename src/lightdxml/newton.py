"""Newton's method with halved steps, for convex functions of a few dozen weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_STEPS, _CONVERGED = 50, 1e-6

Weights = NDArray[np.float64]


def minimize(
    loss: Callable[[Weights], float],
    slopes: Callable[[Weights], tuple[Weights, NDArray[np.float64]]],
    start: Weights,
    is_free: NDArray[np.bool_] | None = None,
) -> Weights:
    """Return the weights at which a convex loss is lowest.

    Parameters
    ----------
    loss
        The function.
    slopes
        Its gradient and its Hessian.
    start
        Where to start.
    is_free
        Which weights may change; None for all of them.

    Examples
    --------
    >>> loss = lambda w: float(np.square(w - 3).sum())
    >>> slopes = lambda w: (2 * (w - 3), 2 * np.eye(2))
    >>> minimize(loss, slopes, np.zeros(2), np.array([True, False])).tolist()
    [3.0, 0.0]
    """
    weights: Weights = start.copy()
    before = loss(start)
    free = np.arange(len(start)) if is_free is None else np.flatnonzero(is_free)
    for _ in range(_STEPS):
        gradient, hessian = slopes(weights)
        step = np.zeros_like(weights)
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        after = loss(weights - step)
        # The loss is convex, so some part of the step lowers it.
        while after > before and np.abs(step).max() > _CONVERGED:
            step /= 2
            after = loss(weights - step)
        if after > before:
            break
        weights, before = np.asarray(weights - step), after
        if np.abs(step).max() < _CONVERGED:
            break
    return weights
