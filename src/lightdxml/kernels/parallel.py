"""Distribute kernel calls over threads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import lru_cache
from itertools import pairwise
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


# Of this thread or task: calls that overlap in other threads have their own. Helpers of `run` get a copy.
_chosen: ContextVar[int | None] = ContextVar("threads", default=None)
# Ranges per thread: a thread that is late takes fewer.
_PER_THREAD = 4
# Cells of a single row that are worth a range.
_CELLS = 512


@contextmanager
def use_threads(threads: int | None) -> Iterator[None]:
    """Use this many threads inside the `with` block; None changes nothing.

    >>> with use_threads(3):
    ...     thread_count()
    3
    """
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ValueError(f"threads is {threads!r}: it must be an integer of at least 1")
    before = _chosen.set(_chosen.get() if threads is None else threads)
    try:
        yield
    finally:
        _chosen.reset(before)


def thread_count() -> int:
    """Return the number of threads to use: `LIGHTDXML_THREADS`, or the cores available to this process.

    >>> thread_count() >= 1
    True
    """
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    wanted = os.environ.get("LIGHTDXML_THREADS", "")
    if wanted:
        if not wanted.isdecimal() or int(wanted) < 1:
            raise ValueError(f"LIGHTDXML_THREADS is {wanted!r}: it must be an integer of at least 1")
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ranges(n: int, parts: int) -> list[tuple[int, int]]:
    """Split range(n) into at most `parts` ranges of nearly equal length, none of them empty.

    >>> ranges(10, 3)
    [(0, 3), (3, 6), (6, 10)]
    """
    bounds = [n * i // parts for i in range(parts + 1)]
    return [(a, b) for a, b in pairwise(bounds) if a < b]


def run(function: Callable[[T], R], items: Sequence[T], after: Callable[[int], object] | None = None) -> list[R]:
    """Call a function on every item, on several threads, and return the results in order.

    The calling thread is one of them. If calls fail, all threads stop, and the error of the first item is raised.
    After each of its own items, the calling thread calls `after` with the number of items that are done.

    >>> run(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    threads = min(thread_count(), len(items))
    work = _Work(function, items)
    if threads <= 1:
        work.do(after)
        return work.finish()
    pool = _pool(os.getpid(), threads - 1)
    helpers: list[Future[None]] = []
    # A system that allows no more threads: those that there are do all the work.
    with suppress(RuntimeError):
        helpers.extend(pool.submit(copy_context().run, work.do) for _ in range(threads - 1))
    work.do(after)
    for helper in helpers:
        # A helper that has not started has nothing left to do. Waiting for it could deadlock in a nested call.
        if not helper.cancel():
            helper.result()
    return work.finish()


class _Work(Generic[T, R]):
    """Items that threads take from a queue, and their results."""

    def __init__(self, function: Callable[[T], R], items: Sequence[T]) -> None:
        self.function = function
        self.left = deque(enumerate(items))
        self.results: dict[int, R] = {}
        self.errors: dict[int, BaseException] = {}

    def do(self, after: Callable[[int], object] | None = None) -> None:
        """Take items until none is left or a call has failed."""
        while not self.errors:
            try:
                number, item = self.left.popleft()
            except IndexError:
                return
            self._call(number, item)
            if after is not None and not self.errors:
                try:
                    after(len(self.results))
                except BaseException as error:
                    self.errors[number] = error

    def _call(self, number: int, item: T) -> None:
        try:
            self.results[number] = self.function(item)
        except BaseException as error:
            self.errors[number] = error

    def finish(self) -> list[R]:
        """Return the results in order, or raise the first error, and drop all references.

        The pool keeps a canceled helper, and with it this object, until it reaches it in its queue.
        """
        results, errors = self.results, self.errors
        del self.function, self.left, self.results, self.errors
        if errors:
            raise errors[min(errors)]
        return [results[number] for number in range(len(results))]


@lru_cache(maxsize=4)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Return threads that are kept: a batch takes a few milliseconds, and a new thread 0.1 ms.

    Threads do not survive a fork: each process has its own.
    """
    return ThreadPoolExecutor(threads, thread_name_prefix="lightdxml")


def over(function: Callable[[int, int], R], n: int, least: int = 1) -> list[R]:
    """Call a function on ranges that make up range(n), several per thread, and return the results in order.

    Only for items that are independent of each other: the ranges depend on the number of threads. `least` is how many
    items are worth a range: waking a thread takes 0.1 ms.

    >>> over(lambda start, stop: stop - start, 0), over(lambda start, stop: stop - start, 5, least=10)
    ([], [5])
    """
    parts = max(1, min(_PER_THREAD * thread_count(), n // least))
    return run(lambda bounds: function(*bounds), ranges(n, parts))


def parts_per_item(n_items: int) -> int:
    """Return in how many parts to split each item of work so that all threads are busy: 1 if there are enough items.

    >>> with use_threads(2):
    ...     parts_per_item(1), parts_per_item(100)
    (8, 1)
    """
    threads = thread_count()
    return 1 if n_items >= threads else _PER_THREAD * threads // max(1, n_items)


def over_cells(function: Callable[[slice, slice], object], shape: tuple[int, ...]) -> None:
    """Call a function on parts that make up a table: on ranges of rows, or of columns if there is one row.

    Only for cells that are independent of each other.

    >>> over_cells(lambda rows, columns: print(rows, columns), (0, 5))
    """
    rows, columns = shape
    if rows == 1:
        over(lambda start, stop: function(slice(0, 1), slice(start, stop)), columns, least=_CELLS)
    else:
        over(lambda start, stop: function(slice(start, stop), slice(0, columns)), rows)


def fixed_chunks(n: int, size: int) -> list[tuple[int, int]]:
    """Split range(n) into ranges of a fixed size, which do not depend on the number of threads.

    >>> fixed_chunks(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(start, min(start + size, n)) for start in range(0, n, size)]
