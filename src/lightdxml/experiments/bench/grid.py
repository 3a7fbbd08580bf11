"""The grid: every method on every data set, cell by cell, each in a process of its own; what is done stays done."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lightdxml.experiments.baselines import method
from lightdxml.experiments.bench import cell, machine, matrices, plots, published, results, tables
from lightdxml.experiments.bench.cell import Job
from lightdxml.data.files import writing_text
from lightdxml.text.tfidf import TextOptions
from lightdxml.persistence import lock

_PATIENCE = 5.0
_POLL = 0.2
_LOCK, _ROOM = ".lock", "tmp"


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
        Whether cells that failed or ran out of time are run again; those that had less time than now are anyway.
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
    matrices.names_of(plan.data)
    with _folder(plan):
        return _run(plan, listen)


def _run(plan: Plan, listen: Listener) -> list[dict[str, Any]]:
    names = [matrices.prepare(source, plan.out / "matrices", plan.text, plan.seed) for source in plan.data]
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


@contextmanager
def _folder(plan: Plan) -> Iterator[None]:
    """Hold the folder for this process alone; make it, or see that what is in it was made in the same way."""
    plan.out.mkdir(parents=True, exist_ok=True)
    if not (plan.out / "bench.json").exists() and any(path.name != _LOCK for path in plan.out.iterdir()):
        raise ValueError(f"{plan.out} holds other things: use an empty or a new folder as --out")
    with lock.held(plan.out / _LOCK) as mine:
        if not mine:
            raise ValueError(f"another benchmark is at work in {plan.out}: wait for it, or use another --out")
        _check_folder(plan)
        # Of a process that was killed.
        shutil.rmtree(plan.out / _ROOM, ignore_errors=True)
        yield


def _check_folder(plan: Plan) -> None:
    setup = {"seed": plan.seed, "threads": plan.threads}
    path = plan.out / "bench.json"
    if path.exists():
        before = json.loads(path.read_text("utf-8"))
        if before != setup:
            raise ValueError(f"{plan.out} holds results with {before}, not {setup}: use another --out")
        return
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
        name=variant.name,
        parent=os.getpid(),
    )


def _header(plan: Plan, data: str, variant: Variant, repeat: int) -> dict[str, Any]:
    facts = json.loads((plan.out / "matrices" / data / "facts.json").read_text("utf-8"))
    return cell.header(_job(plan, data, variant, repeat), facts["sizes"])


def _check_alike(plan: Plan, places: Sequence[tuple[str, Variant, int]]) -> None:
    """Raise, before any work is done, where what is there was measured by other means than what is to come."""
    wanted = [_header(plan, *place) for place in places]
    # What is run again counts for nothing: a package that was missing may be there now.
    there = [entry for entry in results.read(plan.out / "cells") if not _is_due(plan, entry)]
    results.check_alike([*there, *wanted])


def _known(plan: Plan, data: str, variant: Variant, repeat: int) -> dict[str, Any] | None:
    """Return the cell if it has been run, and is the one that is wanted."""
    path = _path(plan, data, variant, repeat)
    if not path.exists():
        return None
    outcome: dict[str, Any] = json.loads(path.read_text("utf-8"))
    wanted = json.loads(json.dumps(_header(plan, data, variant, repeat)))
    same = all(outcome.get(name) == wanted[name] for name in ("data", "method", "repeat", "seed", "settings"))
    return outcome if same and not _is_due(plan, outcome) else None


def _is_due(plan: Plan, outcome: dict[str, Any]) -> bool:
    """Return whether a cell is run again: one that was skipped is cheap to look at."""
    if outcome["status"] == "timeout" and plan.timeout > outcome.get("limit", plan.timeout):
        return True
    return outcome["status"] == "skipped" or (plan.retry and outcome["status"] != "done")


def _run_cell(plan: Plan, data: str, variant: Variant, repeat: int, begun: Event, listen: Listener) -> dict[str, Any]:
    path = _path(plan, data, variant, repeat)
    path.parent.mkdir(parents=True, exist_ok=True)
    chosen = method(variant.method)
    expected = _header(plan, data, variant, repeat)
    if missing := chosen.missing():
        outcome = {"status": "skipped", "message": f"{', '.join(missing)} is not installed: {chosen.install}"}
    else:
        log = plan.out / "logs" / f"{path.stem}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        job = _job(plan, data, variant, repeat)
        with _room(plan.out) as room:
            outcome = _in_process(job, log, plan.timeout, begun, listen, room)
    outcome = {**expected, **outcome}
    _check_unchanged(expected, outcome, path)
    cell.write(path, outcome)
    return outcome


@contextmanager
def _room(out: Path) -> Iterator[Path]:
    """Give a folder for temporary files, which is gone afterwards, whatever a method has left in it."""
    parent = out.resolve() / _ROOM
    parent.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(parent, ignore_errors=True)


def _check_unchanged(expected: dict[str, Any], outcome: dict[str, Any], path: Path) -> None:
    """Raise, at once and not at the end, where a cell was measured by another state of things than those before it."""
    try:
        results.check_alike([expected, outcome])
    except ValueError as error:
        path.unlink(missing_ok=True)
        raise ValueError(f"what is measured has changed while the grid ran: {error}") from error


def _in_process(
    job: Job, log: Path, timeout: float, begun: Event, listen: Listener, room: Path | None = None
) -> dict[str, Any]:
    """Do a job in a process of its own; return its result, or what went wrong."""
    note = log.with_suffix(".job")
    note.write_text(cell.as_json(job), encoding="utf-8")
    start = time.monotonic()
    peak, seen = 0.0, start
    environment = os.environ if room is None else {**os.environ, "TMPDIR": str(room)}
    with log.open("wb") as stream, _signals_raised():
        child = subprocess.Popen(
            [sys.executable, "-m", "lightdxml.experiments.bench.cell", str(note)],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            env=environment,
        )
        try:
            while child.poll() is None:
                spent = time.monotonic() - start
                if spent > timeout:
                    given = f"{timeout:,.3f}".rstrip("0").rstrip(".")
                    return {"status": "timeout", "message": f"stopped after {given} s", "limit": timeout}
                if time.monotonic() - seen >= _POLL:
                    peak = max(peak, machine.resident_mb(child.pid) or 0.0)
                    seen = time.monotonic()
                listen(replace(begun, seconds=spent))
                time.sleep(min(_POLL, max(0.01, spent / 10)))
        finally:
            _end(child)
    if child.returncode or not Path(job.result).exists():
        return {"status": "failed", "message": _reason(child.returncode, log)}
    outcome: dict[str, Any] = json.loads(Path(job.result).read_text("utf-8"))
    if outcome.get("peak_mb") is not None:
        # Its own peak is exact, and knows nothing of the processes that it started.
        outcome["peak_mb"] = max(peak, outcome["peak_mb"])
    return outcome


@contextmanager
def _signals_raised() -> Iterator[None]:
    """Let what would end this process raise instead, so that it ends what it has started."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # A signal that is ignored, as under nohup, stays so.
    before = {number: signal.getsignal(number) for number in numbers if signal.getsignal(number) == signal.SIG_DFL}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, and all that it has started, which may outlive it."""
    if child.poll() is None:
        _signal(child, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_PATIENCE)
    _signal(child, signal.SIGKILL)
    child.wait()


def _signal(child: subprocess.Popen[bytes], number: int) -> None:
    # There is no such group any more, or (macOS) nothing but a process that has ended in it.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


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
