"""How the scores of views are combined: the paper's blend, and the log-linear one; and the shift to rare labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels import parallel, ranking
from lightdxml.propensity import inverse_propensity_of
from lightdxml.views.base import Contributions, mean_slope

# A further view may weigh more than the linear view.
_MAX_WEIGHT = 10
LogScores = Mapping[str, NDArray[np.float32]]


class Blend(Protocol):
    """A combiner of view log-scores.

    Attributes
    ----------
    kind
        How it is called in a model's manifest.
    """

    kind: ClassVar[str]

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each view; views without one are not evaluated."""

    def combine(self, log_scores: LogScores) -> NDArray[Any]:
        """Return the score, from 0 to 1, of each candidate."""

    def explain(self, parts: Mapping[str, Contributions]) -> Contributions:
        """Return the score as a sum over features, given the log-scores of the views as such sums."""


@dataclass(frozen=True)
class PaperBlend:
    """β σ(classifier) + (1 − β) σ(cosine), the paper's prediction (step 6).

    Examples
    --------
    >>> zero = np.zeros((1, 1), dtype=np.float32)
    >>> PaperBlend(0.25).combine({"classifier": zero, "nearness": zero - 1}).tolist()
    [[0.625]]
    """

    kind: ClassVar[str] = "paper"

    beta: float

    @property
    def weights(self) -> dict[str, float]:
        """β and 1 − β. The shortlist of the nearness view is needed in any case."""
        return {"classifier": self.beta, "nearness": 1 - self.beta}

    def combine(self, log_scores: LogScores) -> NDArray[np.float32]:
        """Return β σ(classifier) + (1 − β) σ(cosine)."""
        score: NDArray[np.float32] = np.float32(1 - self.beta) * sigmoid(log_scores["nearness"] + 1)
        if self.beta:
            score = np.float32(self.beta) * np.exp(log_scores["classifier"]) + score
        return score

    def explain(self, parts: Mapping[str, Contributions]) -> Contributions:
        """Return what each feature adds to the two sigmoids."""
        functions: dict[str, Callable[[float], float]] = {
            "classifier": lambda value: float(np.exp(value)),
            "nearness": lambda value: float(sigmoid(np.float64(value + 1))),
        }
        base, features = 0.0, np.zeros_like(next(iter(parts.values())).features)
        for name, part in parts.items():
            function, weight = functions[name], self.weights[name]
            base += weight * function(part.base)
            slope = mean_slope(function, part.base, float(part.features.sum()))
            features = features + weight * slope * part.features
        return Contributions(base, features)


@dataclass(frozen=True)
class LogLinearBlend:
    """exp of the weighted sum of view log-scores: a weighted geometric combination of the views' scores.

    Examples
    --------
    >>> scores = {"linear": np.log(np.array([[0.25]], dtype=np.float32))}
    >>> LogLinearBlend({"linear": 0.5}).combine(scores).round(3).tolist()
    [[0.5]]
    """

    kind: ClassVar[str] = "log-linear"

    weights: dict[str, float]

    def combine(self, log_scores: LogScores) -> NDArray[np.float64]:
        """Return the blended score. In float32, all of a document's scores may be too small to tell apart."""
        return np.exp(weighted_sum(log_scores, self.weights).astype(np.float64))

    def explain(self, parts: Mapping[str, Contributions]) -> Contributions:
        """Return what each feature adds to the score."""
        total = sum(self.weights[name] * part.base for name, part in parts.items())
        added = np.sum([self.weights[name] * part.features for name, part in parts.items()], axis=0)
        slope = mean_slope(lambda value: float(np.exp(value)), total, float(added.sum()))
        return Contributions(float(np.exp(total)), slope * added)


def weighted_sum(log_scores: LogScores, weights: Mapping[str, float]) -> NDArray[np.float32]:
    """Return the weighted sum of view log-scores; views of weight 0 take no part."""
    total: Any = None
    for name, weight in weights.items():
        if weight:
            term = np.float32(weight) * log_scores[name]
            total = term if total is None else total + term
    return total if total is not None else np.zeros_like(next(iter(log_scores.values())))


def restore_blend(content: Any) -> Blend:
    """Return the blend that a manifest describes; raise a `ValueError` if it describes none."""
    weights = content["weights"]
    numbers = all(type(weight) in (int, float) and 0 <= weight <= _MAX_WEIGHT for weight in weights.values())
    is_paper = content["kind"] == PaperBlend.kind and set(weights) == {"classifier", "nearness"}
    if numbers and is_paper and weights["classifier"] <= 1:
        return PaperBlend(float(weights["classifier"]))
    if numbers and content["kind"] == LogLinearBlend.kind and weights:
        return LogLinearBlend({name: float(weight) for name, weight in weights.items()})
    raise ValueError(f"its manifest has a blend {content!r:.80}")


@dataclass(frozen=True)
class TailShift:
    """How much rare labels are preferred: powers of 1/p, the inverse propensity, by which scores are multiplied.

    Attributes
    ----------
    lowest, highest
        The power at `tail` 0, which costs no precision, and at `tail` 1, which is best for rare labels.

    Examples
    --------
    >>> TailShift(0.25, 0.75).strength(0.5)
    0.5
    """

    lowest: float
    highest: float

    def strength(self, tail: float) -> float:
        """Return the power at a value of `tail`, from 0 to 1."""
        return self.lowest + tail * (self.highest - self.lowest)


def rarity(frequency: NDArray[np.int32], n_documents: int) -> NDArray[np.float32]:
    """Return log 1/p of labels by their number of training documents, relative to labels with one: at most 0.

    >>> [round(float(one), 2) for one in rarity(np.array([1, 10, 100], dtype=np.int32), 1000)]
    [0.0, -0.67, -1.36]
    """
    rarest = inverse_propensity_of(np.ones(1, dtype=np.int32), n_documents)
    inverse = inverse_propensity_of(np.maximum(frequency, 1), n_documents)
    return np.log(inverse / rarest).astype(np.float32)


def shifted(scores: NDArray[Any], rare: NDArray[np.float32], strength: float) -> NDArray[Any]:
    """Return scores that are lower the more frequent their labels are; they stay between 0 and 1.

    >>> shifted(np.array([0.5, 0.5], dtype=np.float32), np.log(np.array([1, 0.5], dtype=np.float32)), 1.0).tolist()
    [0.5, 0.25]
    """
    lower: NDArray[Any] = np.exp(np.float32(strength) * rare) * scores
    return lower


def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp(-x)) without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0], dtype=np.float32)).tolist()
    [0.0, 0.5, 1.0]
    """
    low = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + low), low / (1 + low))


def top_k(labels: NDArray[np.int32], scores: NDArray[Any], k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the k labels of the highest scores, best first, ties by label; -1 for none.

    >>> labels, scores = np.array([[7, 5, -1]], dtype=np.int32), np.array([[0.5, 0.5, 0.9]], dtype=np.float32)
    >>> top_k(labels, scores, 3)[0].tolist()
    [[5, 7, -1]]
    """
    best_labels = np.empty((len(labels), k), dtype=np.int32)
    best_scores = np.empty((len(labels), k), dtype=scores.dtype)

    def fill(first: int, last: int) -> None:
        ranking.top_of_rows(first, last, labels, scores, best_labels, best_scores)

    parallel.over(fill, len(labels))
    return best_labels, best_scores.astype(np.float32, copy=False)
