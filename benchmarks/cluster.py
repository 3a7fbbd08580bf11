"""Training on Ray against training on threads: `python benchmarks/cluster.py overhead|steps|memory`.

`overhead SET ...` trains data sets in one process on threads, and on Ray on this machine, and prints seconds of each
and the ratio, after both have started and compiled everything. `steps` trains batches of the paper's classifier with
its parts in one to eight processes: seconds and bytes per step, beside what an empty call takes. `memory` trains on
more and more synthetic texts in several files, and prints how much private memory the driver takes (Linux only).
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import synthetic
from measure import alone, timed
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.cli.measure import inputs_of
from lightdxml.cluster import RayBackend
from lightdxml.data import load
from lightdxml.executor import Executor, Threads, connected
from lightdxml.views.dense import classifier_part, train_classifier
from lightdxml.views.dense.options import DenseOptions

SETS = ("wordnet", "debian-relations")
B = 256


# --- overhead -------------------------------------------------------------------------------------------------------


def fitted(folder: Path, backend: RayBackend | None, options: dict[str, Any]) -> tuple[float, str]:
    """Train twice on the same connection; return the seconds of the second run and a checksum."""
    import hashlib

    data = load(folder)
    with connected(backend):
        LightDXML(random_state=0, **options).fit(inputs_of(data.train), data.train.Y, backend=backend)
        model = LightDXML(random_state=0, **options)
        _, seconds = timed(lambda: model.fit(inputs_of(data.train), data.train.Y, backend=backend))
    digest = hashlib.sha256()
    for view in model.model_.views.values():
        for name, array in sorted(view.arrays().items()):
            digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
    return seconds, digest.hexdigest()


def overhead(sets: list[str], folder: Path, options: dict[str, Any]) -> None:
    """Print seconds on threads and on Ray, and the ratio."""
    print("| Data set | Threads | Ray, one node | Ratio | Same model |\n|---|--:|--:|--:|---|")
    for name in sets:
        found = [alone(fitted, folder / name, backend, options) for backend in (None, RayBackend("local"))]
        (threads, one), (ray, other) = found
        same = "yes" if one == other else "NO"
        print(f"| {name} | {threads:.1f} s | {ray:.1f} s | {ray / threads:.2f} | {same} |", flush=True)


# --- steps ----------------------------------------------------------------------------------------------------------


def size(value: object) -> int:
    """Return how many bytes a value has on its way: as Ray sends it, with arrays apart."""
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return len(content) + sum(buffer.raw().nbytes for buffer in buffers)


@dataclass(frozen=True)
class Shape:
    """Labels, dimensions, and length of the shortlists."""

    labels: int
    dim: int
    k: int


SHAPES = (Shape(100_000, 192, 100), Shape(670_000, 300, 500))


def steps(executor: Executor, shape: Shape, repeat: int) -> tuple[float, int, int]:
    """Return the median seconds of a training step, and the bytes of a batch and of its gradient."""
    options = DenseOptions(dim=shape.dim, shortlist_size=shape.k, batch_size=B, random_negatives=0)
    rng = np.random.default_rng(0)
    n = B * (repeat + 2)
    Y = csr_matrix((np.ones(n, np.float32), rng.integers(0, shape.labels, n), np.arange(n + 1)), (n, shape.labels))
    training = train_classifier.divide(train_classifier.start(shape.labels, options, rng), Y, options, executor)
    training.take_shortlists(rng.integers(0, shape.labels, (n, shape.k)).astype(np.int32))
    X: NDArray[np.float32] = rng.normal(size=(n, shape.dim)).astype(np.float32)
    times, batch, gradient = [], 0, 0
    for i in range(repeat + 2):
        rows = np.arange(i * B, (i + 1) * B, dtype=np.int32)
        one = classifier_part.EmbeddedBatch(rows, X[rows], i, np.float32(1e-3))
        found, seconds = timed(training.parts.total, classifier_part.train, one)
        times.append(seconds)
        batch, gradient = size(one), size(found)
    training.release()
    # The first steps compile, and touch memory for the first time.
    return statistics.median(times[2:]), batch, gradient


def no_part(shared: None, item: int) -> int:
    """Return a part without content."""
    return item


def nothing(part: int, argument: object) -> tuple[int]:
    """Do nothing."""
    return (part,)


def sent_back(part: int, argument: NDArray[np.uint8]) -> tuple[int, NDArray[np.uint8]]:
    """Return the argument."""
    return part, argument


def call_seconds(executor: Executor, function: Callable[..., Any], argument: object, shards: int) -> float:
    """Return the median seconds of a call of all shards."""
    parts = executor.hold(no_part, None, list(range(shards)))
    times = [timed(parts.call, function, argument)[1] for _ in range(30)]
    parts.release()
    return statistics.median(times[5:])


@contextmanager
def executors() -> Iterator[list[tuple[int, Executor]]]:
    """Connect to Ray on this machine; yield executors by their number of processes."""
    with RayBackend("local").connect():
        from lightdxml.cluster.executor import RayExecutor

        yield [(1, Threads()), *((n, RayExecutor(n)) for n in (2, 4, 8))]


def measure_steps(repeat: int) -> None:
    """Print seconds and bytes per step, by the number of processes."""
    with executors() as all_executors:
        print("| Labels | D | Shortlist | Processes | Step | Bytes per step | of B × D × 4 × processes × 2 |")
        print("|--:|--:|--:|--:|--:|--:|--:|")
        for shape in SHAPES:
            for n, executor in all_executors:
                seconds, batch, gradient = steps(executor, shape, repeat)
                moved = 0 if n == 1 else n * (batch + gradient)
                share = "" if n == 1 else f"{moved / (B * shape.dim * 4 * n * 2):.3f}"
                numbers = f"{shape.labels:,} | {shape.dim} | {shape.k} | {n} | {seconds * 1e3:.1f} ms"
                print(f"| {numbers} | {moved / 1e6:.2f} MB | {share} |", flush=True)
        print("\n| Processes | Empty call | 20 MB there and back, per process |\n|--:|--:|--:|")
        large = np.zeros(20_000_000, dtype=np.uint8)
        for n, executor in all_executors[1:]:
            empty = call_seconds(executor, nothing, None, n)
            there = call_seconds(executor, sent_back, large, n) - empty
            print(f"| {n} | {empty * 1e3:.2f} ms | {2 * 20 * n / 1e3 / there:.2f} GB/s |", flush=True)


# --- memory ---------------------------------------------------------------------------------------------------------

DOCUMENTS, FILES = (40_000, 160_000, 320_000), 16


def write_texts(n: int, folder: Path) -> Path:
    """Write documents of 7 words and 5 of 5,000 labels each, repeated words among them, to several files."""
    data = load(synthetic.make(synthetic.Recipe(n, 0, 5000, 50_000), folder / "features"))
    assert data.train.X is not None
    X, Y, texts = data.train.X, data.train.Y, folder / "texts"
    texts.mkdir()
    for i, some in enumerate(np.array_split(np.arange(n), FILES)):
        with (texts / f"train-{i:02}.jsonl").open("w", encoding="utf-8") as stream:
            for row in some:
                words = " ".join(f"w{j}" for j in X.indices[slice(*X.indptr[row : row + 2])])
                labels = [f"l{j}" for j in Y.indices[slice(*Y.indptr[row : row + 2])]]
                stream.write(json.dumps({"id": str(row), "text": words, "labels": labels}) + "\n")
    return texts


def private_megabytes(command: list[str]) -> float:
    """Run a command; return its private memory at the peak, without what it shares with Ray's object store."""
    process, most = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), 0
    while process.poll() is None:
        with suppress(OSError):
            found = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
            most = max(most, int(found[1]) if found else 0)
        time.sleep(0.02)
    assert process.returncode == 0, command
    return most / 1e3


def measure_memory() -> None:
    """Print the memory of the driver by the number of documents."""
    print("| Documents | Driver | with `--spill` |\n|--:|--:|--:|")
    for n in DOCUMENTS:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            texts = write_texts(n, folder)
            command = [sys.executable, "-m", "lightdxml", "train", str(texts), "--ray", "local", "--force", "--model"]
            command.append(str(folder / "model"))
            found = [private_megabytes([*command, *way]) for way in ([], ["--spill", str(folder / "spill")])]
            print(f"| {n:,} | {found[0]:,.0f} MB | {found[1]:,.0f} MB |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["overhead", "steps", "memory"])
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--dense", default="auto", help="auto, always or never, as for training")
    parser.add_argument("--repeat", type=int, default=30, help="steps that are measured")
    default = os.environ.get("LIGHTDXML_DATA", Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(default), help="the folder of the data sets")
    arguments = parser.parse_args()
    if arguments.what == "overhead":
        overhead(arguments.sets, arguments.data, {"dense": arguments.dense})
    elif arguments.what == "steps":
        measure_steps(arguments.repeat)
    else:
        measure_memory()


if __name__ == "__main__":
    main()
