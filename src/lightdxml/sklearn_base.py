"""What an estimator inherits: scikit-learn's base class or, where scikit-learn is not installed, what we use of it."""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any


class _Parameters:
    """The parameters of a constructor, which are attributes of the same names."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Any:
        """Change some parameters and return the estimator."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}: choose from {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Return a call with the parameters that differ from their defaults."""
        defaults = inspect.signature(type(self)).parameters
        changed = [
            f"{name}={value!r}" for name, value in self.get_params().items() if value is not defaults[name].default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


class _NotFittedError(ValueError, AttributeError):
    """Raised when an estimator is used before it is trained."""


if TYPE_CHECKING or find_spec("sklearn") is None:
    BaseEstimator = _Parameters
    NotFittedError = _NotFittedError
    ClassifierTags: Any = None
else:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import ClassifierTags

__all__ = ["BaseEstimator", "ClassifierTags", "NotFittedError"]
