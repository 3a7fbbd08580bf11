"""The benchmark grid: every method on every data set. Finished cells are not run again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lightdxml.experiments.baselines import method
from lightdxml.experiments.bench import cell, matrices, plots, process, results, tables
from lightdxml.experiments.bench.cell import Job
from lightdxml.experiments.bench.results import Cell
from lightdxml.persistence import lock
from lightdxml.text.tfidf import TextOptions

_LOCK, _FOLDERS = ".lock", ("cells", "logs", "matrices")


@dataclass(frozen=True)
class Variant:
    """A method with settings, and its name in tables."""

    name: str
    method: str
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes
    ----------
    data, variants, out
        Names or paths of data sets, the methods, and the output folder.
    repeat, seed
        Runs per cell. The first has this seed, the next ones seed + 1, seed + 2, ...
    timeout
        Seconds allowed per cell.
    threads
        Threads per method.
    text
        How to turn texts into features.
    retry
        Run failed and timed-out cells again. A cell that timed out with a shorter limit is always run again.
    """

    data: Sequence[str]
    variants: Sequence[Variant]
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
        for variant in self.variants:
            method(variant.method)(**variant.settings)  # raises on unknown methods and settings


def run(plan: Plan, show: Callable[[str], None] = lambda text: None) -> list[Cell]:
    """Run the cells of a plan that have no result yet, and return all its cells.

    Parameters
    ----------
    plan
        What to run.
    show
        Takes the name of a cell when it starts, and its result and a line end when it is done.

    Raises
    ------
    ValueError
        If the output folder is in use or holds results that are not comparable.
    """
    with _locked(plan):
        jobs = _jobs(plan)
        stored = [found for found in results.read(plan.out / "cells") if not _is_due(plan, found)]
        results.check_comparable([*stored, *map(cell.header, jobs)])
        known = {results.title(found): found for found in stored}
        outcomes = []
        for number, job in enumerate(jobs, start=1):
            repeat = f", run {job.repeat + 1}" if job.repeat else ""
            show(f"{number}/{len(jobs)} {job.data}, {job.name}{repeat}: ")
            earlier = known.get(job.result.stem)
            outcomes.append(earlier or _run_cell(plan, job))
            show(_summary(outcomes[-1]) + (" (from an earlier run)\n" if earlier else "\n"))
        return outcomes


def _summary(outcome: Cell) -> str:
    if outcome["status"] != "done":
        return f"{outcome['status']}: {outcome['message']}"
    return f"P@1 {outcome['metrics']['P@1']:.2f}, trained in {outcome['train_seconds']:,.1f} s"


@contextmanager
def _locked(plan: Plan) -> Iterator[None]:
    """Create and lock the output folder."""
    plan.out.mkdir(parents=True, exist_ok=True)
    if not {entry.name for entry in plan.out.iterdir()} <= {_LOCK} and not (plan.out / "cells").exists():
        raise ValueError(f"{plan.out} is not empty and not a benchmark folder: use a new or empty folder for --out")
    with lock.held(plan.out / _LOCK) as acquired:
        if not acquired:
            raise ValueError(f"another benchmark is running in {plan.out}: wait for it, or use another --out")
        for name in _FOLDERS:
            (plan.out / name).mkdir(exist_ok=True)
        for left in plan.out.glob(f"{process.TMP_PREFIX}*"):
            shutil.rmtree(left, ignore_errors=True)  # from a killed run
        yield


def _jobs(plan: Plan) -> list[Job]:
    """Prepare the matrices and return one job per cell."""
    folders = [matrices.prepare(source, plan.out / "matrices", plan.text, plan.seed) for source in plan.data]
    return [
        Job(str(plan.out), data, one.name, one.method, one.settings, repeat, plan.seed + repeat, plan.threads)
        for data in dict.fromkeys(folder.name for folder in folders)
        for one in plan.variants
        for repeat in range(plan.repeat)
    ]


def _is_due(plan: Plan, outcome: Cell) -> bool:
    """Return whether a stored cell is run again. Skipped cells always are: they cost nothing."""
    if outcome["status"] == "timeout" and plan.timeout > outcome.get("limit", plan.timeout):
        return True
    return outcome["status"] == "skipped" or (plan.retry and outcome["status"] != "done")


def _run_cell(plan: Plan, job: Job) -> Cell:
    expected = cell.header(job)
    job.result.unlink(missing_ok=True)
    if missing := method(job.method).missing():
        outcome = {**expected, "status": "skipped", "message": missing}
    else:
        outcome = {**expected, **process.run(job, plan.timeout)}
    try:
        results.check_comparable([expected, outcome])
    except ValueError as error:
        job.result.unlink(missing_ok=True)
        raise ValueError(f"the code or machine changed during the benchmark: {error}") from error
    results.write_json(job.result, outcome)
    return outcome


def write_reports(cells: Sequence[Cell], out: Path, command: str = "") -> list[Path]:
    """Write all cells as JSON and CSV, a summary and a page per data set as Markdown, and plots; return the files."""
    written = tables.write_files(cells, tables.summary(cells, command), out / "results")
    for data, groups in results.grouped(cells).items():
        written.append(tables.write_text(tables.page(groups), out / "results" / f"{data}.md"))
    if any(entry["status"] == "done" for entry in cells):
        written += plots.write_all(cells, out)
    return written
