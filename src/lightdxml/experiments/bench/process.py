"""Run a cell in its own process: timeout, peak memory, and cleanup of everything that it starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lightdxml.experiments.bench import machine
from lightdxml.experiments.bench.cell import Job
from lightdxml.experiments.bench.results import write_json

_POLL_SECONDS = 0.2
_GRACE_SECONDS = 5.0
TMP_PREFIX = "tmp-"


def run(
    job: Job, log: Path, timeout: float, tmp: Path, on_poll: Callable[[float], None] = lambda seconds: None
) -> dict[str, Any]:
    """Run a job and return its result, or how it failed.

    Its output goes to `log`, and the job is written next to it. Its temporary files go to a new folder in `tmp`, which
    is removed. `on_poll` is called regularly with the seconds so far.
    """
    note = log.with_suffix(".job")
    write_json(note, asdict(job))
    with (
        log.open("wb") as stream,
        tempfile.TemporaryDirectory(prefix=TMP_PREFIX, dir=tmp, ignore_cleanup_errors=True) as folder,
        _signals_raise(),
    ):
        child = subprocess.Popen(
            [sys.executable, "-m", "lightdxml.experiments.bench.cell", str(note)],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            env={**os.environ, "TMPDIR": folder},
        )
        try:
            peak = _wait(child, timeout, on_poll)
        except TimeoutError:
            return {"status": "timeout", "message": f"stopped after {timeout:g} s", "limit": timeout}
        finally:
            _end(child)
    if child.returncode or not Path(job.result).exists():
        return {"status": "failed", "message": _reason(child.returncode, log)}
    outcome: dict[str, Any] = json.loads(Path(job.result).read_text("utf-8"))
    if outcome.get("peak_mb") is not None:
        # The cell reports its own peak exactly but does not see its child processes.
        outcome["peak_mb"] = max(peak, outcome["peak_mb"])
    return outcome


def _wait(child: subprocess.Popen[bytes], timeout: float, on_poll: Callable[[float], None]) -> float:
    """Wait for the end of a process and return the peak memory of its session in MB."""
    start = sampled = time.monotonic()
    peak = 0.0
    while child.poll() is None:
        now = time.monotonic()
        if now - start > timeout:
            raise TimeoutError
        if now - sampled >= _POLL_SECONDS:
            peak, sampled = max(peak, machine.resident_mb(child.pid)), now
        on_poll(now - start)
        # Short sleeps at first, so that short cells are not slowed down.
        time.sleep(min(_POLL_SECONDS, max(0.01, (now - start) / 10)))
    return peak


@contextmanager
def _signals_raise() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit, so that the child process is stopped too."""

    def stop(signum: int, frame: object) -> None:
        raise SystemExit(128 + signum)

    in_main_thread = threading.current_thread() is threading.main_thread()
    # An ignored signal, as under nohup, stays ignored.
    changed = [s for s in (signal.SIGTERM, signal.SIGHUP) if in_main_thread and signal.getsignal(s) == signal.SIG_DFL]
    for signum in changed:
        signal.signal(signum, stop)
    try:
        yield
    finally:
        for signum in changed:
            signal.signal(signum, signal.SIG_DFL)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a process and everything that it started."""
    if child.poll() is None:
        _signal(child, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE_SECONDS)
    _signal(child, signal.SIGKILL)
    child.wait()


def _signal(child: subprocess.Popen[bytes], number: int) -> None:
    # The group may be gone already; macOS then reports a permission error.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def _reason(code: int, log: Path) -> str:
    if code < 0:
        hint = " (out of memory?)" if -code == signal.SIGKILL else ""
        return f"ended by {signal.Signals(-code).name}{hint} (output: {log.name})"
    lines = [line.strip() for line in log.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    return f"{lines[-1][:300] if lines else 'no result'} (output: {log.name})"
