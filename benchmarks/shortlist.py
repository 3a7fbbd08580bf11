"""Nearest labels, our indexes beside those of faiss: `python benchmarks/shortlist.py [--labels 300000 670000]`.

Prints for each index: seconds to build it, milliseconds per query in a batch and for one query at a time, and the share
of the true k nearest labels that it finds. All indexes are timed in turn, several rounds, and the median is shown: what
else runs on the machine hits all of them. Labels and queries are made-up unit vectors in clusters.

- `exact`: our exact search, on float16.        - `faiss Flat`: exact search, on float32.
- `RaBitQ`: our 1-bit codes with reranking.     - `faiss PQ fs`, `faiss RaBitQ fs`: fast scan, then SQ8 reranking of
                                                  some times k candidates.

Exact search alone, at the sizes of most data sets:
`python benchmarks/shortlist.py --labels 4000 50000 100000 --dim 192 --k 200 --queries 8192 --only exact "faiss Flat"`

faiss is optional: `pip install 'lightdxml[bench]'`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml import index as indexes
from lightdxml.kernels import parallel

# Threads of faiss that wait for work must not take the time of what is measured next.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
faiss: Any = import_module("faiss") if find_spec("faiss") is not None else None

Search = Callable[[NDArray[np.float32]], NDArray[Any]]
# Labels per cluster, and how far they are from its center.
PER_CLUSTER, SPREAD = 400, 0.7
TRAINING_VECTORS, SINGLE = 20_000, 50


def clustered(rng: np.random.Generator, n: int, centers: NDArray[np.float32]) -> NDArray[np.float32]:
    dim = centers.shape[1]
    rows = centers[rng.integers(0, len(centers), n)]
    rows += np.float32(SPREAD / np.sqrt(dim)) * rng.standard_normal((n, dim), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def our_search(index: indexes.Index, k: int) -> Search:
    return lambda queries: index.search(queries, k)[0]


def faiss_search(index: Any, k: int, factor: float) -> Search:
    """Search with an index of faiss; one that reranks takes `factor` times k candidates."""

    def search(queries: NDArray[np.float32]) -> NDArray[Any]:
        if factor:
            index.k_factor = factor
        found: NDArray[Any] = index.search(queries, k)[1]
        return found

    return search


def faiss_index(vectors: NDArray[np.float16], description: str) -> Any:
    index = faiss.index_factory(vectors.shape[1], description, faiss.METRIC_INNER_PRODUCT)
    rows = vectors.astype(np.float32)
    index.train(rows[:TRAINING_VECTORS])
    index.add(rows)
    return index


def build_all(
    vectors: NDArray[np.float16], queries: NDArray[np.float32], k: int, only: list[str]
) -> Iterator[tuple[str, float, Search]]:
    """Build the wanted indexes one after the other: name, seconds, search."""

    def wanted(name: str) -> bool:
        return any(name.startswith(start) for start in only)

    kinds: tuple[tuple[str, indexes.IndexKind], ...] = (("exact", "exact"), ("RaBitQ", "rabitq"))
    for name, kind in kinds:
        if wanted(name):
            start = time.perf_counter()
            index = indexes.build(vectors, kind, queries=queries, k=k)
            yield name, time.perf_counter() - start, our_search(index, k)
    peers: list[tuple[str, str, tuple[float, ...]]] = [
        ("faiss Flat", "Flat", (0,)),
        ("faiss PQ fs", f"PQ{vectors.shape[1] // 2}x4fs,Refine(SQ8)", (2, 4)),
    ]
    if hasattr(faiss, "IndexRaBitQFastScan"):
        peers.append(("faiss RaBitQ fs", "RaBitQfs,Refine(SQ8)", (4,)))
    for name, description, factors in peers if faiss is not None else []:
        if wanted(name):
            start = time.perf_counter()
            built = faiss_index(vectors, description)
            taken = time.perf_counter() - start
            for factor in factors:
                yield f"{name} ×{factor}" if factor else name, taken, faiss_search(built, k, factor)


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def compare(L: int, arguments: argparse.Namespace) -> None:
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((max(10, L // PER_CLUSTER), arguments.dim), dtype=np.float32)
    centers /= np.linalg.norm(centers, axis=1, keepdims=True)
    vectors = clustered(rng, L, centers).astype(np.float16)
    queries, others = clustered(rng, arguments.queries, centers), clustered(rng, 256, centers)
    truth = indexes.ExactIndex(vectors).search(queries[:256], arguments.k)[0]
    searches: dict[str, Search] = {}
    built, recall = {}, {}
    for name, taken, search in build_all(vectors, others, arguments.k, arguments.only):
        searches[name], built[name] = search, taken
        found = search(queries[:256])
        recall[name] = np.mean([len(np.intersect1d(a, b)) / a.size for a, b in zip(truth, found, strict=True)])
        # Kernels for one query are compiled before they are timed.
        search(queries[:1])
    batch: dict[str, list[float]] = {name: [] for name in searches}
    single: dict[str, list[float]] = {name: [] for name in searches}
    for _ in range(arguments.rounds):
        for name, search in searches.items():
            batch[name].append(seconds(lambda search=search: search(queries)) / len(queries))  # type: ignore[misc]
            single[name] += [seconds(lambda s=search, i=i: s(queries[i : i + 1])) for i in range(SINGLE)]  # type: ignore[misc]
    for name in searches:
        times = 1000 * statistics.median(batch[name]), 1000 * statistics.median(single[name])
        print(f"{L:>9,} {name:18} {built[name]:8.1f} {times[0]:9.3f} {times[1]:10.3f} {recall[name]:7.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, nargs="+", default=[300_000, 670_000])
    parser.add_argument("--dim", type=int, default=304, help="dimensions, an even number")
    parser.add_argument("--k", type=int, default=650)
    parser.add_argument("--queries", type=int, default=1024, help="queries per batch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[""], help="names of indexes, or how they start")
    arguments = parser.parse_args()
    threads = parallel.thread_count()
    if faiss is not None:
        faiss.omp_set_num_threads(threads)
    shown = f"dim {arguments.dim}, k {arguments.k}, {arguments.queries} queries per batch, {threads} threads"
    print(shown + ("" if faiss is None else f", faiss {faiss.__version__}"))
    print(f"{'labels':>9} {'index':18} {'build s':>8} {'batch ms':>9} {'single ms':>10} {'recall':>7}")
    for L in arguments.labels:
        compare(L, arguments)


if __name__ == "__main__":
    main()
