"""Conditions of a measurement: the machine and the versions of packages."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
from functools import lru_cache
from pathlib import Path

import lightdxml

_CPU_INFO = Path("/proc/cpuinfo")
_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
# Presentation code cannot change a result.
_PRESENTATION = ("cli/", "report/", "plotting.py", "experiments/bench/")
_MEASURING = ("experiments/bench/cell.py", "experiments/bench/matrices.py")


def describe() -> str:
    """Describe this machine: processor, cores, memory and system."""
    lines = _CPU_INFO.read_text("utf-8", errors="replace").splitlines() if _CPU_INFO.exists() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    processor = next(models, platform.processor() or "unknown processor")
    return f"{processor}, {os.cpu_count()} cores{_memory()}, {platform.system()} {platform.machine()}"


def _memory() -> str:
    if not hasattr(os, "sysconf"):  # Windows
        return ""
    # The memory that a virtual machine reports varies slightly between boots.
    return f", {round(os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9)} GB"


def versions(package: str = "") -> dict[str, str]:
    """Return the versions of this package, Python, the main dependencies and one more package.

    The version of this package includes a hash of its source, so that two states of the code are two versions.

    >>> versions()["lightdxml"].split("+")[0] == lightdxml.__version__
    True
    """
    own = {"lightdxml": f"{lightdxml.__version__}+{_source_hash()}", "python": platform.python_version()}
    return own | {name: _version(name) for name in (*_PACKAGES, package) if name}


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
