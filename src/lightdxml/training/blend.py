"""Step 6's one number: β, the classifier's share in the blended score, chosen on validation data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.metrics import evaluate
from lightdxml.model import Candidates, sigmoid, top

GRID = tuple(i / 20 for i in range(21))
MEASURES = tuple(f"{name}@{k}" for name in ("P", "PSP") for k in (1, 3, 5))


def accuracy(figures: dict[str, float]) -> float:
    """Return what training maximises on validation data: the mean of P and PSP at 1, 3 and 5, head and tail alike.

    >>> accuracy(dict.fromkeys(MEASURES, 2.0))
    2.0
    """
    return sum(figures[name] for name in MEASURES) / len(MEASURES)


def curve(
    candidates: Candidates, Y: csr_matrix, inv_propensity: NDArray[np.float64], betas: tuple[float, ...] = GRID
) -> list[tuple[float, dict[str, float]]]:
    """Return the measures for each β."""
    # The two sigmoids do not depend on β: taken once.
    chances, nearness = sigmoid(candidates.logits), sigmoid(candidates.cosines)
    results = []
    for beta in betas:
        labels, _ = top(candidates.labels, np.float32(beta) * chances + np.float32(1 - beta) * nearness, 5)
        results.append((beta, evaluate(Y, labels, k=(1, 3, 5), inv_propensity=inv_propensity)))
    return results


def choose(results: list[tuple[float, dict[str, float]]]) -> tuple[float, dict[str, float]]:
    """Return the β of the highest accuracy, the larger one of equals, with its measures."""
    return max(results, key=lambda result: (accuracy(result[1]), result[0]))
