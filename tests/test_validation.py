"""Data is checked once, at the boundary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csc_matrix, csr_array, csr_matrix

from lightdxml.config import Config, changed
from lightdxml.validation import (
    check_bytes,
    check_dev,
    check_features,
    check_labels,
    check_trainable,
    check_vectors,
    split,
    validation_size,
)
from tests.support.data import topics

DENSE = np.array([[3.0, 0, 4], [0, 0, 0], [0, 2, 0]])
UNIT = np.array([[0.6, 0, 0.8], [0, 0, 0], [0, 1, 0]])


def with_int64_indices(X: csr_matrix) -> csr_matrix:
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@pytest.mark.parametrize(
    "X",
    [
        DENSE,
        DENSE.astype(np.float32),
        DENSE.astype(int),
        DENSE.tolist(),
        csr_matrix(DENSE),
        csr_array(DENSE),
        csc_matrix(DENSE),
        coo_matrix(DENSE),
        with_int64_indices(csr_matrix(DENSE)),
    ],
    ids=["float64", "float32", "int", "list", "csr", "array", "csc", "coo", "int64"],
)
def test_features_of_any_form_become_unit_rows_in_canonical_form(X: Any) -> None:
    found = check_features(X)
    np.testing.assert_allclose(found.toarray(), UNIT, rtol=1e-6)
    assert type(found) is csr_matrix
    assert (found.dtype, found.indices.dtype) == (np.float32, np.int32)
    assert found.has_canonical_format


def test_duplicates_are_summed_zeros_dropped_and_indices_sorted() -> None:
    entries = [1.0, 4, 0, 2], ([0, 0, 0, 0], [2, 1, 3, 2])
    found = check_features(coo_matrix(entries, shape=(1, 4)))
    assert found.indices.tolist() == [1, 2]
    np.testing.assert_allclose(found.data, [0.8, 0.6])


def test_what_was_given_is_not_changed() -> None:
    X, Y = csr_matrix([[0.0, 5, 5]]), csr_matrix([[7.0]])
    check_trainable(check_features(X), check_labels(Y))
    assert X.data.tolist() == [5, 5]
    assert Y.data.tolist() == [7]


@pytest.mark.parametrize("factor", [1e25, 1e-25, 1e38])
def test_very_large_and_very_small_values_count_by_their_ratio(factor: float) -> None:
    """The square of a large float32 overflows, that of a small one vanishes."""
    X = np.array([[3.0, 4.0]]) * (factor / 5)
    np.testing.assert_allclose(check_features(X).toarray(), [[0.6, 0.8]], rtol=1e-5)


def test_rows_of_many_blocks_are_all_normalized(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = topics(50)
    expected = check_features(X)
    monkeypatch.setattr("lightdxml.validation._BLOCK_ENTRIES", 7)
    np.testing.assert_array_equal(check_features(X).data, expected.data)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[np.nan, 1]], "X holds NaN or infinite values"),
        ([[np.inf, 1]], "X holds NaN or infinite values"),
        ([[1.0, 2.0, 3.0]], "X has 3 features, but LightDXML is expecting 2 features as input"),
    ],
)
def test_bad_features_are_refused(X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_features(np.array(X), n_features=2)


@pytest.mark.parametrize("column", [900_000_000, -1])
def test_a_sparse_matrix_with_columns_out_of_range_is_refused(column: int) -> None:
    """SciPy does not check them, and compiled code would read beyond its arrays."""
    X, Y = topics(30)
    X.indices[3] = Y.indices[3] = column
    with pytest.raises(ValueError, match=r"X is not a valid sparse matrix \(.*\): build it again"):
        check_features(X)
    with pytest.raises(ValueError, match="Y is not a valid sparse matrix"):
        check_labels(Y)


def test_labels_become_ones() -> None:
    found = check_labels(csr_matrix([[2.0, 0, 0.5], [0, 0, 0]]))
    assert found.toarray().tolist() == [[1, 0, 1], [0, 0, 0]]
    assert found.dtype == np.float32


@pytest.mark.parametrize("value", [np.nan, np.inf, -1])
def test_labels_that_are_not_0_or_1_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="Y holds NaN, infinite or negative values"):
        check_labels(np.array([[value]]))


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (np.empty((0, 2)), np.empty((0, 2)), "X and Y have no rows"),
        (np.ones((2, 1)), np.ones((1, 1)), "X and Y have 2 and 1 rows: they must have one row per document"),
        (np.ones((1, 0)), np.ones((1, 1)), r"0 feature\(s\) .*minimum of 1 is required"),
        (np.ones((1, 1)), np.zeros((1, 1)), "Y has no labels at all"),
    ],
)
def test_data_that_cannot_be_trained_on_are_refused(X: Any, Y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_trainable(check_features(X), check_labels(Y))


def test_a_dev_part_must_fit_the_training_data() -> None:
    X, Y = topics(30)
    assert check_dev((X[:5], Y[:5]), X, Y)[0].shape == (5, 42)
    with pytest.raises(ValueError, match="X has 41 features"):
        check_dev((X[:5, :-1], Y[:5]), X, Y)
    with pytest.raises(ValueError, match="dev has 11 labels and Y 12"):
        check_dev((X[:5], Y[:5, :-1]), X, Y)
    with pytest.raises(ValueError, match="X and Y of dev have 5 and 4 rows"):
        check_dev((X[:5], Y[:4]), X, Y)


def test_word_vectors_must_be_finite_and_one_per_feature() -> None:
    assert check_vectors([[1, 2]], 1, 2).dtype == np.float32
    with pytest.raises(ValueError, match="features × dim"):
        check_vectors(np.ones((2, 2)), 1, 2)
    with pytest.raises(ValueError, match="NaN or infinite"):
        check_vectors(np.array([[1, np.inf]]), 1, 2)


@pytest.mark.parametrize(("n", "fraction", "size"), [(19, 0.5, 0), (20, 0.05, 1), (1000, 0.1, 100), (1000, 0.0, 0)])
def test_a_fraction_of_the_documents_is_held_out(n: int, fraction: float, size: int) -> None:
    config = changed(Config(), {"validation_fraction": fraction, "validation_minimum": 0})
    assert validation_size(n, config) == size
    X, Y = topics(n)
    parts = split(X, Y, config)
    if size == 0:
        assert parts[0] is parts[2] is X
        assert parts[1] is parts[3] is Y
        return
    assert [part.shape[0] for part in parts] == [n - size, n - size, size, size]
    assert sum(part.nnz for part in parts[::2]) == X.nnz
    assert sum(part.nnz for part in parts[1::2]) == Y.nnz


@pytest.mark.parametrize(("n", "size"), [(100, 20), (2499, 499), (2625, 500), (10_000, 500), (20_000, 1000)])
def test_of_few_documents_more_are_held_out(n: int, size: int) -> None:
    assert validation_size(n, Config()) == size
    # Dense views never learn them.
    assert validation_size(n, changed(Config(), {"dense": "always"})) == round(0.05 * n)


def test_no_more_documents_are_held_out_than_the_limit() -> None:
    config = changed(Config(), {"validation_fraction": 0.5, "validation_limit": 7})
    assert validation_size(1000, config) == 7


def test_the_seed_decides_which_documents_are_held_out() -> None:
    X, Y = topics(100)
    held = [split(X, Y, changed(Config(), {"random_state": seed}))[2].toarray() for seed in (0, 0, 1)]
    np.testing.assert_array_equal(held[0], held[1])
    assert not np.array_equal(held[0], held[2])


def test_if_all_labels_would_be_held_out_nothing_is() -> None:
    X = csr_matrix(np.ones((20, 1), dtype=np.float32))
    held = int(np.random.default_rng(0).permutation(20)[0])
    Y = csr_matrix(([1.0], ([held], [0])), shape=(20, 1), dtype=np.float32)
    assert split(X, Y, Config())[2] is X


def test_memory_of_dense_features_is_that_of_their_entries() -> None:
    class Tensor:
        """An object whose size is a method, as of PyTorch's tensors."""

        def size(self) -> int:
            return 10

    few = np.zeros((1000, 1000))
    few[0, 0] = 1
    assert check_bytes(few) == check_bytes(csr_matrix(few))
    assert check_bytes(few) > check_bytes(np.zeros((2, 2)))
    assert check_bytes(Tensor()) == check_bytes([[1.0], [1.0, 2.0]]) == check_bytes(csr_matrix((2, 2)))
