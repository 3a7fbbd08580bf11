"""What tests need of the processor."""

from __future__ import annotations

from typing import Any

import pytest

from lightdxml.kernels import sketches

needs_sketches = pytest.mark.skipif(not sketches.AVAILABLE, reason="this processor cannot look bytes up")


def kept(*kinds: str) -> list[Any]:
    """Return kinds of an index as parameters, of which this processor skips what it has not.

    >>> kept("exact")
    ['exact']
    """
    return [pytest.param(kind, marks=needs_sketches) if kind == "sketch" else kind for kind in kinds]
