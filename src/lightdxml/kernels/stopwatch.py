"""How long work takes, without the time in which its kernels were compiled: that happens once per machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event as _event

# It has no type information.
event: Any = _event


@contextmanager
def stopwatch() -> Iterator[Callable[[], float]]:
    """Yield a function of the seconds since the `with` block began, without those that compiled kernels.

    >>> with stopwatch() as seconds:
    ...     seconds() < 60
    True
    """
    start, compiling = time.perf_counter(), event.TimingListener()
    with event.install_listener("numba:compile", compiling):
        yield lambda: time.perf_counter() - start - (compiling.duration if compiling.done else 0.0)
