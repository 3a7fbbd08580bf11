"""The sparse view: for each label a linear classifier on the words themselves, read through an inverted index.

Where a label has few short documents, 300 dense dimensions lose the words that matter. This view keeps them: it has a
weight for those words of a label that tell it from the labels that it is confused with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import parallel, postings
from lightdxml.kernels.precision import as_bits

_DOCUMENTS = 256


@dataclass(frozen=True)
class SparseView:
    """Weights of labels by word.

    Attributes
    ----------
    pointers
        Where each word's labels begin; one more than there are words.
    labels, weights
        The labels that have a weight for a word, and the weight, float32 or float16.
    biases
        What each label's score begins at.
    everywhere
        Labels whose bias was learnt: they may win without a word of theirs.
    """

    pointers: NDArray[np.int64]
    labels: NDArray[np.int32]
    weights: NDArray[Any]
    biases: NDArray[np.float32]
    everywhere: NDArray[np.int32]


@dataclass(frozen=True)
class Found:
    """The best labels of documents, with their scores, and the scores of other labels that were asked for."""

    labels: NDArray[np.int32]
    scores: NDArray[np.float32]
    other_scores: NDArray[np.float32]


def find(view: SparseView, X: csr_matrix, k: int, others: NDArray[np.int32] | None = None) -> Found:
    """Return the k labels of the highest scores besides the others of each document, in no order; -1 for none.

    Examples
    --------
    >>> weights = np.array([2, 1], dtype=np.float32)
    >>> pointers, labels = np.array([0, 1, 2]), np.array([0, 1], dtype=np.int32)
    >>> view = SparseView(pointers, labels, weights, -np.ones(2, dtype=np.float32), np.empty(0, dtype=np.int32))
    >>> found = find(view, csr_matrix([[1.0, 0.5]], dtype=np.float32), 2)
    >>> sorted(zip(found.labels[0].tolist(), found.scores[0].tolist()))
    [(0, 1.0), (1, -0.5)]
    """
    n, n_labels = X.shape[0], len(view.biases)
    if others is None:
        others = np.empty((n, 0), dtype=np.int32)
    found = Found(
        np.empty((n, min(k, n_labels)), dtype=np.int32),
        np.empty((n, min(k, n_labels)), dtype=np.float32),
        np.empty(others.shape, dtype=np.float32),
    )
    document_pointers = X.indptr.astype(np.int64)
    weights = as_bits(view.weights)

    def look(bounds: tuple[int, int]) -> None:
        totals, marks = np.zeros(n_labels, dtype=np.float32), np.zeros(n_labels, dtype=np.uint8)
        postings.best(
            *bounds, document_pointers, X.indices, X.data, view.pointers, view.labels, weights, view.biases,
            view.everywhere, others, totals, marks, found.labels, found.scores, found.other_scores,
        )  # fmt: skip

    parallel.run(look, parallel.fixed_chunks(n, _DOCUMENTS))
    return found
