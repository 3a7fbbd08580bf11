"""Exact search beside HNSW: `python benchmarks/shortlist.py [--labels 20000 50000 100000]`.

For each number of labels: the time to build each index, milliseconds a document in a batch and alone, and the share of
the exact shortlists that HNSW finds. Labels lie in clusters, as trained embeddings do, not evenly in all directions.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from numpy.typing import NDArray

from lightdxml import shortlist
from lightdxml.encoder import unit_rows

D, K, BATCH, SINGLE = 384, 200, 4096, 50


def clustered(rng: np.random.Generator, n: int, centres: NDArray[np.float32]) -> NDArray[np.float32]:
    chosen = centres[rng.integers(0, len(centres), n)]
    return unit_rows(chosen + 0.7 * rng.standard_normal((n, D), dtype=np.float32) / np.float32(np.sqrt(D)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, nargs="*", default=[20_000, 50_000, 100_000])
    arguments = parser.parse_args()
    print(f"D={D}, k={K}; builds on one thread, as in training")
    print(f"{'labels':>8} {'index':6} {'build s':>8} {'batch ms':>9} {'single ms':>10} {'recall':>7}")
    for L in arguments.labels:
        rng = np.random.default_rng(0)
        centres = unit_rows(rng.standard_normal((max(10, L // 100), D), dtype=np.float32))
        labels, documents = clustered(rng, L, centres), clustered(rng, BATCH, centres)
        for kind in ("exact", "hnsw"):
            start = time.perf_counter()
            built = shortlist.build(np.arange(L, dtype=np.int32), labels, kind)
            build = time.perf_counter() - start
            start = time.perf_counter()
            shortlist.search(built, documents, K)
            batch = 1000 * (time.perf_counter() - start) / BATCH
            singles = []
            for i in range(SINGLE):
                start = time.perf_counter()
                shortlist.search(built, documents[i : i + 1], K)
                singles.append(1000 * (time.perf_counter() - start))
            recall = shortlist.recall_of_exact(built, documents, K)
            single = statistics.median(singles)
            print(f"{L:>8,} {kind:6} {build:8.1f} {batch:9.3f} {single:10.3f} {recall:7.3f}", flush=True)


if __name__ == "__main__":
    main()
