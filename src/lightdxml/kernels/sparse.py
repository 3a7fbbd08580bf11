"""Sparse matrices as kernels take them: plain arrays with a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class Csr(NamedTuple):
    """A sparse matrix: row i has the columns indices[indptr[i] : indptr[i + 1]], with these values."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[Any]

    @classmethod
    def of(cls, matrix: csr_matrix) -> Csr:
        """Return the arrays of a matrix of SciPy, or of `text.features.FeatureRows`."""
        return cls(matrix.indptr.astype(np.int64), matrix.indices, matrix.data)


class Pattern(NamedTuple):
    """Where a sparse matrix has entries, such as the labels of each document: `Csr` without values."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]

    @classmethod
    def of(cls, matrix: csr_matrix) -> Pattern:
        """Return the arrays of a matrix of SciPy."""
        return cls(matrix.indptr.astype(np.int64), matrix.indices)


class Groups(NamedTuple):
    """The entries of sparse rows by column, as `classifier.group_by_column` makes them.

    Attributes
    ----------
    columns, indptr
        The columns that occur, in ascending order for sequential memory access, and where their entries start.
    rows, positions
        The row of each entry, and its position among the entries by row.
    """

    columns: NDArray[np.int32]
    indptr: NDArray[np.int64]
    rows: NDArray[np.int32]
    positions: NDArray[np.int64]
