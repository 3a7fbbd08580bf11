"""The grid: every method on every data set, cell by cell, each in a process of its own; what is done stays done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lightdxml.baselines import method
from lightdxml.bench import cell, matrices, plots, published, results, tables
from lightdxml.bench.cell import Job
from lightdxml.data.files import writing_text
from lightdxml.text.tfidf import TextSettings

_PATIENCE = 5.0
_POLL = 0.2


@dataclass(frozen=True)
class Variant:
    """A method with settings of its own, under the name that the tables show."""

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
        Names of data sets, or paths.
    variants
        The methods.
    out
        The folder for all of it.
    repeat
        How often each cell is run, each time with a seed of its own.
    timeout
        The most seconds that a cell may take.
    threads
        For each method.
    text
        How texts become features.
    retry
        Whether cells that failed or ran out of time are run again.
    """

    data: tuple[str, ...]
    variants: tuple[Variant, ...]
    out: Path
    repeat: int = 1
    timeout: float = 3600.0
    threads: int = 1
    text: TextSettings = field(default_factory=TextSettings)
    seed: int = 0
    retry: bool = False

    def __post_init__(self) -> None:
        if self.repeat < 1:
            raise ValueError(f"repeat is {self.repeat}: it must be a whole number from 1")
        if not self.timeout > 0:
            raise ValueError(f"timeout is {self.timeout}: it must be a number of seconds above 0")
        if not self.data:
            raise ValueError("there is no data set to run on: name at least one")
        for variant in self.variants:
            method(variant.method)(**variant.settings)


@dataclass(frozen=True)
class Event:
    """How far the grid is: a cell that begins, goes on, or has ended with this outcome."""

    number: int
    total: int
    data: str
    name: str
    repeat: int
    seconds: float
    outcome: dict[str, Any] | None = None
    was_there: bool = False


Listener = Callable[[Event], None]


def run(plan: Plan, listen: Listener = lambda event: None) -> list[dict[str, Any]]:
    """Run what is not there yet, and return all cells of the plan."""
    _check_folder(plan)
    names = [matrices.prepare(source, plan.out / "matrices", plan.text, plan.seed) for source in plan.data]
    if len(set(names)) < len(names):
        raise ValueError(f"two data sets have one name ({', '.join(sorted(names))}): rename a folder")
    places = [(data, v, i) for data in names for v in plan.variants for i in range(plan.repeat)]
    _check_alike(plan, places)
    outcomes = []
    for number, (data, variant, repeat) in enumerate(places, start=1):
        begun = Event(number, len(places), data, variant.name, repeat, 0.0)
        known = _known(plan, data, variant, repeat)
        listen(begun)
        start = time.monotonic()
        outcome = known or _run_cell(plan, data, variant, repeat, begun, listen)
        outcomes.append(outcome)
        listen(replace(begun, seconds=time.monotonic() - start, outcome=outcome, was_there=known is not None))
    return outcomes


def _check_folder(plan: Plan) -> None:
    """Make the folder, or see that what is in it was made in the same way."""
    setup = {"seed": plan.seed, "threads": plan.threads}
    path = plan.out / "bench.json"
    if path.exists():
        before = json.loads(path.read_text("utf-8"))
        if before != setup:
            raise ValueError(f"{plan.out} holds results with {before}, not {setup}: use another --out")
        return
    plan.out.mkdir(parents=True, exist_ok=True)
    if any(plan.out.iterdir()):
        raise ValueError(f"{plan.out} holds other things: use an empty or a new folder as --out")
    with writing_text(path) as stream:
        json.dump(setup, stream)


def _path(plan: Plan, data: str, variant: Variant, repeat: int) -> Path:
    return plan.out / "cells" / f"{data}.{variant.name}.{repeat}.json"


def _job(plan: Plan, data: str, variant: Variant, repeat: int) -> Job:
    return Job(
        data=data,
        method=variant.method,
        matrices=str(plan.out / "matrices" / data),
        result=str(_path(plan, data, variant, repeat)),
        repeat=repeat,
        seed=plan.seed + repeat,
        threads=plan.threads,
        settings=variant.settings,
        along=variant.along,
    )


def _header(plan: Plan, data: str, variant: Variant, repeat: int) -> dict[str, Any]:
    facts = json.loads((plan.out / "matrices" / data / "facts.json").read_text("utf-8"))
    return {**cell.header(_job(plan, data, variant, repeat), facts["sizes"]), "method": variant.name}


def _check_alike(plan: Plan, places: Sequence[tuple[str, Variant, int]]) -> None:
    """Raise, before any work is done, where what is there was measured by other means than what is to come."""
    there = results.read(plan.out / "cells")
    wanted = [_header(plan, *place) for place in places]
    results.check_alike([*there, *wanted])


def _known(plan: Plan, data: str, variant: Variant, repeat: int) -> dict[str, Any] | None:
    """Return the cell if it has been run; one that was skipped is cheap to look at again."""
    path = _path(plan, data, variant, repeat)
    if not path.exists():
        return None
    outcome: dict[str, Any] = json.loads(path.read_text("utf-8"))
    ended = ("done",) if plan.retry else ("done", "failed", "timeout")
    return outcome if outcome["status"] in ended else None


def _run_cell(plan: Plan, data: str, variant: Variant, repeat: int, begun: Event, listen: Listener) -> dict[str, Any]:
    path = _path(plan, data, variant, repeat)
    path.parent.mkdir(parents=True, exist_ok=True)
    chosen = method(variant.method)
    failed: dict[str, Any] | None
    if missing := chosen.missing():
        failed = {"status": "skipped", "message": f"{', '.join(missing)} is not installed: {chosen.install}"}
    else:
        log = plan.out / "logs" / f"{path.stem}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        failed = _in_process(_job(plan, data, variant, repeat), log, plan.timeout, begun, listen)
    outcome = failed if failed is not None else json.loads(path.read_text("utf-8"))
    outcome = {**_header(plan, data, variant, repeat), **outcome, "method": variant.name}
    cell.write(path, outcome)
    return outcome


def _in_process(job: Job, log: Path, timeout: float, begun: Event, listen: Listener) -> dict[str, Any] | None:
    """Do a job in a process of its own; return what went wrong, None if nothing did."""
    note = log.with_suffix(".job")
    note.write_text(cell.as_json(job), encoding="utf-8")
    start = time.monotonic()
    with log.open("wb") as stream:
        child = subprocess.Popen(
            [sys.executable, "-m", "lightdxml.bench.cell", str(note)],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
        try:
            while child.poll() is None:
                spent = time.monotonic() - start
                if spent > timeout:
                    return {"status": "timeout", "message": f"stopped after {timeout:,.0f} s"}
                listen(replace(begun, seconds=spent))
                time.sleep(min(_POLL, max(0.01, spent / 10)))
        finally:
            _end(child)
    if child.returncode or not Path(job.result).exists():
        return {"status": "failed", "message": _reason(child.returncode, log)}
    return None


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, with all that it has started."""
    if child.poll() is not None:
        return
    os.killpg(child.pid, signal.SIGTERM)
    try:
        child.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _reason(code: int, log: Path) -> str:
    if code < 0:
        name = signal.Signals(-code).name
        more = " (out of memory?)" if -code == signal.SIGKILL else ""
        return f"ended by {name}{more}; its output is in {log.name}"
    lines = [line for line in log.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    return f"{lines[-1].strip()[:300] if lines else 'no result'} (its output is in {log.name})"


def write_reports(cells: Sequence[dict[str, Any]], out: Path) -> list[Path]:
    """Write what people look at: all cells as JSON and CSV, tables as Markdown, plots."""
    results.check_alike(cells)
    with writing_text(out / "results.json") as stream:
        json.dump(list(cells), stream, indent=1, ensure_ascii=False)
    tables.write_csv(cells, out / "results.csv")
    parts = [tables.markdown(cells, published.rows()), tables.module_table(cells), tables.settings_table(cells)]
    with writing_text(out / "results.md") as stream:
        stream.write("\n\n".join(part.strip() for part in parts if part.strip()) + "\n")
    written = [out / name for name in ("results.json", "results.csv", "results.md")]
    if any(entry["status"] == "done" for entry in cells):
        written += plots.write_all(cells, out)
    return written
