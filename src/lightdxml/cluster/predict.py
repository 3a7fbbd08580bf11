"""Work on the parts of a corpus by a pool of actors of Ray Data, each of which loads a model once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import ray.data

from lightdxml.cluster.connection import connect
from lightdxml.cluster.executor import machines

J = TypeVar("J")


def call_in_actors(
    address: str, create: Callable[[], Callable[[J], object]], jobs: Sequence[J], cpus: int = 1
) -> Iterator[int]:
    """Call a worker on jobs, and yield the number of each job when it is done.

    A job whose process or machine has ended runs again elsewhere. The jobs alone travel: workers read their documents,
    and write their predictions, themselves.

    Parameters
    ----------
    address
        Where the cluster is: see `lightdxml.cluster.connection.connect`.
    create
        Returns a worker; it is called once in each process.
    jobs
        What workers are called with.
    cpus
        Processors of a worker.
    """
    with connect(address):
        _quiet()
        workers = sum(processors // cpus for _, processors in machines())
        if not workers:
            raise ValueError(f"no machine of the cluster can have {cpus} free processors: give a smaller --n-jobs")
        most = max(1, min(len(jobs), workers))
        done = ray.data.from_items([{"job": i} for i in range(len(jobs))], override_num_blocks=len(jobs)).map_batches(
            _Actor,
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=most, initial_size=most),
            num_cpus=cpus,
            fn_constructor_args=(create, list(jobs)),
        )
        for row in done.iter_rows():
            if row["error"]:
                raise ValueError(row["error"])
            yield int(row["job"])


class _Actor:
    """A worker in an actor."""

    def __init__(self, create: Callable[[], Callable[[Any], object]], jobs: Sequence[Any]) -> None:
        self._create, self._jobs = create, jobs
        self._worker: Callable[[Any], object] | None = None

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Do a job; bad input is a result, because Ray would try again and then show where in the code it was."""
        try:
            # Not in the constructor: an error there would end the actor, and a new one would have the same.
            self._worker = self._worker or self._create()
            self._worker(self._jobs[int(batch["job"][0])])
        except (ValueError, OSError, ImportError) as error:
            return {"job": batch["job"], "error": np.array([str(error) or type(error).__name__])}
        return {"job": batch["job"], "error": np.array([""])}


def _quiet() -> None:
    """Keep Ray Data from drawing bars and reporting plans: the command shows its own."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
