"""Speed of the metrics: `python benchmarks/metrics.py` (needs napkinxc).

All metrics of a million documents at k = 1, 3, 5. Then ten thousand documents against napkinXC, which has five of the
eight metrics.
"""

from __future__ import annotations

import numpy as np
from measure import timed
from napkinxc import metrics as napkin
from scipy.sparse import csr_matrix

from lightdxml.metrics import evaluate, inverse_propensity

N, L, SCORED, FEW = 1_000_000, 100_000, 20, 10_000


def random_csr(rng: np.random.Generator, n: int, per_row: int) -> csr_matrix:
    columns = rng.integers(0, L, (n, per_row), dtype=np.int32)
    values = rng.random(n * per_row, dtype=np.float32)
    matrix = csr_matrix((values, columns.ravel(), np.arange(n + 1) * per_row), shape=(n, L))
    matrix.sum_duplicates()
    return matrix


def main() -> None:
    rng = np.random.default_rng(0)
    Y, scores = random_csr(rng, N, 5), random_csr(rng, N, SCORED)
    ranked = np.sort(rng.integers(0, L - 5, (N, 5), dtype=np.int32), axis=1) + np.arange(5, dtype=np.int32)
    inv = inverse_propensity(Y)
    evaluate(Y[:100], scores[:100], inv_propensity=inv)  # Compiles the kernels, or loads them from disk.
    for name, predicted in (("ranked top-5 array", ranked), (f"CSR scores, {SCORED} per document", scores)):
        seconds = min(timed(evaluate, Y, predicted, (1, 3, 5), inv)[1] for _ in range(3))
        print(f"{N:,} documents, {name}: {seconds:.2f} s")
    few, few_scores = Y[:FEW], scores[:FEW]

    def napkin_metrics() -> None:
        napkin.precision_at_k(few, few_scores, 5)
        napkin.recall_at_k(few, few_scores, 5)
        napkin.ndcg_at_k(few, few_scores, 5)
        napkin.psprecision_at_k(few, few_scores, inv, 5)
        napkin.psndcg_at_k(few, few_scores, inv, 5)

    theirs, ours = timed(napkin_metrics)[1], timed(evaluate, few, few_scores, (1, 3, 5), inv)[1]
    print(f"{FEW:,} documents: napkinXC (five metrics) {theirs:.2f} s, lightdxml (eight) {ours:.4f} s")
    print(f"lightdxml is {theirs / ours:.0f} times as fast")


if __name__ == "__main__":
    main()
