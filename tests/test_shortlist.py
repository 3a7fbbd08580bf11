"""Shortlists from an inverted file against exact ones."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

from lightdxml import comparison, inverted_file, k_means, shortlist
from lightdxml.encoder import unit_rows
from lightdxml.kernels import clusters as kernels
from lightdxml.kernels import codes, parallel
from lightdxml.shortlist import Shortlist
from tests.processor import kept

D = 24


@pytest.fixture(autouse=True, params=["bytes", "float32"])
def arithmetic(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inverted files are searched by both kinds of processors."""
    if request.param == "bytes" and not codes.AVAILABLE:
        pytest.skip("this processor is no faster with bytes")
    monkeypatch.setattr(codes, "AVAILABLE", request.param == "bytes")


def clustered(n: int, centres: int = 40, seed: int = 0) -> NDArray[np.float32]:
    """Vectors around some directions, the same ones with every seed."""
    middle = unit_rows(np.random.default_rng(99).standard_normal((centres, D), dtype=np.float32))
    rng = np.random.default_rng(seed)
    noise = 0.7 * rng.standard_normal((n, D), dtype=np.float32) / np.float32(np.sqrt(D))
    return unit_rows(middle[rng.integers(0, centres, n)] + noise)


def built(n: int, kind: Any = "ivf", dtype: Any = np.float16, k: int = 20) -> Shortlist:
    """Labels 1, 4, 7 …: no label's number is its place."""
    labels = np.arange(1, 3 * n + 1, 3, dtype=np.int32)
    return shortlist.build(labels, clustered(n).astype(dtype), kind, queries=clustered(64, seed=1), k=k)


def cosines_of(index: Shortlist, documents: NDArray[np.float32]) -> NDArray[np.float32]:
    nearness: NDArray[np.float32] = documents @ index.vectors.astype(np.float32).T
    return nearness


# Centres of the larger one are found in groups.
@pytest.mark.parametrize("n", [4000, 6000])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_an_inverted_file_finds_most_of_what_exact_search_finds(dtype: Any, n: int) -> None:
    index = built(n, dtype=dtype)
    documents = clustered(500, seed=2)
    assert shortlist.recall_of_exact(index, documents, 20) >= 0.93
    # Not because it looks at everything.
    assert inverted_file.share_of_work(index.index, documents) < 0.4


def test_what_all_vectors_have_in_common_makes_a_search_look_no_further() -> None:
    common = np.full(D, 2 / np.sqrt(D), dtype=np.float32)
    vectors, queries = (unit_rows(clustered(n, seed=seed) + common) for n, seed in ((4000, 0), (64, 1)))
    shares = []
    for those, asked in ((clustered(4000), clustered(64, seed=1)), (vectors, queries)):
        index = k_means.inverted_file_of(those, 20, asked)
        shares.append(inverted_file.share_of_work(index, asked))
    assert shares[1] < 1.3 * shares[0]


def test_an_index_is_of_use_for_other_vectors_in_the_same_clusters() -> None:
    vectors = clustered(1000)
    index = k_means.inverted_file_of(vectors, 5, clustered(64, seed=1))
    inverted_file.search(index, vectors, vectors[:3], 5)
    turned = np.ascontiguousarray(-vectors)
    whole = replace(index, probes=len(index.centres))
    found, _ = inverted_file.search(whole, turned, vectors[:3], 5)
    np.testing.assert_array_equal(found, inverted_file.search_all(turned, vectors[:3], 5))


def test_as_many_clusters_as_hold_a_share_of_the_vectors() -> None:
    vectors, queries = clustered(3000), clustered(64, seed=1)
    index = k_means.inverted_file_of(vectors, 20, queries)
    assert inverted_file.probes_within(index, queries, 0.0) == 1
    assert inverted_file.probes_within(index, queries, 1.0) == len(index.centres)
    probes = inverted_file.probes_within(index, queries, 0.1)
    seen = [inverted_file.share_of_work(replace(index, probes=n), queries) for n in (probes, probes + 1)]
    assert seen[0] <= 0.1 < seen[1]


def test_more_recall_takes_more_probes() -> None:
    vectors, queries = clustered(3000), clustered(64, seed=1)
    low, high = (k_means.inverted_file_of(vectors, 20, queries, recall).probes for recall in (0.5, 0.99))
    assert low < high


def test_what_is_found_is_in_order_and_without_repeats() -> None:
    index, documents = built(2000), clustered(50, seed=3)
    found = shortlist.search(index, documents, 30)
    nearness = np.take_along_axis(cosines_of(index, documents), (found - 1) // 3, axis=1)
    assert (np.diff(nearness, axis=1) <= 1e-6).all()
    assert all(len(set(row)) == 30 for row in found.tolist())


@pytest.mark.parametrize("kind", kept("exact", "sketch", "ivf"))
def test_the_same_bits_at_any_number_of_threads(kind: str) -> None:
    documents = clustered(2500, seed=4)
    results = []
    for threads in (1, 2, 4):
        with parallel.use_threads(threads):
            index = built(6000, kind)
            results.append((index, shortlist.search(index, documents, 20)))
    for index, found in results[1:]:
        np.testing.assert_array_equal(found, results[0][1])
        if kind == "ivf":
            np.testing.assert_array_equal(index.index.centres, results[0][0].index.centres)
            np.testing.assert_array_equal(index.index.cluster_of, results[0][0].index.cluster_of)
            assert index.index.probes == results[0][0].index.probes


def test_a_document_alone_gets_what_it_gets_in_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    # Clusters are shared out among threads.
    monkeypatch.setattr(inverted_file, "_CENTRES_AT_ONCE", 16)
    index, documents = built(3000), clustered(40, seed=5)
    together = shortlist.search(index, documents, 20)
    for document, row in zip(documents, together, strict=True):
        alone = shortlist.search(index, document[None], 20)[0]
        np.testing.assert_array_equal(alone, row)


@pytest.mark.parametrize("kind", kept("exact", "sketch", "ivf"))
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("documents", [0, 1, 2, 30])
def test_cosines_that_come_with_a_search_are_those_of_its_labels(kind: str, dtype: Any, documents: int) -> None:
    index, some = built(1000, kind, dtype), clustered(documents, seed=5)
    labels, cosines = shortlist.nearest(index, some, 20)
    np.testing.assert_array_equal(labels, shortlist.search(index, some, 20))
    np.testing.assert_array_equal(cosines, shortlist.cosines(index, some, labels))
    assert cosines.dtype == np.float32
    assert cosines.shape == (documents, 20)


def test_products_are_read_from_keys_as_they_were() -> None:
    products = np.array([[-np.inf, -1.5, -1e-42, 0.0, 1e-42, 0.25, np.inf, np.nan]], dtype=np.float32)
    places, keys = np.arange(8, dtype=np.int32)[None], np.empty((1, 8), dtype=np.uint64)
    kernels.keys_of(products, products.view(np.uint32), places, keys)
    np.testing.assert_array_equal(comparison.products_of(keys), products)
    assert comparison.places_of(np.sort(keys)).tolist() == [[6, 5, 4, 3, 2, 1, 0, 7]]


def test_more_clusters_are_looked_into_where_the_nearest_hold_too_few() -> None:
    index, documents = built(1000, k=1), clustered(20, seed=6)
    index = shortlist.build(
        index.labels, index.vectors, "ivf", inverted_file.restore(index.index.centres, index.index.cluster_of, 1)
    )
    for some in (documents, documents[:1]):
        found = shortlist.search(index, some, 900)
        assert found.shape == (len(some), 900)
        assert all(len(set(row)) == 900 for row in found.tolist())
        assert (found > 0).all()


@pytest.mark.parametrize("n", [1, 2, 7, 9, 17])
@pytest.mark.parametrize("documents", [1, 5])
def test_all_of_few_labels_are_found(n: int, documents: int) -> None:
    found = shortlist.search(built(n), clustered(documents, seed=7), 50)
    assert found.shape == (documents, n)
    assert (np.sort(found, axis=1) == np.arange(1, 3 * n + 1, 3)).all()


def test_equal_vectors_and_documents_of_nothing_are_searched() -> None:
    vectors = np.repeat(clustered(4), 100, axis=0)
    index = shortlist.build(np.arange(400, dtype=np.int32), vectors, "ivf", k=100)
    found = shortlist.search(index, vectors[::100], 100)
    assert (found // 100 == np.arange(4)[:, None]).all()
    nothing = shortlist.search(index, np.zeros((3, D), dtype=np.float32), 10)
    assert (nothing >= 0).all()


def test_centres_that_are_no_numbers_end_in_a_full_search() -> None:
    """A model read without a look at its numbers: the search must come to an end."""
    index = built(200)
    centres = np.full_like(index.index.centres, np.nan)
    broken = shortlist.build(
        index.labels, index.vectors, "ivf", inverted_file.restore(centres, index.index.cluster_of, 1)
    )
    assert shortlist.search(broken, clustered(5), 20).min() >= 1


def test_blas_has_its_threads_again_after_searches_at_once() -> None:
    index, documents = built(500), clustered(300, seed=8)
    before = [pool["num_threads"] for pool in threadpool_info()]
    threads = [threading.Thread(target=shortlist.recall_of_exact, args=(index, documents, 20)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_an_index_for_many_documents_is_the_same_one_where_little_is_to_be_gained() -> None:
    index = built(500, "exact")
    assert shortlist.for_many(index, clustered(100), 20) is index


def test_an_inverted_file_is_looked_into_less_for_documents_to_train_on() -> None:
    index, documents = built(3000, "ivf"), clustered(300)
    less = shortlist.for_many(index, documents, 20)
    assert less.index.probes < index.index.probes
    assert shortlist.recall_of_exact(less, documents, 20) >= shortlist.FOUND_IN_CLUSTERS - 0.05


def test_an_inverted_file_is_left_where_it_would_look_at_most_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortlist, "worth_trying", lambda *sizes: True)
    rng = np.random.default_rng(0)
    scattered = unit_rows(rng.standard_normal((1000, D), dtype=np.float32))
    index = shortlist.build(np.arange(1000, dtype=np.int32), scattered, "exact")
    documents = unit_rows(rng.standard_normal((300, D), dtype=np.float32))
    assert shortlist.for_many(index, documents, 300) is index
