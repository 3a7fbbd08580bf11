"""Recall and calibration of RaBitQ, and when it is used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from lightdxml import index as indexes
from lightdxml.index import ExactIndex, RaBitQIndex, factory, rabitq
from lightdxml.kernels import fast_scan
from lightdxml.kernels import rabitq as kernels
from tests.support.indexes import clustered, needs_rabitq, stored, unit_rows

pytestmark = needs_rabitq


def build(n: int, precision: str = "float16", recall: float = rabitq.RECALL) -> RaBitQIndex:
    return rabitq.build_rabitq(stored(clustered(n), precision), clustered(64, seed=1), 20, recall)


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
@pytest.mark.parametrize("n", [4000, 30_000])
def test_most_neighbors_are_found_among_few_candidates(precision: str, n: int) -> None:
    index = build(n, precision)
    # 64 queries calibrate it, and codes of 24 dimensions are coarse.
    assert indexes.recall_of_exact(index, clustered(500, seed=2), 20) >= 0.92
    assert index.candidates < 0.3 * n


def test_more_recall_takes_more_candidates() -> None:
    low, high = build(3000, recall=0.5), build(3000, recall=0.99)
    assert low.candidates < high.candidates
    queries = clustered(300, seed=2)
    assert indexes.recall_of_exact(low, queries, 20) < indexes.recall_of_exact(high, queries, 20)


@pytest.mark.parametrize("n_queries", [1, 5])
def test_more_candidates_are_reranked_if_the_threshold_lets_too_few_pass(n_queries: int) -> None:
    """The blocks of the sample may be unlike the others."""
    index, queries = build(40_000, recall=0.5), clustered(n_queries, seed=6)
    full = 40_000 // fast_scan.BLOCK
    sampled = np.arange(len(index.codes.scales)) % (full * fast_scan.BLOCK // rabitq.SAMPLE) == 0
    # Outside the sample, estimates are near zero.
    scales = np.where(sampled, index.codes.scales, np.float32(1e-6))
    index = replace(index, codes=replace(index.codes, scales=scales), candidates=300)
    row_ids, cosines = index.search(queries, 200)
    assert all(len(set(row)) == 200 for row in row_ids.tolist())
    np.testing.assert_array_equal(cosines, indexes.cosines(index.vectors, queries, row_ids))


def test_vectors_at_the_mean_are_always_candidates() -> None:
    """Their codes say nothing, and they are the nearest ones to a query at the mean."""
    vectors = unit_rows(np.random.default_rng(0).standard_normal((640, 70)) + 0.3)
    vectors[:64] = vectors[64:].mean(axis=0)
    middle = unit_rows(vectors[:1])
    index = replace(rabitq.build_rabitq(vectors, middle, 3), candidates=64)
    assert (index.codes.scales < 1e-6).any()
    found, nearest = index.search(middle, 30)[0], ExactIndex(vectors).search(middle, 64)[0]
    assert set(found[0].tolist()) <= set(nearest[0].tolist())


def test_large_label_sets_are_searched_by_codes_and_small_ones_exactly() -> None:
    assert indexes.resolve_kind("auto", factory.EXACT_LIMIT, 300) == "exact"
    assert indexes.resolve_kind("auto", factory.EXACT_LIMIT + 1, 300) == "rabitq"
    assert indexes.resolve_kind("rabitq", 10, 300) == "rabitq"
    assert indexes.resolve_kind("exact", 10**6, 300) == "exact"


def test_sums_of_too_many_dimensions_would_overflow() -> None:
    assert indexes.resolve_kind("auto", 10**6, kernels.MAX_DIM) == "rabitq"
    assert indexes.resolve_kind("auto", 10**6, kernels.MAX_DIM + 1) == "exact"
    with pytest.raises(ValueError, match="at most 8448 dimensions"):
        indexes.resolve_kind("rabitq", 10**6, kernels.MAX_DIM + 1)
    assert fast_scan.LARGEST * kernels.rotated_width(kernels.MAX_DIM) // fast_scan.BITS < 2**16


def test_a_cpu_without_the_instructions_searches_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    index, queries = build(3000), clustered(30, seed=4)
    monkeypatch.setattr(fast_scan, "AVAILABLE", False)
    assert indexes.resolve_kind("auto", 10**6, 300) == "exact"
    with pytest.raises(ValueError, match="needs a CPU with AVX2"):
        indexes.build(index.vectors, "rabitq")
    restored = indexes.restore("rabitq", index.vectors, index.arrays())
    assert restored.kind == "exact"
    expected = ExactIndex(index.vectors).search(queries, 20)
    for part, other in zip(restored.search(queries, 20), expected, strict=True):
        np.testing.assert_array_equal(part, other)


def test_fewer_candidates_are_reranked_for_training_documents() -> None:
    index, documents = build(10_000), clustered(300, seed=2)
    training = indexes.training_index(index, documents, 20)
    assert isinstance(training, RaBitQIndex)
    assert training.candidates < index.candidates
    assert indexes.recall_of_exact(training, documents, 20) >= 0.87


def scattered(n: int, seed: int = 0) -> NDArray[np.float32]:
    """Return vectors without clusters: the nearest ones are hardly nearer than others."""
    return unit_rows(np.random.default_rng(seed).standard_normal((n, 24)))


def test_training_documents_are_searched_exactly_if_codes_would_pass_too_many_candidates() -> None:
    index = ExactIndex(scattered(factory.TRAINING_LABELS))
    assert indexes.training_index(index, scattered(100, seed=1), 5000).kind == "exact"


def test_candidates_of_training_documents_are_capped_if_there_are_very_many_labels() -> None:
    documents = scattered(300, seed=1)
    index = indexes.build(scattered(20_000), "rabitq", queries=documents, k=400)
    training = indexes.training_index(index, documents, 400)
    assert isinstance(index, RaBitQIndex)
    assert isinstance(training, RaBitQIndex)
    assert training.candidates == 2000 < index.candidates


def test_few_labels_are_always_searched_exactly() -> None:
    index = ExactIndex(clustered(500))
    assert indexes.training_index(index, clustered(600, seed=1), 20) is index


def test_many_labels_are_searched_by_codes_in_training() -> None:
    index, documents = ExactIndex(clustered(factory.TRAINING_LABELS)), clustered(600, seed=2)
    training = indexes.training_index(index, documents, 20)
    assert training.kind == "rabitq"
    assert indexes.recall_of_exact(training, documents, 20) >= 0.87


@pytest.mark.parametrize(("n_queries", "k"), [(0, 20), (64, 0)])
def test_without_anything_to_calibrate_by_everything_is_a_candidate(n_queries: int, k: int) -> None:
    index = indexes.build(clustered(300), "rabitq", queries=clustered(64, seed=1)[:n_queries], k=k)
    assert isinstance(index, RaBitQIndex)
    assert index.candidates == 300
