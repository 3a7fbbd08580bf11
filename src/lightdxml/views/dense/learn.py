"""Learning with the dense views: embeddings and weights of the labels of new documents; the encoder stays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lightdxml import index as indexes
from lightdxml.kernels.precision import dequantize_classifier, quantize_int8
from lightdxml.views.dense import label_encoder
from lightdxml.views.dense.classifier import ClassifierView
from lightdxml.views.dense.encoder import encode, normalize
from lightdxml.views.dense.nearness import NearnessView, like
from lightdxml.views.lesson import Lesson


def learn_nearness(view: NearnessView, lesson: Lesson) -> NearnessView:
    """Return the view with embeddings of the labels of a lesson: those of their centroids."""
    encoder = view.encoder.with_features(lesson.n_features)
    known = np.isin(lesson.labels, view.labels)
    # What the label encoder has made of a centroid cannot be repeated without it.
    can_move = lesson.remembers and lesson.label_encoder is not None
    labels = lesson.labels if can_move else lesson.labels[~known]
    labels = labels[lesson.data.label_frequency[labels] > 0]
    if not len(labels):
        return replace(view, encoder=encoder)
    rows = lesson.data.label_to_docs[labels]
    documents = np.unique(rows.indices)
    embeddings = encode(encoder, lesson.data.X[documents])
    rows.indices = np.searchsorted(documents, rows.indices).astype(np.int32)
    added = label_encoder.centroids(rows, embeddings)
    if lesson.label_encoder is not None:
        added = label_encoder.embed(lesson.label_encoder, added)
    normalize(added)
    kept = ~np.isin(view.labels, labels)
    every = np.concatenate([view.labels[kept], labels])
    vectors = np.concatenate([view.index.vectors[kept], like(view.index.vectors, added)])
    order = np.argsort(every, kind="stable")
    index = indexes.build(vectors[order], view.index.kind, k=view.shortlist_size)
    return NearnessView(encoder, every[order], index, view.shortlist_size)


def learn_classifier(view: ClassifierView, lesson: Lesson) -> ClassifierView:
    """Return the view with weights of the labels of a lesson."""
    encoder = view.encoder.with_features(lesson.n_features)
    more = lesson.n_labels - len(view.W)
    mean = dequantize_classifier(view.W).mean(axis=0, keepdims=True)
    rows = np.repeat(mean, more, axis=0)
    W = np.concatenate([view.W, _like(view.W, rows)])
    return ClassifierView(encoder, W)


def _like(W, rows):
    return quantize_int8(rows[:, :-1], rows[:, -1]) if W.dtype == np.int8 else rows.astype(W.dtype)
