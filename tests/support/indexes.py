"""Made-up vectors, and what index tests need of the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lightdxml.kernels import fast_scan
from lightdxml.kernels.precision import quantize_int8

needs_rabitq = pytest.mark.skipif(not fast_scan.AVAILABLE, reason="this CPU cannot search RaBitQ codes")
KINDS = ("exact", pytest.param("rabitq", marks=needs_rabitq))


def unit_rows(matrix: NDArray[Any]) -> NDArray[np.float32]:
    """Return the rows with length 1."""
    rows: NDArray[np.float32] = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    return rows


def clustered(n: int, dim: int = 24, seed: int = 0, centers: int = 40) -> NDArray[np.float32]:
    """Return unit vectors around some directions, which are the same for every seed."""
    middle = unit_rows(np.random.default_rng(99).standard_normal((centers, dim)))
    rng = np.random.default_rng(seed)
    noise = 0.7 * rng.standard_normal((n, dim)) / np.sqrt(dim)
    return unit_rows(middle[rng.integers(0, centers, n)] + noise)


def stored(vectors: NDArray[np.float32], precision: str) -> NDArray[Any]:
    """Return vectors as a model of this precision stores them."""
    return quantize_int8(vectors) if precision == "int8" else vectors.astype(precision)
