"""Why a label: what each word of a document adds to a label's score, exactly.

A document's embedding is a sum over its words, and both dense views of a label, the classifier's logit and the cosine,
are products with it: each is a sum over words, as the sparse view's margin is. (With ReLU or a residual layer the sum
holds for the units that are on for this document, and the layer's bias is a part of its own.) The score is no sum, but
for a function f of one, f(a + b) − f(a) is b times the mean slope between the two; each word gets its share of that. So
parts and base add up. What `tail` takes from it, the label being frequent, is a part of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import model as models
from lightdxml.encoder import Encoder, encode
from lightdxml.kernels.precision import dequantize, dequantize_classifier
from lightdxml.model import Model
from lightdxml.sparse_view import SparseView

_FLAT = 1e-6


@dataclass(frozen=True)
class Explanation:
    """Why a document got a label.

    Attributes
    ----------
    label
        Its name, or its number where it has none.
    score
        What the model gives it: `base` plus the sum of the parts, plus `tail`.
    base
        What a document without words would get.
    parts
        Words (numbers of features where they have no names) with what each adds, the largest for and against first.
    tail
        What the shift to rare labels takes from the score, as a number below 0; 0 where `tail` is 0.
    """

    label: str | int
    score: float
    base: float
    parts: list[tuple[str | int, float]]
    tail: float = 0.0


def explain(model: Model, X: csr_matrix, k: int = 5, tail: float = 0.0) -> list[list[Explanation]]:
    """Return the explanations of each document's k best labels."""
    labels, scores = models.predict(model, X, k, tail)
    X = models.check_features(X, model.n_features)
    return [
        [
            _explain(model, X[i], label, score, tail)
            for label, score in zip(labels[i].tolist(), scores[i].tolist(), strict=True)
            if label >= 0
        ]
        for i in range(X.shape[0])
    ]


@dataclass(frozen=True)
class _View:
    """A view of a label: its share, what is done with its sum, what the words add, and what is there without them."""

    share: float
    function: Callable[[float], float]
    words: NDArray[np.float64]
    start: float


def _explain(model: Model, x: csr_matrix, label: int, score: float, tail: float) -> Explanation:
    words, rest = _word_embeddings(model.encoder, x)
    w = dequantize_classifier(model.classifier[label : label + 1])[0].astype(np.float64)
    place = np.searchsorted(model.shortlist.labels, label)
    direction = dequantize(model.shortlist.vectors[place : place + 1])[0].astype(np.float64)
    length = float(np.linalg.norm(words.sum(axis=0) + rest)) or 1.0
    logit = words @ w[:-1], float(w[-1] + rest @ w[:-1])
    cosine = words @ direction / length, float(rest @ direction / length)
    if model.sparse is None:
        views = [_View(model.beta, _sigmoid, *logit), _View(1 - model.beta, _sigmoid, *cosine)]
        base, parts = _shared_out(views)
    else:
        dense = 1 - model.gamma
        views = [
            _View(model.gamma, _hinge, *_margin(model.sparse, x, label)),
            _View(dense * model.beta, _log_sigmoid, *logit),
            _View(dense * (1 - model.beta), lambda value: value - 1, *cosine),
        ]
        if model.tree is not None:
            share, tree = model.gamma * model.tree_share, model.tree
            views += [
                _View(share, _hinge, *_margin(tree.view, x, node)) for node in tree.paths[label].tolist() if node >= 0
            ]
        total, added = _shared_out(views)
        base, parts = float(np.exp(total)), _mean_slope(np.exp, total, float(added.sum())) * added
    names = _names(model, x)
    order = np.lexsort((np.arange(len(parts)), -np.abs(parts)))
    rare = float(models.rarity(model.label_frequency[label : label + 1], model.n_documents)[0])
    shift = float(np.expm1(tail * model.tail_strength * rare))
    taken = (base + float(parts.sum())) * shift if shift else 0.0
    return Explanation(_label(model, label), score, base, [(names[i], float(parts[i])) for i in order], taken)


def _shared_out(views: list[_View]) -> tuple[float, NDArray[np.float64]]:
    """Return the sum of the views without words, and what each word adds to it."""
    base = sum(view.share * view.function(view.start) for view in views)
    parts = sum(
        (view.share * _mean_slope(view.function, view.start, float(view.words.sum())) * view.words for view in views),
        start=np.zeros(len(views[0].words)),
    )
    return base, parts


def _margin(view: SparseView, x: csr_matrix, label: int) -> tuple[NDArray[np.float64], float]:
    """Return what each word adds to a label's margin, and its bias."""
    words = np.zeros(x.nnz)
    for i, word in enumerate(x.indices.tolist()):
        first, last = view.pointers[word], view.pointers[word + 1]
        at = first + np.searchsorted(view.labels[first:last], label)
        if at < last and view.labels[at] == label:
            words[i] = float(x.data[i]) * float(view.weights[at])
    return words, float(view.biases[label])


def _hinge(margin: float) -> float:
    return -(max(0.0, 1.0 - margin) ** 2)


def _log_sigmoid(value: float) -> float:
    return -float(np.logaddexp(0.0, -value))


def _word_embeddings(encoder: Encoder, x: csr_matrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what each word of a document adds to its embedding, and what is there without words."""
    words = dequantize(encoder.vectors[x.indices]).astype(np.float64) * x.data[:, None].astype(np.float64)
    rest = np.zeros(words.shape[1])
    if encoder.relu:
        words *= words.sum(axis=0) > 0
    if encoder.residual is not None:
        R, bias = encoder.residual.R.astype(np.float64), encoder.residual.bias.astype(np.float64)
        # The units that are on in the model itself: near zero, another order of summing could decide otherwise.
        inner = encode(Encoder(encoder.vectors, encoder.relu), x)[0]
        on = encode(encoder, x)[0] > inner
        words, rest = words + (words @ R.T) * on, bias * on
    return words, rest


def _sigmoid(value: float) -> float:
    return float(1 / (1 + np.exp(-value))) if value >= 0 else float(np.exp(value) / (1 + np.exp(value)))


def _mean_slope(function: Callable[[float], float], start: float, step: float) -> float:
    """Return (f(start + step) − f(start)) / step; where the step is about 0, the slope there."""
    if abs(step) < _FLAT:
        start, step = start + step / 2 - _FLAT, 2 * _FLAT
    return float(function(start + step) - function(start)) / step


def _names(model: Model, x: csr_matrix) -> list[str | int]:
    if model.vectorizer is None:
        return list(x.indices.tolist())
    return [model.vectorizer.vocabulary[i] for i in x.indices.tolist()]


def _label(model: Model, label: int) -> str | int:
    return label if model.label_names is None else model.label_names[label]
