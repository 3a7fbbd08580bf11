"""Files by which a process holds a folder for itself; one that dies lets go of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Hold a lock file, which is made if it is not there; gives whether it could be had: False if another holds it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, held(Path(folder) / "lock") as first:
    ...     with held(Path(folder) / "lock") as second:
    ...         first, second
    (True, False)
    """
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no file: remove it, or choose another folder")
    with path.open("a") as stream:
        yield _lock(stream.fileno()) and _is_at(path, stream.fileno())


def _is_at(path: Path, descriptor: int) -> bool:
    """Return whether this is still the file at this place: whoever held it before may have removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
