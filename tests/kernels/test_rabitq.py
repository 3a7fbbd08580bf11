"""Fast scan, estimates and int8 rerank against plain sums."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lightdxml.index import RaBitQIndex
from lightdxml.index.rabitq import _prepare, _Queries, build_rabitq
from lightdxml.kernels import int8, rabitq
from lightdxml.kernels.precision import as_bits, dequantize
from lightdxml.kernels.topk import TopK, unpack
from tests.support.indexes import needs_rabitq, stored, unit_rows

pytestmark = needs_rabitq

# Searches made-up vectors in another process, for other instructions.
SEARCH = """
import numpy as np
from lightdxml.index.rabitq import build_rabitq
from lightdxml.kernels import fast_scan
rng = np.random.default_rng(0)
vectors, queries = (rng.standard_normal((n, 70), dtype=np.float32) for n in (1000, 9))
index = build_rabitq(vectors, queries, 10)
found = index.search(queries, 10)[0], index.search(queries[:1], 10)[0]
print(fast_scan._SHUFFLE[1], index.candidates, *(part.tolist() for part in found))
"""
AVX2 = "+avx2,+avx,+fma,+f16c,+popcnt,+sse4.2,+sse4.1,+ssse3,+sse3,+sse2,+sse,+bmi,+bmi2,+cx16,+lzcnt,+movbe"


def vectors_of(n: int, dim: int, seed: int = 0) -> NDArray[np.float32]:
    return unit_rows(np.random.default_rng(seed).standard_normal((n, dim)) + 0.3)


def encoded(n: int, dim: int, n_queries: int, precision: str = "float32") -> tuple[RaBitQIndex, _Queries]:
    queries = vectors_of(n_queries, dim, seed=1)
    index = build_rabitq(stored(vectors_of(n, dim), precision), queries, 1)
    return index, _prepare(index.codes, queries)


def estimates(index: RaBitQIndex, queries: _Queries, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    out, codes = np.empty(rows.shape, dtype=np.float32), index.codes
    rabitq.estimate_rows(rows, queries.luts, codes.signs, codes.scales, out)
    return out


@pytest.mark.parametrize("dim", [1, 63, 64, 65, 300])
def test_a_rotation_changes_no_product_and_spreads_every_number(dim: int) -> None:
    vectors, width = vectors_of(5, dim), rabitq.rotated_width(dim)
    rotated, workspace = np.empty((5, width), dtype=np.float32), np.empty(width, dtype=np.float32)
    for vector, row in zip(vectors, rotated, strict=True):
        rabitq._rotate_vector(vector, np.zeros(dim, dtype=np.float32), row, workspace)
    np.testing.assert_allclose(rotated @ rotated.T, vectors @ vectors.T, atol=1e-5)
    assert np.abs(rotated).max() < 6 / np.sqrt(width)


@pytest.mark.parametrize("dim", [1, 64, 65, 300])
@pytest.mark.parametrize("n_queries", [1, 5])
def test_fast_scan_sums_are_those_of_each_code(dim: int, n_queries: int) -> None:
    index, queries = encoded(256, dim, n_queries)
    blocks, out = np.array([2, 0], dtype=np.int64), np.empty((n_queries, 128), dtype=np.float32)
    rabitq.estimate_blocks(blocks, queries.luts, index.codes.signs, index.codes.scales, out)
    order = np.concatenate([block * 64 + np.r_[0:64:2, 1:64:2] for block in blocks])
    np.testing.assert_array_equal(out, estimates(index, queries, np.tile(order, (n_queries, 1))))


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
@pytest.mark.parametrize("dim", [64, 300])
def test_estimates_are_close_to_products_with_vectors_minus_their_mean(dim: int, precision: str) -> None:
    index, queries = encoded(640, dim, 20, precision)
    vectors = dequantize(index.vectors)
    products = vectors_of(20, dim, seed=1) @ (vectors - vectors.mean(axis=0))[index.codes.row_ids].T
    error = estimates(index, queries, np.tile(np.arange(640), (20, 1))) - products
    assert np.std(error) < 0.9 / np.sqrt(dim)
    assert abs(np.mean(error)) < 0.1 / np.sqrt(dim)


@pytest.mark.parametrize("n_queries", [1, 3, 4, 9])
@pytest.mark.parametrize("n", [5, 64, 300])
def test_all_codes_above_the_threshold_are_reranked_by_int8_products(n: int, n_queries: int) -> None:
    index, queries = encoded(n, 70, n_queries)
    codes = index.codes
    estimated = estimates(index, queries, np.tile(np.arange(n), (n_queries, 1)))
    thresholds = np.quantile(estimated, 0.6, axis=1).astype(np.float32)
    top = TopK.empty(n_queries, n)
    tables, scales, offsets = queries.luts
    scan = rabitq.Scan(tables, thresholds / scales, offsets / scales, codes.signs, codes.inverse_scales)
    rabitq.search(0, len(codes.signs), scan, queries.codes, codes.int8_codes, codes.row_ids, 2, top)
    integers = (queries.codes.astype(np.int64) - 128) @ codes.codes.T.astype(np.int64)
    row_of = np.argsort(codes.row_ids)
    for b in range(n_queries):
        row_ids, products = (part[0] for part in unpack(top.keys[b : b + 1, : top.counts[b]]))
        rows = row_of[row_ids]
        # Bounds of integer sums are rounded: a code at the threshold may be on either side.
        sure, possible = (np.flatnonzero(estimated[b] >= thresholds[b] + slack) for slack in (1e-4, -1e-4))
        assert set(sure) <= set(rows) <= set(possible)
        np.testing.assert_array_equal(products, integers[b, rows].astype(np.float32) * codes.code_scales[rows])


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
@pytest.mark.parametrize("dim", [1, 64, 70])
def test_int8_codes_are_the_vectors_rounded_to_their_scale(precision: str, dim: int) -> None:
    vectors = vectors_of(9, dim)
    vectors[3] = 0
    given = stored(vectors, precision)
    codes = np.zeros((9, int8.code_width(dim)), dtype=np.int8)
    scales, offsets = np.zeros(9, dtype=np.float32), np.zeros(9, dtype=np.int32)
    encoded = int8.Int8Codes(codes, scales, offsets)
    int8.encode_vectors(0, 9, as_bits(given), np.arange(9, dtype=np.int32), dim, encoded)
    error = np.abs(codes[:, :dim] * scales[:, None] - dequantize(given))
    assert (error <= 0.51 * scales[:, None] + 1e-6).all()
    assert not codes[:, dim:].any()
    np.testing.assert_array_equal(offsets, 128 * codes.astype(np.int32).sum(axis=1))


def search(**environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SEARCH], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.split(" ", 1)


def test_other_instructions_find_the_same() -> None:
    here, there = search(), search(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=AVX2)
    assert there[0] == "32"
    assert here[1] == there[1]


def test_numba_settings_rule_out_instructions() -> None:
    code = "from lightdxml.kernels import fast_scan; print(fast_scan.AVAILABLE)"
    environment: dict[str, Any] = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
