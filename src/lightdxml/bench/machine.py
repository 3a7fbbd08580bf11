"""What was measured on what: the machine, and the versions of all that took part."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import lightdxml

_ALWAYS = ("numpy", "scipy", "numba", "faiss-cpu", "scikit-learn")


def describe() -> dict[str, Any]:
    """Return what machine this is.

    >>> sorted(describe())
    ['cores', 'memory_gb', 'processor', 'system']
    """
    from lightdxml.kernels.parallel import thread_count

    return {
        "processor": _processor(),
        "cores": thread_count(),
        "memory_gb": round(_memory() / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or "unknown")


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def versions(packages: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of this package, of what it is built on, and of further distributions.

    This package's has a mark of its source: two states of it are two versions.

    >>> versions()["lightdxml"].split("+")[0] == lightdxml.__version__
    True
    """
    found = {"lightdxml": f"{lightdxml.__version__}+{_source_mark()}", "python": platform.python_version()}
    return found | {name: _version(name) for name in (*_ALWAYS, *packages)}


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "none"


@lru_cache(maxsize=1)
def _source_mark() -> str:
    """Return a mark of what can change a result: the package without its faces (command line, tables, plots)."""
    root = Path(lightdxml.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not name.startswith(("cli/", "bench/", "report/")):
            digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:8]
