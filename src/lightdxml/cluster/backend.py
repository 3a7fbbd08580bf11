"""Where a Ray cluster is, and how its training is divided."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lightdxml.cluster.connection import connect
from lightdxml.cluster.executor import RayExecutor, check_shards
from lightdxml.executor import Executor


@dataclass(frozen=True)
class RayBackend:
    """Train on a Ray cluster: `LightDXML().fit(X, y, backend=RayBackend("auto"))`.

    The model is the same, byte for byte, as on one machine.

    Parameters
    ----------
    address
        Where the cluster is, such as `auto` or `head:6379`; `local` starts Ray on this machine for as long as needed.
    shards
        In how many processes the paper's classifier is held, a power of two; None for one per machine.

    Examples
    --------
    >>> RayBackend("local", shards=3)
    Traceback (most recent call last):
    ...
    ValueError: shards is 3: it must be a power of two, such as 1, 2, 4 or 8
    """

    address: str = "auto"
    shards: int | None = None

    def __post_init__(self) -> None:
        check_shards(self.shards)

    @contextmanager
    def connect(self) -> Iterator[Executor]:
        """Connect to the cluster for the length of a `with` block."""
        with connect(self.address):
            yield RayExecutor(self.shards)
