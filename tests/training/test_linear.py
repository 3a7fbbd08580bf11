"""Linear classifiers on words: which weights are kept, and how those of many classes become one index."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml.training import linear
from lightdxml.training.linear import Care, Documents, Weights


@pytest.fixture
def documents() -> Documents:
    """Word 0 stands everywhere and is small; word 1 is as large as words are; word 2 stands nowhere."""
    return Documents.of(csr_matrix([[0.1, 1.0, 0], [0.1, 0, 0], [0.1, 1.0, 0]], dtype=np.float32))


def test_words_that_are_small_beside_others_need_larger_weights(documents: Documents) -> None:
    np.testing.assert_allclose(documents.usual[0] / documents.usual[1], 0.1, rtol=1e-5)
    smallest = documents.smallest(Care(1, 0.05, 0.04))
    assert smallest[1] == np.float32(0.05)
    np.testing.assert_allclose(smallest[0], 0.04 / documents.usual[0], rtol=1e-5)
    assert smallest[0] > 0.2


def test_what_is_left_out_does_not_depend_on_how_many_words_documents_have() -> None:
    rng = np.random.default_rng(0)
    short = csr_matrix(rng.random((20, 5)) + 0.1, dtype=np.float32)
    care = Care(1, 0.05, 0.04)
    scaled = csr_matrix(0.01 * short.toarray(), dtype=np.float32)
    np.testing.assert_allclose(Documents.of(short).smallest(care), Documents.of(scaled).smallest(care), rtol=1e-4)


def test_the_index_has_the_weights_of_all_classes_by_word_in_their_order() -> None:
    rng = np.random.default_rng(1)
    dense = np.where(rng.random((7, 5)) < 0.5, rng.normal(size=(7, 5)), 0).astype(np.float32)
    dense[3] = 0
    parts = []
    for classes in ([6, 2], [0, 3, 5]):
        rows = csr_matrix(dense[classes])
        numbers, biases = np.array(classes, dtype=np.int32), np.array(classes, dtype=np.float32)
        parts.append(Weights(numbers, np.diff(rows.indptr).astype(np.int64), rows.indices, rows.data, biases))
    view = linear.inverted(parts, (5, 7), "float32", -9.0, np.empty(0, dtype=np.int32))
    found = np.zeros((5, 7), dtype=np.float32)
    for word in range(5):
        labels = view.labels[view.pointers[word] : view.pointers[word + 1]]
        assert labels.tolist() == sorted(labels.tolist())
        found[word, labels] = view.weights[view.pointers[word] : view.pointers[word + 1]]
    np.testing.assert_array_equal(found.T[[0, 2, 3, 5, 6]], dense[[0, 2, 3, 5, 6]])
    assert (found.T[[1, 4]] == 0).all()
    assert view.biases.tolist() == [0, -9, 2, 3, -9, 5, 6]


def test_no_classes_make_an_empty_index() -> None:
    view = linear.inverted([], (4, 2), "float16", -1.0, np.empty(0, dtype=np.int32))
    assert view.pointers.tolist() == [0] * 5
    assert view.biases.tolist() == [-1, -1]
