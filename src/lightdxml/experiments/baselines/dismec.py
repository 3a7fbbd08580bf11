"""DiSMEC: a linear support vector machine per label on all documents, without its small weights."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines.base import Settings, TooLargeError
from lightdxml.experiments.baselines.sparse_ova import SparseOVA
from lightdxml.kernels.sparse import Pattern
from lightdxml.views.linear.options import SolverOptions
from lightdxml.views.linear.solver import Documents, Problem, Weights, solve

# Entries of the features × labels: two cores take about half an hour.
_MAX_WORK = 500_000_000_000
# Passes and tolerance beyond which nothing changes: the problem has one solution.
_MAX_ITER, _TOLERANCE = 1000, 0.01


class DiSMEC(SparseOVA):
    """DiSMEC (Babbar and Schölkopf, 2017): squared hinge loss, C = 1, weights below 0.01 are dropped.

    The bias is a feature of value 1, so it is regularized and may be dropped. The authors minimize by a trust region
    Newton method; here it is LIBLINEAR's dual coordinate descent. The minimum is the same, and tighter than theirs.
    """

    name = "dismec"
    defaults: ClassVar[Settings] = {"C": 1.0, "threshold": 0.01}

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train; at most 500 billion pairs of an entry of X and a label."""
        if X.nnz * Y.shape[1] > _MAX_WORK:
            sizes = f"{X.nnz:,} × {Y.shape[1]:,}"
            raise TooLargeError(f"dismec is limited to entries × labels of {_MAX_WORK:,}, not {sizes}: leave it out")
        super().fit(X, Y, seed=seed, threads=threads)

    def _train(self, X: csr_matrix, label_to_docs: csr_matrix, labels: NDArray[np.int32], seed: int) -> Weights:
        cost, threshold = self.settings["C"], self.settings["threshold"]
        solver = SolverOptions(_MAX_ITER, prune_abs=threshold, prune_rel=0.0, tolerance=_TOLERANCE)
        one_group = np.zeros(label_to_docs.shape[0], dtype=np.int32)
        everything = Pattern.full(X.shape[0])
        trained = solve(Problem(Documents.of(X), label_to_docs, labels, one_group, everything, cost, solver, seed))
        return replace(trained, biases=np.where(np.abs(trained.biases) < threshold, np.float32(0), trained.biases))
