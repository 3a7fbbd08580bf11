"""Learning with the names view: counts of new documents, and names that come with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix, vstack

from lightdxml.views.base import FREQUENCY, groups_of
from lightdxml.views.lesson import Lesson
from lightdxml.views.linear.grow import weights_of
from lightdxml.views.linear.solver import inverted_rows
from lightdxml.views.names.forms import NameForms
from lightdxml.views.names.model import NamesView
from lightdxml.views.names.occurrences import Occurrences, count
from lightdxml.views.names.scorer import AMBIGUITY, TERMS


def learn(view: NamesView, lesson: Lesson) -> NamesView:
    """Return the view with counts of all documents and with added names; the scorer stays as it is."""
    names = known_names(view, lesson.n_features)
    counts = view.occurrences + count(names, lesson.new_features, csr_matrix(lesson.new_labels.T))
    if lesson.removed is not None:
        X, Y = lesson.removed
        counts = counts.less(count(names, X, csr_matrix(Y.T)))
    if lesson.added_names is not None:
        added = lesson.added_names
        counts = counts.joined(_counts_of_added(added, lesson))
        names = NameForms(csr_matrix(vstack([names.terms, added.terms])), np.concatenate([names.labels, added.labels]))
    labels = names.labels.copy()
    for gone, kept in lesson.merged:
        labels[labels == gone] = kept
    order = np.argsort(labels, kind="stable")
    names, counts = NameForms(names.terms, labels)[order], counts[order]
    frequency = np.append(view.frequency, np.zeros(lesson.n_labels - len(view.frequency), dtype=np.uint8))
    frequency[lesson.labels] = groups_of(lesson.frequency[lesson.labels], FREQUENCY)
    return replace(
        view,
        index=inverted_rows(names.shares, view.index.weights.dtype.name),
        labels=names.labels,
        terms=groups_of(names.n_terms, TERMS),
        ambiguity=groups_of(names.ambiguity, AMBIGUITY),
        occurrences=counts,
        frequency=frequency,
    )


def known_names(view: NamesView, n_features: int) -> NameForms:
    """Return the names of a view as features; their order stays."""
    shares = weights_of(view.index, np.arange(len(view.labels), dtype=np.int32))
    terms = csr_matrix((np.sqrt(shares.data), shares.indices, shares.indptr), shape=(len(view.labels), n_features))
    return NameForms(terms, view.labels)


def _counts_of_added(added: NameForms, lesson: Lesson) -> Occurrences:
    """Return how often added names occur in all documents that are known."""
    data = lesson.data
    X, label_documents = data.X, data.label_to_docs
    if not lesson.remembers:
        X, label_documents = lesson.new_features, csr_matrix(lesson.new_labels.T)
    # Without the terms of no name, which are most of them.
    is_used = np.zeros(X.shape[1], dtype=np.bool_)
    is_used[added.terms.indices] = True
    kept = is_used[X.indices]
    indptr = np.append(0, np.cumsum(kept))[X.indptr]
    return count(added, csr_matrix((X.data[kept], X.indices[kept], indptr), shape=X.shape), label_documents)
