"""Learning with the dense views: embeddings of the labels of new documents, and weights of new labels.

The encoder stays, and so do the weights of labels that are known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml import index as indexes
from lightdxml.kernels.precision import dequantize_classifier, quantize_int8
from lightdxml.views.dense import label_encoder
from lightdxml.views.dense.classifier import ClassifierView
from lightdxml.views.dense.encoder import Encoder, encode, normalize
from lightdxml.views.dense.nearness import NearnessView, like
from lightdxml.views.lesson import Lesson

# Labels that tell how weights follow from embeddings, at most, and how strongly their map is drawn to 0.
_EXAMPLES, _RIDGE = 2000, 1.0


def learn_nearness(view: NearnessView, lesson: Lesson) -> NearnessView:
    """Return the view with embeddings of the labels of a lesson: those of their centroids."""
    encoder = view.encoder.with_features(lesson.n_features)
    labels = lesson.labels[lesson.data.label_frequency[lesson.labels] > 0]
    if not lesson.remembers or lesson.label_encoder is None:
        # What the label encoder has made of a centroid cannot be repeated without it, or without all documents.
        labels = np.setdiff1d(labels, view.labels)
    gone = _without_documents(lesson)
    left = view.labels[~np.isin(view.labels, gone)]
    if not len(labels) and (len(left) == len(view.labels) or not len(left)):
        return replace(view, encoder=encoder)
    added = _centroids(encoder, lesson, labels)
    if lesson.label_encoder is not None:
        added = label_encoder.embed(lesson.label_encoder, added)
    normalize(added)
    kept = ~np.isin(view.labels, np.union1d(labels, gone))
    every = np.concatenate([view.labels[kept], labels]).astype(np.int32)
    vectors = np.concatenate([view.index.vectors[kept], like(view.index.vectors, added)])
    order = np.argsort(every, kind="stable")
    index = indexes.build(vectors[order], view.index.kind, k=view.shortlist_size)
    return NearnessView(encoder, every[order], index, view.shortlist_size)


def learn_classifier(view: ClassifierView, lesson: Lesson) -> ClassifierView:
    """Return the view with weights of labels that had no documents: what other labels like them have."""
    encoder = view.encoder.with_features(lesson.n_features)
    known = dequantize_classifier(view.W)
    more = np.repeat(known.mean(axis=0, keepdims=True), lesson.n_labels - len(known), axis=0)
    W = np.concatenate([view.W, _like(view.W, more)])
    W[_without_documents(lesson)] = _like(view.W, known.mean(axis=0, keepdims=True))
    fresh = lesson.fresh[lesson.data.label_frequency[lesson.fresh] > 0]
    if len(fresh):
        W[fresh] = _like(view.W, _weights_of_new(encoder, known, lesson, fresh))
    return ClassifierView(encoder, W)


def _without_documents(lesson: Lesson) -> NDArray[np.int32]:
    """Return labels whose documents were all taken back."""
    if not lesson.remembers:
        return np.empty(0, dtype=np.int32)
    gone: NDArray[np.int32] = lesson.labels[lesson.data.label_frequency[lesson.labels] == 0]
    return gone


def _weights_of_new(
    encoder: Encoder, known: NDArray[np.float32], lesson: Lesson, fresh: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Return the weights of new labels: a linear map of their centroids, fitted to the other labels."""
    frequency = lesson.data.label_frequency.copy()
    frequency[fresh] = 0
    others = np.flatnonzero(frequency[: len(known)])
    if not len(others):
        return np.repeat(known.mean(axis=0, keepdims=True), len(fresh), axis=0)
    examples = others[:: -(-len(others) // _EXAMPLES)].astype(np.int32)
    given, wanted = _inputs(encoder, lesson, examples), known[examples].astype(np.float64)
    mean = wanted.mean(axis=0)
    normal = given.T @ given + _RIDGE * np.eye(given.shape[1])
    slopes = np.linalg.solve(normal, given.T @ (wanted - mean))
    found: NDArray[np.float32] = (mean + _inputs(encoder, lesson, fresh) @ slopes).astype(np.float32)
    return found


def _inputs(encoder: Encoder, lesson: Lesson, labels: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the directions of centroids, and a column of ones."""
    centroids = _centroids(encoder, lesson, labels)
    normalize(centroids)
    return np.column_stack([centroids.astype(np.float64), np.ones(len(labels))])


def _centroids(encoder: Encoder, lesson: Lesson, labels: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return the mean embedding of each label's documents (Equation 5)."""
    rows = lesson.data.label_to_docs[labels]
    documents = np.unique(rows.indices)
    embeddings = encode(encoder, lesson.data.X[documents])
    rows.indices = np.searchsorted(documents, rows.indices).astype(np.int32)
    return label_encoder.centroids(rows, embeddings)


def _like(W: NDArray[Any], rows: NDArray[np.float32]) -> NDArray[Any]:
    """Return rows in the precision of a classifier."""
    return quantize_int8(rows[:, :-1], rows[:, -1]) if W.dtype == np.int8 else rows.astype(W.dtype)
