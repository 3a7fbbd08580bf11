"""The cost model of docs/explanation/cluster.md, fitted to this machine: `python benchmarks/cluster_plan.py`.

Trains synthetic data of two sizes on threads, and measures how much of the time an executor can spread over machines,
how much stays with the driver, and memory. Trains batches of the paper's classifier, and measures an empty call of a
cluster and how fast arrays travel. From these it predicts time and memory for larger data on more nodes. Work is
assumed to grow with documents × words per document, or documents × labels per document for labels: extrapolations by a
factor of 100 and more say where limits are, and not how many minutes it takes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import synthetic
from cluster import SHAPES, B, call_seconds, executors, nothing, sent_back, steps
from measure import alone

from lightdxml.config import Config, changed
from lightdxml.data import load
from lightdxml.executor import Threads
from lightdxml.kernels import parallel
from lightdxml.progress import peak_memory
from lightdxml.training.fit import prepare, train

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")
_SIZES = (80_000, 240_000)
# The paper's settings for the largest data.
_EPOCHS, _DIM, _K = 21, 300, 650


class Measured(Threads):
    """Threads that add up the time of what a cluster would do."""

    seconds = 0.0

    def map(
        self,
        function: Callable[[S, T], R],
        shared: S,
        items: Sequence[T],
        each: Callable[[int, R], object] | None = None,
        after: Callable[[int], object] | None = None,
    ) -> list[R]:
        """Call the function, and measure it."""
        start = time.perf_counter()
        found = super().map(function, shared, items, each, after)
        self.seconds += time.perf_counter() - start
        return found


def megabytes() -> float:
    """Return the peak memory of this process."""
    return float(peak_memory()["peak_mb"] or 0)


def trained(labels: int) -> tuple[int, float, float, float]:
    """Train the default views; return documents, seconds for a cluster and for the driver, and the memory they took."""
    whole = synthetic.like("AmazonTitles-670K")
    recipe = replace(whole, labels=labels, documents=round(labels * whole.documents / whole.labels), test_documents=0)
    with tempfile.TemporaryDirectory() as temporary:
        data = load(synthetic.make(recipe, Path(temporary) / "made"))
    config = changed(Config(), {"dense.train": "never"})
    assert data.train.X is not None
    # Compiles everything.
    train(prepare(data.train.X[:2000], data.train.Y[:2000], config), config)
    executor, before = Measured(), megabytes()
    prepared = prepare(data.train.X, data.train.Y, config)
    start = time.perf_counter()
    train(prepared, config, executor=executor)
    seconds = time.perf_counter() - start
    return recipe.documents, executor.seconds, seconds - executor.seconds, megabytes() - before


@dataclass(frozen=True)
class Costs:
    """What one document or one step costs.

    Attributes
    ----------
    spread, driver
        Core-seconds per document that a cluster spreads, and seconds of the driver (with two threads), default views.
    memory
        Bytes per document in the driver, default views.
    pair
        Core-seconds per (document, label) pair and dimension of the paper's classifier.
    call, call_per_process
        Seconds of an empty call of all processes.
    """

    spread: float
    driver: float
    memory: float
    pair: float
    call: float
    call_per_process: float


def fit() -> Costs:
    """Measure, and return the costs."""
    found = [alone(trained, labels) for labels in _SIZES]
    for labels, (n, spread, driver, memory) in zip(_SIZES, found, strict=True):
        print(f"{labels:,} labels, {n:,} documents: cluster {spread:.1f} s, driver {driver:.1f} s, {memory:.0f} MB")
    (n1, spread1, driver1, memory1), (n2, spread2, driver2, memory2) = found
    cores, n = parallel.thread_count(), n2 - n1
    seconds, _, _ = steps(Threads(), SHAPES[1], 30)
    pair = seconds * cores / (B * SHAPES[1].k * SHAPES[1].dim)
    with executors() as all_executors:
        counts = [count for count, _ in all_executors[1:]]
        empty = [call_seconds(executor, nothing, None, count) for count, executor in all_executors[1:]]
        large = np.zeros(20_000_000, dtype=np.uint8)
        count, executor = all_executors[1]
        there = call_seconds(executor, sent_back, large, count) - empty[0]
    per_process, call = np.polyfit(counts, empty, 1)
    print(f"a step of {SHAPES[1]}: {seconds * 1e3:.1f} ms on {cores} cores; empty calls of {counts} processes: "
          f"{', '.join(f'{one * 1e3:.1f}' for one in empty)} ms; {2 * 20 * count / 1e3 / there:.1f} GB/s")  # fmt: skip
    return Costs(
        (spread2 - spread1) * cores / n, (driver2 - driver1) / n, (memory2 - memory1) * 1e6 / n, pair,
        max(0.0, float(call)), max(0.0, float(per_process)),
    )  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """Data and nodes."""

    name: str
    documents: int
    labels: int
    labels_per_document: float
    words_per_document: float


PLANS = (
    Plan("AmazonTitles-3M", 1_712_536, 2_812_281, 36.2, 8.0),
    Plan("10 million labels, 100 million documents", 100_000_000, 10_000_000, 5.4, 7.0),
)
_CORES, _BANDWIDTH = 16, 1.25e9


def predict(costs: Costs, plan: Plan, nodes: int) -> list[str]:
    """Return a row: hours and memory of the default views, and of the paper's."""
    recipe = synthetic.like("AmazonTitles-670K")
    wide = plan.words_per_document / recipe.words_per_document
    many = plan.labels_per_document / recipe.labels_per_document
    # Each label of a document takes part in solving a cluster of labels.
    spread = costs.spread * plan.documents * wide * max(1.0, many) / (nodes * _CORES)
    features = 8 * plan.words_per_document * plan.documents
    travel = features * nodes / _BANDWIDTH
    driver = costs.driver * plan.documents * max(wide, many)
    memory = costs.memory * plan.documents * max(wide, many)
    pairs = B * (_K + plan.labels_per_document)
    step = costs.pair * pairs * _DIM / (nodes * _CORES) + costs.call + costs.call_per_process * nodes
    step += 2 * B * _DIM * 4 * nodes / _BANDWIDTH
    dense = step * _EPOCHS * plan.documents / B
    weights = plan.labels * (_DIM + 1) * 6 / nodes
    shortlists, embeddings = 4 * _K * plan.documents, 4 * _DIM * plan.documents
    return [
        plan.name, str(nodes), f"{(spread + travel) / 60:.1f} min", f"{driver / 60:.0f} min", f"{memory / 1e9:.0f} GB",
        f"{dense / 3600:,.1f} h", f"{weights / 1e9:.1f} GB", f"{(shortlists + embeddings) / 1e9:,.0f} GB",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    costs = fit()
    titles = ["Data", "Nodes", "Default views: on the cluster", "on the driver", "memory of the driver",
              "Paper's classifier, 21 epochs", "weights per node", "shortlists, embeddings on the driver"]  # fmt: skip
    print(f"| {' | '.join(titles)} |\n|---|{'--:|' * (len(titles) - 1)}")
    for plan in PLANS:
        for nodes in (4, 16, 64):
            print(f"| {' | '.join(predict(costs, plan, nodes))} |")
    print("\n| Constant of the cost model | Measured |\n|---|--:|")
    print(f"| core-seconds per document that a cluster can share | {costs.spread * 1e6:.0f} µs |")
    print(f"| seconds of the driver per document | {costs.driver * 1e6:.0f} µs |")
    print(f"| memory of the driver per document | {costs.memory / 1e3:.1f} kB |")
    print(f"| core-seconds per pair of document and label, and dimension | {costs.pair * 1e9:.1f} ns |")
    print(f"| a call of all processes | {costs.call * 1e3:.1f} ms + {costs.call_per_process * 1e3:.1f} ms each |")


if __name__ == "__main__":
    main()
