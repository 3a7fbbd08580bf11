"""Where compiled kernels are cached between processes.

Numba stores compiled functions as pickles, so whoever can write a cache can run code in the processes that read it.
Only folders that belong to this user or to root, and that nobody else can write, are used. `SECURITY.md` says more.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from numba.core import caching as _caching
from numba.core import config as _config
from numba.core.runtime import nrt as _nrt
from platformdirs import user_cache_path

from lightdxml import __version__

# Parts of these have no type information.
caching: Any = _caching
nrt: Any = _nrt
config: Any = _config

_SOURCES = Path(__file__).parent
_IN_PACKAGE = _SOURCES / "__pycache__"
_INDEX = "*.nbi"


@lru_cache(maxsize=1)
def cache_folder() -> Path | None:
    """Return where compiled kernels are kept, None if they cannot be kept anywhere.

    A folder that cannot be written is used if it holds compiled kernels already, as in a container image.
    """
    for folder, mode in _candidates():
        try:
            folder.mkdir(mode=mode, parents=True, exist_ok=True)
        except OSError:
            continue
        # Whoever can write the package's own folder can change its source code as well.
        if (folder == _IN_PACKAGE or is_private(folder)) and (os.access(folder, os.W_OK) or any(folder.glob(_INDEX))):
            return folder
    return None


def _candidates() -> Iterator[tuple[Path, int]]:
    """Yield folders with the mode to create them with: other users may read what an administrator prepared."""
    wanted = config.CACHE_DIR
    if wanted:
        yield Path(wanted), 0o755
    yield _IN_PACKAGE, 0o755
    # A user without a home has no such folder; versions of platformdirs differ in how they say so.
    with suppress(RuntimeError):
        user = user_cache_path("lightdxml") / "kernels"
        if user.is_absolute():
            yield user, 0o700
    if hasattr(os, "getuid"):
        yield Path(tempfile.gettempdir()) / f"lightdxml-{os.getuid()}", 0o700


def is_private(folder: Path) -> bool:
    """Return whether a folder belongs to this user or to root, and nobody else can write it."""
    if not hasattr(os, "getuid"):
        return True  # Windows protects the folders of a user.
    found = folder.lstat()
    is_ours = found.st_uid in (os.geteuid(), 0)
    return stat.S_ISDIR(found.st_mode) and is_ours and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@lru_cache(maxsize=1)
def _stamp() -> str:
    """Return the checksum of all kernels and versions: a compiled kernel contains those that it calls.

    It is part of the names of files. Numba writes an index before the code: an index that survives a full disk must not
    name code of another version.
    """
    digest = hashlib.sha256(f"{__version__} {numba.__version__}".encode())
    for path in sorted(_SOURCES.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_compiled(function: Any) -> bool:
    """Return whether the cache holds this version of a kernel, or there is nothing to compile (NUMBA_DISABLE_JIT)."""
    if not hasattr(function, "py_func"):
        return True
    folder, kernel = cache_folder(), function.py_func
    name = f"{kernel.__module__.rpartition('.')[2]}.{kernel.__qualname__}"
    return folder is not None and any(folder.glob(f"{name}-*{_stamp()[:12]}{_INDEX}"))


class _Locator:
    """Tells Numba where one function is cached, and when that is out of date."""

    def __init__(self, function: Any, source: str) -> None:
        self._py_file, self._line = source, function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: Any, source: str) -> _Locator:
        return cls(function, source)

    def ensure_cache_path(self) -> None:
        """Do nothing: the folder exists."""

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return _stamp()

    def get_disambiguator(self) -> str:
        return f"{self._line}-{_stamp()[:12]}"


class _Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_Locator]  # noqa: RUF012


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """The cache of one kernel. What cannot be read is compiled; what cannot be written is compiled again next time."""

    _impl_class = _Implementation

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function; None if it is not in the cache, or damaged there."""
        found = self._load(sig, target_context)
        if found is None:
            _announce()
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        if cache_folder() is None:
            return None
        try:
            # Numba's `load_overload` prepares the compiler first, which takes longer than everything else together.
            # Compiled code needs only the functions that allocate memory.
            nrt.rtsys.initialize(target_context)
            found = self._load_overload(sig, target_context)
            # Numba's cache has no lock: if two processes write at once, code of another signature may be in its place.
            return found if found is None or tuple(found.signature.args) == tuple(sig) else None
        except AttributeError:
            # Another version of Numba.
            return super().load_overload(sig, target_context)
        except Exception:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function for the next process."""
        folder = cache_folder()
        if folder is None:
            _warn("no folder for it can be written")
            return
        if not os.access(folder, os.W_OK):
            return
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn(f"{folder}: {error.strerror}")
        except Exception:
            # A damaged index is written again.
            with suppress(OSError):
                self.flush()


@lru_cache(maxsize=1)
def _announce() -> None:
    folder = cache_folder()
    again = "" if folder is None or not os.access(folder, os.W_OK) else "; next time, compiled code is loaded from disk"
    logging.getLogger("lightdxml").info("compiling for this machine: up to 20 seconds to predict, 40 to train%s", again)


@lru_cache(maxsize=1)
def _warn(reason: str) -> None:
    warnings.warn(
        f"compiled code cannot be cached ({reason}), so every start compiles it again: set NUMBA_CACHE_DIR to a folder"
        " that only you can write",
        RuntimeWarning,
        stacklevel=2,
    )
