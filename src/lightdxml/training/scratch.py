"""Arrays that live in files, where memory is short: the system keeps of them what it has room for."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_matrix


class Scratch:
    """A folder of its own for arrays; they are gone with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array of zeros in a file of this name, whose old content is gone; an empty one is in memory."""
        if 0 in shape:
            return np.empty(shape, dtype=dtype)
        return np.memmap(self.folder / name, dtype=dtype, mode="w+", shape=shape)

    def matrix(self, X: csr_matrix) -> csr_matrix:
        """Return a matrix whose columns and values are in files."""
        parts = []
        for name, part in (("values", X.data), ("columns", X.indices)):
            kept = self.array(name, part.shape, part.dtype)
            kept[...] = part
            parts.append(kept)
        mapped = csr_matrix(X.shape, dtype=X.dtype)
        # Put in as they are: the constructor might copy them back into memory.
        mapped.data, mapped.indices, mapped.indptr = *parts, X.indptr
        mapped.has_canonical_format = True
        return mapped


@contextmanager
def scratch_in(folder: Path) -> Iterator[Scratch]:
    """Give room in a folder, which is made if it is not there; what was put there is removed afterwards.

    >>> with tempfile.TemporaryDirectory() as folder, scratch_in(Path(folder)) as scratch:
    ...     scratch.array("numbers", (2, 2), np.int32).tolist()
    [[0, 0], [0, 0]]
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lightdxml-", dir=folder) as inner:
        yield Scratch(Path(inner))
