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
_MEASURING = ("bench/cell.py", "bench/matrices.py")


def describe() -> dict[str, Any]:
    """Return what machine this is.

    >>> sorted(describe())
    ['cores', 'memory_gb', 'processor', 'system']
    """
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
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


def resident_mb(session: int) -> float | None:
    """Return the memory that all processes of a session hold now, in MB; None where the system does not tell.

    What processes may share (libraries, mapped files) counts once: as much as the one with most of it has.

    >>> (resident_mb(os.getsid(0)) or 1.0) > 0
    True
    """
    own, shared = 0, 0
    for folder in _processes():
        try:
            # The name of a program stands in brackets, and may hold anything.
            fields = (folder / "stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[3]) != session:
                continue
            _, resident, common, *_ = map(int, (folder / "statm").read_text("utf-8").split())
        except (OSError, ValueError, IndexError):
            continue  # it has ended
        own += resident - common
        shared = max(shared, common)
    return (own + shared) * os.sysconf("SC_PAGE_SIZE") / 1e6 if own + shared else None


def _processes() -> list[Path]:
    try:
        return [folder for folder in Path("/proc").iterdir() if folder.name.isdecimal()]
    except OSError:
        return []


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
    """Return a mark of what can change a result: the package without its faces (command line, tables, plots).

    It is that of the first call: a process that goes on while files change is what it was when it began.
    """
    root = Path(lightdxml.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name in _MEASURING or not name.startswith(("cli/", "bench/", "report/")):
            digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:8]
