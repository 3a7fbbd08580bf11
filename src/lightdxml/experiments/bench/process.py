"""Run a cell in its own process: timeout, peak memory, and cleanup of everything that it starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from lightdxml.experiments.bench.cell import Job
from lightdxml.experiments.bench.results import Cell, write_json

_POLL_SECONDS = 0.2
TMP_PREFIX = "tmp-"


def run(job: Job, timeout: float) -> Cell:
    """Run a job and return its result, or how it failed.

    Its output and the job itself go to `logs`, its temporary files to a new folder, which is removed.
    """
    note, log = job.file("logs", "job"), job.file("logs", "log")
    write_json(note, asdict(job))
    with (
        log.open("wb") as stream,
        tempfile.TemporaryDirectory(prefix=TMP_PREFIX, dir=job.out, ignore_cleanup_errors=True) as folder,
    ):
        child = subprocess.Popen(
            [sys.executable, "-m", "lightdxml.experiments.bench.cell", str(note), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(Path(folder).resolve())},
        )
        try:
            peak = _wait(child, timeout)
        except TimeoutError:
            return {"status": "timeout", "message": f"stopped after {timeout:g} s", "limit": timeout}
        finally:
            _end(child)
    if child.returncode or not job.result.exists():
        return {"status": "failed", "message": _reason(child.returncode, log)}
    outcome: Cell = json.loads(job.result.read_text("utf-8"))
    if outcome.get("peak_mb") is not None:
        # The cell reports its own peak exactly but does not see its child processes.
        outcome["peak_mb"] = max(peak, outcome["peak_mb"])
    return outcome


def _wait(child: subprocess.Popen[bytes], timeout: float) -> float:
    """Wait for the end of a process and return the peak memory of its session in MB."""
    end, peak = time.monotonic() + timeout, 0.0
    while time.monotonic() < end:
        with suppress(subprocess.TimeoutExpired):
            child.wait(_POLL_SECONDS)
            return peak
        peak = max(peak, _resident_mb(child.pid))
    raise TimeoutError


def _resident_mb(session: int) -> float:
    """Return the memory in MB that all processes of a session hold now, or 0 if /proc is not available.

    Memory that processes may share (libraries, mapped files) counts once, with the largest value of any process.
    """
    private, shared = 0, 0
    for folder in Path("/proc").glob("[0-9]*"):
        # A process that ends meanwhile is left out.
        with suppress(OSError, ValueError, IndexError):
            # The program name is in parentheses and may contain anything.
            fields = (folder / "stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[3]) == session:
                _, resident, common, *_ = map(int, (folder / "statm").read_text("utf-8").split())
                private, shared = private + resident - common, max(shared, common)
    return (private + shared) * os.sysconf("SC_PAGE_SIZE") / 1e6 if private + shared else 0.0


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a process and everything that it started."""
    # The group may be gone already; macOS then reports a permission error.
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:  # Windows has no process groups.
            child.kill()
    child.wait()


def _reason(code: int, log: Path) -> str:
    if code < 0:
        hint = " (out of memory?)" if -code == signal.SIGKILL else ""
        return f"ended by {signal.Signals(-code).name}{hint} (output: {log.name})"
    lines = [line.strip() for line in log.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    return f"{lines[-1][:300] if lines else 'no result'} (output: {log.name})"
