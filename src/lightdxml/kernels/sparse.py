"""Sparse matrices as kernels take them: plain arrays with a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that cannot be written.

    Kernels are compiled once more for arrays that can be: what they only read always comes this way.

    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    view: NDArray[Any] = array.view()
    view.flags.writeable = False
    return view


class Csr(NamedTuple):
    """A sparse matrix: row i has the columns indices[indptr[i] : indptr[i + 1]], with these values."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[Any]

    @classmethod
    def of(cls, matrix: csr_matrix) -> Csr:
        """Return the arrays of a matrix of SciPy, or `FeatureRows`."""
        return cls(read_only(matrix.indptr.astype(np.int64)), read_only(matrix.indices), read_only(matrix.data))


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """A CSR matrix that is only read, without SciPy, whose import takes a quarter of a second.

    Its attributes have the names of SciPy's.

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


class Pattern(NamedTuple):
    """Where a sparse matrix has entries, such as the labels of each document: `Csr` without values."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]

    @classmethod
    def of(cls, matrix: csr_matrix) -> Pattern:
        """Return the arrays of a matrix of SciPy."""
        return cls(read_only(matrix.indptr.astype(np.int64)), read_only(matrix.indices))

    def read_only(self) -> Pattern:
        """Return the same as arrays that cannot be written."""
        return Pattern(read_only(self.indptr), read_only(self.indices))

    @classmethod
    def empty(cls, n: int) -> Pattern:
        """Return n rows without entries."""
        return cls(np.zeros(n + 1, dtype=np.int64), np.empty(0, dtype=np.int32))

    @classmethod
    def full(cls, n: int) -> Pattern:
        """Return one row that has all of n columns.

        >>> Pattern.full(3)
        Pattern(indptr=array([0, 3]), indices=array([0, 1, 2], dtype=int32))
        """
        return cls(np.array([0, n]), np.arange(n, dtype=np.int32))


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
