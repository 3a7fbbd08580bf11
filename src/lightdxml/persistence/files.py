"""The files of a folder as they were at one moment, although the folder may be replaced while it is read."""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Content: TypeAlias = NDArray[np.uint8]

_ATTEMPTS, _ATTEMPTS_IF_MISSING = 1000, 3
_HAS_DIR_FD = os.open in os.supports_dir_fd
# A pipe without a writer must not block.
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_BLOCK = 1 << 22


def map_files(find: Callable[[], Path], names: Iterable[str]) -> dict[str, Content]:
    """Return the memory-mapped bytes of those of these files that a folder has; all of them belong together.

    If the folder is no longer in its place when its files are open, the one that replaced it is read. A mapping stays
    valid when its file is removed.

    Parameters
    ----------
    find
        Returns where the folder is now.
    names
        Names of files.
    """
    for attempt in range(_ATTEMPTS):
        try:
            content = _map_unless_replaced(find, names)
        except FileNotFoundError:
            # Where a system cannot exchange two folders, a folder is missing for a moment while it is replaced.
            if attempt >= _ATTEMPTS_IF_MISSING:
                raise
            continue
        if content is not None:
            return content
    raise OSError(errno.EBUSY, "it is being replaced all the time", str(find()))


def _map_unless_replaced(find: Callable[[], Path], names: Iterable[str]) -> dict[str, Content] | None:
    folder = find()
    # While it is open, no other folder can get its inode.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY) if _HAS_DIR_FD else None
    try:
        before = folder.stat() if descriptor is None else os.fstat(descriptor)
        content = {}
        for name in names:
            with suppress(FileNotFoundError):
                content[name] = map_file(folder / name if descriptor is None else Path(name), descriptor)
        now = find()
        after = now.stat()
        if descriptor is None and (now != folder or before.st_mtime_ns != after.st_mtime_ns):
            # Without a descriptor, files of the folder that took its place may have been read, or its inode reused.
            return None
        return content if os.path.samestat(before, after) else None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def map_file(path: Path, folder: int | None = None) -> Content:
    """Return the bytes of a regular file, read when they are used: a pipe or a device might never end.

    Parameters
    ----------
    path
        Its path.
    folder
        The descriptor of the folder to which a relative path belongs.
    """
    descriptor = os.open(path, os.O_RDONLY | _NONBLOCK | getattr(os, "O_BINARY", 0), dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{path.name} is not a file")
        if status.st_size == 0:
            return np.empty(0, dtype=np.uint8)
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            return np.memmap(stream, np.uint8, mode="r")
    finally:
        os.close(descriptor)


def release(array: NDArray[Any]) -> None:
    """Give back the memory of an array that is a mapped file; it is read again, from the system's cache, when used.

    Checks read all of a model, predictions little of it.
    """
    mapped = getattr(array, "_mmap", None)
    if mapped is None or not hasattr(mapped, "madvise") or not array.flags.c_contiguous:
        return
    offset = array.ctypes.data - np.frombuffer(mapped, dtype=np.uint8).ctypes.data
    start, stop = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE, offset + array.nbytes
    if start < stop:
        # Locked memory cannot be given back.
        with suppress(OSError):
            mapped.madvise(mmap.MADV_DONTNEED, start, stop - start)


def sha256(content: Content) -> str:
    """Return the checksum of bytes.

    >>> sha256(np.frombuffer(b"abc", dtype=np.uint8))[:8]
    'ba7816bf'
    """
    digest = hashlib.sha256()
    for start in range(0, len(content), _BLOCK):
        block = content[start : start + _BLOCK]
        digest.update(block.data)
        release(block)
    return digest.hexdigest()
