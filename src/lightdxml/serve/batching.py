"""Micro-batching: documents of several requests are predicted together."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lightdxml.serve.problems import RETRY_AFTER, Problem

# The most documents in a batch, and how many seconds a smaller batch waits for more under load.
BATCH, LINGER = 32, 0.002
# The niceness of prediction threads: the event loop goes first.
_NICE = 5
# Takes documents and returns one result per document.
Work = Callable[[Sequence[Any]], Sequence[Any]]


@dataclass(eq=False)
class _Job:
    """Documents of one request.

    Attributes
    ----------
    key
        Jobs with equal keys can share a batch.
    work
        The function that computes the results.
    documents
        Its input.
    future
        Receives one result per document.
    deadline
        When the request times out, by the clock of the event loop.
    """

    key: Hashable
    work: Work
    documents: Sequence[Any]
    future: asyncio.Future[Sequence[Any]]
    deadline: float


class Batcher:
    """A bounded queue of documents, and threads that process them in batches.

    A lone request starts at once. Each thread processes its own batch, because two threads that share a batch of 32
    documents take as long as one.

    Parameters
    ----------
    threads
        Number of threads.
    capacity
        The most documents in the queue. Further requests get 429. A request that is larger than the queue is accepted
        when the queue is empty.
    timeout
        Seconds after which a request that still waits gets 503.
    on_batch
        Called with the size of each batch before it starts.
    nice
        The niceness of the threads.
    what
        What the queue holds, for its message if it is full.

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
        *,
        nice: int = _NICE,
        what: str = "documents",
    ) -> None:
        self.threads, self.capacity, self.timeout, self.on_batch = threads, capacity, timeout, on_batch
        self.waiting = 0
        self._jobs: deque[_Job] = deque()
        self._busy = 0
        self._recent = 1
        self._lingering: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._streams: list[asyncio.Future[None]] = []
        self._what = what
        self._pool = ThreadPoolExecutor(
            threads, thread_name_prefix=f"lightdxml-{what}", initializer=_give_way, initargs=(nice,)
        )

    async def run(self, key: Hashable, work: Work, documents: Sequence[Any]) -> Sequence[Any]:
        """Return one result per document; raise a `Problem` if the queue is full or the request times out."""
        if not documents:
            return []
        self.check_room(len(documents))
        loop = asyncio.get_running_loop()
        job = _Job(key, work, documents, loop.create_future(), loop.time() + self.timeout)
        self._jobs.append(job)
        self.waiting += len(documents)
        self._watch_deadlines(loop)
        self._start(loop)
        return await job.future

    def _watch_deadlines(self, loop: asyncio.AbstractEventLoop) -> None:
        """Reject the oldest jobs when they time out, even if no thread becomes idle."""
        if self._deadline is None and self._jobs:
            self._deadline = loop.call_at(self._jobs[0].deadline, self._expire, loop)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        self._deadline = None
        while self._jobs and self._jobs[0].deadline <= loop.time():
            self._reject(self._jobs.popleft())
        self._wake_streams()
        self._watch_deadlines(loop)

    def _reject(self, job: _Job) -> None:
        """Drop a job that has timed out, or whose request is gone."""
        self.waiting -= len(job.documents)
        if not job.future.done():
            job.future.set_exception(Problem(503, "the request waited too long: try again later", RETRY_AFTER))

    def check_room(self, documents: int = 1) -> None:
        """Raise a `Problem` if the queue has no room for this many documents."""
        if not self._has_room(documents):
            raise Problem(429, f"too many {self._what} are waiting: try again in a second", RETRY_AFTER)

    def _has_room(self, documents: int) -> bool:
        return not self.waiting or self.waiting + documents <= self.capacity

    async def room(self, documents: int) -> None:
        """Wait until the queue has room for this many documents: streams slow down instead of failing."""
        while not self._has_room(documents):
            taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._streams.append(taken)
            try:
                await asyncio.wait_for(taken, self.timeout)
            except asyncio.TimeoutError as error:
                raise Problem(503, "the request waited too long: try again later", RETRY_AFTER) from error

    def _wake_streams(self) -> None:
        for stream in self._streams:
            if not stream.done():
                stream.set_result(None)
        self._streams.clear()

    def close(self, wait: bool = False) -> None:
        """Stop the threads and drop the queue; `wait` for what has begun."""
        self._pool.shutdown(wait=wait, cancel_futures=True)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start batches on idle threads."""
        while self._jobs and self._busy < self.threads:
            if self.waiting < BATCH and self._recent > 1:
                # Under load, clients that just got their results ask again soon, and one larger batch is cheaper.
                if self._lingering is None:
                    self._lingering = loop.call_later(LINGER, self._linger_ends, loop)
                return
            self._submit(loop)

    def _linger_ends(self, loop: asyncio.AbstractEventLoop) -> None:
        self._lingering = None
        while self._jobs and self._busy < self.threads:
            self._submit(loop)

    def _submit(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start a batch on an idle thread, and leave their share of the queue to the other idle threads."""
        share = -(-self.waiting // (self.threads - self._busy))
        batch = self._take(loop.time(), min(BATCH, share))
        if not batch:
            return
        self._busy += 1
        documents = [document for job in batch for document in job.documents]
        # More than one request in progress means load.
        self._recent = len(batch) + self._busy - 1
        self.on_batch(len(documents))
        try:
            done = loop.run_in_executor(self._pool, batch[0].work, documents)
        except RuntimeError as error:  # The system allows no more threads, or the server stops.
            self._busy -= 1
            for job in batch:
                job.future.set_exception(
                    Problem(503, f"no thread can be started ({error}): try again later", RETRY_AFTER)
                )
            return
        done.add_done_callback(lambda future: self._finish(loop, batch, future))

    def _take(self, now: float, most: int) -> list[_Job]:
        """Take jobs with one key from the queue; jobs that have timed out get 503."""
        batch: list[_Job] = []
        left: deque[_Job] = deque()
        size = 0
        for job in self._jobs:
            if job.future.done() or job.deadline <= now:
                self._reject(job)
            elif not batch or (job.key == batch[0].key and size + len(job.documents) <= most):
                batch.append(job)
                size += len(job.documents)
                self.waiting -= len(job.documents)
            else:
                left.append(job)
        self._jobs = left
        self._wake_streams()
        return batch

    def _finish(self, loop: asyncio.AbstractEventLoop, batch: list[_Job], done: asyncio.Future[Sequence[Any]]) -> None:
        self._busy -= 1
        if done.cancelled():
            for job in batch:
                job.future.cancel()
            return
        error = done.exception()
        if error is not None and len(batch) > 1:
            # One document of one request may be the cause: retry each job on its own.
            self._jobs.extendleft(_alone(job) for job in reversed(batch))
            self.waiting += sum(len(job.documents) for job in batch)
        else:
            results = iter(()) if error is not None else iter(done.result())
            for job in batch:
                if job.future.done():
                    # The client is gone.
                    for _ in job.documents:
                        next(results, None)
                elif error is not None:
                    job.future.set_exception(error)
                else:
                    job.future.set_result([next(results) for _ in job.documents])
        self._start(loop)


def _give_way(nice: int) -> None:
    """Lower the priority of this thread, so that the event loop stays responsive when all cores predict."""
    with suppress(AttributeError, OSError):  # Only Linux has thread priorities.
        if sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)


def _alone(job: _Job) -> _Job:
    """Return the job with a key of its own, so that it shares no batch."""
    return _Job(object(), job.work, job.documents, job.future, job.deadline)
