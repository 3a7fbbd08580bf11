"""The processor and the libraries on which the last bits of a result depend."""

from __future__ import annotations

import importlib.metadata
import platform

from threadpoolctl import threadpool_info

from lightdxml.kernels.intrinsics import cpu_features

_LIBRARIES = ("numpy", "scipy", "numba", "llvmlite")


def machine() -> dict[str, str]:
    """Return instruction sets, BLAS, and the versions of libraries that compute.

    >>> sorted(machine())
    ['blas', 'instruction sets', 'llvmlite', 'numba', 'numpy', 'processor', 'scipy']
    """
    features = sorted(feature.removeprefix("+") for feature in cpu_features() if feature.startswith("+"))
    # NumPy's own: other packages bring theirs, if they happen to be imported.
    blas = {
        f"{one.get('internal_api')} {one.get('version')} {one.get('architecture', '')}".strip()
        for one in threadpool_info()
        if one.get("user_api") == "blas" and "numpy" in str(one.get("filepath"))
    }
    return {
        "processor": platform.machine(),
        **{name: importlib.metadata.version(name) for name in _LIBRARIES},
        "blas": ", ".join(sorted(blas)),
        "instruction sets": " ".join(features),
    }
