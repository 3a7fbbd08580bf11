"""Extreme multi-label classification on the machine that you have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightdxml.data.vocabulary import Vocabulary
    from lightdxml.estimator import LightDXML, load
    from lightdxml.learning.folder import ModelFolder
    from lightdxml.predictor import Predictor

__version__ = "0.2.0"
__all__ = ["LightDXML", "ModelFolder", "Predictor", "Vocabulary", "__version__", "load"]


def __getattr__(name: str) -> Any:
    """Import the estimator when it is first asked for: reading data and measuring need none of what it imports."""
    if name in ("LightDXML", "load"):
        from lightdxml import estimator

        return getattr(estimator, name)
    if name == "Predictor":
        from lightdxml.predictor import Predictor

        return Predictor
    if name == "ModelFolder":
        from lightdxml.learning.folder import ModelFolder

        return ModelFolder
    if name == "Vocabulary":
        from lightdxml.data.vocabulary import Vocabulary

        return Vocabulary
    raise AttributeError(f"module 'lightdxml' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name what there is to use, also before it is imported."""
    return [*__all__, "data", "metrics"]
