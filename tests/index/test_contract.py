"""What holds for every index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lightdxml import index as indexes
from lightdxml.index import Index
from lightdxml.kernels import parallel
from lightdxml.kernels.precision import dequantize
from tests.support.indexes import KINDS, clustered, needs_rabitq, stored

PRECISIONS = ("float32", "float16", "int8")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def build(kind: Any, n: int = 2000, precision: str = "float16", dim: int = 24, k: int = 20) -> Index:
    queries = clustered(64, dim, seed=1)
    return indexes.build(stored(clustered(n, dim), precision), kind, queries=queries, k=k)


def all_cosines(index: Index, queries: NDArray[np.float32]) -> NDArray[np.float32]:
    cosines: NDArray[np.float32] = queries @ dequantize(index.vectors).T
    return cosines


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("dim", [24, 70, 5])
def test_neighbors_come_nearest_first_without_repeats_and_with_their_cosines(
    kind: Any, precision: str, dim: int
) -> None:
    index, queries = build(kind, precision=precision, dim=dim), clustered(50, dim, seed=3)
    row_ids, cosines = index.search(queries, 30)
    assert index.kind == kind
    assert row_ids.dtype == np.int32
    assert cosines.dtype == np.float32
    assert (np.diff(cosines, axis=1) <= 0).all()
    assert all(len(set(row)) == 30 for row in row_ids.tolist())
    np.testing.assert_allclose(cosines, np.take_along_axis(all_cosines(index, queries), row_ids, axis=1), atol=1e-5)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_most_of_the_true_neighbors_are_found(kind: Any, precision: str) -> None:
    index, queries = build(kind, precision=precision), clustered(200, seed=2)
    truth = np.argsort(-all_cosines(index, queries), axis=1)[:, :20]
    found, _ = index.search(queries, 20)
    share = np.mean([len(np.intersect1d(a, b)) / 20 for a, b in zip(truth, found, strict=True)])
    assert share >= (0.999 if kind == "exact" else 0.92)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_one_query_has_the_same_bits_alone_and_in_a_batch_at_any_thread_count(
    kind: Any, precision: str, threads: int
) -> None:
    index, queries = build(kind, 6000, precision), clustered(1100, seed=5)
    together = index.search(queries, 20)
    with parallel.use_threads(threads):
        again = build(kind, 6000, precision).search(queries, 20)
        for part, other in zip(together, again, strict=True):
            np.testing.assert_array_equal(part, other)
        for rows in (slice(0, 1), slice(7, 8), slice(3, 5), slice(20, 33)):
            some = index.search(queries[rows], 20)
            for part, all_rows in zip(some, together, strict=True):
                np.testing.assert_array_equal(part, all_rows[rows])


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("n_queries", [0, 1, 2, 30])
def test_cosines_of_a_search_are_those_of_its_row_ids(kind: Any, precision: str, n_queries: int) -> None:
    index, queries = build(kind, precision=precision), clustered(30, seed=6)[:n_queries]
    row_ids, cosines = index.search(queries, 20)
    assert cosines.shape == row_ids.shape == (n_queries, 20)
    np.testing.assert_array_equal(indexes.cosines(index.vectors, queries, row_ids), cosines)


@pytest.mark.parametrize("n", [1, 2, 7, 63, 64, 65, 129, 200])
@pytest.mark.parametrize("n_queries", [1, 9])
def test_fewer_vectors_than_k_are_all_found(kind: Any, n: int, n_queries: int) -> None:
    row_ids, _ = build(kind, n).search(clustered(n_queries, seed=7), 250)
    assert row_ids.shape == (n_queries, n)
    assert (np.sort(row_ids, axis=1) == np.arange(n)).all()


@pytest.mark.parametrize("n_queries", [0, 1, 9])
def test_no_neighbors_wanted_is_no_error(kind: Any, n_queries: int) -> None:
    row_ids, cosines = build(kind).search(clustered(9, seed=7)[:n_queries], 0)
    assert row_ids.shape == cosines.shape == (n_queries, 0)


def test_all_neighbors_can_be_wanted(kind: Any) -> None:
    index, queries = build(kind, 500), clustered(9, seed=7)
    row_ids, cosines = index.search(queries, 500)
    assert (np.sort(row_ids, axis=1) == np.arange(500)).all()
    np.testing.assert_allclose(cosines, -np.sort(-all_cosines(index, queries), axis=1), atol=1e-5)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("n_queries", [1, 4])
def test_of_equal_vectors_the_lower_row_ids_come_first(kind: Any, precision: str, n_queries: int) -> None:
    """More of them than any search keeps in reserve."""
    distinct = clustered(4)
    vectors = stored(np.tile(distinct, (400, 1)), precision)
    index = indexes.build(vectors, kind, queries=distinct, k=50)
    row_ids, cosines = index.search(distinct[:n_queries], 50)
    np.testing.assert_array_equal(row_ids, 4 * np.arange(50) + np.arange(n_queries)[:, None])
    assert (cosines == cosines[:, :1]).all()


@pytest.mark.parametrize("n_queries", [1, 9])
def test_zero_vectors_and_zero_queries_are_searched(kind: Any, n_queries: int) -> None:
    vectors = clustered(700).astype(np.float16)
    vectors[::7] = 0
    index = indexes.build(vectors, kind, queries=clustered(64, seed=1), k=20)
    row_ids, cosines = index.search(clustered(n_queries, seed=8), 700)
    assert (np.sort(row_ids, axis=1) == np.arange(700)).all()
    assert ((cosines == 0) == (row_ids % 7 == 0)).all()
    row_ids, cosines = index.search(np.zeros((n_queries, 24), dtype=np.float32), 20)
    assert (row_ids == np.arange(20)).all() or kind == "rabitq"
    assert not cosines.any()
    all_zero = indexes.build(np.zeros((300, 24), dtype=np.float16), kind, queries=clustered(64, seed=1), k=20)
    assert (all_zero.search(clustered(n_queries, seed=8), 20)[0] == np.arange(20)).all()


def test_a_row_id_of_minus_one_has_a_cosine_of_minus_one() -> None:
    vectors, queries = clustered(100), clustered(3, seed=1)
    rows = np.array([[-1, 5], [7, -1], [-1, -1]])
    found = indexes.cosines(vectors, queries, rows)
    assert (found[rows < 0] == -1).all()
    np.testing.assert_allclose(found[:2][rows[:2] >= 0], [queries[0] @ vectors[5], queries[1] @ vectors[7]], atol=1e-6)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_stored_arrays_restore_the_same_index(kind: Any, precision: str) -> None:
    index, queries = build(kind, precision=precision), clustered(30, seed=9)
    arrays = index.arrays()
    n, dim = 2000, 24
    assert {name: (a.shape, a.dtype) for name, a in arrays.items()} == {
        name: (shape, np.dtype(dtype)) for name, (shape, dtype) in indexes.array_specs(kind, n, dim).items()
    }
    bytes_per_number = 1 if precision == "int8" else np.dtype(precision).itemsize
    stored_bytes = sum(a.nbytes for a in arrays.values())
    assert indexes.index_bytes(kind, n, dim, bytes_per_number) == n * dim * bytes_per_number + stored_bytes
    found = index.search(queries, 20)
    # A model file that is mapped to memory is read-only.
    for array in (index.vectors, *arrays.values()):
        array.setflags(write=False)
    in_another_order = {name: np.asfortranarray(array) for name, array in arrays.items()}
    for given in (arrays, in_another_order):
        restored = indexes.restore(kind, index.vectors, given)
        for part, other in zip(found, restored.search(queries, 20), strict=True):
            np.testing.assert_array_equal(part, other)


FORGERIES: dict[str, Any] = {
    "a missing array": lambda a: a.pop("signs"),
    "signs of fewer blocks": lambda a: a.update(signs=a["signs"][:-2]),
    "signs of fewer bytes": lambda a: a.update(signs=np.ascontiguousarray(a["signs"][:, 1:])),
    "codes of another type": lambda a: a.update(codes=a["codes"].astype(np.int16)),
    "fewer scales": lambda a: a.update(scales=a["scales"][:-1]),
    "fewer code scales": lambda a: a.update(code_scales=a["code_scales"][:-1]),
    "fewer code offsets": lambda a: a.update(code_offsets=a["code_offsets"][:-1]),
    "a repeated row id": lambda a: a["row_ids"].__setitem__(0, a["row_ids"][1]),
    "a row id too large": lambda a: a["row_ids"].__setitem__(0, 2000),
    "a negative row id": lambda a: a["row_ids"].__setitem__(0, -1),
    "no candidates": lambda a: a["candidates"].__setitem__(0, 0),
    "too many candidates": lambda a: a["candidates"].__setitem__(0, 2001),
    "two numbers of candidates": lambda a: a.update(candidates=np.ones(2, dtype=np.int32)),
}


@needs_rabitq
@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_arrays_are_refused(forgery: str) -> None:
    index = build("rabitq")
    arrays = {name: array.copy() for name, array in index.arrays().items()}
    FORGERIES[forgery](arrays)
    with pytest.raises(ValueError, match=r"^its index "):
        indexes.restore("rabitq", index.vectors, arrays)


@needs_rabitq
@pytest.mark.parametrize("value", [np.nan, np.inf, -1e38, 0.0])
@pytest.mark.parametrize("name", ["scales", "code_scales"])
def test_scales_that_are_no_sensible_numbers_end_in_some_answer(name: str, value: float) -> None:
    index = build("rabitq")
    arrays = {**index.arrays(), name: np.full_like(index.arrays()[name], value)}
    broken, queries = indexes.restore("rabitq", index.vectors, arrays), clustered(5, seed=1)
    for some in (queries, queries[:1]):
        row_ids, _ = broken.search(some, 20)
        assert all(len(set(row)) == 20 for row in row_ids.tolist())
        assert row_ids.min() >= 0
        assert row_ids.max() < 2000


@pytest.mark.parametrize("left_out", [1, 30, 1500, 1990, 2000])
def test_a_search_among_some_vectors_finds_the_nearest_of_them(kind: Any, left_out: int) -> None:
    index, queries = build(kind), clustered(20, 24, seed=3)
    nearest = np.argsort(-all_cosines(index, queries)[0], kind="stable")
    allowed = np.ones(2000, dtype=np.bool_)
    allowed[nearest[:left_out]] = False
    found, cosines = indexes.search_some(index, queries, 20, allowed)
    assert found.shape == cosines.shape == (20, min(20, 2000 - left_out))
    assert allowed[found].all()
    exact = np.where(allowed, all_cosines(index, queries), -np.inf)
    expected = np.sort(exact, axis=1)[:, ::-1][:, : found.shape[1]]
    # RaBitQ may miss a few.
    np.testing.assert_allclose(cosines, expected, atol=1e-5 if kind == "exact" else 0.1)
    for i in range(20):
        one, cosine = indexes.search_some(index, queries[i : i + 1], 20, allowed)
        np.testing.assert_array_equal(one[0], found[i])
        np.testing.assert_array_equal(cosine[0], cosines[i])
