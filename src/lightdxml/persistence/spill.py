"""Arrays in memory-mapped files, for data that does not fit into memory."""

from __future__ import annotations

import errno
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_matrix

from lightdxml.persistence import lock
from lightdxml.resources.system import format_bytes

_PREFIX, _LOCK = "lightdxml-", "lock"
# The names of arrays: of the training features, of these and the held-out ones, and the shortlists.
FEATURES, ALL_FEATURES, SHORTLISTS = "features", "all-features", "shortlists"
_VALUES, _INDICES = ".values", ".indices"
_BLOCK = 1 << 20


class SpillDirectory:
    """A temporary folder for arrays; they are removed with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array of zeros in a new file of this name; an array of size 0 is in memory.

        Disk space is reserved first: a full disk would otherwise kill the process when a page is written.
        """
        if 0 in shape:
            return np.empty(shape, dtype=dtype)
        path, size = self.folder / name, math.prod(shape) * np.dtype(dtype).itemsize
        path.unlink(missing_ok=True)
        try:
            with path.open("xb") as stream:
                _reserve(stream, size)
        except OSError as error:
            reason = f"there is no space for {format_bytes(size)} of {name} in {self.folder.parent}"
            raise OSError(f"{reason} ({error.strerror}): choose another spill directory") from error
        return np.memmap(path, dtype=dtype, mode="r+", shape=shape)

    def matrix(self, name: str, parts: Sequence[csr_matrix]) -> csr_matrix:
        """Return canonical matrices on top of each other as one, whose indices and values are in files."""
        rows, size = sum(part.shape[0] for part in parts), sum(part.nnz for part in parts)
        mapped = csr_matrix((rows, parts[0].shape[1]), dtype=parts[0].dtype)
        # Assigned directly: the constructor might copy them back into memory.
        mapped.data = self.array(name + _VALUES, (size,), parts[0].data.dtype)
        mapped.indices = self.array(name + _INDICES, (size,), parts[0].indices.dtype)
        ends = np.cumsum(np.concatenate([np.diff(part.indptr) for part in parts]), dtype=np.int64)
        # One type for both: SciPy would otherwise copy all indices in every operation.
        fits = size <= np.iinfo(mapped.indices.dtype).max
        mapped.indptr = np.concatenate([[0], ends]).astype(mapped.indices.dtype if fits else np.int64)
        first = 0
        for part in parts:
            mapped.data[first : first + part.nnz] = part.data
            mapped.indices[first : first + part.nnz] = part.indices
            first += part.nnz
        mapped.has_canonical_format = True
        return mapped


def _reserve(stream: BinaryIO, size: int) -> None:
    """Extend a file by zeros that have their space on the disk."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(stream.fileno(), 0, size)
            return
        except OSError as error:
            # Not every file system can.
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
    for start in range(0, size, _BLOCK):
        stream.write(bytes(min(_BLOCK, size - start)))


@contextmanager
def spill_directory(folder: Path) -> Iterator[SpillDirectory]:
    """Yield a temporary folder within a folder, which is created if it does not exist.

    Leftovers of killed processes are removed.

    >>> with tempfile.TemporaryDirectory() as folder, spill_directory(Path(folder)) as spill:
    ...     spill.array("numbers", (2, 2), np.int32).tolist()
    [[0, 0], [0, 0]]
    """
    lock.make_writable(folder, "spilled arrays")
    for left in folder.glob(f"{_PREFIX}*"):
        with suppress(OSError, ValueError):
            _remove_if_left(left)
    # The lock is released before the folder is removed: Windows cannot remove an open file.
    with (
        tempfile.TemporaryDirectory(prefix=_PREFIX, dir=folder, ignore_cleanup_errors=True) as inner,
        lock.held(Path(inner) / _LOCK) as mine,
    ):
        if not mine:
            raise OSError(f"another training is cleaning up {folder}: start again")
        yield SpillDirectory(Path(inner))


def _remove_if_left(folder: Path) -> None:
    """Remove a spill directory that no process holds, unless it holds anything else."""
    inside = {path.name for path in folder.iterdir()}
    arrays = {name + part for name in (FEATURES, ALL_FEATURES) for part in (_VALUES, _INDICES)}
    if _LOCK in inside and inside <= {_LOCK, SHORTLISTS, *arrays}:
        with lock.held(folder / _LOCK) as mine:
            if mine:
                shutil.rmtree(folder, ignore_errors=True)
