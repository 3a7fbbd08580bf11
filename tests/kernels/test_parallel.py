"""Work that is distributed over threads."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from lightdxml.kernels import blas, parallel


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 100])
def test_results_come_in_order(threads: int, n: int) -> None:
    with parallel.use_threads(threads):
        assert parallel.run(lambda i: i * i, list(range(n))) == [i * i for i in range(n)]


def test_the_calling_thread_is_one_of_as_many_as_were_asked_for() -> None:
    together = threading.Barrier(3, timeout=10)

    def meet(_: int) -> int:
        together.wait()
        return threading.get_ident()

    with parallel.use_threads(3):
        found = parallel.run(meet, range(3))
    assert len(set(found)) == 3
    assert threading.get_ident() in found


def test_nested_calls_do_not_deadlock() -> None:
    with parallel.use_threads(2):
        inner = parallel.run(lambda i: parallel.run(lambda j: 10 * i + j, range(3)), range(4))
    assert inner == [[10 * i + j for j in range(3)] for i in range(4)]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_first_error_is_raised_after_all_threads_have_stopped(threads: int) -> None:
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
def test_every_cell_of_a_table_is_visited_once(shape: tuple[int, int]) -> None:
    visits = np.zeros(shape, dtype=int)

    def visit(rows: slice, columns: slice) -> None:
        visits[rows, columns] += 1

    parallel.over_cells(visit, shape)
    assert (visits == 1).all()


def test_overlapping_calls_keep_their_own_number_of_threads() -> None:
    together = threading.Barrier(2, timeout=10)
    seen = {}

    def work(threads: int) -> None:
        with parallel.use_threads(threads):
            together.wait()
            # Helper threads see the number as well.
            seen[threads] = {parallel.thread_count(), *parallel.run(lambda _: parallel.thread_count(), range(8))}
            together.wait()

    workers = [threading.Thread(target=work, args=(n,)) for n in (2, 3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert seen == {2: {2}, 3: {3}}


def test_blas_gets_its_threads_back_when_the_last_of_overlapping_blocks_ends() -> None:
    def threads() -> set[int]:
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    with threadpool_limits(limits=2, user_api="blas"):
        first, second = blas.on_one_thread(), blas.on_one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == {2}
