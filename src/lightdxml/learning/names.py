"""Names that come with new documents: those of new labels, and titles of documents that are labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from lightdxml.data.dataset import Texts
from lightdxml.label_names import name_forms, name_forms_in_features
from lightdxml.learning.kept import KeptData, rounded
from lightdxml.model.model import Model
from lightdxml.text.tfidf import Vectorizer
from lightdxml.views.names.forms import NameForms


def texts_of_new_labels(model: Model, kept: KeptData | None, new: Sequence[str]) -> list[list[str]] | None:
    """Return what new labels are called; None if the model knows no names, or names are only ids."""
    if not new or not model.config.names.enabled:
        return None
    if model.vocabulary is not None:
        language = model.language or ""
        return [list(model.vocabulary.texts(name, language)) for name in new]
    if kept.label_words if kept is not None else "names" in model.views and not model.never_own:
        return [[name] for name in new]
    return None


def names_of_new_labels(
    model: Model, kept: KeptData | None, vectorizer: Vectorizer | None, new: Sequence[str]
) -> NameForms | None:
    """Return what new labels are called, as features; None if they have no names."""
    called = texts_of_new_labels(model, kept, new)
    if called is None:
        return None
    if vectorizer is not None:
        return _shifted(name_forms(vectorizer, called), model.n_labels)
    if kept is None or not kept.feature_names:
        return None
    return _shifted(name_forms_in_features(kept.X, kept.feature_names, called), model.n_labels)


def titles_of(vectorizer: Vectorizer, texts: Texts) -> csr_matrix:
    """Return the titles of documents as features; empty rows for documents without one."""
    titles = texts.titles if texts.titles is not None else [""] * len(texts)
    return rounded(name_forms(vectorizer, [[one] for one in titles]).terms)


def names_by_titles(titles: csr_matrix, own: NDArray[np.int32]) -> NameForms | None:
    """Return titles as names of the labels that their documents are; None if there are none.

    >>> titles = csr_matrix([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    >>> names_by_titles(titles, np.array([-1, 7], dtype=np.int32)).labels.tolist()
    [7]
    """
    rows = np.flatnonzero((own >= 0) & (np.diff(titles.indptr) > 0))
    if not len(rows):
        return None
    order = rows[np.argsort(own[rows], kind="stable")]
    return NameForms(csr_matrix(titles[order]), own[order].astype(np.int32))


def new_names(parts: Sequence[NameForms | None], known: NameForms | None) -> NameForms | None:
    """Return those of several sets of names that a label does not have yet, each once; None if there are none.

    >>> terms = csr_matrix([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    >>> names = NameForms(terms, np.array([3, 3], dtype=np.int32))
    >>> new_names([names, None, names], names[:1]).terms.toarray().tolist()
    [[0.0, 1.0]]
    """
    given = [one for one in parts if one is not None and len(one.labels)]
    if not given:
        return None
    terms = csr_matrix(vstack([one.terms for one in given]))
    names = NameForms(terms, np.concatenate([one.labels for one in given]))
    same = None if known is None else known[np.flatnonzero(np.isin(known.labels, names.labels))]
    seen = set() if same is None else {same.key(row) for row in range(len(same.labels))}
    rows = []
    for row in np.argsort(names.labels, kind="stable").tolist():
        # A name without a known word says nothing.
        if names.key(row) not in seen and names.n_terms[row]:
            seen.add(names.key(row))
            rows.append(row)
    return names[np.array(rows)] if rows else None


def _shifted(forms: NameForms, first: int) -> NameForms:
    return NameForms(rounded(forms.terms), (forms.labels + first).astype(np.int32))
