"""The label tree: labels in nested clusters, and for each cluster, as for each label in its own, a linear classifier.

A label with three documents is told from the whole of the data by what it shares with its cluster, and from the rest of
its cluster by what is its own. The tree is a second opinion of the sparse view: both look at the words themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import sparse_view
from lightdxml.sparse_view import SparseView

# Nodes of candidates that are looked at together.
_NODES = 2_000_000


@dataclass(frozen=True)
class LabelTree:
    """Weights of nodes by word, and the way from each label to the root.

    Attributes
    ----------
    pointers, nodes, weights
        By word: the nodes that have a weight for it, and the weight, float32 or float16.
    biases
        What each node's score begins at.
    paths
        Labels × nodes: from each label's own up to the one below the root, of one tree after the other where there are
        several; -1 for labels not in them.
    """

    pointers: NDArray[np.int64]
    nodes: NDArray[np.int32]
    weights: NDArray[Any]
    biases: NDArray[np.float32]
    paths: NDArray[np.int32]

    @property
    def view(self) -> SparseView:
        """The nodes as if they were labels."""
        return SparseView(self.pointers, self.nodes, self.weights, self.biases, np.empty(0, dtype=np.int32))


def doubts(tree: LabelTree, X: csr_matrix, labels: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return Σ max(0, 1 − s)² over the nodes on the path of each label; 0 for none.

    Examples
    --------
    >>> pointers, nodes = np.array([0, 2]), np.array([0, 1], dtype=np.int32)
    >>> weights, biases = np.array([1.0, 0.5], dtype=np.float32), np.zeros(2, dtype=np.float32)
    >>> tree = LabelTree(pointers, nodes, weights, biases, np.array([[0, 1]], dtype=np.int32))
    >>> doubts(tree, csr_matrix([[1.0]], dtype=np.float32), np.array([[0]], dtype=np.int32)).tolist()
    [[0.25]]
    """
    total = np.empty(labels.shape, dtype=np.float32)
    view, levels = tree.view, tree.paths.shape[1]
    together = max(1, _NODES // max(1, labels.shape[1] * levels))
    for start in range(0, len(labels), together):
        part = labels[start : start + together]
        nodes = np.where(part[:, :, None] >= 0, tree.paths[part], -1).reshape(len(part), -1)
        scores = sparse_view.find(view, X[start : start + together], 0, nodes).other_scores
        short = np.maximum(1 - np.where(nodes >= 0, scores, 1), 0)
        total[start : start + together] = (short * short).reshape(*part.shape, levels).sum(axis=2)
    return total
