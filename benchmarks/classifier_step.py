"""The classifier step beside PyTorch: `python benchmarks/classifier_step.py` (needs torch).

One step: scores of B × k (document, label) pairs, binary cross-entropy, gradients to documents and label weights, lazy
Adam on the labels' rows. PyTorch does it as its users would on a CPU: an embedding with sparse gradients, a batched
product, SparseAdam. One after the other in one process (threads of the one, idle but not asleep, would
slow the other), on the same shortlists. Beside it, the machine's own roofs: what a
large matrix product and a large copy reach.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.config import Config
from lightdxml.kernels import parallel
from lightdxml.training import classifier

B, D, K = 256, 300, 500


def lightdxml_stepper(L: int, X: Any, shortlists: Any) -> Any:
    config = Config(D=D, k=K, batch_size=B, random_negatives=0)
    rng = np.random.default_rng(0)
    state = classifier.start(L, config, rng)
    Y = csr_matrix((len(X), L), dtype=np.float32)
    room = classifier.scratch(Y, K, 0, config)
    nowhere = np.empty(0, dtype=np.int32)

    def step(rows: Any) -> None:
        n = classifier._pairs_by_label(room, Y, rows, shortlists, nowhere, config, rng)
        classifier._step(state, room, n, X[rows], np.float32(1e-3))

    return step


def torch_stepper(L: int, X: Any, shortlists: Any) -> Any:
    import torch

    torch.set_num_threads(parallel.thread_count())
    weights = torch.nn.Embedding(L, D, sparse=True)
    optimizer: Any = torch.optim.SparseAdam(list(weights.parameters()), lr=1e-3)
    loss_of = torch.nn.BCEWithLogitsLoss(reduction="sum")
    features, labels = torch.from_numpy(X), torch.from_numpy(shortlists.astype(np.int64))
    targets = torch.zeros(B, K)

    def step(rows: Any) -> None:
        x = features[rows].clone().requires_grad_(True)
        optimizer.zero_grad()
        scores = torch.bmm(weights(labels[rows]), x.unsqueeze(2)).squeeze(2)
        (loss_of(scores, targets) / len(rows)).backward()
        optimizer.step()

    return step


def roofs() -> tuple[float, float]:
    """Return GFlop/s of a matrix product and GB/s of a copy, with all threads."""
    a = np.random.default_rng(0).random((4000, 4000), dtype=np.float32)
    source = np.ones(100_000_000, dtype=np.float32)
    target = np.empty_like(source)

    def copy(bounds: tuple[int, int]) -> None:
        target[slice(*bounds)] = source[slice(*bounds)]

    def best(call: Any) -> float:
        times = []
        for _ in range(4):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return min(times)

    flops = 2 * 4000**3 / best(lambda: a @ a) / 1e9
    copied = 2 * source.nbytes / best(lambda: parallel.run(copy, parallel.fixed_chunks(len(source), 10_000_000))) / 1e9
    return flops, copied


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, nargs="*", default=[4_000, 670_000])
    parser.add_argument("--repeat", type=int, default=9)
    arguments = parser.parse_args()
    flops, copied = roofs()
    print(f"machine: {flops:.0f} GFlop/s (matrix product), {copied:.1f} GB/s (copy); B={B}, D={D}, k={K}")
    for L in arguments.labels:
        rng = np.random.default_rng(1)
        batches = arguments.repeat + 1
        X = rng.normal(size=(B * batches, D)).astype(np.float32)
        shortlists = np.stack([rng.permutation(L)[:K] for _ in range(B)]).astype(np.int32)
        shortlists = (np.tile(shortlists, (batches, 1)) + np.arange(batches).repeat(B)[:, None] * 7919) % L
        shortlists = shortlists.astype(np.int32)
        steppers = {"lightdxml": lightdxml_stepper(L, X, shortlists), "torch": torch_stepper(L, X, shortlists)}
        seconds: dict[str, list[float]] = {name: [] for name in steppers}
        for name, step in steppers.items():
            for i in range(batches):
                rows = np.arange(i * B, (i + 1) * B)
                start = time.perf_counter()
                step(rows)
                if i:
                    seconds[name].append(time.perf_counter() - start)
        medians = {name: statistics.median(times) for name, times in seconds.items()}
        distinct = len(np.unique(shortlists[:B]))
        for name, median in medians.items():
            print(f"L={L:>7,} {name:10} {B * K / median / 1e6:7.3f} M pairs/s")
        fast = medians["lightdxml"]
        used = 6 * D * B * K / fast / 1e9
        # Per distinct label: weights (float32) and means (bfloat16) read and written; per pair: a document read twice,
        # its gradient read and written (mostly from cache).
        moved = 2 * (4 + 2) * (D + 1) * distinct / fast / 1e9
        print(f"L={L:>7,} lightdxml is {medians['torch'] / fast:.0f} times as fast; {used:.0f} GFlop/s "
              f"({100 * used / flops:.0f} % of the matrix product), {moved:.1f} GB/s of label rows "
              f"({100 * moved / copied:.0f} % of the copy)")  # fmt: skip


if __name__ == "__main__":
    main()
