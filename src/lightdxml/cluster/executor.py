"""The executor of a Ray cluster: functions run as tasks, parts of a state live in actors."""

from __future__ import annotations

import itertools
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import ray
from numpy.typing import NDArray
from ray.exceptions import (
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayActorError,
    RayTaskError,
    WorkerCrashedError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from lightdxml.cluster.connection import RETRIES, first_line
from lightdxml.cluster.packing import Packed, pack, unpack
from lightdxml.executor import Parts, Threads, WorkersLostError, total
from lightdxml.kernels import blas, parallel

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")
P = TypeVar("P")
A = TypeVar("A")

# Ranges per processor: a processor that is late takes fewer.
_PER_CPU = 4
# How often `after` is called while results are awaited.
_SECONDS = 0.2
# What a task should take at least.
_TASK_SECONDS = 0.1
# What a task fails with after it has lost its process for the last time.
_GIVEN_UP = (NodeDiedError, OutOfMemoryError, WorkerCrashedError)
_numbers = itertools.count()


class RayExecutor:
    """Runs functions as tasks of Ray, on all processors of the cluster.

    Tasks whose process or machine has ended run again elsewhere, ten times at most.

    Parameters
    ----------
    shards
        In how many actors a state is held, a power of two; None for one per machine. A single one is held in this
        process.
    """

    def __init__(self, shards: int | None = None) -> None:
        check_shards(shards)
        self.shards = shards
        self._sent = _Sent()

    @property
    def ranges(self) -> int:
        """Several per processor of the cluster."""
        return _PER_CPU * max(1, int(ray.cluster_resources().get("CPU", 1)))

    def map(
        self,
        function: Callable[[S, T], R],
        shared: S,
        items: Sequence[T],
        each: Callable[[int, R], object] | None = None,
        after: Callable[[int], object] | None = None,
    ) -> list[R]:
        """Call the function in a task per item."""
        common = self._sent.pack((function, shared))
        key = next(_numbers)
        waiting, running, results = deque(enumerate(items)), dict[Any, list[int]](), dict[int, R]()
        at_once, seconds, task = max(1, self.ranges // 2), 0.0, _task.options(max_retries=RETRIES)
        # A few at a time: those that run when the work is stopped go on to their end. A task that is canceled may leave
        # its process with half a module.
        while waiting or running:
            while waiting and len(running) < at_once:
                size = _items_per_task(len(waiting), at_once, seconds / max(1, len(results)))
                numbers, some = zip(*(waiting.popleft() for _ in range(size)), strict=True)
                running[task.remote(key, common.content, some, *common.arrays)] = list(numbers)
            done, _ = ray.wait(list(running), timeout=_SECONDS, fetch_local=False)
            for ref in done:
                found, took = _result_of_task(ref)
                seconds += took
                for i, result in zip(running.pop(ref), found, strict=True):
                    results[i] = result
                    if each is not None:
                        each(i, result)
            if after is not None:
                after(len(results))
        return [results[i] for i in range(len(items))]

    def hold(self, create: Callable[[S, T], P], shared: S, items: Sequence[T]) -> Parts[P]:
        """Create the parts in actors, neighbors together, spread over the machines."""
        nodes = machines()
        n = min(len(items), self.shards or _power_of_two(len(nodes)))
        if n == 1:
            return Threads().hold(create, shared, items)
        # Not kept for later calls: training changes these arrays.
        common, size = pack((create, shared), ray.put), len(items) // n
        actors = []
        for i in range(n):
            node, cpus = nodes[i % len(nodes)]
            threads = max(1, cpus // -(-n // len(nodes)))
            place = NodeAffinitySchedulingStrategy(node, soft=True)
            shard: Any = _Shard
            actor = shard.options(scheduling_strategy=place).remote(
                common.content, list(items[i * size : (i + 1) * size]), threads, *common.arrays
            )
            actors.append(actor)
        return _InActors(actors)


class _InActors(Generic[P]):
    """Parts in actors."""

    are_here = False

    def __init__(self, actors: list[Any]) -> None:
        self.actors = actors

    def call(self, function: Callable[[P, A], R], argument: A) -> list[R]:
        return [one for found in self._on_all("call", function, argument) for one in found]

    def total(self, function: Callable[[P, A], R], argument: A) -> R:
        found: R = total(self._on_all("total", function, argument))
        return found

    def _on_all(self, method: str, function: Callable[[P, A], R], argument: A) -> list[Any]:
        # Put once: all actors of a machine read the same copy.
        shared = ray.put(argument)
        return [_result(ref) for ref in [getattr(actor, method).remote(function, shared) for actor in self.actors]]

    def release(self) -> None:
        for actor in self.actors:
            ray.kill(actor)
        self.actors = []


@ray.remote(num_cpus=1)
def _task(key: int, common: bytes, items: Sequence[Any], *arrays: NDArray[Any]) -> tuple[list[Any], float]:
    """Return the results of some items, and how many seconds they took."""
    function, shared = _unpacked(key, common, arrays)
    start = time.perf_counter()
    with parallel.use_threads(1), blas.on_one_thread():
        return [function(shared, item) for item in items], time.perf_counter() - start


def _items_per_task(waiting: int, at_once: int, seconds: float) -> int:
    """Return how many of the waiting items to give to a task, by the seconds of an item so far; 0 if none is done.

    A call takes some milliseconds: short items go together. At the end all tasks get some.

    >>> _items_per_task(100, 8, 0.0), _items_per_task(100, 8, 0.01), _items_per_task(100, 8, 5.0)
    (1, 10, 1)
    """
    wanted = 1 if not seconds else round(_TASK_SECONDS / seconds)
    return max(1, min(wanted, waiting // at_once))


# The latest values that this process has unpacked: one call of `map` has many tasks.
_latest: list[tuple[int, Any]] = []


def _unpacked(key: int, common: bytes, arrays: Sequence[NDArray[Any]]) -> Any:
    if not _latest or _latest[0][0] != key:
        _latest[:] = [(key, unpack(Packed(common, list(arrays))))]
    return _latest[0][1]


# It takes no processor of its own: tasks wait while it works, and it waits while they do.
@ray.remote(num_cpus=0, max_restarts=0)
class _Shard:
    """Neighboring parts of a state."""

    def __init__(self, common: bytes, items: list[Any], threads: int, *arrays: NDArray[Any]) -> None:
        create, shared = unpack(Packed(common, list(arrays)))
        self.threads = threads
        self.parts = [create(shared, item) for item in items]

    def call(self, function: Callable[[Any, Any], Any], argument: Any) -> list[Any]:
        """Return the results of all parts."""
        with parallel.use_threads(self.threads):
            return parallel.run(lambda part: function(part, argument), self.parts)

    def total(self, function: Callable[[Any, Any], Any], argument: Any) -> Any:
        """Return their sum: a sum of all parts in the order of `total` goes on with it."""
        return total(self.call(function, argument))


class _Sent:
    """The arrays that the cluster has: what several calls share is sent once, and dropped with its last use here."""

    def __init__(self) -> None:
        self._refs: dict[int, Any] = {}

    def pack(self, value: Any) -> Packed:
        """Return a value as bytes and references to its arrays."""
        return pack(value, self._put)

    def _put(self, array: NDArray[Any]) -> Any:
        key = id(array)
        if key not in self._refs:
            self._refs[key] = ray.put(np.asarray(array))
            weakref.finalize(array, self._refs.pop, key, None)
        return self._refs[key]


def _result(ref: Any) -> Any:
    """Return a result, or raise the error of the function."""
    try:
        return ray.get(ref)
    except (RayActorError, ObjectLostError, *_GIVEN_UP) as error:
        raise WorkersLostError(f"a process of the cluster was lost ({first_line(error)})") from error
    except RayTaskError as error:
        raise error.cause from None


def _result_of_task(ref: Any) -> Any:
    """Return a result, or raise the error of the function: one without remedy if the task was tried often enough."""
    try:
        return _result(ref)
    except WorkersLostError as error:
        if isinstance(error.__cause__, _GIVEN_UP):
            often = f"{error}, {RETRIES + 1} times by the same task: look at the memory and the logs of its machines"
            raise ConnectionError(often) from error
        raise


def check_shards(shards: int | None) -> None:
    """Raise a `ValueError` for a number of shards that is no power of two."""
    if shards is not None and (shards < 1 or shards & (shards - 1)):
        raise ValueError(f"shards is {shards}: it must be a power of two, such as 1, 2, 4 or 8")


def machines() -> list[tuple[str, int]]:
    """Return the machines that have processors, and how many."""
    nodes = ((node["NodeID"], int(node["Resources"].get("CPU", 0))) for node in ray.nodes() if node["Alive"])
    return sorted(node for node in nodes if node[1])


def _power_of_two(n: int) -> int:
    """Return the largest power of two up to n.

    >>> _power_of_two(3), _power_of_two(1)
    (2, 1)
    """
    return 1 << (max(1, n).bit_length() - 1)
