"""How near the solver of linear classifiers is to the limits of a core: `python benchmarks/linear.py [--rounds 5]`.

One pass of dual coordinate descent visits every document of a group once, for sixteen classes: per feature it reads a
row of weights, one cache line, and where a dual changes it writes it back. Prints the multiply-adds and bytes per
second of one thread on synthetic documents, gathered (weights fit into a cache) and not, next to what the same core
copies from its cache and from memory.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.kernels import linear, parallel
from lightdxml.views.linear.options import SOLVER
from lightdxml.views.linear.solver import Documents, Problem

LENGTH, LINE = 60, 4 * linear.LANES


def problem(n_documents: int, n_features: int) -> Problem:
    """Return sixteen classes on all documents, whose words are as frequent as in texts."""
    rng = np.random.default_rng(0)
    columns = (n_features * rng.random((n_documents, LENGTH)) ** 3).astype(np.int32)
    X = csr_matrix(
        (np.full(columns.size, LENGTH**-0.5, np.float32), columns.ravel(), np.arange(0, columns.size + 1, LENGTH))
    )
    X.resize(n_documents, n_features)
    X.sum_duplicates()
    Y = csr_matrix((rng.random((linear.LANES, n_documents)) < 0.01).astype(np.float32))
    everyone = csr_matrix(np.ones((1, n_documents), dtype=np.float32))
    classes, one_pass = np.arange(linear.LANES, dtype=np.int32), replace(SOLVER, max_iter=1)
    return Problem(Documents.of(X), Y, classes, np.zeros(linear.LANES, np.int32), everyone, 1.0, one_pass, 0)


def seconds(function: object, rounds: int) -> float:
    """Return the median time of a call, the first one left out."""
    times = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        function()  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def copied_per_second(size: int, rounds: int) -> float:
    """Return the bytes per second, read and written, of copies of an array of this size."""
    source, target = np.ones(size // 4, np.float32), np.empty(size // 4, np.float32)
    repeat = max(1, 200_000_000 // size)
    return 2 * size * repeat / seconds(lambda: [np.copyto(target, source) for _ in range(repeat)], rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with parallel.use_threads(1):
        for size, where in ((256 << 10, "second-level cache"), (200 << 20, "memory")):
            print(f"copies, {where}: {copied_per_second(size, rounds) / 1e9:.1f} GB/s")
        for n_documents, n_features in ((2_000, 5_000), (20_000, 30_000), (200_000, 500_000)):
            one = problem(n_documents, n_features)
            visits = one.documents.X.nnz
            took = seconds(lambda one=one: one.solve(one.classes), rounds)
            gathered = "gathered" if visits <= linear.MAX_COPIED else "not gathered"
            name = f"{n_documents:,} documents, {n_features:,} features, {gathered}"
            rates = f"{visits * linear.LANES / took / 1e9:.1f} billion multiply-adds/s"
            print(f"{name}: {1e9 * took / visits:.2f} ns per feature, {rates}, {visits * LINE / took / 1e9:.1f} GB/s")


if __name__ == "__main__":
    main()
