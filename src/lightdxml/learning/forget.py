"""Unlearning: labels that are retired or become one with another, and documents that do not count any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.data.labels import label_matrix
from lightdxml.kernels import blas
from lightdxml.learning import rehearsal
from lightdxml.learning.learn import Learner, rows_of_ids
from lightdxml.views.lesson import Lesson

_NONE = np.empty(0, dtype=np.int32)


def retire(learner: Learner, labels: Sequence[int]) -> Learner:
    """Return a learner whose model never suggests these labels again; all labels keep their ids."""
    retired = np.union1d(learner.model.retired, np.array(labels, dtype=np.int32)).astype(np.int32)
    if len(retired) == learner.model.n_labels:
        raise ValueError("no label would be left to suggest: retire fewer")
    return replace(learner, model=replace(learner.model, retired=retired))


def merge(learner: Learner, gone: int, stays: int) -> Learner:
    """Return a learner in which documents and names of one label are those of another; the first one is retired.

    Later documents with the first label will have the other one, too.
    """
    model, kept = learner.model, learner.kept
    if gone == stays:
        raise ValueError("a label cannot be merged with itself: give two labels")
    if (known := model.merged[model.merged[:, 0] == gone]).size:
        raise ValueError(
            f"{model.label(gone).name} is one with {model.label(known[0, 1]).name} already: merge that one"
        )
    if stays in model.retired:
        raise ValueError(f"{model.label(stays).name} is retired: merge with a label that is not")
    with blas.on_one_thread():
        frequency, labels = model.label_frequency.copy(), np.array([stays], dtype=np.int32)
        frequency[stays] += frequency[gone]
        pairs = ((gone, stays),)
        if kept is not None:
            kept = kept.merged(gone, stays)
            frequency[stays] = np.count_nonzero(kept.Y.indices == stays)
            data, n_earlier = kept.training_data(), len(kept)
        else:
            # What its weights say of its documents is learned as a document.
            typical = rehearsal.typical_documents(model, np.array([gone], dtype=np.int32), model.n_features)
            Y = label_matrix([[stays]], model.n_labels)
            data, n_earlier = rehearsal.data(model, typical, Y, typical, None, but=gone)
        evidence = np.zeros(model.n_labels, dtype=np.int32)
        evidence[stays], frequency[gone] = frequency[gone], 0
        is_fresh = model.label_frequency[stays] == 0
        lesson = Lesson(
            data=data,
            n_earlier=n_earlier,
            remembers=kept is not None,
            labels=labels,
            # A label without documents has no cluster yet.
            fresh=labels if is_fresh else _NONE,
            nearest=np.array([gone], dtype=np.int32) if is_fresh else _NONE,
            frequency=frequency,
            evidence=evidence,
            config=model.config,
            merged=pairs,
            clusters=None if kept is None else kept.clusters,
            label_encoder=None if kept is None else kept.label_encoder,
        )
        views = {name: view.learn(lesson) for name, view in model.views.items()}
        kept = None if kept is None else kept.placed(lesson)
    merged = np.vstack([model.merged, np.array(pairs, dtype=np.int32)])
    after = replace(learner, model=replace(model, views=views, label_frequency=frequency, merged=merged), kept=kept)
    return retire(after, [gone])


def forget(learner: Learner, ids: Sequence[str]) -> Learner:
    """Return a learner that has not learned the documents with these ids."""
    model, kept = learner.model, learner.kept
    if kept is None:
        raise ValueError("the model does not keep its training data: train it with --keep-training-data")
    rows = rows_of_ids(kept, list(ids))
    if missing := set(ids) - {kept.ids[row] for row in rows.tolist()}:
        raise ValueError(f"no document that the model has learned has the id {min(missing)!r}: check it")
    with blas.on_one_thread():
        removed: tuple[csr_matrix, csr_matrix] = kept.X[rows], kept.Y[rows]
        frequency = model.label_frequency - np.bincount(removed[1].indices, minlength=model.n_labels).astype(np.int32)
        kept = kept.without(rows)
        lesson = Lesson(
            data=kept.training_data(),
            n_earlier=len(kept),
            remembers=True,
            labels=np.unique(removed[1].indices).astype(np.int32),
            fresh=_NONE,
            nearest=_NONE,
            frequency=frequency,
            evidence=np.zeros_like(frequency),
            config=model.config,
            removed=removed,
            clusters=kept.clusters,
            label_encoder=kept.label_encoder,
        )
        views = {name: view.learn(lesson) for name, view in model.views.items()}
    after = replace(model, views=views, label_frequency=frequency, n_documents=model.n_documents - removed[0].shape[0])
    return replace(learner, model=after, kept=kept)
