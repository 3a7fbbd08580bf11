"""Values on their way to other processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason='needs ray: pip install "lightdxml[ray]"')

from scipy.sparse import csr_matrix

from lightdxml.cluster.packing import pack, unpack
from lightdxml.kernels.sparse import Csr


def test_features_and_views_of_them_travel_once() -> None:
    X = csr_matrix(np.ones((300, 200), dtype=np.float32))
    arrays: list[Any] = []
    packed = pack((X, Csr.of(X), X.data[1:]), lambda array: arrays.append(array) or array)  # type: ignore[func-returns-value]
    assert len(arrays) == 3, "values, column numbers, and a part of the values, which is another array"
    found, csr, rest = unpack(packed)
    assert (found != X).nnz == 0
    assert csr.values.tobytes() == X.data.tobytes()
    assert rest.tobytes() == X.data[1:].tobytes()
