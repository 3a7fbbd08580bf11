"""How close training and prediction come to what the machine can do: `python benchmarks/roof.py [SET ...]`.

The folder given by `--data` holds one folder per data set, with features, or texts, which become TF-IDF of single
words. The linear view is trained against hard negatives as in the default preset. Measured are:

- **roofs**: a copy of a large array, and a product of float32 matrices, on all threads.
- **descent**: the first pass of dual coordinate descent, as the difference between one pass and none. Each feature of
  a document reads a row of 16 weights (64 bytes, 32 operations), and writes it if the document changes them; only the
  reading counts here.
- **search**: all labels of test documents. Each entry of a list has 4 bytes, and adds to the total of its label (4
  bytes read, 4 written, 2 operations).
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from measure import alone, timed
from scipy.sparse import csr_matrix

from lightdxml.config import configure
from lightdxml.data import load
from lightdxml.kernels import parallel
from lightdxml.kernels.linear import LANES
from lightdxml.text import tfidf
from lightdxml.training.fit import prepare
from lightdxml.training.run import Run
from lightdxml.validation import check_features
from lightdxml.views.base import Batch
from lightdxml.views.linear.groups import training_groups
from lightdxml.views.linear.inverted import InvertedIndex, search
from lightdxml.views.linear.options import SOLVER
from lightdxml.views.linear.solver import Problem, solve
from lightdxml.views.linear.train import _inverted, _problem

SETS = ("wordnet", "eurlex57k", "citeulike-t", "debian-relations")
ROUNDS = 5


@dataclass(frozen=True)
class Roofs:
    """Bytes and operations per second that the machine reaches."""

    bytes: float
    operations: float

    @staticmethod
    def measure() -> Roofs:
        """Copy 256 MB per thread, and multiply matrices of 4,096 rows."""
        threads = parallel.thread_count()
        pairs = [(np.ones(1 << 26, np.float32), np.empty(1 << 26, np.float32)) for _ in range(threads)]
        seconds = best(parallel.run, lambda pair: np.copyto(pair[1], pair[0]), pairs)
        square = np.ones((4096, 4096), dtype=np.float32)
        return Roofs(2 * threads * (1 << 28) / seconds, 2 * 4096**3 / best(np.matmul, square, square))


def best(function: Any, *arguments: Any) -> float:
    """Return the shortest time of some rounds."""
    return min(timed(function, *arguments)[1] for _ in range(ROUNDS))


def descent(problem: Problem, X: csr_matrix, roofs: Roofs) -> str:
    """Return the rate of one pass."""

    def passes(n: int) -> float:
        solver = replace(SOLVER, max_iter=n, tolerance=0.0)
        return best(solve, replace(problem, solver=solver))

    seconds = passes(1) - passes(0)
    groups, counts = np.unique(problem.groups[problem.classes], return_counts=True)
    lengths, members = np.diff(X.indptr), problem.members
    features = sum(
        int(lengths[members.indices[slice(*members.indptr[group : group + 2])]].sum()) * -(-count // LANES)
        for group, count in zip(groups, counts, strict=True)
    )
    return row("descent", features, seconds, 4 * LANES, 2 * LANES, roofs)


def searching(index: InvertedIndex, X: csr_matrix, roofs: Roofs) -> str:
    """Return the rate of a search."""
    seconds = best(search, index, Batch(X), 100, np.empty((X.shape[0], 0), dtype=np.int32))
    entries = int(np.diff(index.indptr)[:, X.indices].sum())
    return row("search", entries, seconds, 12, 2, roofs)


def row(name: str, n: int, seconds: float, size: int, operations: int, roofs: Roofs) -> str:
    """Return the cells of a row."""
    moved, done = size * n / seconds, operations * n / seconds
    return (
        f"{name} | {n / seconds / 1e6:,.0f} M | {moved / 1e9:.1f} | {moved / roofs.bytes:.2f} |"
        f" {done / roofs.operations:.2f}"
    )


def rows(path: Path) -> list[str]:
    """Return the rows of a data set."""
    data = load(path)
    assert data.test is not None
    if data.train.texts is None:
        X, X_test = data.train.X, data.test.X
    else:
        vectorizer, X = tfidf.fit(data.train.texts, tfidf.TextOptions(ngrams=1))
        X_test = tfidf.transform(vectorizer, data.test.texts or [])
    assert X is not None
    config = configure("default", X.shape[0], {"dense": "never"})
    run = Run(prepare(X, data.train.Y, config).take(), config)
    groups = training_groups(run)
    labels = groups.order(run.data.known_labels.astype(np.int32))
    problem = _problem(run, run.data, groups, labels, config.linear.default_cost)
    roofs = Roofs.measure()
    first = descent(problem, run.data.X, roofs)
    return [first, searching(_inverted(run, [solve(problem)]), check_features(X_test)[:2000], roofs)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LIGHTDXML_DATA", "../shared/data")))
    given = parser.parse_args()
    print("| Data set | Loop | Accesses per second | GB/s | / copy of a large array | / matrix product (FLOP) |")
    print("|---|---|--:|--:|--:|--:|", flush=True)
    for name in given.sets:
        for cells in alone(rows, given.data / name):
            print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
