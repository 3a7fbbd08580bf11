"""Step 6's numbers by validation data: β and γ, the views' shares in the score, and how far `tail` shifts it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter
from scipy.sparse import csr_matrix

from lightdxml.config import Config
from lightdxml.metrics import evaluate
from lightdxml.model import (
    USUAL_STRENGTH,
    USUAL_STRENGTH_OF_THREE,
    Candidates,
    opinions,
    shifted,
    sigmoid,
    top,
    weighed,
)

T = TypeVar("T", float, tuple[float, float])
GRID = tuple(i / 20 for i in range(21))
# Of three views: coarser, as there are two to choose.
BETAS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
GAMMAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
# Of the label tree, beside the sparse view.
TREE_SHARES = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
_TREE_TOLERANCE, _USUAL_TREE_SHARE = 0.1, 0.2
# What a tree must add in precision, in points, for a model to be larger by it: noise often says that it adds something.
WORTH_A_TREE = 0.2
# What is good on most data; with few validation documents it is taken unseen, as their noise would choose.
_USUAL = (0.2, 0.4)
FEWEST_TO_CHOOSE = 500
# Of three views less is given up for the tail, which they serve well already: percent of the best precision.
THREE_VIEWS_TOLERANCE = 0.3
_TINY = 1e-9
TAILS = tuple(i / 10 for i in range(11))
# From wrong strengths to right ones is further than from share to share: fewer documents can tell.
_FEWEST_FOR_STRENGTH = 100
STRENGTHS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0)
# How much precision, in points, may be given up for the tail: about the noise of a few thousand validation documents.
TOLERANCE = 0.5


def mean(figures: dict[str, float], name: str) -> float:
    """Return a measure's mean over k = 1, 3, 5.

    >>> mean({"P@1": 3.0, "P@3": 2.0, "P@5": 1.0}, "P")
    2.0
    """
    return sum(figures[f"{name}@{k}"] for k in (1, 3, 5)) / 3


def _measured(
    labels: NDArray[np.int32], scores: NDArray[np.float32], Y: csr_matrix, inv_propensity: NDArray[np.float64]
) -> dict[str, float]:
    """Return the measures at 1, 3 and 5 of candidates that are ranked by these scores."""
    return evaluate(Y, top(labels, scores, 5)[0], k=(1, 3, 5), inv_propensity=inv_propensity)


def curve(
    candidates: Candidates, Y: csr_matrix, inv_propensity: NDArray[np.float64], betas: tuple[float, ...] = GRID
) -> list[tuple[float, dict[str, float]]]:
    """Return the measures for each β."""
    # The two sigmoids do not depend on β: taken once.
    chances, nearness = sigmoid(candidates.logits), sigmoid(candidates.cosines)
    results = []
    for beta in betas:
        scores = np.float32(beta) * chances + np.float32(1 - beta) * nearness
        results.append((beta, _measured(candidates.labels, scores, Y, inv_propensity)))
    return results


def surface(
    candidates: Candidates,
    Y: csr_matrix,
    inv_propensity: NDArray[np.float64],
    config: Config,
    tree_share: float = 0.0,
) -> list[tuple[tuple[float, float], dict[str, float]]]:
    """Return the measures of three views for each β and γ that is open; for the usual ones with few documents."""
    few, said = Y.shape[0] < FEWEST_TO_CHOOSE, opinions(candidates)
    betas = ((_USUAL[0],) if few else BETAS) if config.beta is None else (config.beta,)
    gammas = ((_USUAL[1],) if few else GAMMAS) if config.gamma is None else (config.gamma,)
    results = []
    for beta in betas:
        for gamma in gammas:
            scores = weighed(said, beta, gamma, tree_share)
            results.append(((beta, gamma), _measured(candidates.labels, scores, Y, inv_propensity)))
    return results


def tree_curve(
    candidates: Candidates, Y: csr_matrix, inv_propensity: NDArray[np.float64], shares: tuple[float, float]
) -> list[tuple[float, dict[str, float]]]:
    """Return the measures for each share of the label tree, given β and γ; for the usual one with few documents."""
    results, said = [], opinions(candidates)
    for share in TREE_SHARES if Y.shape[0] >= FEWEST_TO_CHOOSE else (_USUAL_TREE_SHARE,):
        scores = weighed(said, *shares, share)
        results.append((share, _measured(candidates.labels, scores, Y, inv_propensity)))
    return results


def choose_tree_share(
    curve: Sequence[tuple[float, dict[str, float]]], before: dict[str, float]
) -> tuple[float, dict[str, float]]:
    """Return the best share of a label tree; none, and the measures before it, unless it adds what it must be worth.

    >>> none, some = ({f"{name}@{k}": value for name in ("P", "PSP") for k in (1, 3, 5)} for value in (50.0, 50.1))
    >>> choose_tree_share([(0.5, some)] * 2, none)[0]
    0.0
    """
    best = choose(curve, _TREE_TOLERANCE)
    return best if mean(best[1], "P") >= mean(before, "P") + WORTH_A_TREE or len(curve) == 1 else (0.0, before)


def share_of_trees(share: float, number: int) -> float:
    """Return how much each of so many trees counts, from what one alone does: together they err less, so more of them.

    The square root, as if the errors of trees were independent; on held-out debian-relations .35 of one became .6 of
    each of three, and any from .5 to 1 was as good there.

    >>> share_of_trees(0.2, 1), share_of_trees(0.2, 4), share_of_trees(0.7, 4)
    (0.2, 0.4, 1.0)
    """
    return min(1.0, round(share * math.sqrt(number), 2))


def choose(results: Sequence[tuple[T, dict[str, float]]], tolerance: float = TOLERANCE) -> tuple[T, dict[str, float]]:
    """Return what serves the tail best of the β, or β and γ, whose P@1, 3 and 5 are as good as the best, but for noise.

    >>> head = dict.fromkeys(["P@1", "P@3", "P@5"], 50.0) | dict.fromkeys(["PSP@1", "PSP@3", "PSP@5"], 20.0)
    >>> tail = dict.fromkeys(["P@1", "P@3", "P@5"], 49.8) | dict.fromkeys(["PSP@1", "PSP@3", "PSP@5"], 24.0)
    >>> choose([(1.0, head), (0.3, tail)])[0]
    0.3
    """
    best = {k: max(figures[f"P@{k}"] for _, figures in results) for k in (1, 3, 5)}
    lost = [max(best[k] - figures[f"P@{k}"] for k in best) for _, figures in results]
    # Where no β is good at all three, the one that loses least.
    allowed = max(tolerance, min(lost))
    good = [result for result, loss in zip(results, lost, strict=True) if loss <= allowed]
    return max(good, key=lambda result: (mean(result[1], "PSP"), result[0]))


def choose_shares(
    results: Sequence[tuple[tuple[float, float], dict[str, float]]],
) -> tuple[tuple[float, float], dict[str, float]]:
    """Return the β and γ, of a surface, that are best together with those beside them: one alone may be so by chance.

    >>> names = [f"{name}@{k}" for name in ("P", "PSP") for k in (1, 3, 5)]
    >>> values = {(0.1, 0.1): 50, (0.1, 0.2): 56, (0.1, 0.3): 50, (0.1, 0.4): 54, (0.1, 0.5): 55, (0.1, 0.6): 53}
    >>> choose_shares([(shares, dict.fromkeys(names, value)) for shares, value in values.items()])[0]
    (0.1, 0.5)
    """
    betas = len({shares[0] for shares, _ in results})
    table = np.array([list(figures.values()) for _, figures in results], dtype=np.float64).reshape(
        betas, -1, len(results[0][1])
    )
    around = uniform_filter(table, size=(3, 3, 1), mode="nearest").reshape(len(results), -1)
    names = list(results[0][1])
    precisions = [names.index(f"P@{k}") for k in (1, 3, 5)]
    around[:, precisions] *= 100 / np.maximum(around[:, precisions].max(axis=0), _TINY)
    smooth = [(shares, dict(zip(names, row, strict=True))) for (shares, _), row in zip(results, around, strict=True)]
    chosen, _ = choose(smooth, THREE_VIEWS_TOLERANCE)
    return chosen, next(figures for shares, figures in results if shares == chosen)


def choose_strength(
    labels: NDArray[np.int32],
    scores: NDArray[np.float32],
    rare: NDArray[np.float32],
    Y: csr_matrix,
    inv_propensity: NDArray[np.float64],
    *,
    three_views: bool,
) -> float:
    """Return the power of 1/p that serves rare labels best, the lowest of equals; the usual one with few documents.

    `rare` is the rarity of every candidate.
    """
    if Y.shape[0] < _FEWEST_FOR_STRENGTH:
        return USUAL_STRENGTH_OF_THREE if three_views else USUAL_STRENGTH
    results = tail_curve(labels, scores, rare, Y, inv_propensity, STRENGTHS)
    return max(results, key=lambda result: (mean(result[1], "PSP"), -result[0]))[0]


def tail_curve(
    labels: NDArray[np.int32],
    scores: NDArray[np.float32],
    rare: NDArray[np.float32],
    Y: csr_matrix,
    inv_propensity: NDArray[np.float64],
    amounts: Sequence[float],
) -> list[tuple[float, dict[str, float]]]:
    """Return the measures with scores that are shifted by each amount."""
    return [(amount, _measured(labels, shifted(scores, rare, amount), Y, inv_propensity)) for amount in amounts]
