"""How fast XC text is read, and in how much memory: `python benchmarks/read_xc.py [--megabytes 200]`.

Both readers read the same documents (scikit-learn's without the header line, which it cannot take), each in a process
of its own, in turns. Peak memory is what the process holds at most while it reads, less what it held before.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

V, L = 100_000, 30_000


def make(folder: Path, megabytes: int) -> tuple[Path, Path, int]:
    """Write a file of the wanted size with and without its header; return both and the number of documents."""
    rng = np.random.default_rng(0)
    bare, headed = folder / "bare.txt", folder / "train.txt"
    n = written = 0
    with bare.open("w") as stream:
        while written < megabytes * 1_000_000:
            features = np.unique(rng.integers(0, V, rng.integers(40, 120)))
            labels = np.unique(rng.integers(0, L, rng.integers(1, 10)))
            pairs = " ".join(f"{f}:{v:.5f}" for f, v in zip(features, rng.random(len(features)), strict=True))
            written += stream.write(f"{','.join(map(str, labels))} {pairs}\n")
            n += 1
    with headed.open("w") as target, bare.open() as source:
        target.write(f"{n} {V} {L}\n")
        while chunk := source.read(1 << 24):
            target.write(chunk)
    return headed, bare, n


def resident() -> int:
    """Return this process's resident memory in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def child(reader: str, path: str) -> None:
    """Read a file once and print seconds, the bytes of the resulting arrays and the peak of memory."""
    if reader == "lightdxml":
        from lightdxml.data import load

        warm = Path(path).with_name("warm.txt")
        warm.write_text("1 2 2\n0 1:1\n")
        load(warm)
    else:
        from sklearn.datasets import load_svmlight_file
    before = peak = resident()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.001):
            peak = max(peak, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    if reader == "lightdxml":
        data = load(path)
        matrices = [data.train.X, data.train.Y]
    else:
        X, _ = load_svmlight_file(path, dtype=np.float32, multilabel=True, zero_based=True)
        matrices = [X]
    seconds = time.perf_counter() - start
    done.set()
    watcher.join()
    arrays = sum(a.nbytes for m in matrices for a in (m.data, m.indices, m.indptr))
    print(json.dumps({"seconds": seconds, "arrays": arrays, "peak": max(peak, resident()) - before}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(*arguments.child)
        return
    with tempfile.TemporaryDirectory() as folder:
        headed, bare, n = make(Path(folder), arguments.megabytes)
        size = headed.stat().st_size / 1e6
        print(f"{size:.0f} MB of XC text, {n:,} documents; {arguments.repeat} turns, medians")
        results: dict[str, list[dict[str, float]]] = {"lightdxml": [], "scikit-learn": []}
        for _ in range(arguments.repeat):
            for reader, path in (("lightdxml", headed), ("scikit-learn", bare)):
                command = [sys.executable, __file__, "--child", reader, str(path)]
                results[reader].append(json.loads(subprocess.check_output(command, text=True)))
    print(f"{'reader':14} {'seconds':>8} {'MB/s':>7} {'arrays MB':>10} {'peak MB':>8} {'peak/arrays':>12}")
    medians = {}
    for reader, runs in results.items():
        row = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        medians[reader] = row
        print(
            f"{reader:14} {row['seconds']:8.2f} {size / row['seconds']:7.0f} {row['arrays'] / 1e6:10.0f} "
            f"{row['peak'] / 1e6:8.0f} {row['peak'] / row['arrays']:12.2f}"
        )
    ratio = medians["scikit-learn"]["seconds"] / medians["lightdxml"]["seconds"]
    print(f"lightdxml is {ratio:.1f} times as fast as scikit-learn's load_svmlight_file")


if __name__ == "__main__":
    main()
