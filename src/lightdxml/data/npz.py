"""SciPy's `.npz`: one sparse matrix per file; features and labels are two files."""

from __future__ import annotations

import io
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from lightdxml.data.dataset import largest_plausible_size
from lightdxml.data.errors import DataError
from lightdxml.data.files import memory_budget, reading, too_large, writing

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MAGIC = b"PK\x03\x04"
# What NumPy, SciPy and zipfile raise for damaged files; none of them has one error class for that.
UNREADABLE = (
    ValueError, KeyError, IndexError, OSError, EOFError, NotImplementedError, AttributeError, TypeError,
    MemoryError, OverflowError, SyntaxError, RuntimeError, zipfile.BadZipFile, zlib.error, struct.error,
    tokenize.TokenError,
)  # fmt: skip


def reason(error: Exception) -> str:
    """Return the first line of an error message, or the name of the error if it has none."""
    return str(error).partition("\n")[0] or type(error).__name__


def read(path: Path) -> csr_matrix:
    """Read a sparse matrix in any of SciPy's formats as CSR float32. Nothing is unpickled."""
    with reading(path) as stream:
        try:
            return _read(path, stream)
        except DataError:
            raise
        except UNREADABLE as error:
            found = f"an invalid sparse matrix ({reason(error)})"
            raise DataError(path, found, "a file written by scipy.sparse.save_npz") from error


def _read(path: Path, stream: BinaryIO) -> csr_matrix:
    import scipy.sparse

    limit = memory_budget(path.stat().st_size)
    source = stream if isinstance(stream, io.BufferedReader) else io.BytesIO(stream.read(limit))
    with zipfile.ZipFile(source) as archive:
        if sum(member.file_size for member in archive.infolist()) > limit:
            raise too_large(path, limit)
    source.seek(0)
    matrix = scipy.sparse.load_npz(source)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        found = f"an array of {matrix.ndim} dimensions and type {matrix.dtype}"
        raise DataError(path, found, "a sparse matrix of real numbers")
    if max(matrix.shape) > (most := largest_plausible_size(matrix.nnz)):
        found = f"a matrix of {matrix.shape[0]:,} × {matrix.shape[1]:,}"
        raise DataError(path, found, f"at most {most:,} rows and columns for {matrix.nnz:,} values")
    # Checked before any conversion: SciPy's compiled code trusts the indices.
    if matrix.format in ("csr", "csc", "bsr"):
        matrix.check_format(full_check=True)
    with np.errstate(over="ignore", invalid="ignore"):
        matrix = scipy.sparse.csr_matrix(matrix).astype(np.float32)
        matrix.sum_duplicates()
    if not np.all(np.isfinite(matrix.data)):
        raise DataError(path, "NaN, infinite or too large values", "finite numbers that fit into a float32")
    return matrix


def write(path: Path, matrix: csr_matrix) -> None:
    """Write a matrix as SciPy does."""
    import scipy.sparse

    with writing(path) as stream:
        buffer = io.BytesIO()
        scipy.sparse.save_npz(buffer, matrix)
        stream.write(buffer.getbuffer())
