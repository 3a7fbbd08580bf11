from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.views.base import NewLabels
from lightdxml.views.names.forms import NameForms
from lightdxml.views.names.occurrences import Occurrences, carried_over, count


def random_matrix(rng: np.random.Generator, shape: tuple[int, int], density: float) -> csr_matrix:
    return csr_matrix(rng.random(shape) < density, dtype=np.float32)


def test_counts_are_those_of_a_plain_comparison() -> None:
    rng = np.random.default_rng(0)
    X, Y = random_matrix(rng, (60, 15), 0.4), random_matrix(rng, (60, 9), 0.3)
    terms, labels = random_matrix(rng, (30, 15), 0.15), np.sort(rng.integers(0, 9, 30)).astype(np.int32)
    found = count(NameForms(terms, labels), X, csr_matrix(Y.T))
    contains = (X.toarray()[:, None, :] >= terms.toarray()[None]).all(axis=2) & (terms.getnnz(axis=1) > 0)
    np.testing.assert_array_equal(found.documents, contains.sum(axis=0))
    np.testing.assert_array_equal(found.hits, (contains & (Y.toarray()[:, labels] > 0)).sum(axis=0))
    assert found.hits.any()
    assert (terms.getnnz(axis=1) == 0).any()


def test_another_vocabulary_keeps_the_counts_of_names_that_stay() -> None:
    old = Occurrences(np.array([5, 6, 7, 8], np.int32), np.array([1, 2, 3, 4], np.int32))
    # Label 0 has two names, 1 and 2 have one. 1 is renamed, 2 stays, 3 is new, and 0 loses a name.
    names = NameForms(csr_matrix(np.eye(4, dtype=np.float32)), np.arange(4, dtype=np.int32))
    none, expected = np.zeros(0, np.int32), np.array([90, 91, 92, 93], np.int32)
    new = NewLabels(names, 4, none, none, renamed=np.array([1], np.int32), expected_documents=expected)
    found = carried_over(old, np.array([0, 0, 1, 2], np.int32), new)
    assert found.documents.tolist() == [90, 91, 8, 93]
    # Other names of a label are as often right as those that it had: 3 of 11, and 3 of 7.
    assert found.hits.tolist() == [24, 39, 4, 0]


def test_a_document_that_was_not_counted_is_not_taken_away() -> None:
    """A document without the least word of a long name counts as a match, and once made the rate NaN."""
    counts = Occurrences(np.array([0, 0, 1], np.int32), np.array([0, 0, 1], np.int32))
    found = counts.without(np.array([True, True, True]), np.array([True, False, True]))
    assert found.documents.tolist() == [0, 0, 0]
    assert np.isfinite(found.log_rate).all()
