"""Folders that appear or are replaced in one step: a crash leaves the old content or the new one, never a mixture.

A new folder is written next to its target, synced, and exchanged with the old one by one system call where the system
has one. Elsewhere the old folder is renamed first. A process that is killed right then leaves it as `.NAME.HEX.old`,
from where `locate` finds it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from lightdxml.persistence import lock

# What a system or a file system answers if it cannot exchange two folders, or sync one.
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM, errno.EACCES)
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_SECONDS_TO_LOCK = 10


def replace_folder(folder: Path, write: Callable[[Path], None], is_ours: Callable[[Path], bool]) -> None:
    """Write a folder; it appears, or replaces an older one, only when all of it is on the disk.

    Parameters
    ----------
    folder
        Where it goes.
    write
        Writes the content into an empty folder.
    is_ours
        Whether a folder holds content of this kind, so that a leftover of a killed process can be recovered.
    """
    folder = folder.resolve()
    leftover = locate(folder, is_ours)
    if leftover != folder:
        leftover.rename(folder)
    existing = next(parent for parent in folder.parents if parent.exists())
    _remove_unfinished(folder)
    fresh = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    fresh.mkdir(parents=True)
    try:
        with lock.held_folder(fresh):
            write(fresh)
            for path in (*fresh.rglob("*"), fresh):
                sync(path)
            old = _exchange_or_rename(fresh, folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    for parent in folder.parents:
        sync(parent)
        if parent == existing:
            break
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _remove_unfinished(folder: Path) -> None:
    """Remove what processes left that were killed while they wrote this folder."""
    with suppress(OSError):
        for path in _leftovers(folder, "part"):
            # A folder that was made just now may belong to a process that has not locked it yet.
            if time.time() - path.stat().st_mtime > _SECONDS_TO_LOCK:
                with lock.held_folder(path) as mine:
                    if mine:
                        shutil.rmtree(path, ignore_errors=True)


def _leftovers(folder: Path, kind: str) -> list[Path]:
    pattern = re.compile(rf"\.{re.escape(folder.name)}\.[0-9a-f]{{8}}\.{kind}")
    return [path for path in folder.parent.iterdir() if pattern.fullmatch(path.name)]


def _exchange_or_rename(fresh: Path, folder: Path) -> Path | None:
    """Give the new folder its name; return where the old one is now."""
    if not folder.exists():
        fresh.rename(folder)
        return None
    if _exchange(fresh, folder):
        return fresh
    old = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.old")
    folder.rename(old)
    try:
        fresh.rename(folder)
    except BaseException:
        old.rename(folder)
        raise
    return old


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders atomically; return whether this system and file system can."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(other))


def locate(folder: Path, is_ours: Callable[[Path], bool]) -> Path:
    """Return where a folder is: in its place, or where a process left it that was killed while replacing it."""
    try:
        place = folder.resolve()
        if place.exists():
            return folder
        left = [path for path in _leftovers(place, "old") if is_ours(path)]
    except (OSError, RuntimeError):  # the second is a loop of links
        return folder
    return left[0] if len(left) == 1 else folder


def sync(path: Path) -> None:
    """Return when a file, or a folder's list of files, is on the disk."""
    is_folder = path.is_dir()
    if is_folder and os.name == "nt":
        return  # Windows cannot sync folders.
    try:
        # Windows syncs only files that are open for writing.
        descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        # Some file systems cannot sync folders either, and some folders may be written but not opened.
        if not is_folder or error.errno not in _UNSUPPORTED:
            raise
