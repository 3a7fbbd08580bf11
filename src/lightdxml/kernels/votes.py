"""Labels of nearest neighbors: each neighbor votes for its labels with its cosine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel
from lightdxml.kernels.sparse import Pattern


@kernel
def count(
    start: int,
    stop: int,
    neighbors: NDArray[np.int32],
    cosines: NDArray[np.float32],
    document_labels: Pattern,
    totals: NDArray[np.float32],
    best: NDArray[np.int32],
    votes: NDArray[np.float32],
) -> None:
    """Fill best[start:stop] with the labels of the most votes, most first, and votes[start:stop] with their votes.

    Parameters
    ----------
    neighbors, cosines
        The nearest documents of each query, -1 for none, and their cosines.
    document_labels
        The labels of all documents.
    totals
        Workspace with one entry per label, all zero before and after.
    best, votes
        Receive -1 and 0 if there are fewer labels.
    """
    indptr, labels = document_labels
    for b in range(start, stop):
        size = 0
        for i in range(neighbors.shape[1]):
            if neighbors[b, i] >= 0:
                size += indptr[neighbors[b, i] + 1] - indptr[neighbors[b, i]]
        voted = np.empty(size, np.int32)
        n = 0
        for i in range(neighbors.shape[1]):
            document = neighbors[b, i]
            if document < 0 or cosines[b, i] <= 0:
                continue
            for j in range(indptr[document], indptr[document + 1]):
                if totals[labels[j]] == 0:
                    voted[n] = labels[j]
                    n += 1
                totals[labels[j]] += cosines[b, i]
        # Ties go to the lower label, in whatever order the neighbors come.
        ordered = np.sort(voted[:n])
        order = np.argsort(-totals[ordered], kind="mergesort")
        for i in range(best.shape[1]):
            best[b, i] = ordered[order[i]] if i < n else -1
            votes[b, i] = totals[ordered[order[i]]] if i < n else 0
        for i in range(n):
            totals[voted[i]] = 0.0
