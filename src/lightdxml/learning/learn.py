"""One lesson: documents with labels are measured, learned by all views, and kept."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.data.own_labels import own_labels
from lightdxml.kernels import blas
from lightdxml.learning import rehearsal
from lightdxml.learning.documents import LabeledDocuments, has_label
from lightdxml.learning.incoming import Incoming, new_ids
from lightdxml.learning.kept import KeptData
from lightdxml.learning.measured import Measured, Recent, measure
from lightdxml.learning.names import names_by_titles, names_of_new_labels, new_names, titles_of
from lightdxml.model import fingerprints
from lightdxml.model.model import Model
from lightdxml.views.base import Batch
from lightdxml.views.lesson import Lesson
from lightdxml.views.linear.inverted import search
from lightdxml.views.linear.model import LinearView
from lightdxml.views.names.forms import NameForms
from lightdxml.views.tree.clustering import label_centroids

# The share of documents that the clusters of label trees have not learned at which they do.
_CLUSTERS_DUE = 0.05


@dataclass(frozen=True, eq=False)
class Learner:
    """A model that learns, and what it needs for that.

    Attributes
    ----------
    model
        The model.
    kept
        The documents that it was trained on, and has learned since; None if they were not kept.
    recent
        What it said about documents before it learned them.
    """

    model: Model
    kept: KeptData | None = None
    recent: Recent = field(default_factory=Recent)


@dataclass(frozen=True)
class Learned:
    """What a lesson has changed.

    Attributes
    ----------
    documents, corrected
        Documents that were learned, and those of them that replace one of the same id.
    labels, new_labels
        The number of labels that were trained again, and of those that are new.
    new_words
        Words that have joined the vocabulary.
    unknown_words
        The share of words of these documents that the model did not know before.
    measured
        How well the model did on those of them that are new, before it learned them.
    recalibrated
        Whether weights of views and probabilities were fitted again.
    """

    documents: int
    corrected: int
    labels: int
    new_labels: int
    new_words: int
    unknown_words: float
    measured: Measured
    recalibrated: bool


def learn(learner: Learner, documents: LabeledDocuments) -> tuple[Learner, Learned]:
    """Return a learner that has learned these documents, and what has changed."""
    with blas.on_one_thread():
        model, kept = learner.model, learner.kept
        new = Incoming.of(documents, model, kept)
        is_new = ~new.is_corrected
        measured, observed, mistaken = measure(model, new.old_features, new.Y, new.own, is_new)
        mistaken = np.append(mistaken, _rejected(model, documents)).astype(np.int32)
        if kept is None:
            lesson = _without_memory(model, new, mistaken)
        else:
            lesson, kept = _with_memory(model, kept, new, observed.labels, mistaken)
        recent = learner.recent.extended(observed.rows(np.flatnonzero(is_new)))
        recent, after = recent.recalibrated(_learned(model, new, lesson))
    figures = Learned(
        len(documents), lesson.n_removed, len(lesson.labels), lesson.n_labels - model.n_labels, len(new.joined),
        new.unknown_words, measured, after.calibration is not model.calibration,
    )  # fmt: skip
    return Learner(after, kept, recent), figures


def _learned(model: Model, new: Incoming, lesson: Lesson) -> Model:
    """Return the model after a lesson."""
    X, texts = new.documents.X, new.documents.texts
    seen = fingerprints.of_texts(texts or ()) if X is None else fingerprints.of_features(X)
    return replace(
        model,
        views={name: view.learn(lesson) for name, view in model.views.items()},
        n_features=lesson.n_features,
        label_frequency=lesson.frequency,
        n_documents=model.n_documents + new.X.shape[0] - lesson.n_removed,
        label_names=None if model.label_names is None else [*model.label_names, *new.new_labels],
        vectorizer=new.vectorizer,
        trained_on=fingerprints.kept(np.concatenate([model.trained_on, seen])),
    )


def _without_memory(model: Model, new: Incoming, mistaken: NDArray[np.int32]) -> Lesson:
    """Return the lesson of new documents alone."""
    names = new_names([names_of_new_labels(model, None, new.vectorizer, new.new_labels)], None)
    data, n_earlier = rehearsal.data(model, new.X, new.Y, new.old_features, new.own)
    fresh, nearest = _fresh(model, new)
    labels = np.union1d(new.Y.indices, mistaken).astype(np.int32)
    frequency = _frequency(model, new)
    return Lesson(
        data=data,
        n_earlier=n_earlier,
        remembers=False,
        labels=labels,
        fresh=fresh,
        nearest=nearest,
        frequency=frequency,
        evidence=_evidence(new, mistaken),
        config=model.config,
        added_names=names,
    )


def _with_memory(
    model: Model, kept: KeptData, new: Incoming, ranked: NDArray[np.int32], mistaken: NDArray[np.int32]
) -> tuple[Lesson, KeptData]:
    """Return the lesson of new documents next to those that were kept, and all of them.

    `ranked` are the labels that the model gives the new documents, best first; -1 for none.
    """
    kept = kept.widened(new.X.shape[1], new.Y.shape[1])
    if new.vectorizer is not None and new.rare is not None:
        kept = replace(kept.with_late_words(new.joined, new.vectorizer), rare=new.rare)
    kept, removed = _without_earlier_versions(kept, new.documents.ids)
    kept, titles, added = _with_names(model, kept, new)
    n_earlier, frequency, labels = len(kept), _frequency(model, new), [new.Y.indices, mistaken]
    if removed is not None:
        labels.append(removed[1].indices)
        frequency -= np.bincount(removed[1].indices, minlength=len(frequency)).astype(np.int32)
    if added is not None:
        labels.append(added.labels)
    kept = kept.appended(new.X, new.Y, new.documents.ids, new.own, titles, _hard_negatives(kept, ranked))
    since = kept.in_clusters if len(kept) - kept.in_clusters >= _CLUSTERS_DUE * len(kept) else None
    kept = kept if since is None else replace(kept, in_clusters=len(kept))
    fresh, nearest = _fresh(model, new)
    lesson = Lesson(
        data=kept.training_data(),
        n_earlier=n_earlier,
        remembers=True,
        labels=np.unique(np.concatenate(labels)).astype(np.int32),
        fresh=fresh,
        nearest=nearest,
        frequency=frequency,
        evidence=_evidence(new, mistaken),
        config=model.config,
        added_names=added,
        removed=removed,
        clusters=kept.clusters,
        clusters_since=since,
        label_encoder=kept.label_encoder,
    )
    return lesson, kept.placed(lesson)


def _without_earlier_versions(kept: KeptData, ids: list[str]) -> tuple[KeptData, tuple[csr_matrix, csr_matrix] | None]:
    """Return the data without documents of these ids, and the features and labels of these; None if there are none."""
    rows = rows_of_ids(kept, ids)
    return (kept.without(rows), (kept.X[rows], kept.Y[rows])) if len(rows) else (kept, None)


def _with_names(model: Model, kept: KeptData, new: Incoming) -> tuple[KeptData, csr_matrix | None, NameForms | None]:
    """Return the data with names that come with new documents, the titles of these documents, and these names.

    New labels have names. If documents are labels, their titles are names of these.
    """
    names, titles = [names_of_new_labels(model, kept, new.vectorizer, new.new_labels)], None
    if kept.titles is not None and kept.own is not None and new.own is not None:
        assert new.vectorizer is not None
        assert new.documents.texts is not None
        titles = titles_of(new.vectorizer, new.documents.texts)
        # Earlier documents may be labels that are new.
        earlier = own_labels(kept.ids, new_ids(model, new.new_labels))
        names += [names_by_titles(titles, new.own), names_by_titles(kept.titles, earlier)]
        kept = replace(kept, own=np.maximum(kept.own, earlier))
    added = new_names(names, kept.names)
    return kept.with_names(added), titles, added


def _rejected(model: Model, documents: LabeledDocuments) -> list[int]:
    """Return the columns of rejected labels that have documents; others have nothing to be trained on."""
    columns = [model.column(label) for label in documents.rejected if has_label(model, label)]
    return [column for column in columns if model.label_frequency[column] > 0]


def _evidence(new: Incoming, mistaken: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the number of new documents that each label has, or that it was suggested for wrongly."""
    return np.bincount(np.append(new.Y.indices, mistaken), minlength=new.Y.shape[1]).astype(np.int32)


def _frequency(model: Model, new: Incoming) -> NDArray[np.int32]:
    """Return the number of documents of each label, with the new ones."""
    frequency = np.bincount(new.Y.indices, minlength=new.Y.shape[1]).astype(np.int32)
    frequency[: model.n_labels] += model.label_frequency
    return frequency


def rows_of_ids(kept: KeptData, ids: list[str]) -> NDArray[np.int64]:
    """Return the kept documents with these ids, ascending."""
    wanted = {one for one in ids if one}
    return np.array([row for row, one in enumerate(kept.ids) if one in wanted] if wanted else [], dtype=np.int64)


def _fresh(model: Model, new: Incoming) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return labels that had no document before, and for each the label whose weights fit its documents best."""
    has_documents = np.zeros(new.Y.shape[1], dtype=np.bool_)
    has_documents[: model.n_labels] = model.label_frequency > 0
    labels = np.unique(new.Y.indices)
    fresh = labels[~has_documents[labels]].astype(np.int32)
    view = model.views.get("linear")
    if not len(fresh) or not isinstance(view, LinearView):
        return fresh, np.full(len(fresh), np.argmax(has_documents[: model.n_labels]), dtype=np.int32)
    centroids = csr_matrix(label_centroids(new.old_features, csr_matrix(new.Y[:, fresh]))).astype(np.float32)
    none, allowed = np.empty((len(fresh), 0), dtype=np.int32), has_documents[: model.n_labels]
    found = search(view.index, Batch(centroids), 1, none, allowed)[0].ravel()
    # A label that shares no word with any other gets the first one.
    return fresh, np.where(found >= 0, found, np.argmax(allowed)).astype(np.int32)


def _hard_negatives(kept: KeptData, ranked: NDArray[np.int32]) -> NDArray[np.int32] | None:
    """Return the clusters of the labels that a model ranks highest, documents × clusters."""
    clusters = kept.clusters
    if clusters is None:
        return None
    width = clusters.of_document.shape[1]
    found = np.zeros((len(ranked), width), dtype=np.int32)
    for row, of_row in enumerate(np.where(ranked >= 0, clusters.of_label[ranked], -1)):
        distinct = list(dict.fromkeys(of_row[of_row >= 0].tolist()))[:width]
        # Documents without known words are negatives of the first cluster.
        found[row] = np.resize(np.array(distinct or [0], dtype=np.int32), width)
    return found
