"""What labels are called, as training takes it: concepts as columns, names as features, documents that are labels."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.data.own_labels import never_own
from lightdxml.data.own_labels import own_labels as find_own
from lightdxml.data.vocabulary import Vocabulary
from lightdxml.label_columns import label_rows
from lightdxml.text import tfidf
from lightdxml.text.names import are_words, is_word
from lightdxml.text.tfidf import TextOptions
from lightdxml.validation import check_labels, check_lengths
from lightdxml.views.names.forms import NameForms


def with_vocabulary(
    Y: csr_matrix, names: list[str] | None, dev: tuple[Any, ...] | None, vocabulary: Vocabulary
) -> tuple[csr_matrix, list[str], tuple[Any, ...] | None]:
    """Return labels with a column per concept, their URIs, and the dev part with these columns."""
    if names is None:
        raise ValueError("a vocabulary needs labels with names, and Y has ids: give URIs or names as labels")
    labels, places = vocabulary.all_labels(names)
    if len(labels) == len(vocabulary) + len(names):
        raise ValueError(f"the vocabulary has none of the labels in Y, such as {names[0]!r}: check its URIs")

    def moved(matrix: Any) -> csr_matrix:
        pairs = check_labels(matrix).tocoo()
        shape = pairs.shape[0], len(labels)
        # Labels that are the same concept count once.
        return check_labels(csr_matrix((pairs.data, (pairs.row, np.array(places)[pairs.col])), shape=shape))

    if dev is not None:
        rows = label_rows(dev[1])
        dev = dev[0], moved(dev[1]) if rows is None else [vocabulary.uris(row) for row in rows], *dev[2:]
    return moved(Y), labels, dev


def label_texts(
    names: Sequence[str] | None, known: AbstractSet[str], vocabulary: Vocabulary | None, language: str
) -> list[list[str]] | None:
    """Return the names of every label as text; None if they have none, or share no words with the documents.

    `known` are the words of documents: see `lightdxml.text.names.are_words`. With a vocabulary they are not needed.
    """
    if names is None:
        return None
    if vocabulary is not None:
        return [list(vocabulary.texts(name, language)) for name in names]
    return [[name] for name in names] if are_words(names, known) else None


def with_titles(
    called: list[list[str]] | None, n_labels: int, titles: Sequence[tuple[int, str]]
) -> list[list[str]] | None:
    """Return names of labels, with the titles of the documents that are these labels.

    >>> with_titles(None, 2, [(1, "House cat")])
    [[], ['House cat']]
    """
    if not titles:
        return called
    names = [[] for _ in range(n_labels)] if called is None else [list(one) for one in called]
    for label, title in titles:
        if title not in names[label]:
            names[label].append(title)
    return names


def name_forms(vectorizer: tfidf.Vectorizer, names: Sequence[Sequence[str]]) -> NameForms:
    """Return the names of labels, each of which may have several, as features."""
    labels = np.repeat(np.arange(len(names), dtype=np.int32), [len(one) for one in names])
    # Words of a name count in any order.
    words = replace(vectorizer, settings=replace(vectorizer.settings, ngrams=1))
    return NameForms(tfidf.transform(words, [name for one in names for name in one]), labels)


def _in_columns(forms: NameForms, columns: NDArray[np.int64], n_features: int) -> NameForms:
    """Return names whose terms are in these columns of a feature matrix."""
    terms = forms.terms
    moved = csr_matrix((terms.data, columns[terms.indices], terms.indptr), shape=(terms.shape[0], n_features))
    moved.sort_indices()
    return NameForms(moved, forms.labels)


def name_forms_in_features(X: csr_matrix, feature_names: Sequence[str], names: Sequence[Sequence[str]]) -> NameForms:
    """Return the names of labels as features of a matrix whose columns stand for words."""
    words, columns = _words_of_features(X, feature_names)
    return _in_columns(name_forms(words, names), columns, X.shape[1])


def _words_of_features(X: csr_matrix, feature_names: Sequence[str]) -> tuple[tfidf.Vectorizer, NDArray[np.int64]]:
    """Return a vectorizer of those features that are words, and their columns."""
    if len(feature_names) != X.shape[1]:
        raise ValueError(f"{len(feature_names)} feature names for {X.shape[1]} features: there must be one each")
    first: dict[str, int] = {}
    for column, name in enumerate(feature_names):
        if is_word(name):
            first.setdefault(name.lower(), column)
    words = sorted(first)
    columns = np.array([first[word] for word in words], dtype=np.int64)
    df = np.bincount(X.indices, minlength=X.shape[1])[columns]
    idf = np.log((1 + X.shape[0]) / (1 + df)) + 1
    return tfidf.Vectorizer(words, idf.astype(np.float32), TextOptions(ngrams=1, min_df=1)), columns


def own_labels_of(
    ids: Sequence[str] | None,
    names: list[str] | None,
    Y: csr_matrix,
    dev_ids: Sequence[str] | None,
    rule: str = "auto",
) -> tuple[NDArray[np.int32], NDArray[np.int32] | None] | None:
    """Return the labels that documents are themselves; None if documents are no labels, or may have themselves.

    `rule` is the setting `own_labels`: `auto`, `never` or `allowed`.
    """
    if ids is None or names is None or rule == "allowed":
        return None
    check_lengths(len(ids), Y.shape[0], "ids and Y")
    label_of = {name: label for label, name in enumerate(names)}
    own = find_own(ids, label_of)
    if rule == "auto" and not never_own(ids, own, Y):
        return None
    return own, None if dev_ids is None else find_own(dev_ids, label_of)
