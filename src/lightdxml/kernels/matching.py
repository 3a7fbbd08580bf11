"""The best clusters of labels for documents: sums of hinge penalties along paths of a tree.

They only pick hard negatives, for which the penalty without an exponential is good enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.inverted_index import BLOCK_BITS, Postings, push
from lightdxml.kernels.jit import kernel
from lightdxml.kernels.precision import widen
from lightdxml.kernels.sorting import sort_ids
from lightdxml.kernels.sparse import Csr

# Parents within this distance of the best one are searched first.
_GOOD = np.float32(0.5)


@kernel
def best_leaves(
    start: int,
    stop: int,
    documents: Csr,
    index: Postings,
    biases: NDArray[np.float32],
    levels: NDArray[np.int64],
    leaves: NDArray[np.int32],
) -> None:
    """Find the leaves of the highest scores for documents start … stop.

    Parameters
    ----------
    index
        The weights of nodes by feature.
    biases
        The bias of each node.
    levels
        The number of nodes per level. Nodes are numbered level by level, and those of a level have equally many
        children.
    leaves
        Receives the leaves, counted from 0, in ascending order.
    """
    document_indptr, features, values = documents
    indptr, nodes, weights = index
    n, size = biases.size, leaves.shape[1]
    scores, best, heap = np.empty(n, np.float32), np.empty(size, np.int32), np.empty(size, np.float32)
    for b in range(start, stop):
        for node in range(n):
            scores[node] = biases[node]
        for i in range(document_indptr[b], document_indptr[b + 1]):
            value = values[i]
            for block in range(indptr.shape[0]):
                base = block << BLOCK_BITS
                for p in range(indptr[block, features[i]], indptr[block, features[i] + 1]):
                    scores[base + nodes[p]] += value * widen(weights[p])
        first = 0
        for level in range(levels.size - 1):
            n_parents = levels[level - 1] if level > 0 else 1
            children = levels[level] // n_parents
            for parent in range(n_parents):
                above = scores[first - n_parents + parent] if level > 0 else np.float32(0.0)
                for node in range(first + parent * children, first + (parent + 1) * children):
                    scores[node] = above - _penalty(scores[node])
            first += levels[level]
        n_parents = levels[levels.size - 2] if levels.size > 1 else 1
        children = levels[levels.size - 1] // n_parents
        highest = np.float32(0.0)
        if levels.size > 1:
            highest = scores[first - n_parents]
            for parent in range(first - n_parents + 1, first):
                highest = max(highest, scores[parent])
        found = 0
        # The best parents first: a path never scores above its beginning, so that most of the others are skipped.
        for is_good in (True, False):
            for parent in range(n_parents):
                above = scores[first - n_parents + parent] if levels.size > 1 else np.float32(0.0)
                if (above > highest - _GOOD) != is_good or (found == size and above < heap[0]):
                    continue
                for leaf in range(parent * children, (parent + 1) * children):
                    score = above - _penalty(scores[first + leaf])
                    if found < size or score >= heap[0]:
                        found = push(best, heap, found, leaf, score)
        sort_ids(best)
        for i in range(size):
            leaves[b, i] = best[i]


@kernel
def _penalty(margin: float) -> Any:
    short = max(np.float32(0.0), np.float32(1.0) - margin)
    return short * short
