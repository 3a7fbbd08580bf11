"""One cell of the benchmark: train and evaluate one method on one data set, in its own process.

`python -m lightdxml.experiments.bench.cell JOB PARENT` reads a job file and writes a result file, both JSON. PARENT is
the id of the process that waits for the cell.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from lightdxml.experiments.baselines import Method, TooLargeError, method
from lightdxml.experiments.bench import machine, matrices
from lightdxml.experiments.bench.matrices import Matrices
from lightdxml.experiments.bench.results import Cell, write_json
from lightdxml.kernels import parallel
from lightdxml.metrics import evaluate, r_precision
from lightdxml.progress import peak_memory
from lightdxml.validation import check_features

_CUTOFFS = (1, 3, 5)
_METRICS = (*(f"{metric}@{k}" for metric in ("P", "nDCG", "PSP", "PSnDCG") for k in _CUTOFFS), "RP@5")
# R-precision needs as many ranks as a document has labels. Of a document with more labels than this, the others count
# as missed: a few such documents must not make the ranking of all as wide.
_MAX_DEPTH = 100
_SINGLE_DOCUMENTS, _WARM_UP = 200, 20
_SINGLE_SECONDS = 30.0
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Job:
    """What to run in a cell.

    Attributes
    ----------
    out
        Output folder of the benchmark.
    data, name
        Names of the data set and of the method in tables.
    method, settings
        The method and its settings.
    repeat, seed, threads
        Number of the repeat, from 0; its seed and number of threads.
    """

    out: str
    data: str
    name: str
    method: str
    settings: dict[str, Any]
    repeat: int = 0
    seed: int = 0
    threads: int = 1

    @property
    def matrices(self) -> Path:
        """The folder of the matrices."""
        return Path(self.out, "matrices", self.data)

    @property
    def result(self) -> Path:
        """The result file."""
        return self.file("cells", "json")

    def file(self, folder: str, suffix: str) -> Path:
        """Return the path of a file of this cell."""
        return Path(self.out, folder, f"{self.data}.{self.name}.{self.repeat}.{suffix}")


def header(job: Job) -> Cell:
    """Return the part of a result that is known before the run."""
    chosen = method(job.method)
    return {
        "data": job.data,
        "method": job.name,
        "repeat": job.repeat,
        "seed": job.seed,
        "threads": job.threads,
        "settings": {**chosen.defaults, **job.settings},
        "versions": machine.versions(chosen.distribution or chosen.package),
        "machine": machine.describe(),
        "sizes": matrices.read_facts(job.matrices)["sizes"],
    }


def run(job: Job) -> Cell:
    """Train and evaluate with the job's number of threads."""
    model = method(job.method)(**job.settings)
    data = matrices.read(job.matrices)
    if model.unit_rows:
        data = replace(data, X=check_features(data.X), X_test=check_features(data.X_test))
    given = dict(model.settings)
    with parallel.use_threads(job.threads), threadpool_limits(limits=job.threads):
        start = time.perf_counter()
        model.fit(data.X, data.Y, seed=job.seed, threads=job.threads)
        seconds = time.perf_counter() - start
        adjusted = {name: value for name, value in model.settings.items() if value != given[name]}
        betas = [(beta, _metrics(other, data)) for beta, other in model.with_other_betas()]
        return {
            # Kernels are compiled once per machine: that is not training time.
            "train_seconds": seconds - model.phases.get("compile", 0.0),
            "phases": model.phases,
            "size_mb": _size_mb(model),
            "batch_ms": _batch_ms(model, data.X_test),
            "single_ms": _single_ms(model, data.X_test),
            "metrics": _metrics(model, data),
            **({"held_settings": adjusted} if adjusted else {}),
            **({"beta_curve": betas} if betas else {}),
            # Peak of this process; the parent adds the memory of its child processes.
            "peak_mb": peak_memory().get("peak_mb"),
        }


def _size_mb(model: Method) -> float:
    """Return the size of a model on disk."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder))
        return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6


def _rank_ms(model: Method, X: csr_matrix) -> float:
    start = time.perf_counter()
    model.rank(X, max(_CUTOFFS))
    return 1000 * (time.perf_counter() - start)


def _batch_ms(model: Method, X: csr_matrix) -> float:
    """Return the prediction time per document when all documents are given at once."""
    model.rank(X[:_WARM_UP], max(_CUTOFFS))
    return _rank_ms(model, X) / max(1, int(X.shape[0]))


def _single_ms(model: Method, X: csr_matrix) -> dict[str, float]:
    """Return the median and the 99th percentile of the prediction time for one document at a time.

    It stops after 30 s. If the warm-up is not over by then, the last document counts.
    """
    rows = np.random.default_rng(0).integers(0, X.shape[0], _SINGLE_DOCUMENTS + _WARM_UP)
    times: list[float] = []
    end = time.perf_counter() + _SINGLE_SECONDS
    for row in rows.tolist():
        times.append(_rank_ms(model, X[row]))
        if time.perf_counter() > end:
            break
    p50, p99 = np.percentile(times[_WARM_UP:] or times[-1:], [50, 99]).tolist()
    return {"p50": p50, "p99": p99}


def _metrics(model: Method, data: Matrices) -> dict[str, float]:
    most = int(np.diff(data.Y_test.indptr).max(initial=0))
    depth = max(*_CUTOFFS, min(most, _MAX_DEPTH))
    if data.ignore is not None:
        # Ignored labels leave the ranking, and the labels below them move up.
        depth += int(np.diff(data.ignore.indptr).max(initial=0))
    ranked, _ = model.rank(data.X_test, min(depth, data.Y.shape[1]))
    values = evaluate(data.Y_test, ranked, k=_CUTOFFS, inv_propensity=data.inv_propensity, ignore=data.ignore)
    return {name: values[name] for name in _METRICS} | {"R-precision": r_precision(data.Y_test, ranked, data.ignore)}


def main(path: Path, parent: int) -> None:
    """Run the job in this file."""
    job = Job(**json.loads(path.read_text("utf-8")))
    _end_with(parent)
    # Before the run: the installed versions may change meanwhile.
    known = header(job)
    try:
        outcome: Cell = {"status": "done", "message": "", **run(job)}
    except TooLargeError as error:
        outcome = {"status": "skipped", "message": str(error)}
    write_json(job.result, {**known, **outcome})


def _end_with(parent: int) -> None:
    """Make Linux kill this process when its parent ends, for whatever reason."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        sys.exit(1)  # the parent ended before prctl took effect


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
