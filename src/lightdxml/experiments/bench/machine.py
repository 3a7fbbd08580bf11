"""Conditions of a measurement: the machine, package versions, and the memory in use."""

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

_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
# Presentation code cannot change a result.
_PRESENTATION = ("cli/", "report/", "experiments/bench/")
_MEASURING = ("experiments/bench/cell.py", "experiments/bench/matrices.py")


def describe() -> dict[str, Any]:
    """Describe this machine.

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
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or "unknown")


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def resident_mb(session: int) -> float:
    """Return the memory in MB that all processes of a session hold now, or 0 if /proc is not available.

    Memory that processes may share (libraries, mapped files) counts once, with the largest value of any process.

    >>> resident_mb(os.getsid(0)) >= 0
    True
    """
    private, shared = 0, 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # The program name is in parentheses and may contain anything.
            fields = (folder / "stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[3]) != session:
                continue
            _, resident, common, *_ = map(int, (folder / "statm").read_text("utf-8").split())
        except (OSError, ValueError, IndexError):
            continue  # the process has ended
        private += resident - common
        shared = max(shared, common)
    return (private + shared) * os.sysconf("SC_PAGE_SIZE") / 1e6 if private + shared else 0.0


def versions(packages: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of this package, Python, the main dependencies and further packages.

    The version of this package includes a hash of its source, so that two states of the code are two versions.

    >>> versions()["lightdxml"].split("+")[0] == lightdxml.__version__
    True
    """
    own = {"lightdxml": f"{lightdxml.__version__}+{_source_hash()}", "python": platform.python_version()}
    return own | {name: _version(name) for name in (*_PACKAGES, *packages)}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


@lru_cache(maxsize=1)
def _source_hash() -> str:
    """Return a hash of the source that can change a result, as it was when this process first asked."""
    root = Path(lightdxml.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name in _MEASURING or not name.startswith(_PRESENTATION):
            digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:8]
