"""The connection to Ray: a cluster that runs, or this machine alone."""

from __future__ import annotations

import os
import re
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

LOCAL = "local"
# How often a task may lose its process: one that always does, for example by its memory, must not run forever.
RETRIES = 10
# Read when Ray is imported. Without the second one, tasks that Ray ends because the memory is full are tried forever.
_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_task_oom_retries": str(RETRIES)}
_HOST_AND_PORT = re.compile(r"(?:ray://)?\[?(?P<host>[^/\[\]]+?)\]?:(?P<port>[0-9]{1,5})")
_SECONDS = 10.0
# How Ray says that `auto` finds nothing.
_NO_CLUSTER = "Could not find any running Ray instance"


def require_ray() -> None:
    """Raise a `ValueError` that says how to install Ray, if it is missing."""
    if find_spec("ray") is None:
        raise ValueError('running on Ray needs ray: pip install "lightdxml[ray]"')


@contextmanager
def connect(address: str) -> Iterator[None]:
    """Connect to Ray inside the `with` block.

    If this process has a connection already, that is used, and it stays.

    Parameters
    ----------
    address
        `local` starts Ray on this machine, with all of its processors, and stops it at the end. `auto` is the cluster
        that this machine belongs to; all others are `HOST:PORT`.
    """
    require_ray()
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import ray
    from ray.exceptions import RayError, RayTaskError

    if ray.is_initialized():
        yield
        return
    _check_address(address)
    with sigterm_handler_restored(), _folder(address) as folder:
        try:
            ray.init(address, include_dashboard=False, log_to_driver=False, logging_level="ERROR", _temp_dir=folder)
        except (OSError, ValueError, RuntimeError, RayError) as error:
            if _NO_CLUSTER in str(error):
                raise ConnectionError(f"no Ray cluster runs on this machine: {_ADVICE}") from error
            reason = f"{first_line(error)}; if it asks for a token, set RAY_AUTH_MODE=token and provide the token"
            raise ConnectionError(f"no Ray cluster answers at {address} ({reason}): {_ADVICE}") from error
        try:
            yield
        except RayTaskError:
            # An error of a function, whose trace says where it is.
            raise
        except RayError as error:
            raise ConnectionError(f"Ray could not go on: {first_line(error)}") from error
        finally:
            ray.shutdown()


@contextmanager
def _folder(address: str) -> Iterator[str | None]:
    """Provide a folder for the logs, sockets and spilled objects of a Ray that ends with us; None for other clusters.

    Only this user can read it. Ray's own folder stays, and everybody can.
    """
    if address != LOCAL or os.name != "posix":
        yield None
        return
    # Not TMPDIR, as Ray does: the paths of its sockets must be short.
    parent = os.environ.get("RAY_TMPDIR", "/tmp")
    with tempfile.TemporaryDirectory(prefix="ray-", dir=parent, ignore_cleanup_errors=True) as folder:
        # Ray opens its own folder to all users, but not the one above.
        yield f"{folder}/ray"


@contextmanager
def sigterm_handler_restored() -> Iterator[None]:
    """Restore the handler of SIGTERM after the `with` block: `ray.init` sets its own, and `ray.shutdown` keeps it."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        # Only the main thread may set handlers, and Ray sets none in others. Handlers of C code cannot be set again.
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGTERM, handler)


def first_line(error: Exception) -> str:
    """Return what has happened, without the trace of a remote call."""
    reason = getattr(error, "cause", None) or error
    return next((line.strip(" .") for line in str(reason).splitlines() if line.strip()), type(reason).__name__)


_ADVICE = "start one with `ray start --head`, or give `local` for this machine"


def _check_address(address: str) -> None:
    """Raise an error if nothing listens there: Ray would try for minutes, and then end the process."""
    if address in (LOCAL, "auto"):
        return
    found = _HOST_AND_PORT.fullmatch(address)
    if found is None:
        raise ValueError(f"{address!r} is not the address of a Ray cluster: give `local`, `auto` or HOST:PORT")
    try:
        with socket.create_connection((found["host"], int(found["port"])), timeout=_SECONDS):
            pass
    except (OSError, OverflowError) as error:
        raise ConnectionError(f"no Ray cluster answers at {address} ({error}): {_ADVICE}") from error
