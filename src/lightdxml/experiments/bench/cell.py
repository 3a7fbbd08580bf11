"""One cell of the grid: train a method on a data set, and measure. Run in a process of its own.

`python -m lightdxml.experiments.bench.cell JOB` reads a job as JSON and writes the result, as JSON too, where the job says.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from lightdxml.experiments.baselines import method
from lightdxml.experiments.baselines.base import Method, TooLargeError
from lightdxml.experiments.bench import machine, matrices
from lightdxml.experiments.bench.matrices import Matrices
from lightdxml.data.files import writing_text
from lightdxml.kernels import parallel
from lightdxml.metrics import evaluate
from lightdxml.progress import peak_memory

CUTS = (1, 3, 5)
MEASURES = ("P", "nDCG", "PSP", "PSnDCG")
_SINGLE, _WARM = 200, 20
_SINGLE_SECONDS = 30.0
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Job:
    """What a cell is told: the method and its settings, where its matrices are, and where the result goes.

    `name` is how tables call it, where that is not the method's own name; `parent` is the process that waits for it.
    """

    data: str
    method: str
    matrices: str
    result: str
    repeat: int = 0
    seed: int = 0
    threads: int = 1
    settings: dict[str, Any] = field(default_factory=dict)
    along: dict[str, list[Any]] = field(default_factory=dict)
    name: str = ""
    parent: int = 0


def header(job: Job, sizes: dict[str, int]) -> dict[str, Any]:
    """Return what every result says, whatever came of it."""
    chosen = method(job.method)
    return {
        "data": job.data,
        "method": job.name or job.method,
        "repeat": job.repeat,
        "seed": job.seed,
        "threads": job.threads,
        "settings": {**chosen.defaults, **job.settings},
        "versions": machine.versions(chosen.distributions),
        "machine": machine.describe(),
        "sizes": sizes,
    }


def run(job: Job) -> dict[str, Any]:
    """Train and measure, all of it on as many threads as the job says."""
    with parallel.use_threads(job.threads), threadpool_limits(limits=job.threads):
        return _run(job)


def _run(job: Job) -> dict[str, Any]:
    data = matrices.read(Path(job.matrices))
    trained = method(job.method)(**job.settings)
    given = dict(trained.settings)
    start = time.perf_counter()
    trained.fit(data.X, data.Y, seed=job.seed, threads=job.threads)
    # What is compiled once a machine, and then loaded, is no part of training; it stays among the phases.
    seconds = time.perf_counter() - start - trained.phases.get("compile", 0.0)
    held = {name: value for name, value in trained.settings.items() if value != given[name]}
    measured = {
        "train_seconds": seconds,
        "phases": trained.phases,
        "size_mb": size_on_disk(trained),
        **_predictions(trained, data),
        **({"held_settings": held} if held else {}),
        **({"along": _along(trained, data, job.along)} if job.along else {}),
    }
    # Of training and prediction; whoever started this process adds what its own processes held.
    return {**measured, "peak_mb": peak_memory().get("peak_mb")}


def _along(trained: Method, data: Matrices, wanted: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the measures for other values of settings that need no new training."""
    return {
        setting: [(value, _measures(other, data)) for value, other in trained.along(setting, values)]
        for setting, values in wanted.items()
    }


def size_on_disk(trained: Method) -> float:
    """Return the MB that a model takes."""
    with tempfile.TemporaryDirectory() as folder:
        trained.save(Path(folder))
        return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6


def _predictions(trained: Method, data: Matrices) -> dict[str, Any]:
    depth = max(CUTS)
    trained.rank(data.X_test[:_WARM], depth)
    start = time.perf_counter()
    trained.rank(data.X_test, depth)
    batch_ms = 1000 * (time.perf_counter() - start) / max(1, data.X_test.shape[0])
    return {
        "batch_ms": batch_ms,
        "single_ms": _single_ms(trained, data.X_test, depth),
        "metrics": _measures(trained, data),
    }


def _measures(trained: Method, data: Matrices) -> dict[str, float]:
    depth = max(CUTS)
    if data.ignore is not None:
        # What counts for nothing makes room for what comes after it.
        depth += int(np.diff(data.ignore.indptr).max(initial=0))
    ranked, _ = trained.rank(data.X_test, min(depth, data.Y.shape[1]))
    figures = evaluate(data.Y_test, ranked, k=CUTS, inv_propensity=data.inv_propensity, ignore=data.ignore)
    return {f"{name}@{cut}": figures[f"{name}@{cut}"] for name in MEASURES for cut in CUTS}


def _single_ms(trained: Method, X: csr_matrix, depth: int) -> dict[str, float]:
    """Return the median and the 99th percentile of the milliseconds that one document takes, alone."""
    rows = np.random.default_rng(0).integers(0, X.shape[0], _SINGLE + _WARM)
    times: list[float] = []
    end = time.perf_counter() + _SINGLE_SECONDS
    for row in rows.tolist():
        document = X[row]
        start = time.perf_counter()
        trained.rank(document, depth)
        times.append(1000 * (time.perf_counter() - start))
        if time.perf_counter() > end and len(times) > _WARM:
            break
    kept = times[_WARM:]
    return {"p50": float(np.percentile(kept, 50)), "p99": float(np.percentile(kept, 99))}


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a result; it is whole or not there."""
    with writing_text(path) as stream:
        json.dump(content, stream, indent=1, ensure_ascii=False)
        stream.write("\n")


def main(path: Path) -> None:
    """Do the job of this file."""
    job = Job(**json.loads(path.read_text("utf-8")))
    _end_with(job.parent)
    sizes = json.loads((Path(job.matrices) / "facts.json").read_text("utf-8"))["sizes"]
    # Before the work: what is installed may change while it lasts.
    first = header(job, sizes)
    try:
        outcome: dict[str, Any] = {"status": "done", "message": "", **run(job)}
    except TooLargeError as error:
        outcome = {"status": "skipped", "message": str(error)}
    write(Path(job.result), {**first, **outcome})


def _end_with(parent: int) -> None:
    """See to it that this process ends when its parent does, whatever ends that (on Linux)."""
    if not parent or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        # It has ended already.
        sys.exit(1)


def as_json(job: Job) -> str:
    """Return a job in the form in which `main` reads it."""
    return json.dumps(asdict(job))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
