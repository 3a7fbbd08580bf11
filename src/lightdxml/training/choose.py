"""What validation documents choose: β, γ, the weights of further views, and how much rare labels are preferred."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import convolve1d

from lightdxml.metrics import document_precision, evaluate
from lightdxml.model.blend import PaperBlend, rarity, shifted, top_k, weighted_sum
from lightdxml.model.candidates import Candidates, find_candidates

if TYPE_CHECKING:
    from lightdxml.training.run import Run
    from lightdxml.views.dense.classifier import ClassifierView
    from lightdxml.views.dense.nearness import NearnessView

T = TypeVar("T", float, tuple[float, float])
Metrics = dict[str, float]
Curve = list[tuple[T, Metrics]]

CUTS = (1, 3, 5)
# The phases in which weights are chosen after the cycle.
CHOICES = ("blend", "share", "tail")
# β of the paper's blend, and the coarser grid of β and γ.
BETAS = tuple(i / 20 for i in range(21))
GRID_BETAS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
GRID_GAMMAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
# Weights of a further view, relative to γ.
SHARES = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
TAILS = tuple(i / 10 for i in range(11))
STRENGTHS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0)
_MIN_PRECISION = 1e-9
# Points that one of P@1, P@3 and P@5 may fall, if their mean does not, and what rounding may add.
_FREE_LOSS, _ROUNDING = 0.1, 1e-9


def mean_precision(metrics: Metrics, name: str = "P") -> float:
    """Return the mean of P (or another measure) at 1, 3 and 5.

    >>> mean_precision({"P@1": 3.0, "P@3": 2.0, "P@5": 1.0})
    2.0
    """
    return sum(metrics[f"{name}@{k}"] for k in CUTS) / len(CUTS)


def measure(run: Run, labels: NDArray[np.int32], scores: NDArray[np.float32]) -> Metrics:
    """Return the measures at 1, 3 and 5 of candidates of the validation documents, ranked by these scores."""
    run.tick()
    data = run.data
    ranked = top_k(labels, scores, max(CUTS))[0]
    # As in prediction: a document without features gets no labels.
    ranked[np.diff(data.X_validation.indptr) == 0] = -1
    return evaluate(data.Y_validation, ranked, k=CUTS, inv_propensity=data.inv_propensity)


def gain(run: Run, candidates: Candidates, before: dict[str, float], after: dict[str, float]) -> tuple[float, float]:
    """Return what other weights add to the mean P of validation documents, and the standard error of that.

    The documents are the same before and after, so the error of the difference is far below that of either.
    """
    precisions = []
    for weights in (before, after):
        ranked = top_k(candidates.labels, weighted_sum(candidates.log_scores, weights), max(CUTS))[0]
        precisions.append(document_precision(run.data.Y_validation, ranked, CUTS))
    difference = precisions[1] - precisions[0]
    return float(difference.mean()), float(difference.std() / np.sqrt(len(difference)))


def beta_curve(run: Run, classifier: ClassifierView, nearness: NearnessView) -> Curve[float]:
    """Return the measures of the paper's blend for each β, or for the one that is set."""
    candidates = find_candidates({"nearness": nearness, "classifier": classifier}, run.data.validation_batch)
    betas = BETAS if run.config.blend.beta is None else (run.config.blend.beta,)
    return [(beta, measure(run, candidates.labels, PaperBlend(beta).combine(candidates.log_scores))) for beta in betas]


def weights_of(beta: float, gamma: float, shares: dict[str, float]) -> dict[str, float]:
    """Return the weights of all views: γ for the linear view, β of the rest for the classifier, the rest for nearness.

    A further view has a share of γ on top; without a linear view, γ is 0 and the share is the weight.

    >>> weights_of(0.25, 0.5, {"tree": 0.5})
    {'classifier': 0.125, 'nearness': 0.375, 'linear': 0.5, 'tree': 0.25}
    """
    dense = {"classifier": (1 - gamma) * beta, "nearness": (1 - gamma) * (1 - beta)}
    return {**dense, "linear": gamma, **{name: (gamma or 1.0) * share for name, share in shares.items()}}


def grid(run: Run, candidates: Candidates, shares: dict[str, float]) -> Curve[tuple[float, float]]:
    """Return the measures for each β and γ that is open; for the default ones with few validation documents."""
    options = run.config.blend
    few = run.data.Y_validation.shape[0] < options.min_documents
    betas = ((options.default_beta,) if few else GRID_BETAS) if options.beta is None else (options.beta,)
    gammas = ((options.default_gamma,) if few else GRID_GAMMAS) if options.gamma is None else (options.gamma,)
    results = []
    for beta in betas:
        for gamma in gammas:
            scores = weighted_sum(candidates.log_scores, weights_of(beta, gamma, shares if gamma else {}))
            results.append(((beta, gamma), measure(run, candidates.labels, scores)))
    return results


def share_curve(
    run: Run, candidates: Candidates, chosen: tuple[float, float], shares: dict[str, float], name: str
) -> Curve[float]:
    """Return the measures for each share of a further view, given β, γ and the shares of other views."""
    few = run.data.Y_validation.shape[0] < run.config.blend.min_documents
    results = []
    for share in (run.config.blend.default_share,) if few else SHARES:
        scores = weighted_sum(candidates.log_scores, weights_of(*chosen, {**shares, name: share}))
        results.append((share, measure(run, candidates.labels, scores)))
    return results


def choose(results: Sequence[tuple[T, Metrics]], tolerance: float) -> tuple[T, Metrics]:
    """Return the result of the best PSP among those whose P@1, 3 and 5 are as good as the best, within a tolerance.

    >>> head = dict.fromkeys(["P@1", "P@3", "P@5"], 50.0) | dict.fromkeys(["PSP@1", "PSP@3", "PSP@5"], 20.0)
    >>> tail = dict.fromkeys(["P@1", "P@3", "P@5"], 49.8) | dict.fromkeys(["PSP@1", "PSP@3", "PSP@5"], 24.0)
    >>> choose([(1.0, head), (0.3, tail)], 0.5)[0]
    0.3
    """
    best = {k: max(metrics[f"P@{k}"] for _, metrics in results) for k in CUTS}
    lost = [max(best[k] - metrics[f"P@{k}"] for k in CUTS) for _, metrics in results]
    # If nothing is good at all three, take what loses least.
    allowed = max(tolerance, min(lost))
    good = [result for result, loss in zip(results, lost, strict=True) if loss <= allowed]
    return max(good, key=lambda result: (mean_precision(result[1], "PSP"), result[0]))


def choose_smooth(results: Curve[tuple[float, float]], tolerance: float) -> tuple[tuple[float, float], Metrics]:
    """Return the β and γ of a grid that are best together with their neighbors: one alone may be so by chance.

    A point counts twice as much as a neighbor, in each direction.

    >>> names = [f"{name}@{k}" for name in ("P", "PSP") for k in (1, 3, 5)]
    >>> values = {(0.1, 0.1): 50, (0.1, 0.2): 56, (0.1, 0.3): 50, (0.1, 0.4): 54, (0.1, 0.5): 55, (0.1, 0.6): 53}
    >>> choose_smooth([(shares, dict.fromkeys(names, value)) for shares, value in values.items()], 0.3)[0]
    (0.1, 0.5)
    """
    n_betas = len({shares[0] for shares, _ in results})
    names = list(results[0][1])
    table = np.array([list(metrics.values()) for _, metrics in results], dtype=np.float64)
    cube = table.reshape(n_betas, -1, len(names))
    for axis in (0, 1):
        cube = convolve1d(cube, [0.25, 0.5, 0.25], axis=axis, mode="nearest")
    smooth = cube.reshape(len(results), -1)
    precisions = [names.index(f"P@{k}") for k in CUTS]
    smooth[:, precisions] *= 100 / np.maximum(smooth[:, precisions].max(axis=0), _MIN_PRECISION)
    rows = [(shares, dict(zip(names, row, strict=True))) for (shares, _), row in zip(results, smooth, strict=True)]
    chosen, _ = choose(rows, tolerance)
    return chosen, next(metrics for shares, metrics in results if shares == chosen)


def tail_curve(
    run: Run, labels: NDArray[np.int32], scores: NDArray[np.float32], strengths: Sequence[float]
) -> Curve[float]:
    """Return the measures with scores that are shifted towards rare labels by each strength.

    Frequencies are those of the training documents: with those of the validation documents themselves, their labels
    would look more frequent than others.
    """
    rare = rarity(run.data.label_frequency, run.data.X.shape[0])[labels]
    return [(strength, measure(run, labels, shifted(scores, rare, strength))) for strength in strengths]


def choose_tail(
    run: Run, labels: NDArray[np.int32], scores: NDArray[np.float32], default: float
) -> tuple[float, float]:
    """Return the strengths of the shift at `tail` 0 and 1; 0 and the default with few documents.

    At 1, the best PSP. At 0, the best PSP among the strengths before the first one that costs precision. This compares
    close numbers, so it takes as many documents as the choice of weights. The lowest strength of equals.
    """
    options, n = run.config.blend, run.data.Y_validation.shape[0]
    if n < options.tail_documents:
        return 0.0, default
    results = tail_curve(run, labels, scores, STRENGTHS)
    highest = _best_for_rare(results)
    if n < options.min_documents:
        return 0.0, highest
    plain = results[0][1]
    # Further on, some strength may cost nothing by chance.
    free = list(takewhile(lambda result: result[0] <= highest and _is_as_precise(result[1], plain), results))
    return _best_for_rare(free), highest


def _is_as_precise(metrics: Metrics, plain: Metrics) -> bool:
    """Return whether the mean of P@1, P@3 and P@5 is not lower, and none of them by more than a little."""
    lost = max(plain[f"P@{k}"] - metrics[f"P@{k}"] for k in CUTS)
    gained = mean_precision(metrics) - mean_precision(plain)
    return lost <= _FREE_LOSS + _ROUNDING and gained >= -_ROUNDING


def _best_for_rare(results: Sequence[tuple[float, Metrics]]) -> float:
    return max(results, key=lambda result: (mean_precision(result[1], "PSP"), -result[0]))[0]
