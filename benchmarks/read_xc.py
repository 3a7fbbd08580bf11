"""Reading XC text, time and memory against scikit-learn: `python benchmarks/read_xc.py [--megabytes 200]`.

Both readers read the same documents in turns, each in a new process. scikit-learn gets them without the header line,
which it does not know. Peak memory is the growth of the process while it reads.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from measure import alone, timed_with_peak

V, L = 100_000, 30_000
Figures = dict[str, float]


def make(folder: Path, megabytes: int) -> tuple[Path, Path]:
    """Write a file of this size with and without its header."""
    rng, lines, size = np.random.default_rng(0), [], 0
    while size < megabytes * 1_000_000:
        features = np.unique(rng.integers(0, V, rng.integers(40, 120)))
        labels = np.unique(rng.integers(0, L, rng.integers(1, 10)))
        pairs = " ".join(f"{f}:{v:.5f}" for f, v in zip(features, rng.random(len(features)), strict=True))
        lines.append(f"{','.join(map(str, labels))} {pairs}\n")
        size += len(lines[-1])
    bare, headed = folder / "bare.txt", folder / "train.txt"
    bare.write_text("".join(lines))
    headed.write_text("".join([f"{len(lines)} {V} {L}\n", *lines]))
    return headed, bare


def figures_of(matrices: list[Any], seconds: float, peak: float) -> Figures:
    arrays = sum(array.nbytes for matrix in matrices for array in (matrix.data, matrix.indices, matrix.indptr))
    return {"seconds": seconds, "arrays": arrays / 1e6, "peak": peak}


def read_lightdxml(path: Path) -> Figures:
    from lightdxml.data import load

    small = path.with_name("small.txt")
    small.write_text("1 2 2\n0 1:1\n")
    load(small)  # Compiles the parser, or loads it from disk.
    data, seconds, peak = timed_with_peak(load, path)
    return figures_of([data.train.X, data.train.Y], seconds, peak)


def read_sklearn(path: Path) -> Figures:
    from sklearn.datasets import load_svmlight_file

    (X, _), seconds, peak = timed_with_peak(
        lambda: load_svmlight_file(path, dtype=np.float32, multilabel=True, zero_based=True)
    )
    return figures_of([X], seconds, peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    ours: list[Figures] = []
    theirs: list[Figures] = []
    with tempfile.TemporaryDirectory() as folder:
        headed, bare = make(Path(folder), arguments.megabytes)
        for _ in range(arguments.repeat):
            ours.append(alone(read_lightdxml, headed))
            theirs.append(alone(read_sklearn, bare))
    print(f"{arguments.megabytes} MB of XC text; medians of {arguments.repeat} runs")
    print(f"{'':14} {'seconds':>8} {'MB/s':>7} {'arrays MB':>10} {'peak MB':>8} {'peak/arrays':>12}")
    medians = []
    for name, runs in (("lightdxml", ours), ("scikit-learn", theirs)):
        seconds, arrays, peak = (statistics.median(run[key] for run in runs) for key in runs[0])
        medians.append(seconds)
        speed = arguments.megabytes / seconds
        print(f"{name:14} {seconds:8.2f} {speed:7.0f} {arrays:10.0f} {peak:8.0f} {peak / arrays:12.2f}")
    print(f"lightdxml is {medians[1] / medians[0]:.1f} times as fast")


if __name__ == "__main__":
    main()
