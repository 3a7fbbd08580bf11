"""Why a label: what each feature of a document adds to a label's score, exactly.

A document's embedding is a sum over its features, and the margin of a linear classifier too. So every view's log-score
is a function of sums over features. For such a function f, f(a + b) − f(a) is b times the mean slope between the two;
each feature gets its share of that (`views.base.mean_slope`). Base and features add up to the score. What `tail` takes
away is a part of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lightdxml.model.blend import rarity
from lightdxml.model.model import Model, predict
from lightdxml.views.base import Batch

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from lightdxml.kernels.sparse import FeatureRows


@dataclass(frozen=True)
class Explanation:
    """Why a document got a label.

    Attributes
    ----------
    label
        The label's name, or its id if it has none.
    score
        The model's score: `base` plus the sum of the parts, plus `tail`.
    base
        The score of a document without features.
    parts
        Words (feature ids if they have no names) with what each adds, the largest absolute values first.
    tail
        What the shift to rare labels takes from the score: at most 0.
    """

    label: str | int
    score: float
    base: float
    parts: list[tuple[str | int, float]]
    tail: float = 0.0


def explain(
    model: Model,
    X: csr_matrix | FeatureRows,
    k: int = 5,
    tail: float = 0.0,
    allowed: NDArray[np.bool_] | None = None,
) -> list[list[Explanation]]:
    """Return explanations of the k best labels of each document, among those that are allowed."""
    labels, scores = predict(model, X, k, tail, allowed=allowed)
    return [
        [
            _explain(model, Batch(X[i]), label, score, tail)
            for label, score in zip(labels[i].tolist(), scores[i].tolist(), strict=True)
            if label >= 0
        ]
        for i in range(X.shape[0])
    ]


def _explain(model: Model, batch: Batch, label: int, score: float, tail: float) -> Explanation:
    views = {name: view for name, view in model.views.items() if model.blend.weights.get(name)}
    parts = {name: view.contributions(batch, label) for name, view in views.items()}
    total = model.blend.explain(parts, int(model.label_groups[label]))
    features, names = total.features, _names(model, batch.X)
    order = np.lexsort((np.arange(len(features)), -np.abs(features)))
    rare = float(rarity(model.label_frequency[label : label + 1], model.n_documents)[0])
    shift = float(np.expm1(model.shift.strength(tail) * rare))
    taken = (total.base + float(features.sum())) * shift if shift else 0.0
    name = label if model.label_names is None else model.label_names[label]
    return Explanation(name, score, total.base, [(names[i], float(features[i])) for i in order], taken)


def _names(model: Model, x: csr_matrix | FeatureRows) -> list[str | int]:
    if model.vectorizer is None:
        return list(x.indices.tolist())
    return [model.vectorizer.vocabulary[i] for i in x.indices.tolist()]
