"""What the benchmarks share: processes of their own, seconds and peak memory."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

from lightdxml.progress import peak_memory

T = TypeVar("T")


def alone(function: Callable[..., T], *arguments: object) -> T:
    """Return what a function returns in a new process: memory and threads of others do not disturb it."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def timed(function: Callable[..., T], *arguments: object) -> tuple[T, float]:
    """Return what a function returns, and the seconds it took."""
    start = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - start


def timed_with_peak(function: Callable[..., T], *arguments: object) -> tuple[T, float, float]:
    """Return what a function returns, its seconds, and by how many MB memory grew at its peak (Linux only)."""
    # The kernel then counts the peak from what the process holds now.
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_memory()["peak_mb"]
    result, seconds = timed(function, *arguments)
    return result, seconds, peak_memory()["peak_mb"] - before
