"""The best clusters of labels for documents: sums of hinge penalties along paths of a tree.

They only pick hard negatives, for which the penalty without an exponential is good enough.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.inverted_index import BLOCK_BITS, Postings, push
from lightdxml.kernels.jit import kernel
from lightdxml.kernels.precision import widen
from lightdxml.kernels.sorting import sort_with_values
from lightdxml.kernels.sparse import Csr, Pattern


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
        first, found = 0, 0
        for level in range(levels.size):
            is_last = level == levels.size - 1
            n_parents = levels[level - 1] if level > 0 else 1
            children = levels[level] // n_parents
            for parent in range(n_parents):
                above = scores[first - n_parents + parent] if level > 0 else np.float32(0.0)
                # A path never scores above its beginning.
                if is_last and found == size and above <= heap[0]:
                    continue
                for node in range(first + parent * children, first + (parent + 1) * children):
                    short = max(np.float32(0.0), np.float32(1.0) - scores[node])
                    scores[node] = above - short * short
                    if is_last and (found < size or scores[node] > heap[0]):
                        found = push(best, heap, found, node - first, scores[node])
            first += levels[level]
        sort_with_values(best, heap)
        for i in range(size):
            leaves[b, i] = best[i]


@kernel
def group_documents(
    clusters: NDArray[np.int32],
    labels: Pattern,
    of_label: NDArray[np.int32],
    ends: NDArray[np.int64],
    documents: NDArray[np.int32],
) -> None:
    """Put every document into its clusters and those of its labels, into each of them once.

    Parameters
    ----------
    clusters
        Clusters of each document.
    labels, of_label
        The labels of each document, and the cluster of every label, -1 for none.
    ends
        Where the documents of each cluster end so far, moved by one for each that is added.
    documents
        Receives the documents of each cluster in ascending order; if it has no elements, they are only counted.
    """
    latest = np.full(ends.size, -1, np.int32)
    for i in range(clusters.shape[0]):
        own = clusters[i].size
        start, stop = labels.indptr[i], labels.indptr[i + 1]
        for j in range(own + stop - start):
            cluster = clusters[i, j] if j < own else of_label[labels.indices[start + j - own]]
            if cluster < 0 or latest[cluster] == i:
                continue
            latest[cluster] = i
            if documents.size:
                documents[ends[cluster]] = i
            ends[cluster] += 1
