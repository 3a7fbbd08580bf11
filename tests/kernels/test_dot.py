"""Inner products in a fixed order, against NumPy and between instruction sets."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from lightdxml.index import ExactIndex, cosines
from lightdxml.kernels.precision import dequantize
from tests.support.indexes import clustered, stored

# Searches made-up vectors in another process, for other instructions.
SEARCH = """
import numpy as np
from lightdxml.index import ExactIndex
rng = np.random.default_rng(0)
vectors, queries = (rng.standard_normal((n, 70), dtype=np.float32) for n in (1000, 9))
for stored in (vectors, vectors.astype(np.float16)):
    row_ids, products = ExactIndex(stored).search(queries, 10)
    expected = np.take_along_axis(queries @ stored.astype(np.float32).T, row_ids.astype(np.int64), axis=1)
    print(row_ids.tolist(), np.abs(products - expected).max() < 1e-4)
"""


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
@pytest.mark.parametrize("dim", [1, 7, 8, 9, 64, 300])
@pytest.mark.parametrize("n", [1, 8, 47, 48, 49, 100, 200])
def test_products_are_those_of_numpy_in_any_tile(precision: str, dim: int, n: int) -> None:
    vectors, queries = stored(clustered(n, dim), precision), clustered(13, dim, seed=1)
    expected = queries @ dequantize(vectors).T
    row_ids, products = ExactIndex(vectors).search(queries, n)
    np.testing.assert_allclose(products, np.take_along_axis(expected, row_ids, axis=1), atol=1e-6)
    everything = np.tile(np.arange(n), (13, 1))
    gathered = cosines(vectors, queries, everything)
    np.testing.assert_array_equal(np.take_along_axis(gathered, row_ids.astype(np.int64), axis=1), products)


def test_every_finite_float16_is_converted_exactly() -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    vectors = np.zeros((len(halves), 8), dtype=np.float16)
    vectors[:, 3] = halves
    query = np.zeros((1, 8), dtype=np.float32)
    query[0, 3] = 1
    found = cosines(vectors, query, np.arange(len(halves))[None])
    np.testing.assert_array_equal(found[0], halves.astype(np.float32))


def search(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SEARCH], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_a_generic_cpu_finds_the_same() -> None:
    """It has no AVX, no FMA and no conversion of float16."""
    assert search() == search(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")
