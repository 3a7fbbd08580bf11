"""Where work runs: on the threads of this process, or on the machines of a cluster (`lightdxml.cluster`).

Training asks an executor for two things: to call a function on many items, and to keep a state in parts. Results come
in the order of items and parts, and sums are taken in a fixed order. So neither threads nor machines change a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, Protocol, TypeVar

from lightdxml.kernels import parallel

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")
P = TypeVar("P")
A = TypeVar("A")
P_co = TypeVar("P_co", covariant=True)


class WorkersLostError(ConnectionError):
    """Parts of a state are lost, because a process or a machine that held them has ended."""


class Executor(Protocol):
    """Runs functions. They must be functions of a module, or partials of them, so that other processes find them."""

    @property
    def ranges(self) -> int:
        """In how many ranges to divide work that can be divided at will; results must not depend on it."""

    def map(
        self,
        function: Callable[[S, T], R],
        shared: S,
        items: Sequence[T],
        each: Callable[[int, R], object] | None = None,
        after: Callable[[int], object] | None = None,
    ) -> list[R]:
        """Return function(shared, item) of every item, in order.

        Shared values reach every machine once, and are only read. `each` is called with the number and the result of
        every item when it is done, perhaps in another thread. `after` is called in this thread now and then, with the
        number of items that are done. It may stop the work by an exception.
        """

    def hold(self, create: Callable[[S, T], P], shared: S, items: Sequence[T]) -> Parts[P]:
        """Create a part of a state per item, with create(shared, item); their number is a power of two."""


class Parts(Protocol[P_co]):
    """A state in parts, each of which stays where it was created. Calls may change it."""

    @property
    def are_here(self) -> bool:
        """Whether they are in this process: calls then get the argument itself, and no copy."""

    def call(self, function: Callable[[P_co, A], R], argument: A) -> list[R]:
        """Return function(part, argument) of every part, in order."""

    def total(self, function: Callable[[P_co, A], R], argument: A) -> R:
        """Return the sum of function(part, argument), a tuple of numbers and arrays, over all parts: see `total`."""

    def release(self) -> None:
        """Forget all parts."""


class Backend(Protocol):
    """Where training runs: how to get its executor."""

    def connect(self) -> AbstractContextManager[Executor]:
        """Return the executor, for the length of a `with` block."""


def connected(backend: Backend | None) -> AbstractContextManager[Executor]:
    """Return the executor of a backend, for the length of a `with` block; None for the threads of this process."""
    return nullcontext(Threads()) if backend is None else backend.connect()


def total(values: Sequence[Any]) -> Any:
    """Return the sum of tuples, by adding neighbors until one is left: the sums of halves can be taken elsewhere.

    >>> total([(1, 10), (2, 20), (3, 30), (4, 40)])
    (10, 100)
    """
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=True)
        values = [tuple(a + b for a, b in zip(left, right, strict=True)) for left, right in pairs]
    return values[0]


class Threads:
    """The executor of one process: its threads share all values.

    Examples
    --------
    >>> Threads().map(lambda base, item: base + item, 10, [1, 2])
    [11, 12]
    >>> parts = Threads().hold(lambda base, item: [base + item], 10, [1, 2])
    >>> parts.total(lambda part, factor: (factor * part[0],), 2)
    (46,)
    """

    ranges = 1

    def map(
        self,
        function: Callable[[S, T], R],
        shared: S,
        items: Sequence[T],
        each: Callable[[int, R], object] | None = None,
        after: Callable[[int], object] | None = None,
    ) -> list[R]:
        """Call the function on all threads."""

        def call(number: int) -> R:
            result = function(shared, items[number])
            if each is not None:
                each(number, result)
            return result

        return parallel.run(call, range(len(items)), after)

    def hold(self, create: Callable[[S, T], P], shared: S, items: Sequence[T]) -> Parts[P]:
        """Keep the parts in memory."""
        return _InMemory([create(shared, item) for item in items])


class _InMemory(Generic[P]):
    are_here = True

    def __init__(self, parts: list[P]) -> None:
        self.parts = parts

    def call(self, function: Callable[[P, A], R], argument: A) -> list[R]:
        return parallel.run(lambda part: function(part, argument), self.parts)

    def total(self, function: Callable[[P, A], R], argument: A) -> R:
        found: R = total(self.call(function, argument))
        return found

    def release(self) -> None:
        self.parts = []
