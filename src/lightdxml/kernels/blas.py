"""BLAS on one thread, so that its results do not depend on the number of cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from threadpoolctl import threadpool_limits

_lock = Lock()
_users = 0
_limits: threadpool_limits | None = None


@contextmanager
def on_one_thread() -> Iterator[None]:
    """Limit BLAS to one thread inside the `with` block.

    The limit holds for the whole process. It ends when the last of several blocks that overlap ends.
    """
    global _users, _limits
    with _lock:
        if _limits is None:
            _limits = threadpool_limits(limits=1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0 and _limits is not None:
                _limits.restore_original_limits()
                _limits = None
