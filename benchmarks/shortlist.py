"""Ways to find shortlists: `python benchmarks/shortlist.py [--labels 20000 50000] [--kinds exact sketch ivf hnsw]`.

`… --costs` prints what sketches and an inverted file cost in products of an exact search, by which training chooses.
Else, for each number of labels: the time to build each index, milliseconds a document in a batch and alone, and the
share of the exact shortlists that it finds. Labels lie in clusters of about `--around` each: with fewer than k, most of
S_k is no nearer than chance, as in a training that has just begun, and hard to find. Seconds are those of the cores
(`cpu`), which others at work on the machine do not lengthen, except for a document alone.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml import inverted_file, k_means, shortlist, sketches
from lightdxml.encoder import unit_rows

K, BATCH, SINGLE = 200, 8192, 50


def clustered(rng: np.random.Generator, n: int, centres: NDArray[np.float32]) -> NDArray[np.float32]:
    D = centres.shape[1]
    chosen = centres[rng.integers(0, len(centres), n)]
    return unit_rows(chosen + 0.7 * rng.standard_normal((n, D), dtype=np.float32) / np.float32(np.sqrt(D)))


def cpu(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call returns and the seconds that it took of all cores."""
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def made_up(L: int, D: int, around: int) -> tuple[NDArray[np.float16], NDArray[np.float32]]:
    """Return embeddings of labels and documents."""
    rng = np.random.default_rng(0)
    centres = unit_rows(rng.standard_normal((max(10, L // around), D), dtype=np.float32))
    return clustered(rng, L, centres).astype(np.float16), clustered(rng, BATCH, centres)


def exact_product(vectors: NDArray[np.float16], documents: NDArray[np.float32]) -> float:
    """Return the seconds of a product of a document and a label as an exact search takes them."""
    exact = shortlist.build(np.arange(len(vectors), dtype=np.int32), vectors, "exact")
    # What is made at the first search is not timed.
    shortlist.search(exact, documents[:16], K)
    return cpu(lambda: shortlist.search(exact, documents, K))[1] / (len(vectors) * BATCH)


def costs_of_sketches(L: int, D: int, around: int) -> None:
    """Print what it costs to look a label up, to compare one, to begin a document, and to make a label's sketch."""
    unit, taken = 0.0, []
    for n in (L // 4, L):
        vectors, documents = made_up(n, D, around)
        some = np.ascontiguousarray(documents[::32])
        sketches.sketches_of(vectors[:5000], K, some)
        unit = exact_product(vectors, documents)
        index, making = cpu(lambda vectors=vectors, some=some: sketches.sketches_of(vectors, K, some))  # type: ignore[misc]
        for candidates in (n // 50, n // 10):
            tried = replace(index, candidates=candidates)
            sketches.search(tried, vectors, some, K)
            _, seconds = cpu(lambda t=tried, v=vectors, d=documents: sketches.search(t, v, d, K))  # type: ignore[misc]
            taken.append((n, candidates, seconds / BATCH))
    (_, _, small), _, (_, few, first), (_, many, second) = taken
    compared = (second - first) / (many - few)
    looked_up = (first - few * compared - small + L // 200 * compared) / (L - L // 4)
    document = first - few * compared - L * looked_up
    shown = f"looking up {looked_up / unit:.3f}, comparing {compared / unit:.2f}, a document {document / unit:,.0f}"
    print(f"{L:>8,} labels: {shown}, making {making / L / unit:,.0f} a label", flush=True)


def costs_of_clusters(L: int, D: int, around: int) -> None:
    """Print what a product, a cluster and a label's place in an inverted file cost."""
    vectors, documents = made_up(L, D, around)
    some = np.ascontiguousarray(documents[::32])
    # What is compiled is not timed.
    k_means.inverted_file_of(vectors[:5000], K, some)
    unit = exact_product(vectors, documents)
    index, seconds = cpu(lambda: k_means.inverted_file_of(vectors, K, some))
    inverted_file.search(index, vectors, some, K)
    few, many = (inverted_file.probes_within(index, some, share) for share in (0.02, 0.2))
    taken = []
    for probes in (few, many):
        tried = replace(index, probes=probes)
        looked_at = L * BATCH * inverted_file.share_of_work(tried, documents)
        taken.append((looked_at, cpu(lambda tried=tried: inverted_file.search(tried, vectors, documents, K))[1]))  # type: ignore[misc]
    (a, first), (b, second) = taken
    product = (second - first) / (b - a)
    cluster = (first - a * product) / (BATCH * len(index.centres))
    shown = f"a product {product / unit:.2f}, a cluster {cluster / unit:.2f}"
    print(f"{L:>8,} labels: {shown}, building {seconds / L / unit:,.0f} a label", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, nargs="*", default=[20_000, 50_000, 100_000])
    parser.add_argument("--around", type=int, default=400)
    parser.add_argument("--kinds", nargs="*", choices=shortlist.KINDS, default=shortlist.KINDS)
    parser.add_argument("--D", type=int, default=192)
    parser.add_argument("--costs", action="store_true")
    arguments = parser.parse_args()
    D = arguments.D
    print(f"D={D}, k={K}, {arguments.around} labels around each direction")
    if arguments.costs:
        for kind, costs in (("sketch", costs_of_sketches), ("ivf", costs_of_clusters)):
            for L in arguments.labels if kind in arguments.kinds else ():
                print(f"{kind:6}", end=" ")
                costs(L, D, arguments.around)
        return
    print(f"{'labels':>8} {'index':6} {'build cpu s':>11} {'batch cpu ms':>12} {'single ms':>10} {'recall':>7}")
    # Kernels are compiled before they are timed.
    for kind in arguments.kinds:
        tiny = shortlist.build(np.arange(8, dtype=np.int32), np.eye(8, D, dtype=np.float16), kind)
        for rows in (1, 8):
            shortlist.search(tiny, np.eye(rows, D, dtype=np.float32), 2)
    for L in arguments.labels:
        labels, documents = made_up(L, D, arguments.around)
        for kind in arguments.kinds:
            start = time.process_time()
            built = shortlist.build(np.arange(L, dtype=np.int32), labels, kind, queries=documents[::16], k=K)
            build = time.process_time() - start
            start = time.process_time()
            shortlist.search(built, documents, K)
            batch = 1000 * (time.process_time() - start) / BATCH
            singles = []
            for i in range(SINGLE):
                start = time.perf_counter()
                shortlist.search(built, documents[i : i + 1], K)
                singles.append(1000 * (time.perf_counter() - start))
            recall = shortlist.recall_of_exact(built, documents, K)
            single = statistics.median(singles)
            print(f"{L:>8,} {kind:6} {build:11.1f} {batch:12.3f} {single:10.3f} {recall:7.3f}", flush=True)


if __name__ == "__main__":
    main()
