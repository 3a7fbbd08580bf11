"""SciPy's `.npz`: one sparse matrix a file, features and labels in a pair."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
import scipy.sparse
from scipy.sparse import csr_matrix

from lightdxml.data.dataset import believable_width
from lightdxml.data.errors import DataError
from lightdxml.data.files import reading, unpacked_limit, writing

MAGIC = b"PK\x03\x04"
# What NumPy, SciPy and zipfile are known to raise on damaged files; none of them has an error class for it.
_UNREADABLE = (
    ValueError, KeyError, IndexError, OSError, EOFError, NotImplementedError, AttributeError, TypeError,
    MemoryError, OverflowError, SyntaxError, RuntimeError, zipfile.BadZipFile, zlib.error, struct.error,
)  # fmt: skip


def read(path: Path) -> csr_matrix:
    """Read a sparse matrix of any of SciPy's formats as CSR float32; nothing in the file is ever run."""
    with reading(path) as stream:
        limit = unpacked_limit(path)
        source = stream if isinstance(stream, io.BufferedReader) else io.BytesIO(stream.read(limit))
        try:
            _check_unpacked(path, source, limit)
            matrix = scipy.sparse.load_npz(source)
        except DataError:
            raise
        except _UNREADABLE as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise DataError(path, f"no as_bits sparse matrix ({reason})", "a file of scipy.sparse.save_npz") from error
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        found = f"an array of {matrix.ndim} dimensions and type {matrix.dtype}"
        raise DataError(path, found, "a sparse matrix of real numbers")
    if max(matrix.shape) > (most := believable_width(matrix.nnz)):
        found = f"a matrix of {matrix.shape[0]:,} × {matrix.shape[1]:,}"
        raise DataError(path, found, f"at most {most:,} each for {matrix.nnz:,} values")
    try:
        # Before any conversion: SciPy's compiled code trusts the indices.
        if matrix.format in ("csr", "csc", "bsr"):
            matrix.check_format(full_check=True)
        return _float32(path, csr_matrix(matrix))
    except DataError:
        raise
    except _UNREADABLE as error:
        raise DataError(path, f"a matrix that contradicts itself ({error})", "valid sparse arrays") from error


def _check_unpacked(path: Path, source: BinaryIO, limit: int) -> None:
    """Raise for an archive whose members would fill memory."""
    with zipfile.ZipFile(source) as archive:
        size = sum(member.file_size for member in archive.infolist())
    source.seek(0)
    if size > limit:
        raise DataError(path, f"arrays of {size >> 20:,} MB when unpacked", "data that was not made to fill memory")


def _float32(path: Path, matrix: csr_matrix) -> csr_matrix:
    if not np.all(np.isfinite(matrix.data)):
        raise DataError(path, "NaN or infinite values", "finite values")
    with np.errstate(over="ignore"):
        matrix = matrix.astype(np.float32)
    matrix.sum_duplicates()
    if not np.all(np.isfinite(matrix.data)):
        raise DataError(path, "a value that overflows", "numbers that fit into a float32")
    return matrix


def write(path: Path, matrix: csr_matrix) -> None:
    """Write a matrix so that SciPy and `read` can read it."""
    with writing(path) as stream:
        buffer = io.BytesIO()
        scipy.sparse.save_npz(buffer, matrix)
        stream.write(buffer.getbuffer())
