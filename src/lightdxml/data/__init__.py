"""Reading, writing and getting data: `load` is the way in."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightdxml.data.catalog import load
    from lightdxml.data.dataset import Dataset, Split, Texts
    from lightdxml.data.errors import DataError
    from lightdxml.data.write import save

__all__ = ["DataError", "Dataset", "Split", "Texts", "load", "save"]

_MODULES = {
    "DataError": "errors",
    "Dataset": "dataset",
    "Split": "dataset",
    "Texts": "dataset",
    "load": "catalog",
    "save": "write",
}


def __dir__() -> list[str]:
    """Name what there is to use, also before it is imported."""
    return __all__


def __getattr__(name: str) -> Any:
    """Import a reader or writer when it is first asked for: prediction needs few of them, and not SciPy."""
    if name not in _MODULES:
        raise AttributeError(f"module 'lightdxml.data' has no attribute {name!r}")
    return getattr(import_module(f"lightdxml.data.{_MODULES[name]}"), name)
