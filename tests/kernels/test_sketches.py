"""Sums of tables against plain ones, and what sketches tell against products."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lightdxml import comparison, inverted_file, sketches
from lightdxml.encoder import unit_rows
from lightdxml.kernels import sketches as kernels
from lightdxml.kernels.precision import quantize_int8, as_bits, dequantize
from tests.processor import needs_sketches

pytestmark = needs_sketches

# Searches among made-up vectors and prints what was found: by other instructions in another process.
SEARCH = """
import numpy as np
from lightdxml import sketches
from lightdxml.kernels import codes, sketches as kernels
rng = np.random.default_rng(0)
vectors, queries = (rng.standard_normal((n, 70), dtype=np.float32) for n in (1000, 9))
index = sketches.sketches_of(vectors, 10, queries)
found = sketches.search(index, vectors, queries, 10)[0], sketches.search_one(index, vectors, queries[0], 10)[0]
print(codes.AVAILABLE, kernels.AVAILABLE and kernels._SHUFFLE[1], index.candidates, *(part.tolist() for part in found))
"""
AVX2 = "+avx2,+avx,+fma,+f16c,+popcnt,+sse4.2,+sse4.1,+ssse3,+sse3,+sse2,+sse,+bmi,+bmi2,+cx16,+lzcnt,+movbe"


def vectors_of(n: int, D: int, seed: int = 0) -> NDArray[np.float32]:
    return unit_rows(np.random.default_rng(seed).standard_normal((n, D), dtype=np.float32) + np.float32(0.3))


@dataclass
class Drawn:
    """Vectors in the order that they have, sketched and coded, and documents as tables and codes."""

    signs: NDArray[np.uint8]
    scales: NDArray[np.float32]
    mean: NDArray[np.float32]
    codes: comparison.Codes
    tables: NDArray[np.uint8]
    steps: NDArray[np.float32]
    offsets: NDArray[np.float32]
    document_codes: NDArray[np.uint8]


def drawn(vectors: NDArray[Any], documents: NDArray[np.float32]) -> Drawn:
    n, D = len(vectors), documents.shape[1]
    mean, places = dequantize(vectors).mean(axis=0), np.arange(n, dtype=np.int32)
    size, room = kernels.bytes_of(D)
    n_blocks = -(-n // (kernels.BLOCK * kernels.PAIR)) * kernels.PAIR
    signs, each = np.zeros((n_blocks, size), dtype=np.uint8), np.empty(n, dtype=np.float32)
    kernels.measure(0, n, as_bits(vectors), mean, kernels.width_of(D), each)
    kernels.draw(0, n_blocks, as_bits(vectors), places, mean, signs)
    scales = np.array([each[first : first + kernels.BLOCK].mean() if first < n else np.nan
                       for first in range(0, n_blocks * kernels.BLOCK, kernels.BLOCK)], dtype=np.float32)  # fmt: skip
    tables = np.empty((len(documents), room), dtype=np.uint8)
    steps, offsets = np.empty(len(documents), dtype=np.float32), np.empty(len(documents), dtype=np.float32)
    kernels.tabulate(documents, tables, steps, offsets)
    coded = comparison.encoded(vectors, places)
    return Drawn(signs, scales, mean, coded, tables, steps, offsets, comparison.codes_of(documents, coded))


def estimates_of(made: Drawn, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    out = np.empty(rows.shape, dtype=np.float32)
    kernels.estimates_of(rows, made.tables, made.steps, made.offsets, made.signs, made.scales, out)
    return out


@pytest.mark.parametrize("D", [1, 63, 64, 65, 300])
def test_turning_vectors_changes_no_product(D: int) -> None:
    vectors, width = vectors_of(5, D), kernels.width_of(D)
    turned = np.empty((5, width), dtype=np.float32)
    for vector, row in zip(vectors, turned, strict=True):
        kernels._turned(vector, np.zeros(D, dtype=np.float32), row, np.empty(width, dtype=np.float32))
    np.testing.assert_allclose(turned @ turned.T, vectors @ vectors.T, atol=1e-5)
    # And what stood in one place stands everywhere.
    assert np.abs(turned).max() < 6 / np.sqrt(width)


@pytest.mark.parametrize("D", [1, 64, 65, 300])
@pytest.mark.parametrize("documents", [1, 5])
def test_sums_of_many_vectors_at_once_are_those_of_each(D: int, documents: int) -> None:
    made = drawn(vectors_of(256, D), vectors_of(documents, D, seed=1))
    blocks = np.array([2, 0], dtype=np.int64)
    out = np.empty((documents, 128), dtype=np.float32)
    kernels.estimates(blocks, made.tables, made.steps, made.offsets, made.signs, made.scales, out)
    # Of a block, vectors with even numbers come first.
    order = np.concatenate([block * 64 + np.r_[0:64:2, 1:64:2] for block in blocks])
    np.testing.assert_array_equal(out, estimates_of(made, np.tile(order, (documents, 1))))


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
@pytest.mark.parametrize("D", [64, 300])
def test_sketches_tell_products_as_seen_from_the_mean(D: int, kind: str) -> None:
    vectors, documents = vectors_of(640, D), vectors_of(20, D, seed=1)
    given = quantize_int8(vectors) if kind == "int8" else vectors.astype(kind)
    made = drawn(given, documents)
    told = estimates_of(made, np.tile(np.arange(640), (20, 1)))
    products = documents @ (vectors - made.mean).T
    assert np.std(told - products) < 0.9 / np.sqrt(D)
    assert abs(np.mean(told - products)) < 0.1 / np.sqrt(D)


@pytest.mark.parametrize("documents", [1, 3, 4, 9])
@pytest.mark.parametrize("n", [5, 64, 300])
def test_all_vectors_that_seem_near_enough_are_compared_in_bytes(n: int, documents: int) -> None:
    made = drawn(vectors_of(n, 70), vectors_of(documents, 70, seed=1))
    seeming = estimates_of(made, np.tile(np.arange(n), (documents, 1)))
    least = np.quantile(seeming, 0.6, axis=1).astype(np.float32)
    found, counts = np.zeros((documents, 2 * n + 1), dtype=np.uint64), np.zeros(documents, dtype=np.int64)
    bounds, near = np.full(documents, -np.inf, dtype=np.float32), np.empty((1, 128), dtype=np.float32)
    inverses = np.where(made.scales > 0, 1 / np.where(made.scales > 0, made.scales, 1), np.nan).astype(np.float32)
    kernels.search(
        0, len(made.signs), made.tables, least / made.steps, made.offsets / made.steps, made.signs, inverses,
        made.document_codes, made.codes.codes, made.codes.scales, made.codes.shifts, np.arange(n, dtype=np.int32), n,
        near, near.view(np.uint32), found, counts, bounds,
    )  # fmt: skip
    signed = made.document_codes.astype(np.int64) - 128
    whole = signed @ made.codes.codes[:n].T.astype(np.int64)
    for row in range(documents):
        places = (found[row, : counts[row]] & np.uint64(0xFFFFFFFF)).astype(np.int64)
        # Whole sums are rounded up to the next, so that one on the bound may be on either side.
        sure, maybe = (np.flatnonzero(seeming[row] >= least[row] + slack) for slack in (1e-4, -1e-4))
        assert set(sure) <= set(places) <= set(maybe)
        expected = whole[row, places].astype(np.float32) * made.codes.scales[places]
        np.testing.assert_array_equal(comparison.products_of(found[row, : counts[row]]), expected)


def test_vectors_without_a_direction_are_compared_always() -> None:
    """Nothing is known of how near they are: those at the mean are the nearest to a document that lies there too."""
    vectors = vectors_of(640, 70)
    vectors[:64] = vectors[64:].mean(axis=0)
    middle = unit_rows(vectors[:1])
    index = replace(sketches.sketches_of(vectors, 3, middle), candidates=64)
    assert (index.scales < 1e-6).any()
    found, _ = sketches.search(index, vectors, middle, 30)
    assert set(found[0].tolist()) <= set(inverted_file.search_all(vectors, middle, 64)[0].tolist())


def searched(**environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SEARCH], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.split(" ", 2)


def test_other_instructions_find_the_same() -> None:
    here, there = searched(), searched(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=AVX2)
    assert there[:2] == ["False", "32"]
    assert here[2] == there[2]


def test_codes_are_multiplied_the_same_without_the_instruction() -> None:
    made = drawn(vectors_of(64, 70), vectors_of(2, 70, seed=1))
    rows, out = np.arange(20, 36), np.empty((2, 16), dtype=np.int32)
    rows_and_more = np.concatenate([rows, rows])
    for document in range(2):
        kernels._multiply_plainly(made.document_codes, document, made.codes.codes, rows_and_more, 0, out[document])
    expected = made.document_codes.astype(np.int32) @ made.codes.codes[rows].T.astype(np.int32)
    np.testing.assert_array_equal(out, expected)
