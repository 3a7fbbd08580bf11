"""Labels of neighbours: each neighbouring document votes for its labels with its nearness."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel


@kernel
def count(
    start: int,
    stop: int,
    neighbours: NDArray[np.int32],
    nearness: NDArray[np.float32],
    pointers: NDArray[np.int64],
    labels: NDArray[np.int32],
    totals: NDArray[np.float32],
    best: NDArray[np.int32],
    votes: NDArray[np.float32],
) -> None:
    """Fill best[start:stop] with the labels of the most votes, most first, and votes[start:stop] with these.

    Parameters
    ----------
    neighbours, nearness
        Documents near each one, -1 for none, and how near.
    pointers, labels
        The labels of all documents.
    totals
        Scratch, one entry a label, all zero; left all zero.
    best, votes
        Receive -1 and 0 where there are fewer labels.
    """
    for b in range(start, stop):
        size = 0
        for i in range(neighbours.shape[1]):
            if neighbours[b, i] >= 0:
                size += pointers[neighbours[b, i] + 1] - pointers[neighbours[b, i]]
        found = np.empty(size, np.int32)
        n = 0
        for i in range(neighbours.shape[1]):
            document = neighbours[b, i]
            if document < 0 or nearness[b, i] <= 0:
                continue
            for j in range(pointers[document], pointers[document + 1]):
                if totals[labels[j]] == 0:
                    found[n] = labels[j]
                    n += 1
                totals[labels[j]] += nearness[b, i]
        # The lower label of equals first, whatever the order in which the neighbours named them.
        ordered = np.sort(found[:n])
        order = np.argsort(-totals[ordered], kind="mergesort")
        for i in range(best.shape[1]):
            best[b, i] = ordered[order[i]] if i < n else -1
            votes[b, i] = totals[ordered[order[i]]] if i < n else 0
        for i in range(n):
            totals[found[i]] = 0.0
