"""What every index of label embeddings can do."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Kind = Literal["exact", "rabitq"]
# Row ids and cosines, nearest first.
Neighbors = tuple[NDArray[np.int32], NDArray[np.float32]]


class Index(Protocol):
    """Nearest rows of a matrix of unit vectors by inner product, which is their cosine."""

    @property
    def kind(self) -> Kind:
        """The kind of index."""

    @property
    def vectors(self) -> NDArray[Any]:
        """The vectors: float32, float16, or int8 as `kernels.precision` stores them."""

    def search(self, queries: NDArray[np.float32], k: int) -> Neighbors:
        """Return the row ids of the k nearest vectors per query (unit rows), nearest first, and their cosines.

        Of equally near vectors the lower row id comes first. With fewer than k vectors there are fewer columns.
        """

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store in addition to the vectors."""
