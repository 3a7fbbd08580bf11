"""Work that is shared out among threads."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from lightdxml.kernels import parallel


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 100])
def test_results_come_in_order(threads: int, n: int) -> None:
    with parallel.use_threads(threads):
        assert parallel.run(lambda i: i * i, list(range(n))) == [i * i for i in range(n)]


def test_as_many_threads_work_at_once_as_asked_for_and_the_calling_one_is_among_them() -> None:
    together = threading.Barrier(3, timeout=10)

    def meet(_: int) -> int:
        together.wait()
        return threading.get_ident()

    with parallel.use_threads(3):
        found = parallel.run(meet, range(3))
    assert len(set(found)) == 3
    assert threading.get_ident() in found


def test_work_within_work_comes_to_an_end() -> None:
    """Threads that wait for threads that wait for them: it once did not."""
    with parallel.use_threads(2):
        inner = parallel.run(lambda i: parallel.run(lambda j: 10 * i + j, range(3)), range(4))
    assert inner == [[10 * i + j for j in range(3)] for i in range(4)]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_an_error_is_raised_when_all_threads_are_done(threads: int) -> None:
    running = []

    def fail(i: int) -> None:
        running.append(i)
        time.sleep(0.001 * i)
        running.remove(i)
        raise ValueError(str(i))

    with parallel.use_threads(threads), pytest.raises(ValueError, match="0"):
        parallel.run(fail, range(8))
    assert not running
    assert parallel.run(abs, [-1, -2]) == [1, 2]


@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (1, 100), (5, 3)])
def test_each_cell_of_a_table_is_seen_once(shape: tuple[int, int]) -> None:
    seen = np.zeros(shape, dtype=int)

    def see(rows: slice, columns: slice) -> None:
        seen[rows, columns] += 1

    parallel.over_cells(see, shape)
    assert (seen == 1).all()
