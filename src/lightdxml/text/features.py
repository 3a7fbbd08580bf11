"""Features of documents as prediction needs them: without SciPy, whose import takes a quarter of a second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """A CSR matrix that is only read. Its attributes have the names of SciPy's.

    Examples
    --------
    >>> rows = FeatureRows(np.array([0, 1, 1]), np.array([2], np.int32), np.array([1.0], np.float32), 3)
    >>> rows.shape, rows.nnz, rows[1:2].shape, rows[0].indices.tolist()
    ((2, 3), 1, (1, 3), [2])
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float32]
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of documents and of features."""
        return len(self.indptr) - 1, self.n_columns

    @property
    def nnz(self) -> int:
        """Number of stored values."""
        return len(self.data)

    def __getitem__(self, rows: slice | int) -> FeatureRows:
        """Return some consecutive documents, or one, as a matrix again."""
        some = range(self.shape[0])[rows if isinstance(rows, slice) else slice(rows, rows + 1 or None)]
        start, stop = some.start, max(some.start, some.stop)
        first, last = self.indptr[start], self.indptr[stop]
        indptr = self.indptr[start : stop + 1] - first
        return FeatureRows(indptr, self.indices[first:last], self.data[first:last], self.n_columns)
