"""Micro-batching: documents of several requests that wait are answered together."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lightdxml.serve.problems import RETRY_AFTER, Problem

# A batch has this many documents at most. Fewer wait for others this long, if there are others.
BATCH, LINGER = 32, 0.002
# The priority of threads that predict: lower than that of the event loop.
_NICE = 10
# Takes documents, and returns one answer per document.
Work = Callable[[Sequence[Any]], Sequence[Any]]


@dataclass(eq=False)
class _Job:
    """Documents of one request.

    Attributes
    ----------
    key
        Jobs of equal keys do the same work, and may be done together.
    work
        What to do.
    documents
        With what.
    future
        Gets one answer per document.
    deadline
        When the request is given up, by the clock of the event loop.
    """

    key: Hashable
    work: Work
    documents: Sequence[Any]
    future: asyncio.Future[Sequence[Any]]
    deadline: float


class Batcher:
    """A bounded queue of documents, and threads that work on them in batches.

    A lone request is worked on at once. Each thread works on a batch of its own: two threads that share a batch of 32
    documents take as long as one.

    Parameters
    ----------
    threads
        Number of threads.
    capacity
        Documents that may wait. More are refused (429).
    timeout
        Seconds that a request may wait. Later ones are refused (503).
    on_batch
        Called with the number of documents of each batch, before it is worked on.

    Examples
    --------
    >>> async def double():
    ...     batcher = Batcher(threads=1)
    ...     return await batcher.run("double", lambda numbers: [2 * n for n in numbers], [1, 2])
    >>> asyncio.run(double())
    [2, 4]
    """

    def __init__(
        self,
        threads: int,
        capacity: int = 512,
        timeout: float = 30.0,
        on_batch: Callable[[int], None] = lambda size: None,
    ) -> None:
        self.threads, self.capacity, self.timeout, self.on_batch = threads, capacity, timeout, on_batch
        self.waiting = 0
        self._jobs: deque[_Job] = deque()
        self._busy = 0
        self._recent = 1
        self._lingering: asyncio.TimerHandle | None = None
        self._hoping: list[asyncio.Future[None]] = []
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="lightdxml-batch", initializer=_give_way)

    async def run(self, key: Hashable, work: Work, documents: Sequence[Any]) -> Sequence[Any]:
        """Return one answer per document; raise a `Problem` if there are too many documents or they wait too long."""
        if not documents:
            return []
        self.check_room(len(documents))
        loop = asyncio.get_running_loop()
        job = _Job(key, work, documents, loop.create_future(), loop.time() + self.timeout)
        self._jobs.append(job)
        self.waiting += len(documents)
        self._start(loop)
        return await job.future

    def check_room(self, documents: int = 1) -> None:
        """Raise a `Problem` if so many documents cannot wait."""
        if self.waiting + documents > self.capacity:
            raise Problem(429, "too many documents are waiting: try again in a second", RETRY_AFTER)

    async def room(self, documents: int) -> None:
        """Return when so many documents can wait: for requests that are answered bit by bit."""
        while self.waiting and self.waiting + documents > self.capacity:
            hope: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._hoping.append(hope)
            await hope

    def close(self) -> None:
        """Stop the threads. What waits is not worked on."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give batches to the threads that are free."""
        while self._jobs and self._busy < self.threads:
            if self.waiting < BATCH and self._recent > 1:
                # Others have just been answered, and ask again soon: one batch takes less time than two.
                if self._lingering is None:
                    self._lingering = loop.call_later(LINGER, self._linger_ends, loop)
                return
            self._submit(loop)

    def _linger_ends(self, loop: asyncio.AbstractEventLoop) -> None:
        self._lingering = None
        while self._jobs and self._busy < self.threads:
            self._submit(loop)

    def _submit(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give a batch to a thread that is free; the others get their share of what waits."""
        share = -(-self.waiting // (self.threads - self._busy))
        batch = self._take(loop.time(), min(BATCH, share))
        if not batch:
            return
        self._busy += 1
        documents = [document for job in batch for document in job.documents]
        # How many requests are under way shows whether others will come soon.
        self._recent = len(documents) + self._busy - 1
        self.on_batch(len(documents))
        done = loop.run_in_executor(self._pool, batch[0].work, documents)
        done.add_done_callback(lambda future: self._finish(loop, batch, future))

    def _take(self, now: float, most: int) -> list[_Job]:
        """Return jobs of one key that make up a batch; those that wait too long are refused."""
        batch: list[_Job] = []
        left: deque[_Job] = deque()
        size = 0
        for job in self._jobs:
            if job.future.done() or job.deadline < now:
                self.waiting -= len(job.documents)
                if not job.future.done():
                    job.future.set_exception(Problem(503, "the request waited too long: try again later", RETRY_AFTER))
            elif not batch or (job.key == batch[0].key and size + len(job.documents) <= most):
                batch.append(job)
                size += len(job.documents)
                self.waiting -= len(job.documents)
            else:
                left.append(job)
        self._jobs = left
        for hope in self._hoping:
            if not hope.done():
                hope.set_result(None)
        self._hoping.clear()
        return batch

    def _finish(self, loop: asyncio.AbstractEventLoop, batch: list[_Job], done: asyncio.Future[Sequence[Any]]) -> None:
        self._busy -= 1
        if done.cancelled():
            for job in batch:
                job.future.cancel()
            return
        error = done.exception()
        if error is not None and len(batch) > 1:
            # One document of another request may be the reason: each job gets its own answer.
            self._jobs.extendleft(_alone(job) for job in reversed(batch))
            self.waiting += sum(len(job.documents) for job in batch)
        else:
            answers = iter(()) if error is not None else iter(done.result())
            for job in batch:
                if job.future.done():
                    # Nobody waits for it any more.
                    for _ in job.documents:
                        next(answers, None)
                elif error is not None:
                    job.future.set_exception(error)
                else:
                    job.future.set_result([next(answers) for _ in job.documents])
        self._start(loop)


def _give_way() -> None:
    """Let the event loop have a core first: requests are refused in time, although all cores predict."""
    with suppress(AttributeError, OSError):  # Only Linux has priorities of threads.
        if sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


def _alone(job: _Job) -> _Job:
    """Return a job that shares its batch with no other."""
    return _Job((time.perf_counter_ns(), id(job)), job.work, job.documents, job.future, job.deadline)
