"""Ridge regression of many targets on sparse features, by dual coordinate descent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import fast_kernel
from lightdxml.kernels.sparse import Csr


@fast_kernel
def descend(
    start: int,
    stop: int,
    order: NDArray[np.int64],
    rows: Csr,
    targets: NDArray[np.float32],
    penalty: np.float32,
    dual: NDArray[np.float32],
    weights: NDArray[np.float32],
    violations: NDArray[np.float64],
) -> None:
    """Optimize the dual variables of each row in turn, for the targets in columns start … stop.

    Parameters
    ----------
    order
        The rows in the order of their turns.
    targets
        Rows × targets.
    penalty
        What is added to the diagonal of the products of rows.
    dual
        Rows × targets, zero at the start.
    weights
        Features × targets, zero at the start: the sum of the rows, each times its dual variable.
    violations
        Receives, per target, the sum of the absolute gradients that were met.
    """
    indptr, features, values = rows
    steps, met = np.empty(stop - start, np.float32), np.zeros(stop - start, np.float64)
    for i in order:
        own, wanted, square = dual[i, start:stop], targets[i, start:stop], penalty
        for d in range(steps.size):
            steps[d] = wanted[d] - penalty * own[d]
        for p in range(indptr[i], indptr[i + 1]):
            value, weight = values[p], weights[features[p], start:stop]
            square += value * value
            for d in range(steps.size):
                steps[d] -= value * weight[d]
        share = np.float32(1.0) / square
        for d in range(steps.size):
            met[d] += abs(steps[d])
            steps[d] *= share
            own[d] += steps[d]
        for p in range(indptr[i], indptr[i + 1]):
            value, weight = values[p], weights[features[p], start:stop]
            for d in range(steps.size):
                weight[d] += value * steps[d]
    violations[start:stop] = met
