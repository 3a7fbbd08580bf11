"""Requests that wait are answered together, and none is forgotten."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from lightdxml.serve.batching import BATCH, Batcher
from lightdxml.serve.problems import Problem


class Recorder:
    """Work that takes as long as the test likes, and remembers its batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.go = threading.Event()

    def __call__(self, documents: Sequence[int]) -> list[int]:
        self.batches.append(list(documents))
        self.go.wait(10)
        if -13 in documents:
            raise ValueError("a bad document")
        return [10 * document for document in documents]


async def until(condition: object) -> None:
    for _ in range(500):
        if condition():  # type: ignore[operator]
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never happened")


def test_a_lone_request_is_worked_on_at_once() -> None:
    async def main() -> None:
        work = Recorder()
        work.go.set()
        assert await Batcher(2).run("key", work, [1]) == [10]
        assert work.batches == [[1]]

    asyncio.run(main())


def test_requests_that_wait_share_batches_of_their_own_kind() -> None:
    async def main() -> None:
        batcher, work, other = Batcher(1), Recorder(), Recorder()
        first = asyncio.ensure_future(batcher.run("key", work, [0]))
        await until(lambda: work.batches)
        jobs = [batcher.run("key", work, [i]) for i in range(1, 4)]
        jobs += [batcher.run("other", other, [7]), batcher.run("key", work, [4, 5])]
        waiting = asyncio.gather(*jobs)
        await asyncio.sleep(0)
        assert batcher.waiting == 6
        work.go.set()
        other.go.set()
        assert await waiting == [[10], [20], [30], [70], [40, 50]]
        assert await first == [0]
        assert work.batches == [[0], [1, 2, 3, 4, 5]]
        assert other.batches == [[7]]
        assert batcher.waiting == 0

    asyncio.run(main())


def test_batches_are_not_larger_than_the_limit() -> None:
    async def main() -> None:
        batcher, work = Batcher(1), Recorder()
        first = asyncio.ensure_future(batcher.run("key", work, [0]))
        await until(lambda: work.batches)
        waiting = asyncio.gather(*(batcher.run("key", work, [i]) for i in range(100)))
        await asyncio.sleep(0)
        work.go.set()
        await waiting
        await first
        assert [len(batch) for batch in work.batches] == [1, BATCH, BATCH, BATCH, 100 - 3 * BATCH]

    asyncio.run(main())


def test_a_full_queue_refuses_and_keeps_what_it_has() -> None:
    async def main() -> None:
        batcher, work = Batcher(1, capacity=4), Recorder()
        first = asyncio.ensure_future(batcher.run("key", work, [0]))
        await until(lambda: work.batches)
        kept = asyncio.ensure_future(batcher.run("key", work, [1, 2, 3]))
        await asyncio.sleep(0)
        with pytest.raises(Problem, match="too many documents") as refused:
            await batcher.run("key", work, [4, 5])
        assert refused.value.status_code == 429
        assert refused.value.headers == {"Retry-After": "1"}
        work.go.set()
        assert [await first, await kept] == [[0], [10, 20, 30]]

    asyncio.run(main())


def test_streams_wait_for_room_instead() -> None:
    async def main() -> None:
        batcher, work = Batcher(1, capacity=4), Recorder()
        first = asyncio.ensure_future(batcher.run("key", work, [0]))
        await until(lambda: work.batches)
        second = asyncio.ensure_future(batcher.run("key", work, [1, 2, 3]))
        await asyncio.sleep(0)
        room = asyncio.ensure_future(batcher.room(4))
        await asyncio.sleep(0.05)
        assert not room.done()
        work.go.set()
        await asyncio.wait_for(room, 10)
        await asyncio.gather(first, second)
        # More than the queue could ever hold: as soon as it is empty.
        await asyncio.wait_for(batcher.room(100), 10)

    asyncio.run(main())


def test_requests_that_wait_too_long_are_refused() -> None:
    async def main() -> None:
        batcher, work = Batcher(1, timeout=0.05), Recorder()
        first = asyncio.ensure_future(batcher.run("key", work, [0]))
        await until(lambda: work.batches)
        with pytest.raises(Problem, match="waited too long") as refused:
            await batcher.run("key", work, [1])
        assert refused.value.status_code == 503
        assert not work.go.is_set(), "it is refused although no thread is free"
        work.go.set()
        assert await first == [0]
        assert batcher.waiting == 0
        assert work.batches == [[0]]

    asyncio.run(main())


def test_a_thread_that_cannot_be_started_loses_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        batcher, work = Batcher(1), Recorder()
        work.go.set()
        with monkeypatch.context() as broken:
            broken.setattr(batcher._pool, "submit", lambda *_: (_ for _ in ()).throw(RuntimeError("no threads")))
            with pytest.raises(Problem, match="no thread can be started") as refused:
                await batcher.run("key", work, [1])
        assert refused.value.status_code == 503
        assert await batcher.run("key", work, [2]) == [20]

    asyncio.run(main())


def test_an_error_is_the_answer_to_the_request_that_causes_it_alone() -> None:
    async def main() -> None:
        batcher, work = Batcher(1), Recorder()
        first = asyncio.ensure_future(batcher.run("key", work, [0]))
        await until(lambda: work.batches)
        good, bad = (asyncio.ensure_future(batcher.run("key", work, [one])) for one in (1, -13))
        await asyncio.sleep(0)
        work.go.set()
        assert await good == [10]
        with pytest.raises(ValueError, match="a bad document"):
            await bad
        assert await first == [0]
        assert batcher.waiting == 0

    asyncio.run(main())


def test_requests_that_are_canceled_while_they_wait_are_not_worked_on() -> None:
    async def main() -> None:
        batcher, work = Batcher(1), Recorder()
        first = asyncio.ensure_future(batcher.run("key", work, [0]))
        await until(lambda: work.batches)
        gone, stays = (asyncio.ensure_future(batcher.run("key", work, [one])) for one in (1, 2))
        await asyncio.sleep(0)
        gone.cancel()
        work.go.set()
        assert await stays == [20]
        assert await first == [0]
        assert work.batches == [[0], [2]]
        assert batcher.waiting == 0

    asyncio.run(main())
