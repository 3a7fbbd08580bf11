"""Sublinear TF-IDF of single words, with a vocabulary that can be stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

_LARGEST_VOCABULARY = 50_000
_FEWEST_DOCUMENTS = 2
_TOKENS = r"(?u)\b\w+\b"


@dataclass(frozen=True)
class Vectoriser:
    """The words in the order of the features, and how much each counts."""

    vocabulary: list[str]
    idf: NDArray[np.float32]


def fit(texts: Iterable[str]) -> tuple[Vectoriser, csr_matrix]:
    """Learn the vocabulary of these texts and return their features; words of a single document are left out.

    Examples
    --------
    >>> vectoriser, X = fit(["a black cat", "a white cat", "a white dog"])
    >>> vectoriser.vocabulary, X.shape
    (['a', 'cat', 'white'], (3, 3))
    """
    learner = _sklearn(min_df=_FEWEST_DOCUMENTS, max_features=_LARGEST_VOCABULARY)
    try:
        X = learner.fit_transform(texts)
    except ValueError as error:
        message = "no word stands in two documents: there is nothing to learn from (are the texts in the right column?)"
        raise ValueError(message) from error
    words = learner.get_feature_names_out().tolist()
    return Vectoriser(words, learner.idf_.astype(np.float32)), csr_matrix(X)


def transform(vectoriser: Vectoriser, texts: Iterable[str]) -> csr_matrix:
    """Return the features of texts; words that are not in the vocabulary are passed over.

    Examples
    --------
    >>> transform(Vectoriser(["cat", "dog"], np.array([1, 1], dtype=np.float32)), ["a cat", ""]).toarray().tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    texts = list(texts) if not isinstance(texts, Sequence) else texts
    if not len(texts):
        return csr_matrix((0, len(vectoriser.vocabulary)), dtype=np.float32)
    learner = _sklearn(vocabulary=vectoriser.vocabulary)
    learner.idf_ = vectoriser.idf
    return csr_matrix(learner.transform(texts))


def _sklearn(**settings: object) -> TfidfVectorizer:
    return TfidfVectorizer(sublinear_tf=True, dtype=np.float32, token_pattern=_TOKENS, **settings)
