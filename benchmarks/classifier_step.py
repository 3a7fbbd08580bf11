"""The classifier step against PyTorch: `python benchmarks/classifier_step.py` (needs torch).

One step scores B × k pairs (document, label), computes binary cross-entropy and the gradients to documents and label
weights, and updates the weights with lazy Adam. PyTorch does it as on a CPU one would: an embedding with sparse
gradients, a batched product, SparseAdam. Both run on the same shortlists, one after the other: idle threads of one
would slow down the other. A large matrix product and a large copy show what the machine can reach.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import timed
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import parallel
from lightdxml.views.dense import classifier_part, train_classifier
from lightdxml.views.dense.options import DenseOptions

B, D, K = 256, 300, 500
Step = Callable[[NDArray[np.int64]], object]


def lightdxml_step(L: int, X: NDArray[np.float32], shortlists: NDArray[np.int32]) -> Step:
    options = DenseOptions(dim=D, shortlist_size=K, batch_size=B, random_negatives=0)
    rng = np.random.default_rng(0)
    classifier = train_classifier.start(L, options, rng)
    Y = csr_matrix((len(X), L), dtype=np.float32)
    training = train_classifier.divide(classifier, Y, options)
    training.take_shortlists(shortlists)

    def step(rows: NDArray[np.int64]) -> None:
        batch = classifier_part.EmbeddedBatch(rows.astype(np.int32), X[rows], 0, np.float32(1e-3))
        training.parts.total(classifier_part.train, batch)

    return step


def torch_step(L: int, X: NDArray[np.float32], shortlists: NDArray[np.int32]) -> Step:
    import torch

    torch.set_num_threads(parallel.thread_count())
    weights = torch.nn.Embedding(L, D, sparse=True)
    optimizer: Any = torch.optim.SparseAdam(list(weights.parameters()), lr=1e-3)
    loss_of = torch.nn.BCEWithLogitsLoss(reduction="sum")
    features, labels = torch.from_numpy(X), torch.from_numpy(shortlists.astype(np.int64))
    targets = torch.zeros(B, K)

    def step(rows: NDArray[np.int64]) -> None:
        x = features[rows].clone().requires_grad_(True)
        optimizer.zero_grad()
        scores = torch.bmm(weights(labels[rows]), x.unsqueeze(2)).squeeze(2)
        (loss_of(scores, targets) / len(rows)).backward()
        optimizer.step()

    return step


def machine() -> tuple[float, float]:
    """Return GFlop/s of a large matrix product and GB/s of a large copy, with all threads."""
    a = np.random.default_rng(0).random((4000, 4000), dtype=np.float32)
    source = np.ones(100_000_000, dtype=np.float32)
    target = np.empty_like(source)

    def copy(bounds: tuple[int, int]) -> None:
        target[slice(*bounds)] = source[slice(*bounds)]

    chunks = parallel.fixed_chunks(len(source), 10_000_000)
    product = min(timed(np.matmul, a, a)[1] for _ in range(4))
    copied = min(timed(parallel.run, copy, chunks)[1] for _ in range(4))
    return 2 * 4000**3 / product / 1e9, 2 * source.nbytes / copied / 1e9


def compare(L: int, repeat: int, flops: float, bandwidth: float) -> None:
    rng, batches = np.random.default_rng(1), repeat + 1
    X = rng.normal(size=(B * batches, D)).astype(np.float32)
    first = np.stack([rng.permutation(L)[:K] for _ in range(B)])
    # Every batch has other labels.
    shortlists = (np.tile(first, (batches, 1)) + np.arange(batches).repeat(B)[:, None] * 7919) % L
    medians = []
    for name, make in (("lightdxml", lightdxml_step), ("torch", torch_step)):
        step = make(L, X, shortlists.astype(np.int32))
        rows = [np.arange(i * B, (i + 1) * B) for i in range(batches)]
        times = [timed(step, one)[1] for one in rows]
        # The first step compiles, or touches memory for the first time.
        medians.append(statistics.median(times[1:]))
        print(f"L={L:>7,} {name:10} {B * K / medians[-1] / 1e6:7.3f} M pairs/s", flush=True)
    ours, theirs = medians
    used = 6 * D * B * K / ours / 1e9
    # Per distinct label, weights (float32) and means (bfloat16) are read and written.
    moved = 2 * (4 + 2) * (D + 1) * len(np.unique(shortlists[:B])) / ours / 1e9
    print(
        f"L={L:>7,} lightdxml is {theirs / ours:.0f} times as fast: {used:.0f} GFlop/s ({used / flops:.0%} of the"
        f" matrix product), {moved:.1f} GB/s of label rows ({moved / bandwidth:.0%} of the copy)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, nargs="*", default=[4_000, 670_000])
    parser.add_argument("--repeat", type=int, default=9)
    arguments = parser.parse_args()
    flops, bandwidth = machine()
    print(f"machine: {flops:.0f} GFlop/s (matrix product), {bandwidth:.1f} GB/s (copy); B={B}, D={D}, k={K}")
    for L in arguments.labels:
        compare(L, arguments.repeat, flops, bandwidth)


if __name__ == "__main__":
    main()
