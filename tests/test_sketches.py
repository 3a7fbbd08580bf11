"""Shortlists by sketches against exact ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lightdxml import LightDXML, inverted_file, shortlist, sketches
from lightdxml.encoder import unit_rows
from lightdxml.kernels import parallel
from lightdxml.kernels import sketches as kernels
from lightdxml.kernels.precision import quantize_int8
from tests.processor import needs_sketches
from tests.test_shortlist import built as built_index
from tests.test_shortlist import clustered, cosines_of
from tests.training.test_cycle import SMALL, topics

pytestmark = needs_sketches


def built(n: int, dtype: Any = np.float16, k: int = 20) -> shortlist.Shortlist:
    return built_index(n, "sketch", dtype, k)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("n", [4000, 30_000])
def test_sketches_find_most_of_what_exact_search_finds(dtype: Any, n: int) -> None:
    index, documents = built(n, dtype), clustered(500, seed=2)
    # It is seen to by 64 documents here, and signs of so few numbers tell little.
    assert shortlist.recall_of_exact(index, documents, 20) >= 0.92
    # Not because all is compared.
    assert index.index.candidates < 0.3 * n


def test_more_recall_takes_more_candidates() -> None:
    vectors, queries = clustered(3000), clustered(64, seed=1)
    low, high = (sketches.sketches_of(vectors, 20, queries, recall).candidates for recall in (0.5, 0.99))
    assert low < high


def test_fewer_labels_are_compared_for_documents_to_train_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortlist, "_DOCUMENT", 0)
    index, documents = built(10_000), clustered(300)
    less = shortlist.for_many(index, documents, 20)
    assert less.index.candidates < index.index.candidates
    assert shortlist.recall_of_exact(less, documents, 20) >= shortlist.FOUND_BY_SKETCHES - 0.03


def test_vectors_of_bytes_are_sketched() -> None:
    vectors, queries = clustered(2000), clustered(30, seed=3)
    index = sketches.sketches_of(quantize_int8(vectors), 20, queries, 0.99)
    found, _ = sketches.search(index, quantize_int8(vectors), queries, 20)
    exact = inverted_file.search_all(vectors, queries, 20)
    assert np.mean([len(np.intersect1d(a, b)) / 20 for a, b in zip(found, exact, strict=True)]) > 0.95


def test_what_is_found_is_in_order_and_without_repeats() -> None:
    index, documents = built(2000), clustered(50, seed=3)
    found = shortlist.search(index, documents, 30)
    nearness = np.take_along_axis(cosines_of(index, documents), (found - 1) // 3, axis=1)
    assert (np.diff(nearness, axis=1) <= 1e-6).all()
    assert all(len(set(row)) == 30 for row in found.tolist())


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_document_alone_gets_what_it_gets_in_a_batch(threads: int) -> None:
    index, documents = built(3000), clustered(40, seed=5)
    together = shortlist.search(index, documents, 20)
    with parallel.use_threads(threads):
        for document, row in zip(documents, together, strict=True):
            np.testing.assert_array_equal(shortlist.search(index, document[None], 20)[0], row)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 129, 200])
@pytest.mark.parametrize("documents", [1, 5])
def test_all_of_few_labels_are_found(n: int, documents: int) -> None:
    found = shortlist.search(built(n), clustered(documents, seed=7), 250)
    assert found.shape == (documents, n)
    assert (np.sort(found, axis=1) == np.arange(1, 3 * n + 1, 3)).all()


@pytest.mark.parametrize("documents", [1, 5])
def test_more_labels_are_compared_where_too_few_seem_near_enough(documents: int) -> None:
    """The sample by which it is told how near labels must seem may be unlike the others."""
    vectors = clustered(20_000)
    index = sketches.sketches_of(vectors, 1, clustered(64, seed=1), 0.5)
    # Nothing seems to be near to anything in blocks that no sample holds.
    lying = np.array(index.scales)
    lying[np.arange(len(lying)) % (len(lying) // sketches._SAMPLE) != 0] = 1e-6
    index = sketches.Sketches(index.signs, lying, index.places, index.codes, 300)
    queries = clustered(documents, seed=6)
    if documents == 1:
        found, products = sketches.search_one(index, vectors, queries[0], 200)
    else:
        found, products = sketches.search(index, vectors, queries, 200)
    assert all(len(set(row)) == 200 for row in found.tolist())
    np.testing.assert_allclose(products, np.take_along_axis(queries @ vectors.T, found, axis=1), atol=1e-5)


def test_equal_vectors_and_documents_of_nothing_are_searched() -> None:
    vectors = np.repeat(clustered(4), 100, axis=0)
    index = shortlist.build(np.arange(400, dtype=np.int32), vectors, "sketch", k=100)
    found = shortlist.search(index, vectors[::100], 100)
    assert (found // 100 == np.arange(4)[:, None]).all()
    nothing = shortlist.search(index, np.zeros((3, vectors.shape[1]), dtype=np.float32), 10)
    assert (nothing >= 0).all()


def test_a_processor_without_the_instruction_searches_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    index, documents = built(3000), clustered(30, seed=4)
    monkeypatch.setattr(kernels, "AVAILABLE", False)
    labels, cosines = shortlist.nearest(index, documents, 20)
    exact = inverted_file.search_all(index.vectors, documents, 20)
    np.testing.assert_array_equal(labels, index.labels[exact])
    np.testing.assert_array_equal(cosines, shortlist.cosines(index, documents, labels))
    np.testing.assert_array_equal(shortlist.search(index, documents[:1], 20), labels[:1])


def test_sketches_that_could_not_be_searched_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "AVAILABLE", False)
    assert shortlist.kind_for("auto", 1_000_000, 300) == "ivf"
    with pytest.raises(ValueError, match="needs a processor with AVX2 or AVX-512"):
        built(100)
    X, Y = topics(60)
    with pytest.raises(ValueError, match="choose index ivf"):
        LightDXML(**SMALL, index="sketch").fit(X, Y)


def test_vectors_of_very_many_numbers_are_not_sketched() -> None:
    """Sums of their tables would not fit."""
    assert shortlist.kind_for("auto", 1_000_000, kernels.MOST_NUMBERS) == "sketch"
    assert shortlist.kind_for("auto", 1_000_000, kernels.MOST_NUMBERS + 1) == "ivf"
    assert 31 * kernels.width_of(kernels.MOST_NUMBERS) // 4 <= 65_535


def test_documents_are_compared_with_no_more_labels_than_an_exact_search_has_time_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shortlist, "_COMPARED", 8)
    monkeypatch.setattr(shortlist, "_LEAST_COMPARED", 1)
    rng = np.random.default_rng(0)
    scattered, documents = (unit_rows(rng.standard_normal((n, 24), dtype=np.float32)) for n in (30_000, 300))
    index = shortlist.build(np.arange(30_000, dtype=np.int32), scattered, "sketch", queries=documents, k=800)
    less = shortlist.for_many(index, documents, 800)
    assert index.index.candidates > less.index.candidates == shortlist._most_compared(30_000)


def test_sketches_are_left_where_most_labels_would_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortlist, "worth_trying", lambda *sizes: True)
    rng = np.random.default_rng(0)
    scattered, documents = (unit_rows(rng.standard_normal((n, 24), dtype=np.float32)) for n in (2000, 300))
    index = shortlist.build(np.arange(2000, dtype=np.int32), scattered, "exact")
    assert shortlist.for_many(index, documents, 500) is index


def test_training_finds_shortlists_by_sketches_where_that_is_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortlist, "_DOCUMENT", 0)
    monkeypatch.setattr(shortlist, "worth_trying", lambda *sizes: True)
    index, documents = built_index(20_000, "exact"), clustered(300)
    other = shortlist.for_many(index, documents, 20)
    assert other.kind == "sketch"
    assert shortlist.recall_of_exact(other, documents, 20) >= shortlist.FOUND_BY_SKETCHES - 0.03
