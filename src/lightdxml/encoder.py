"""Z_x of the paper: from a document's features to its embedding x̂ in R^D."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.config import Precision
from lightdxml.kernels import bag, parallel
from lightdxml.kernels.precision import as_bits, width

_ROWS = 1024


@dataclass
class Residual:
    """A layer z + ReLU(R z + b) on top of the bag of words; the largest singular value of R is 1."""

    R: NDArray[np.float32]
    bias: NDArray[np.float32]


@dataclass
class Encoder:
    """Word vectors, and what is done with their weighted sum.

    Attributes
    ----------
    vectors
        One vector a feature, float32 or float16; of a compressed model int8, with a scale behind each.
    relu
        Whether negative coordinates of the sum are set to 0.
    residual
        A further layer, or None.
    """

    vectors: NDArray[Any]
    relu: bool = False
    residual: Residual | None = None

    def copy(self, precision: Precision) -> Encoder:
        """Return an encoder with arrays of its own, the word vectors in this precision."""
        residual = None if self.residual is None else Residual(self.residual.R.copy(), self.residual.bias.copy())
        return Encoder(rounded(self.vectors, precision), self.relu, residual)


def encode(encoder: Encoder, X: csr_matrix) -> NDArray[np.float32]:
    """Return x̂ of every row of X.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> vectors = np.array([[1, 0], [0, 2]], dtype=np.float32)
    >>> encode(Encoder(vectors), csr_matrix([[0.5, 0.5], [0, 0]], dtype=np.float32)).tolist()
    [[0.5, 1.0], [0.0, 0.0]]
    """
    out = np.empty((X.shape[0], width(encoder.vectors)), dtype=np.float32)
    rows = np.arange(X.shape[0], dtype=np.int64)
    pointers = X.indptr.astype(np.int64)
    vectors = as_bits(encoder.vectors)

    def fill(bounds: tuple[int, int]) -> None:
        start, stop = bounds
        bag.forward(start, stop, rows, pointers, X.indices, X.data, vectors, out)
        if encoder.relu:
            np.maximum(out[start:stop], 0, out=out[start:stop])
        if encoder.residual is not None:
            bag.add_residual(start, stop, encoder.residual.R, encoder.residual.bias, out)

    parallel.run(fill, parallel.fixed_chunks(X.shape[0], _ROWS))
    return out


def unit_rows(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows at length 1; rows of zeros stay what they are.

    >>> unit_rows(np.array([[3, 4], [0, 0]], dtype=np.float32)).round(3).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    unit: NDArray[np.float32] = matrix.copy()
    to_unit_rows(unit)
    return unit


def to_unit_rows(matrix: NDArray[np.float32]) -> None:
    """Bring rows to length 1 in place; rows of zeros stay what they are."""
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))[:, None]
    np.divide(matrix, lengths, out=matrix, where=lengths > 0)


def rounded(array: NDArray[np.float32], precision: Precision) -> NDArray[Any]:
    """Return a copy in the precision in which a model keeps it; in float32 if float16 cannot hold its numbers.

    >>> rounded(np.array([0.1], dtype=np.float32), "float16").dtype
    dtype('float16')
    """
    fits = precision == "float16" and bool(max(array.max(initial=0), -array.min(initial=0)) < np.finfo(np.float16).max)
    return array.astype(np.float16 if fits else np.float32)
