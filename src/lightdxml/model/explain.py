"""Why a label: what each feature of a document adds to a label's score, exactly.

A document's embedding is a sum over its features, and the margin of a linear classifier too. So every view's log-score
is a function of sums over features. For such a function f, f(a + b) − f(a) is b times the mean slope between the two;
each feature gets its share of that (`views.base.mean_slope`). Base and features add up to the score, the calibrated
probability.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lightdxml.model.blend import logit, sigmoid
from lightdxml.model.model import Model, predict
from lightdxml.text.written import words_of, written_terms
from lightdxml.views.base import Batch, Contributions, mean_slope

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from lightdxml.data.dataset import Texts
    from lightdxml.kernels.sparse import FeatureRows


@dataclass(frozen=True)
class Explanation:
    """Why a document got a label.

    Attributes
    ----------
    label
        The label's name, its URI if there is a vocabulary, or its id if it has no name.
    score
        The probability that the label is right: `base` plus the sum of the parts.
    base
        The score of a document without features.
    parts
        Words (feature ids if they have no names) with what each adds, the largest absolute values first. Words of a
        text are as they are first written in it, in lower case.
    name, notation
        What the label is called, in the language of the model, and its notation in the vocabulary, if it has one.
    name_match
        The name of the label whose words all occur in the text, the one of the most words; None if there is none, or if
        the model was trained without names.
    """

    label: str | int
    score: float
    base: float
    parts: list[tuple[str | int, float]]
    name: str = ""
    notation: str = ""
    name_match: str | None = None


def explain(
    model: Model,
    X: csr_matrix | FeatureRows,
    k: int = 5,
    tail: float = 0.0,
    allowed: NDArray[np.bool_] | None = None,
    texts: Texts | Sequence[str] | None = None,
    own: NDArray[np.int32] | None = None,
) -> list[list[Explanation]]:
    """Return explanations of the k best labels of each document, among those that are allowed.

    `texts` are the documents if they are texts, `own` the labels that they are themselves.
    """
    labels, scores = predict(model, X, k, tail, own, allowed)
    written: Sequence[Mapping[str, str]] = [{}] * X.shape[0]
    if texts is not None and model.vectorizer is not None:
        written = written_terms(texts, model.vectorizer.settings)
    return [
        [
            _explain(model, Batch(X[i]), label, score, written[i])
            for label, score in zip(labels[i].tolist(), scores[i].tolist(), strict=True)
            if label >= 0
        ]
        for i in range(X.shape[0])
    ]


def _explain(model: Model, batch: Batch, label: int, score: float, written: Mapping[str, str]) -> Explanation:
    views = {name: view for name, view in model.views.items() if model.blend.weights.get(name)}
    parts = {name: view.contributions(batch, label) for name, view in views.items()}
    total = _as_probability(model, model.blend.explain(parts, int(model.label_groups[label])), score)
    features, names = total.features, _feature_names(model, batch.X, written)
    order = np.lexsort((np.arange(len(features)), -np.abs(features)))
    shown = model.label(label)
    return Explanation(
        label=model.given_label(label),
        score=score,
        base=total.base,
        parts=[(names[i], float(features[i])) for i in order],
        name=shown.name,
        notation=shown.notation,
        name_match=_name_match(model, label, written),
    )


def _as_probability(model: Model, log_odds: Contributions, score: float) -> Contributions:
    """Return contributions to the probability, given those to the log-odds.

    What the rank of the label takes away is the same with fewer words: it is part of the base.
    """
    step = float(log_odds.features.sum())
    at_rank = float(logit(np.float64(score))) - float(model.calibration.log_odds(log_odds.base + step, 0))

    def probability(value: float) -> float:
        return float(sigmoid(np.float64(model.calibration.log_odds(value, 0) + at_rank)))

    slope = mean_slope(probability, log_odds.base, step)
    return Contributions(probability(log_odds.base), slope * log_odds.features)


def _feature_names(model: Model, x: csr_matrix | FeatureRows, written: Mapping[str, str]) -> list[str | int]:
    if model.vectorizer is None:
        return list(x.indices.tolist())
    terms = [model.vectorizer.vocabulary[i] for i in x.indices.tolist()]
    return [written.get(term, term) for term in terms]


def _name_match(model: Model, label: int, terms: Collection[str]) -> str | None:
    """Return the longest of the label's names whose words are all among these terms."""
    if not model.config.names.enabled or model.label_names is None or model.vectorizer is None:
        return None
    own = model.label_names[label]
    names = (own,) if model.vocabulary is None else model.vocabulary.texts(own, model.language)
    words = {name: set(words_of(name, model.vectorizer.settings.language)) for name in names}
    found = [name for name, some in words.items() if some and all(word in terms for word in some)]
    return max(found, key=lambda name: len(words[name]), default=None)
