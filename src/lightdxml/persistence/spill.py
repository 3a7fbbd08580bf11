"""Arrays that live in files, where memory is short: the system keeps of them what it has room for."""

from __future__ import annotations

import errno
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_matrix

from lightdxml.persistence import lock
from lightdxml.training.memory import size_for_people

_PREFIX, _LOCK = "lightdxml-", "lock"
_VALUES, _COLUMNS, SHORTLISTS = "values", "columns", "shortlists"
_BLOCK = 1 << 20


class Scratch:
    """A folder of its own for arrays; they are gone with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array of zeros in a file of this name, whose old content is gone; an empty one is in memory.

        The disk has room for all of it: what a full one cannot take would otherwise end the process when it is written.
        """
        if 0 in shape:
            return np.empty(shape, dtype=dtype)
        path, size = self.folder / name, math.prod(shape) * np.dtype(dtype).itemsize
        path.unlink(missing_ok=True)
        try:
            with path.open("xb") as stream:
                _reserve(stream, size)
        except OSError as error:
            reason = f"there is no room for {size_for_people(size)} of {name} in {self.folder.parent}"
            raise OSError(f"{reason} ({error.strerror}): choose another scratch folder") from error
        return np.memmap(path, dtype=dtype, mode="r+", shape=shape)

    def matrix(self, X: csr_matrix) -> csr_matrix:
        """Return a matrix whose columns and values are in files."""
        mapped = csr_matrix(X.shape, dtype=X.dtype)
        # Put in as they are: the constructor might copy them back into memory.
        mapped.data, mapped.indices = self.copy(_VALUES, X.data), self.copy(_COLUMNS, X.indices)
        mapped.indptr = X.indptr
        mapped.has_canonical_format = True
        return mapped

    def copy(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of an array in a file of this name."""
        kept = self.array(name, array.shape, array.dtype)
        kept[...] = array
        return kept


def _reserve(stream: BinaryIO, size: int) -> None:
    """Make a file so long, of zeros that have their place on the disk."""
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
def scratch_in(folder: Path) -> Iterator[Scratch]:
    """Give room in a folder, which is made if it is not there; what was put there is removed afterwards.

    What a process left there that was killed is removed as well.

    >>> with tempfile.TemporaryDirectory() as folder, scratch_in(Path(folder)) as scratch:
    ...     scratch.array("numbers", (2, 2), np.int32).tolist()
    [[0, 0], [0, 0]]
    """
    lock.make_room(folder, "scratch files")
    for left in folder.glob(f"{_PREFIX}*"):
        with suppress(OSError, ValueError):
            _remove_if_left(left)
    # The lock is let go of before the folder is removed: Windows removes no file that is open.
    with (
        tempfile.TemporaryDirectory(prefix=_PREFIX, dir=folder, ignore_cleanup_errors=True) as inner,
        lock.held(Path(inner) / _LOCK) as mine,
    ):
        if not mine:
            raise OSError(f"another training has just tidied {folder} up: start again")
        yield Scratch(Path(inner))


def _remove_if_left(folder: Path) -> None:
    """Remove a scratch folder that no process holds; one that holds anything else is none."""
    inside = {path.name for path in folder.iterdir()}
    if _LOCK in inside and inside <= {_LOCK, _VALUES, _COLUMNS, SHORTLISTS}:
        with lock.held(folder / _LOCK) as mine:
            if mine:
                shutil.rmtree(folder, ignore_errors=True)
