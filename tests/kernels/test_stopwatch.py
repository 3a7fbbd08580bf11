"""Times without compilation."""

from __future__ import annotations

import time

import numba

from lightdxml.kernels.stopwatch import stopwatch


def test_seconds_of_compilation_do_not_count() -> None:
    start = time.perf_counter()
    with stopwatch() as seconds:
        numba.njit(lambda x: x**2 + x**3)(1.5)
        counted = seconds()
    assert counted < 0.5 * (time.perf_counter() - start)


def test_seconds_of_work_count() -> None:
    with stopwatch() as seconds:
        time.sleep(0.02)
        assert seconds() >= 0.02
