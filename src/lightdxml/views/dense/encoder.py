"""Z_x of the paper: from a document's features to its embedding x̂ in R^D (step 1 of Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels import bag, parallel
from lightdxml.kernels.precision import SCALE_BYTES, as_bits, dequantize, quantize_int8, rounded, row_width
from lightdxml.kernels.sparse import Csr
from lightdxml.persistence.arrays import MAX_VALUE, Arrays, check_finite
from lightdxml.views.base import Batch, expect

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from lightdxml.kernels.sparse import FeatureRows

_ROWS = 1024


@dataclass
class Residual:
    """A layer z + ReLU(R z + b) on top of the bag of words; R has spectral norm 1."""

    R: NDArray[np.float32]
    bias: NDArray[np.float32]


@dataclass
class Encoder:
    """Word vectors, and what happens to their weighted sum.

    Attributes
    ----------
    vectors
        One row per feature: float32, float16, or int8 with a scale per row.
    relu
        Whether negative coordinates of the sum become 0.
    residual
        A further layer, or None.
    """

    vectors: NDArray[Any]
    relu: bool = False
    residual: Residual | None = None

    @property
    def dim(self) -> int:
        """Dimensions of an embedding, D."""
        return row_width(self.vectors)

    def copy(self, precision: str) -> Encoder:
        """Return an encoder with arrays of its own, the word vectors in this precision."""
        residual = None if self.residual is None else Residual(self.residual.R.copy(), self.residual.bias.copy())
        return Encoder(rounded(self.vectors, precision), self.relu, residual)

    def quantize(self, precision: str) -> Encoder:
        """Return a copy with word vectors of lower precision."""
        return replace(self, vectors=quantized(self.vectors, precision))

    def with_features(self, n: int) -> Encoder:
        """Return an encoder of n features; those that it does not know change no embedding."""
        more = np.zeros((n - len(self.vectors), self.vectors.shape[1]), dtype=self.vectors.dtype)
        return replace(self, vectors=np.concatenate([self.vectors, more]))

    def arrays(self) -> Arrays:
        """Return all arrays by name."""
        arrays: Arrays = {"encoder.vectors": self.vectors}
        if self.residual is not None:
            arrays |= {"encoder.residual": self.residual.R, "encoder.residual_bias": self.residual.bias}
        return arrays


def restore_encoder(arrays: Arrays, facts: dict[str, Any], n_features: int) -> Encoder:
    """Return the encoder that these arrays make up, or raise a `ValueError`."""
    vectors = arrays["encoder.vectors"]
    dim = row_width(vectors) if vectors.ndim == 2 else 0
    expect_vectors(vectors, "encoder.vectors", n_features, dim)
    if dim < 1 or not isinstance(facts["relu"], bool):
        raise ValueError("its encoder has 0 dimensions, or an invalid value of relu")
    residual = None
    if "encoder.residual" in arrays:
        R = expect(arrays["encoder.residual"], "encoder.residual", (dim, dim), np.float32)
        bias = expect(arrays["encoder.residual_bias"], "encoder.residual_bias", (dim,), np.float32)
        residual = Residual(np.array(R), bias)
    return Encoder(vectors, facts["relu"], residual)


def expect_vectors(vectors: NDArray[Any], name: str, rows: int, dim: int) -> None:
    """Raise a `ValueError` if vectors are not that many rows of that dimension in a known precision."""
    extra = SCALE_BYTES if vectors.dtype == np.int8 else 0
    expect(vectors, name, (rows, dim + extra), np.float16, np.float32, np.int8)


def check_scales(vectors: NDArray[Any], name: str, n_bytes: int = SCALE_BYTES) -> None:
    """Raise a `ValueError` if int8 rows end in scales or biases that are not finite, or too large."""
    if vectors.dtype == np.int8:
        check_finite({name: np.ascontiguousarray(vectors[:, -n_bytes:]).view(np.float32)}, MAX_VALUE)


def encode(encoder: Encoder, X: csr_matrix | FeatureRows) -> NDArray[np.float32]:
    """Return x̂ of every row of X.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> vectors = np.array([[1, 0], [0, 2]], dtype=np.float32)
    >>> encode(Encoder(vectors), csr_matrix([[0.5, 0.5], [0, 0]], dtype=np.float32)).tolist()
    [[0.5, 1.0], [0.0, 0.0]]
    """
    out = np.empty((X.shape[0], encoder.dim), dtype=np.float32)
    documents, vectors = Csr.of(X), as_bits(encoder.vectors)

    def fill(bounds: tuple[int, int]) -> None:
        start, stop = bounds
        bag.forward(start, stop, documents, vectors, out)
        if encoder.relu:
            np.maximum(out[start:stop], 0, out=out[start:stop])
        if encoder.residual is not None:
            bag.add_residual(start, stop, encoder.residual.R, encoder.residual.bias, out)

    parallel.run(fill, parallel.fixed_chunks(X.shape[0], _ROWS))
    return out


def embeddings_of(encoder: Encoder, batch: Batch) -> NDArray[np.float32]:
    """Return x̂ of a batch; views that share an encoder share the embeddings."""
    return batch.shared(("embedding", id(encoder.vectors)), lambda: encode(encoder, batch.X))


def directions_of(encoder: Encoder, batch: Batch) -> NDArray[np.float32]:
    """Return x̂ / ‖x̂‖ of a batch."""
    key = ("direction", id(encoder.vectors))
    return batch.shared(key, lambda: normalized(embeddings_of(encoder, batch)))


def feature_embeddings(encoder: Encoder, batch: Batch) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what each feature of a document adds to its embedding, and what is there without features.

    With ReLU or a residual layer the sum holds for the units that are on for this document.
    """
    x = batch.X
    terms = dequantize(encoder.vectors[x.indices]).astype(np.float64) * x.data[:, None].astype(np.float64)
    rest = np.zeros(terms.shape[1])
    if encoder.relu:
        terms *= terms.sum(axis=0) > 0
    if encoder.residual is not None:
        R, bias = encoder.residual.R.astype(np.float64), encoder.residual.bias.astype(np.float64)
        # The units that are on in the model itself: near 0, another order of summation could decide otherwise.
        inner = encode(replace(encoder, residual=None), x)[0]
        on = encode(encoder, x)[0] > inner
        terms, rest = terms + (terms @ R.T) * on, bias * on
    return terms, rest


def normalized(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows at length 1; rows of zeros stay zeros.

    >>> normalized(np.array([[3, 4], [0, 0]], dtype=np.float32)).round(3).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    unit: NDArray[np.float32] = matrix.copy()
    normalize(unit)
    return unit


def normalize(matrix: NDArray[np.float32]) -> None:
    """Scale rows to length 1 in place; rows of zeros stay zeros."""
    norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))[:, None]
    np.divide(matrix, norms, out=matrix, where=norms > 0)


def quantized(vectors: NDArray[Any], precision: str) -> NDArray[Any]:
    """Return vectors as int8 with a scale per row, or as float16; vectors that are no larger stay as they are."""
    smaller_than = {"int8": (np.float32, np.float16), "float16": (np.float32,)}[precision]
    if vectors.dtype not in smaller_than:
        return vectors
    return quantize_int8(dequantize(vectors)) if precision == "int8" else rounded(dequantize(vectors), precision)
