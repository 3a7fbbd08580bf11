"""What validation documents choose: β, the views and their weights, probabilities, and the shift to rare labels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.metrics import document_precision, evaluate
from lightdxml.model.blend import LogisticBlend, PaperBlend, frequency_groups, rarity, top_k
from lightdxml.model.calibration import Calibration
from lightdxml.model.candidates import Candidates, find_candidates
from lightdxml.model.thresholds import ThresholdTable
from lightdxml.training import calibrate as calibration
from lightdxml.training import logistic

if TYPE_CHECKING:
    from lightdxml.training.run import Run
    from lightdxml.views.dense.classifier import ClassifierView
    from lightdxml.views.dense.nearness import NearnessView

Metrics = dict[str, float]
Curve = list[tuple[float, Metrics]]

CUTS = (1, 3, 5)
# The phases in which weights are chosen after the cycle.
CHOICES = ("view", "blend", "tail", "probabilities")
# β of the paper's blend.
BETAS = tuple(i / 20 for i in range(21))
TAILS = tuple(i / 10 for i in range(11))
STRENGTHS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0)
# Validation documents that weights are fitted to, at most.
_FITTED = 5000
# Points that one of P@1, P@3 and P@5 may fall, and their mean: less than a document more or less makes.
_FREE_LOSS, _FREE_MEAN_LOSS, _ROUNDING = 0.1, 0.02, 1e-9


def mean_precision(metrics: Metrics, name: str = "P") -> float:
    """Return the mean of P (or another measure) at 1, 3 and 5.

    >>> mean_precision({"P@1": 3.0, "P@3": 2.0, "P@5": 1.0})
    2.0
    """
    return sum(metrics[f"{name}@{k}"] for k in CUTS) / len(CUTS)


def measure(run: Run, labels: NDArray[np.int32], scores: NDArray[np.floating]) -> Metrics:
    """Return the measures at 1, 3 and 5 of candidates of the validation documents, ranked by these scores."""
    run.tick()
    data = run.data
    ranked = top_k(labels, scores, max(CUTS))[0]
    # As in prediction: a document without features gets no labels.
    ranked[np.diff(data.X_validation.indptr) == 0] = -1
    return evaluate(data.Y_validation, ranked, k=CUTS, inv_propensity=data.inv_propensity)


class Gain(NamedTuple):
    """What a view adds to the mean P of validation documents, and the standard error of that."""

    mean: float
    error: float


def gain(run: Run, candidates: Candidates, before: Sequence[str], after: Sequence[str]) -> Gain:
    """Return what further views add to the mean of P@1, P@3 and P@5 on validation documents.

    Weights are fitted to half of the documents and measured on the other half. The documents are the same before and
    after, so the error of the difference is far below that of either.
    """
    some, Y = _some_documents(run, candidates)
    judged = logistic.judge(some, label_groups(run), Y)
    precisions = []
    for views in (before, after):
        run.tick()
        ranked = top_k(some.labels, logistic.cross_fitted(judged, views), max(CUTS))[0]
        precisions.append(document_precision(Y, ranked, CUTS))
    difference = precisions[1] - precisions[0]
    return Gain(float(difference.mean()), float(difference.std() / np.sqrt(len(difference))))


def can_choose(run: Run) -> bool:
    """Return whether there are validation documents to choose on. Views know training documents by heart."""
    return run.config.blend.fit and run.data.X_validation is not run.data.X


def logistic_blend(run: Run, candidates: Candidates, views: Sequence[str]) -> LogisticBlend:
    """Return the blend of these views that fits the validation documents best; the usual one without them."""
    if not can_choose(run):
        return logistic.usual(views)
    some, Y = _some_documents(run, candidates)
    return logistic.fit(logistic.judge(some, label_groups(run), Y), views)


def calibrate(
    run: Run, candidates: Candidates, log_odds: NDArray[np.float64]
) -> tuple[Calibration, ThresholdTable | None]:
    """Return the probabilities of labels, and what thresholds of them give; none without validation documents."""
    if not can_choose(run):
        return Calibration(), None
    some, Y = _some_documents(run, candidates)
    ranked = calibration.rank(some.labels, log_odds[_some_rows(run)], logistic.judge(some, label_groups(run), Y))
    found = calibration.fit(ranked)
    return found, calibration.tabulate(ranked, found, label_groups(run), Y)


def _some_rows(run: Run) -> slice:
    """Return evenly spaced validation documents."""
    return slice(None, None, max(1, -(-run.data.X_validation.shape[0] // _FITTED)))


def _some_documents(run: Run, candidates: Candidates) -> tuple[Candidates, csr_matrix]:
    """Return candidates and labels of evenly spaced validation documents: enough of them to fit a few dozen weights."""
    data, rows = run.data, _some_rows(run)
    # As in prediction: a document without features gets no labels.
    has_features = np.diff(data.X_validation.indptr)[rows] > 0
    labels = np.where(has_features[:, None], candidates.labels[rows], np.int32(-1))
    scores = {name: one[rows] for name, one in candidates.log_scores.items()}
    return Candidates(labels, scores), data.Y_validation[rows]


def label_groups(run: Run) -> NDArray[np.uint8]:
    """Return the group of each label by its number of training documents.

    Validation documents do not count: their labels would look more frequent than others.
    """
    return run.data.memo("label groups", lambda: frequency_groups(run.data.label_frequency))


def beta_curve(run: Run, classifier: ClassifierView, nearness: NearnessView) -> Curve:
    """Return the measures of the paper's blend for each β, or for the one that is set."""
    candidates = find_candidates({"nearness": nearness, "classifier": classifier}, run.data.validation_batch)
    betas = BETAS if run.config.blend.beta is None else (run.config.blend.beta,)
    groups = label_groups(run)[candidates.labels]
    return [
        (beta, measure(run, candidates.labels, PaperBlend(beta).log_odds(candidates.log_scores, groups)))
        for beta in betas
    ]


def choose(results: Sequence[tuple[float, Metrics]], tolerance: float) -> tuple[float, Metrics]:
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


def tail_curve(run: Run, labels: NDArray[np.int32], log_odds: NDArray[np.float64], strengths: Sequence[float]) -> Curve:
    """Return the measures with log-odds that are shifted towards rare labels by each strength.

    Frequencies are those of the training documents: with those of the validation documents themselves, their labels
    would look more frequent than others.
    """
    rare = rarity(run.data.label_frequency, run.data.X.shape[0])[labels]
    return [(strength, measure(run, labels, log_odds + strength * rare)) for strength in strengths]


def choose_tail(
    run: Run, labels: NDArray[np.int32], log_odds: NDArray[np.float64], default: float
) -> tuple[float, float]:
    """Return the strengths of the shift at `tail` 0 and 1; 0 and the default with few documents.

    At 1, the best PSP. At 0, the best PSP among the strengths before the first one that costs precision. This compares
    close numbers, so it takes as many documents as the choice of weights. The lowest strength of equals.
    """
    options, n = run.config.blend, run.data.Y_validation.shape[0]
    if n < options.tail_documents:
        return 0.0, default
    results = tail_curve(run, labels, log_odds, STRENGTHS)
    highest = _best_for_rare(results)
    if n < options.min_documents:
        return 0.0, highest
    plain = results[0][1]
    # Further on, some strength may cost nothing by chance.
    free = list(takewhile(lambda result: result[0] <= highest and _is_as_precise(result[1], plain), results))
    return _best_for_rare(free), highest


def _is_as_precise(metrics: Metrics, plain: Metrics) -> bool:
    """Return whether neither P@1, P@3 or P@5 nor their mean are lower by more than a little."""
    lost = max(plain[f"P@{k}"] - metrics[f"P@{k}"] for k in CUTS)
    gained = mean_precision(metrics) - mean_precision(plain)
    return lost <= _FREE_LOSS + _ROUNDING and gained >= -_FREE_MEAN_LOSS - _ROUNDING


def _best_for_rare(results: Sequence[tuple[float, Metrics]]) -> float:
    return max(results, key=lambda result: (mean_precision(result[1], "PSP"), -result[0]))[0]
