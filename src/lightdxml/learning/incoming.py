"""New documents as a model sees them: features, also of words that it did not know, and columns of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.data.dataset import Texts
from lightdxml.data.own_labels import own_labels
from lightdxml.learning.documents import LabeledDocuments, columns_of
from lightdxml.learning.kept import KeptData, rounded
from lightdxml.learning.names import texts_of_new_labels
from lightdxml.model.model import Model
from lightdxml.text import rare, tfidf
from lightdxml.text.rare import Joined, Rare, RareWords
from lightdxml.text.tfidf import Vectorizer


@dataclass(frozen=True, eq=False)
class Incoming:
    """New documents.

    Attributes
    ----------
    documents
        The documents as they were given.
    old_features, X
        Their features, without and with words that join the vocabulary with them.
    Y
        Their labels; columns of new labels come last.
    new_labels
        The names of new labels.
    own
        A label per document that it cannot have, because it is that label; None if documents are no labels.
    vectorizer
        The vocabulary with these words; None for features.
    joined, rare
        The words that join it, and those that are still rare.
    unknown_words
        The share of words that the model did not know.
    is_corrected
        Whether each document replaces one that was learned before, and so tells nothing about new ones.
    """

    documents: LabeledDocuments
    old_features: csr_matrix
    X: csr_matrix
    Y: csr_matrix
    new_labels: list[str]
    own: NDArray[np.int32] | None
    vectorizer: Vectorizer | None
    is_corrected: NDArray[np.bool_]
    joined: Sequence[Joined] = ()
    rare: RareWords | None = None
    unknown_words: float = 0.0

    @staticmethod
    def of(documents: LabeledDocuments, model: Model, kept: KeptData | None) -> Incoming:
        """Return documents as a model sees them."""
        columns = columns_of(model, documents)
        is_corrected, own = _are_corrected(documents, kept), None
        if model.never_own:
            ids = documents.ids or [""] * len(documents)
            own = own_labels(ids, model.label_ids | new_ids(model, columns.new_names))
        if documents.X is not None:
            X = rounded(documents.X)
            return Incoming(documents, X, X, columns.Y, columns.new_names, own, None, is_corrected)
        assert model.vectorizer is not None
        assert documents.texts is not None
        old_features = rounded(tfidf.transform(model.vectorizer, documents.texts))
        counted = _new_words(documents.texts, model.vectorizer, is_corrected)
        known = set(model.vectorizer.vocabulary)
        n_words = sum(one.occurrences for one in counted.values())
        n_unknown = sum(one.occurrences for word, one in counted.items() if word not in known)
        before, n_before = (RareWords({}), model.n_documents) if kept is None else (kept.rare, len(kept))
        names = _names(documents.texts, model, kept, columns.new_names, own)
        joined, still = rare.join(before, counted, model.vectorizer, n_before, names)
        vectorizer = rare.with_joined(model.vectorizer, joined, model.n_documents + len(documents))
        X = rounded(tfidf.transform(vectorizer, documents.texts)) if joined else old_features
        share = n_unknown / max(1, n_words)
        return Incoming(
            documents,
            old_features,
            X,
            columns.Y,
            columns.new_names,
            own,
            vectorizer,
            is_corrected,
            joined,
            still,
            share,
        )


def _names(
    texts: Texts, model: Model, kept: KeptData | None, new_labels: list[str], own: NDArray[np.int32] | None
) -> list[str]:
    """Return the names that come with new documents: those of new labels, and titles of documents that are labels."""
    found = [name for one in texts_of_new_labels(model, kept, new_labels) or () for name in one]
    if kept is not None and kept.titles is not None and own is not None and texts.titles is not None:
        found += [texts.titles[row] for row in np.flatnonzero(own >= 0).tolist()]
    return found


def _are_corrected(documents: LabeledDocuments, kept: KeptData | None) -> NDArray[np.bool_]:
    """Return whether each document has the id of one that was kept."""
    known = set() if kept is None else set(kept.ids) - {""}
    return np.array([one in known for one in documents.ids or [""] * len(documents)], dtype=np.bool_)


def _new_words(texts: Texts, vectorizer: Vectorizer, is_corrected: NDArray[np.bool_]) -> dict[str, Rare]:
    """Return the words of documents; those of documents that are corrected were counted when they came."""
    if not is_corrected.any():
        return rare.count_words(texts, vectorizer.settings)
    rows = np.flatnonzero(~is_corrected)
    counted = rare.count_words(texts.take(rows), vectorizer.settings)
    return {word: one._replace(document=int(rows[one.document])) for word, one in counted.items()}


def new_ids(model: Model, names: Sequence[str]) -> dict[str, int]:
    """Return the columns of new labels by name."""
    return {name: label for label, name in enumerate(names, model.n_labels)}
