"""Lock files, by which a process holds a folder for itself; a process that dies releases it."""

from __future__ import annotations

import errno
import logging
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

# Seconds between two attempts to get a lock, and until waiting for it is worth a line.
_POLL, _PATIENCE = 0.05, 2.0
_logger = logging.getLogger("lightdxml")


def make_writable(folder: Path, what: str) -> None:
    """Create a folder if it does not exist, and check that files can be written into it.

    >>> make_writable(Path(__file__), "checkpoints")
    Traceback (most recent call last):
    OSError: ...lock.py cannot hold checkpoints (File exists): choose another folder
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = f"{folder} cannot hold {what} ({error.strerror})"
        raise OSError(f"{reason}: choose another folder") from error


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Hold a lock file, which is created if it does not exist; yield False if another process holds it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, held(Path(folder) / "lock") as first:
    ...     with held(Path(folder) / "lock") as second:
    ...         first, second
    (True, False)
    """
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a file: remove it, or choose another folder")
    with path.open("a") as stream:
        yield _lock(stream.fileno()) and _is_at(path, stream.fileno())


@contextmanager
def held_folder(folder: Path) -> Iterator[bool]:
    """Hold a folder itself; yield False if another process holds it, or the system cannot lock folders.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, held_folder(Path(folder)) as mine:
    ...     mine or os.name == "nt"
    True
    """
    if os.name == "nt":
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            mine = _lock(descriptor)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EBADF):
                raise
            mine = False
        yield mine
    finally:
        os.close(descriptor)


@contextmanager
def writing(*folders: Path, wait: float = math.inf) -> Iterator[None]:
    """Wait until no other process changes these folders, and keep others waiting meanwhile.

    Parameters
    ----------
    folders
        The folders that are read, and at last the one that is written.
    wait
        How many seconds to wait; then a `TimeoutError` is raised.
    """
    if len(set(folders)) > 1:
        # The lock of a new folder lies next to it. Whoever may not make what is above it is told so later.
        with suppress(OSError):
            folders[-1].resolve().parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        # In the same order everywhere, so that no two processes wait for each other. What is not there has no writer.
        # Whoever cannot write next to a folder cannot replace it.
        for folder in sorted({one.resolve() for one in folders if os.access(one.resolve().parent, os.W_OK)}):
            stack.enter_context(_locked(folder, wait))
        yield


@contextmanager
def _locked(folder: Path, wait: float) -> Iterator[None]:
    path, start, is_said = folder.with_name(f".{folder.name}.lock"), time.monotonic(), False
    while True:
        with held(path) as mine:
            if mine:
                try:
                    yield
                finally:
                    # Whoever waits for it sees that it is gone, and makes a new one.
                    with suppress(OSError):
                        path.unlink()
                return
        if time.monotonic() - start > wait:
            raise TimeoutError(f"{folder} is being changed by another process: try again later")
        if not is_said and time.monotonic() - start > _PATIENCE:
            _logger.info("%s is being changed by another process: waiting for it", folder.name)
            is_said = True
        time.sleep(_POLL)


def _is_at(path: Path, descriptor: int) -> bool:
    """Return whether this is still the file at this path: the process that held it before may have removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # the second is what Windows raises
        return False
    return True
