"""The propensity model of Jain, Prabhu and Varma (2016): how likely it is that a true label is among the given ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def inverse_propensity_of(
    counts: NDArray[np.integer[Any]], n_documents: int, A: float = 0.55, B: float = 1.5
) -> NDArray[np.float64]:
    """Return the inverse propensity of each label from its number of training documents and the total number.

    >>> inverse_propensity_of(np.array([3, 1]), 3).round(3).tolist()
    [1.071, 1.099]
    """
    # With fewer than three documents the constant would be negative and a propensity above one.
    C = max(np.log(max(n_documents, 1)) - 1.0, 0.0) * (B + 1.0) ** A
    return np.asarray(1.0 + C * (counts + B) ** -A, dtype=np.float64)
