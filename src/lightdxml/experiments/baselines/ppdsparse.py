"""PPD-Sparse: a linear classifier per label, trained on the few documents that matter, with an L1 penalty."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines.base import Settings
from lightdxml.experiments.baselines.sparse_ova import SparseOVA
from lightdxml.kernels import parallel, primal_dual
from lightdxml.kernels.sparse import Csr, Pattern
from lightdxml.views.linear.solver import Documents, Weights, in_pieces, joined

# The authors' λ and C by the number of labels: of Bibtex, Delicious, EURLex-4K, AmazonCat-13K and Wiki10-31K.
# For the first two they state .01 and .01 with 0/1 features, whose rows have lengths of about √68.5 and √18.5. With
# unit rows, a length s gives the same problem (up to the bias) if λ is s times and C s² times as high.
_AUTHORS = {159: (0.083, 0.685), 983: (0.043, 0.185), 3_993: (0.1, 1.0), 13_330: (0.1, 1.0), 30_938: (0.01, 1.0)}
_PARTS = 256


class PPDSparse(SparseOVA):
    """PPD-Sparse (Yen et al., 2017): squared hinge loss and L1 norm, on active sets of documents.

    `l1` is λ. Where `l1` or `C` is None, the method takes the authors' value for that one of their data sets that is
    nearest in the number of labels, on a logarithmic scale. Where these are for features of 0 and 1, they are scaled to
    rows of length 1; the threshold is not, so that fewer weights are dropped than by the authors. The first negatives
    of a label are distinct documents; among the authors' one may occur twice.
    """

    name = "ppdsparse"
    defaults: ClassVar[Settings] = {"l1": None, "C": None, "passes": 30, "threshold": 0.01}

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train with the settings for that many labels."""
        for name, value in zip(("l1", "C"), authors_settings(Y.shape[1]), strict=True):
            if self.settings[name] is None:
                self.settings[name] = value
        super().fit(X, Y, seed=seed, threads=threads)

    def _train(self, X: csr_matrix, label_to_docs: csr_matrix, labels: NDArray[np.int32], seed: int) -> Weights:
        cost, l1, passes, threshold = (self.settings[name] for name in ("C", "l1", "passes", "threshold"))
        solver = primal_dual.Solver(cost, l1, passes, threshold, seed)
        documents, positives, by_value = Documents.of(X), Pattern.of(label_to_docs), columns_by_value(X)

        def train(some: NDArray[np.int32]) -> Weights:
            return in_pieces(
                lambda classes, biases, columns, weights, counts: primal_dual.train_classes(
                    classes, positives, documents.arrays, documents.squares, by_value, solver, biases, columns, weights,
                    counts,
                ),
                some,
                X.shape[1] + 100_000,
            )  # fmt: skip

        # Frequent labels first: the last parts are short, so all threads end at about the same time.
        frequency = np.diff(label_to_docs.indptr)[labels]
        ordered = labels[np.argsort(-frequency, kind="stable")]
        return joined(parallel.run(train, [part for part in np.array_split(ordered, _PARTS) if len(part)]))


def authors_settings(n_labels: int) -> tuple[float, float]:
    """Return λ and C for that many labels.

    >>> authors_settings(4_271)
    (0.1, 1.0)
    """
    return _AUTHORS[min(_AUTHORS, key=lambda known: abs(math.log(known / max(1, n_labels))))]


def columns_by_value(X: csr_matrix) -> Csr:
    """Return the documents of each feature, those of the highest values first, ties by document.

    >>> columns_by_value(csr_matrix([[1.0], [2.0]])).indices.tolist()
    [1, 0]
    """
    order = np.lexsort((-X.data, X.indices))
    rows = np.repeat(np.arange(X.shape[0], dtype=np.int32), np.diff(X.indptr))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(X.indices, minlength=X.shape[1]))])
    return Csr(indptr.astype(np.int64), rows[order], X.data[order])
