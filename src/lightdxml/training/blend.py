"""Step 6's one number: β, the classifier's share in the blended score, chosen on validation data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.metrics import evaluate
from lightdxml.model import Candidates, blend, top

GRID = tuple(i / 20 for i in range(21))
ACCURACY = ("P@1", "P@3", "P@5")


def accuracy(figures: dict[str, float]) -> float:
    """Return what training maximises on validation data: the mean of P@1, P@3 and P@5.

    >>> accuracy({"P@1": 3.0, "P@3": 2.0, "P@5": 1.0})
    2.0
    """
    return sum(figures[name] for name in ACCURACY) / len(ACCURACY)


def curve(
    candidates: Candidates, Y: csr_matrix, inv_propensity: NDArray[np.float64], betas: tuple[float, ...] = GRID
) -> list[tuple[float, dict[str, float]]]:
    """Return the measures for each β."""
    results = []
    for beta in betas:
        labels, _ = top(candidates.labels, blend(candidates, beta), 5)
        results.append((beta, evaluate(Y, labels, k=(1, 3, 5), inv_propensity=inv_propensity)))
    return results


def choose(results: list[tuple[float, dict[str, float]]]) -> tuple[float, dict[str, float]]:
    """Return the β of the highest accuracy, the larger one of equals, with its measures."""
    return max(results, key=lambda result: (accuracy(result[1]), result[0]))
