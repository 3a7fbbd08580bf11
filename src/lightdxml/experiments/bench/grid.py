"""The benchmark grid: every method on every data set. Finished cells are not run again."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lightdxml.experiments.baselines import method
from lightdxml.experiments.bench import cell, matrices, plots, process, published, results, tables
from lightdxml.experiments.bench.cell import Job
from lightdxml.persistence import lock
from lightdxml.text.tfidf import TextOptions

_LOCK, _PLAN = ".lock", "bench.json"


@dataclass(frozen=True)
class Variant:
    """A method with settings, and its name in tables."""

    name: str
    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    along: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes
    ----------
    data
        Names or paths of data sets.
    variants
        The methods.
    out
        Output folder.
    repeat
        Runs per cell, each with its own seed.
    timeout
        Seconds allowed per cell.
    threads
        Threads per method.
    text
        How to turn texts into features.
    seed
        Seed of the first run; the next runs use seed + 1, seed + 2, ...
    retry
        Run failed and timed-out cells again. A cell that timed out with a shorter limit is always run again.
    """

    data: tuple[str, ...]
    variants: tuple[Variant, ...]
    out: Path
    repeat: int = 1
    timeout: float = 3600.0
    threads: int = 1
    text: TextOptions = field(default_factory=TextOptions)
    seed: int = 0
    retry: bool = False

    def __post_init__(self) -> None:
        if self.repeat < 1:
            raise ValueError(f"repeat is {self.repeat}: it must be at least 1")
        if not self.timeout > 0:
            raise ValueError(f"timeout is {self.timeout}: it must be a positive number of seconds")
        if not self.data:
            raise ValueError("no data set given: name at least one")
        for variant in self.variants:
            method(variant.method)(**variant.settings)  # raises on unknown methods and settings


@dataclass(frozen=True)
class Event:
    """Progress: cell `number` of `total` is running, or has ended if there is an outcome."""

    number: int
    total: int
    job: Job
    seconds: float = 0.0
    outcome: dict[str, Any] | None = None
    cached: bool = False


Listener = Callable[[Event], None]


def run(plan: Plan, listen: Listener = lambda event: None) -> list[dict[str, Any]]:
    """Run the cells of a plan that have no result yet, and return all its cells.

    Raises
    ------
    ValueError
        If the output folder is in use or holds results that are not comparable.
    """
    matrices.check_names(plan.data)
    with _locked(plan):
        jobs = _jobs(plan)
        stored = [found for found in results.read(plan.out / "cells") if not _is_due(plan, found)]
        results.check_comparable([*stored, *map(cell.header, jobs)])
        return [_outcome(plan, Event(number, len(jobs), job), listen) for number, job in enumerate(jobs, start=1)]


@contextmanager
def _locked(plan: Plan) -> Iterator[None]:
    """Create and lock the output folder; check that an existing one was made with the same options."""
    plan.out.mkdir(parents=True, exist_ok=True)
    path = plan.out / _PLAN
    if not path.exists() and any(entry.name != _LOCK for entry in plan.out.iterdir()):
        raise ValueError(f"{plan.out} is not empty and not a benchmark folder: use a new or empty folder for --out")
    with lock.held(plan.out / _LOCK) as acquired:
        if not acquired:
            raise ValueError(f"another benchmark is running in {plan.out}: wait for it, or use another --out")
        options = {"seed": plan.seed, "threads": plan.threads}
        if not path.exists():
            results.write_json(path, options)
        elif (before := json.loads(path.read_text("utf-8"))) != options:
            raise ValueError(f"{plan.out} holds results for {before}, not {options}: use another --out")
        for name in ("cells", "logs"):
            (plan.out / name).mkdir(exist_ok=True)
        for left in plan.out.glob(f"{process.TMP_PREFIX}*"):
            shutil.rmtree(left, ignore_errors=True)  # from a killed run
        yield


def _jobs(plan: Plan) -> list[Job]:
    """Prepare the matrices and return one job per cell."""
    folders = [matrices.prepare(source, plan.out / "matrices", plan.text, plan.seed) for source in plan.data]
    return [
        Job(
            data=folder.name,
            method=variant.method,
            matrices=str(folder),
            result=str(plan.out / "cells" / f"{folder.name}.{variant.name}.{repeat}.json"),
            repeat=repeat,
            seed=plan.seed + repeat,
            threads=plan.threads,
            settings=variant.settings,
            along=variant.along,
            name=variant.name,
            parent=os.getpid(),
        )
        for folder in folders
        for variant in plan.variants
        for repeat in range(plan.repeat)
    ]


def _outcome(plan: Plan, event: Event, listen: Listener) -> dict[str, Any]:
    """Return the stored result of a cell, or run it."""
    start = time.monotonic()
    listen(event)
    path = Path(event.job.result)
    outcome = results.read_cell(path) if path.exists() else None
    cached = outcome is not None and not _is_due(plan, outcome)
    if outcome is None or not cached:
        outcome = _run_cell(plan, event, listen)
    listen(replace(event, seconds=time.monotonic() - start, outcome=outcome, cached=cached))
    return outcome


def _is_due(plan: Plan, outcome: dict[str, Any]) -> bool:
    """Return whether a stored cell is run again. Skipped cells always are: they cost nothing."""
    if outcome["status"] == "timeout" and plan.timeout > outcome.get("limit", plan.timeout):
        return True
    return outcome["status"] == "skipped" or (plan.retry and outcome["status"] != "done")


def _run_cell(plan: Plan, event: Event, listen: Listener) -> dict[str, Any]:
    job, path = event.job, Path(event.job.result)
    chosen, expected = method(job.method), cell.header(event.job)
    path.unlink(missing_ok=True)
    if missing := chosen.missing():
        outcome = {"status": "skipped", "message": f"{', '.join(missing)} is not installed: {chosen.install}"}
    else:
        log = plan.out / "logs" / f"{path.stem}.log"
        outcome = process.run(
            job, log, plan.timeout, plan.out.resolve(), lambda seconds: listen(replace(event, seconds=seconds))
        )
    outcome = {**expected, **outcome}
    try:
        results.check_comparable([expected, outcome])
    except ValueError as error:
        path.unlink(missing_ok=True)
        raise ValueError(f"the code or machine changed during the benchmark: {error}") from error
    results.write_json(path, outcome)
    return outcome


def write_reports(cells: Sequence[dict[str, Any]], out: Path) -> list[Path]:
    """Write all cells as JSON and CSV, tables as Markdown, and plots; return the files."""
    known = published.rows()
    parts = (tables.markdown(cells, known), tables.module_table(cells, known), tables.settings_table(cells))
    written = tables.write_files(cells, "\n".join(filter(None, parts)), out / "results")
    if any(entry["status"] == "done" for entry in cells):
        written += plots.write_all(cells, out)
    return written
