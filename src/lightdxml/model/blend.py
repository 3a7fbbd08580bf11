"""How the scores of views are combined: the paper's blend, and the logistic one; and the shift to rare labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels import parallel, ranking
from lightdxml.propensity import inverse_propensity_of
from lightdxml.views.base import FREQUENCY, Contributions, groups_of, mean_slope

# Labels with about the same number of training documents share the weights of the logistic blend.
N_GROUPS = len(FREQUENCY) + 1
GROUP_NAMES = ("0", "1", "2–3", "4–8", "9–20", "21–100", "more")
# The largest weight or bias that a model may have.
_LARGEST = 1000
# The smallest chance that a view may be wrong, and the lowest log-score: below it, a label is as good as impossible.
_NEAREST, _LOWEST = 1e-7, -40.0
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

    def log_odds(self, log_scores: LogScores, groups: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the log-odds of each candidate, given the group of its label (`frequency_groups`)."""

    def explain(self, parts: Mapping[str, Contributions], group: int) -> Contributions:
        """Return the log-odds as a sum over features, given the log-scores of the views as such sums."""

    def to_json(self) -> dict[str, Any]:
        """Return what a manifest says about it; `restore_blend` reads it."""


def frequency_groups(frequency: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Return the group of labels with these numbers of training documents.

    >>> frequency_groups(np.array([0, 1, 2, 1000])).tolist()
    [0, 1, 2, 6]
    """
    return groups_of(frequency, FREQUENCY)


@dataclass(frozen=True)
class PaperBlend:
    """β σ(classifier) + (1 − β) σ(cosine), the paper's prediction (step 6).

    Examples
    --------
    >>> zero = np.zeros((1, 1), dtype=np.float32)
    >>> sigmoid(PaperBlend(0.25).log_odds({"classifier": zero, "nearness": zero - 1}, np.zeros((1, 1), np.uint8)))
    array([[0.625]])
    """

    kind: ClassVar[str] = "paper"

    beta: float

    @property
    def weights(self) -> dict[str, float]:
        """β and 1 − β. The shortlist of the nearness view is needed in any case."""
        return {"classifier": self.beta, "nearness": 1 - self.beta}

    def log_odds(self, log_scores: LogScores, groups: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the log-odds of β σ(classifier) + (1 − β) σ(cosine), for all groups of labels alike."""
        score = (1 - self.beta) * sigmoid(np.asarray(log_scores["nearness"], dtype=np.float64) + 1)
        if self.beta:
            score = self.beta * np.exp(np.asarray(log_scores["classifier"], dtype=np.float64)) + score
        log_odds: NDArray[np.float64] = logit(score)
        return log_odds

    def explain(self, parts: Mapping[str, Contributions], group: int) -> Contributions:
        """Return what each feature adds to the log-odds by way of the two sigmoids."""
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
        step = mean_slope(lambda score: float(logit(score)), base, float(features.sum()))
        return Contributions(float(logit(base)), step * features)

    def to_json(self) -> dict[str, Any]:
        """Return what a manifest says about it."""
        return {"kind": self.kind, "beta": self.beta}


class Slopes(NamedTuple):
    """The weights of a view in the logistic blend, one of each per group of labels.

    Attributes
    ----------
    low
        Of log p, which tells unlikely labels apart.
    high
        Of −log(1 − p), which tells likely labels apart.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class LogisticBlend:
    """σ(bias + Σ low · log p − high · log(1 − p)): how likely a label is, given the score p of each view.

    This is beta calibration (Kull et al. 2017) of several scores at once. Weights and bias depend on how many training
    documents a label has: of a label with few, its name may say more than its classifier.

    Attributes
    ----------
    slopes
        The weights of each view.
    biases
        One per group of labels.

    Examples
    --------
    >>> scores = {"linear": np.full((1, 2), -1, dtype=np.float32)}
    >>> slopes = Slopes((1.0,) * N_GROUPS, (0.0,) * N_GROUPS)
    >>> blend = LogisticBlend({"linear": slopes}, (0.0, *(1.0,) * (N_GROUPS - 1)))
    >>> blend.log_odds(scores, frequency_groups(np.array([[0, 10]]))).tolist()
    [[-1.0, 0.0]]
    """

    kind: ClassVar[str] = "logistic"

    slopes: dict[str, Slopes]
    biases: tuple[float, ...]

    @property
    def weights(self) -> dict[str, float]:
        """The mean of all weights of each view."""
        return {name: sum(low + high) / (2 * N_GROUPS) for name, (low, high) in self.slopes.items()}

    def log_odds(self, log_scores: LogScores, groups: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the log-odds that each candidate is right."""
        total = np.array(self.biases, dtype=np.float64)[groups]
        for name, slopes in self.slopes.items():
            for slope, feature in zip(slopes, features_of(log_scores[name]), strict=True):
                total += np.array(slope)[groups] * feature
        return total

    def explain(self, parts: Mapping[str, Contributions], group: int) -> Contributions:
        """Return what each feature adds to the log-odds."""
        total, added = self.biases[group], np.zeros_like(next(iter(parts.values())).features)
        for name, part in parts.items():
            low, high = (one[group] for one in self.slopes[name])

            def says(log_score: float, low: float = low, high: float = high) -> float:
                log_p, confidence = features_of(np.float64(log_score))
                return float(low * log_p + high * confidence)

            total += says(part.base)
            added = added + mean_slope(says, part.base, float(part.features.sum())) * part.features
        return Contributions(total, added)

    def to_json(self) -> dict[str, Any]:
        """Return what a manifest says about it."""
        return {"kind": self.kind, "slopes": self.slopes, "biases": self.biases}


def features_of(log_scores: Any) -> tuple[Any, Any]:
    """Return log p and −log(1 − p), given log p: the latter is about 0 for unlikely labels.

    >>> [one.round(2).tolist() for one in features_of(np.log(np.array([0.0001, 0.5, 0.99])))]
    [[-9.21, -0.69, -0.01], [0.0, 0.69, 4.61]]
    """
    log_p = np.clip(np.asarray(log_scores, dtype=np.float64), _LOWEST, 0)
    # Scores of float32 may round to 1.
    return log_p, -np.log(np.maximum(-np.expm1(log_p), _NEAREST))


def restore_blend(content: Any) -> Blend:
    """Return the blend that a manifest describes; raise a `ValueError` if it describes none."""
    kind = content["kind"]
    if kind == PaperBlend.kind and _are_numbers([content["beta"]], 0, 1):
        return PaperBlend(float(content["beta"]))
    if kind == LogisticBlend.kind and content["slopes"]:
        slopes = {name: Slopes(*map(tuple, rows)) for name, rows in content["slopes"].items()}
        rows, biases = [row for own in slopes.values() for row in own], content["biases"]
        sizes = {len(row) for row in (*rows, biases)}
        positive = all(_are_numbers(row, 0, _LARGEST) for row in rows)
        if sizes == {N_GROUPS} and positive and _are_numbers(biases, -_LARGEST, _LARGEST):
            return LogisticBlend(slopes, tuple(map(float, biases)))
    raise ValueError(f"its manifest has a blend {content!r:.80}")


def _are_numbers(values: Any, low: float, high: float) -> bool:
    return all(type(value) in (int, float) and low <= value <= high for value in values)


@dataclass(frozen=True)
class TailShift:
    """How much rare labels are preferred: powers of 1/p, the inverse propensity, by which odds are multiplied to rank.

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


def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp(-x)) without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0], dtype=np.float32)).tolist()
    [0.0, 0.5, 1.0]
    """
    low = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + low), low / (1 + low))


def logit(score: Any) -> Any:
    """Return the log-odds of a score. Rounded label embeddings may be a little longer than 1, and it a little above."""
    score = np.clip(score, _NEAREST, 1 - _NEAREST)
    return np.log(score / (1 - score))


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
