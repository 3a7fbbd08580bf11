"""Products of bytes against NumPy's."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lightdxml.kernels import codes
from lightdxml.kernels.precision import quantize_int8, as_bits, dequantize

pytestmark = pytest.mark.skipif(not codes.AVAILABLE, reason="this processor is no faster with bytes")


def vectors_of(n: int, D: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((n, D), dtype=np.float32)


def coded(vectors: NDArray[Any], D: int) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.int32]]:
    n = len(vectors)
    rows = n + codes.SPARE
    made = np.zeros((rows, codes.padded(D)), np.int8), np.zeros(rows, np.float32), np.zeros(rows, np.int32)
    codes.encode(0, n, as_bits(vectors), np.arange(n, dtype=np.int32), D, *made)
    return made


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
@pytest.mark.parametrize("D", [1, 64, 70])
def test_codes_are_the_vectors_in_steps_of_their_scales(kind: str, D: int) -> None:
    vectors = vectors_of(9, D)
    vectors[3] = 0
    given = quantize_int8(vectors) if kind == "int8" else vectors.astype(kind)
    made, scales, shifts = (part[:9] for part in coded(given, D))
    error = np.abs(made[:, :D] * scales[:, None] - dequantize(given))
    assert (error <= 0.51 * scales[:, None] + 1e-6).all()
    assert not made[:, D:].any()
    np.testing.assert_array_equal(shifts, 128 * made.astype(np.int32).sum(axis=1))


@pytest.mark.parametrize("D", [1, 63, 64, 65, 300])
@pytest.mark.parametrize("block", [16, 48])
def test_a_search_finds_what_products_of_codes_are_highest(D: int, block: int) -> None:
    vectors, documents = vectors_of(40, D), vectors_of(7, D, seed=1)
    made, scales, shifts = coded(vectors, D)
    those = np.zeros((7, codes.padded(D)), dtype=np.uint8)
    codes.encode_documents(documents, those)
    signed = those[:, :D].astype(np.int64) - 128
    expected = ((signed @ made[:, :D].T.astype(np.int64)).astype(np.float32) * scales)[:, :40]
    found, counts = np.zeros((7, 11), dtype=np.uint64), np.zeros(7, dtype=np.int64)
    bounds, near = np.full(7, -np.inf, dtype=np.float32), np.empty((4, block), dtype=np.float32)
    # Two clusters: of the first 25 vectors, into which all look, and of the others, into which documents 1 and 4 look.
    rows, ends = np.array([0, 1, 2, 3, 4, 5, 6, 1, 4], dtype=np.int32), np.array([0, 7, 9])
    codes.search(
        0, 2, those, rows, ends, made, scales, shifts, np.arange(40, dtype=np.int32), np.array([0, 25, 40]), 5, near,
        near.view(np.uint32), found, counts, bounds,
    )  # fmt: skip
    for row in range(7):
        n = 40 if row in (1, 4) else 25
        places = np.sort(found[row, : counts[row]])[:5] & np.uint64(0xFFFFFFFF)
        assert places.tolist() == np.argsort(-expected[row, :n], kind="stable")[:5].tolist()


@pytest.mark.parametrize(("start", "stop"), [(0, 40), (3, 21), (39, 40)])
@pytest.mark.parametrize("documents", [1, 3, 4, 9])
def test_products_of_codes_are_those_of_whole_numbers(start: int, stop: int, documents: int) -> None:
    made, scales, shifts = coded(vectors_of(40, 70), 70)
    those = np.zeros((documents, codes.padded(70)), dtype=np.uint8)
    codes.encode_documents(vectors_of(documents, 70, seed=1), those)
    out, near = np.full((documents, 40), 7, dtype=np.float32), np.empty((4, 16), dtype=np.float32)
    codes.products(start, stop, those, made, scales, shifts, near, out)
    signed = those[:, :70].astype(np.int64) - 128
    expected = np.full_like(out, 7)
    expected[:, start:stop] = ((signed @ made[:, :70].T.astype(np.int64)).astype(np.float32) * scales)[:, start:stop]
    np.testing.assert_array_equal(out, expected)


def test_what_numba_is_told_not_to_use_is_not_used() -> None:
    said = "from lightdxml.kernels import codes; print(codes.AVAILABLE)"
    environment = {**os.environ, "NUMBA_CPU_NAME": "generic"}
    done = subprocess.run([sys.executable, "-c", said], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
