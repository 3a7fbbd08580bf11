"""How fast the measures are: `python benchmarks/metrics.py`.

A million documents at k = 1, 3, 5 with all measures; and on ten thousand of them side by side with napkinXC, which
computes the five that it shares.
"""

from __future__ import annotations

import time

import numpy as np
from napkinxc import metrics as napkin
from scipy.sparse import csr_matrix

from lightdxml.metrics import evaluate, inverse_propensity

N, L, SCORED = 1_000_000, 100_000, 20


def random_csr(rng: np.random.Generator, n: int, per_row: int) -> csr_matrix:
    columns = rng.integers(0, L, (n, per_row), dtype=np.int32)
    values = rng.random(n * per_row, dtype=np.float32)
    matrix = csr_matrix((values, columns.ravel(), np.arange(n + 1) * per_row), shape=(n, L))
    matrix.sum_duplicates()
    return matrix


def seconds(function: object, *arguments: object, **named: object) -> float:
    start = time.perf_counter()
    function(*arguments, **named)  # type: ignore[operator]
    return time.perf_counter() - start


def main() -> None:
    rng = np.random.default_rng(0)
    Y, scores = random_csr(rng, N, 5), random_csr(rng, N, SCORED)
    ranked = np.sort(rng.integers(0, L - 5, (N, 5), dtype=np.int32), axis=1) + np.arange(5, dtype=np.int32)
    q = inverse_propensity(Y)
    first = seconds(evaluate, Y[:100], scores[:100], inv_propensity=q)
    print(f"first call (loads or compiles kernels): {first:.2f} s")
    for name, predicted in (("ranked top-5 array", ranked), (f"CSR scores, {SCORED} a document", scores)):
        best = min(seconds(evaluate, Y, predicted, k=(1, 3, 5), inv_propensity=q) for _ in range(3))
        print(f"{N:,} documents, {name}: {best:.2f} s")
    few, few_scores = Y[:10_000], scores[:10_000]

    def theirs() -> None:
        napkin.precision_at_k(few, few_scores, 5)
        napkin.recall_at_k(few, few_scores, 5)
        napkin.ndcg_at_k(few, few_scores, 5)
        napkin.psprecision_at_k(few, few_scores, q, 5)
        napkin.psndcg_at_k(few, few_scores, q, 5)

    slow, fast = seconds(theirs), seconds(evaluate, few, few_scores, inv_propensity=q)
    print(f"10,000 documents: napkinXC (five measures) {slow:.2f} s, lightdxml (seven) {fast:.4f} s")
    print(f"lightdxml is {slow / fast:.0f} times as fast")


if __name__ == "__main__":
    main()
