"""The label tree's training: clusters of labels by balanced 2-means, each told from the others of the cluster above.

As in Parabel and Bonsai: a node is trained on the documents of the node above it, so that few documents speak against
a label, all of them close to it, and its bias is learnt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.config import Config
from lightdxml.label_tree import LabelTree
from lightdxml.progress import Progress
from lightdxml.training import linear
from lightdxml.training.clustering import balanced_clusters, label_centroids, meta_labels
from lightdxml.training.linear import Against, Care, Documents, Weights

# Clusters below the root, and labels in the clusters above the leaves, at the most.
_TOP, _SMALLEST = 64, 24
# With fewer labels the sparse view trains most of them on all documents; with so many documents in the mean they are
# learnt well enough alone: either way there is nothing to add.
_FEWEST_LABELS, _MOST_DOCUMENTS_PER_LABEL = 2048, 20
_COSTS = (1.0, 1.0)
_CARE = Care(20, 0.22, 0.07)
_NO_BIAS = 0.0
# Trees at the most, and documents of labels in the mean from which on there may be more than one.
_TREES, _DOCUMENTS_PER_LABEL = 3, 4


def levels(n_labels: int) -> tuple[int, ...]:
    """Return how many clusters there are on each level, from the top.

    >>> levels(4000), levels(50_000), levels(670_000)
    ((64, 256), (64, 4096), (64, 4096, 32768))
    """
    finest = _TOP
    while n_labels / finest > _SMALLEST:
        finest *= 2
    above = [_TOP**i for i in range(1, 10) if _TOP**i < finest]
    return (*above, finest)


def worth_trying(n_labels: int, n_pairs: int) -> bool:
    """Return whether a tree may add something for so many labels with so many documents together.

    Of 4,000 labels with 53 documents each a tree added less than a fifth of a point, and took a third of the time.

    >>> worth_trying(4000, 20_000), worth_trying(4000, 200_000), worth_trying(1000, 5000)
    (True, False, False)
    """
    return n_labels >= _FEWEST_LABELS and n_pairs < _MOST_DOCUMENTS_PER_LABEL * n_labels


def most(n_labels: int, n_pairs: int) -> int:
    """Return how many trees may be worth it for labels with so many documents together.

    Where labels have few documents, other clusters change little of what can be learnt of them.

    >>> most(100, 600), most(100, 300)
    (3, 1)
    """
    return _TREES if n_pairs >= _DOCUMENTS_PER_LABEL * n_labels else 1


@dataclass(frozen=True)
class Grown:
    """One tree: the weights of its clusters and of its labels, and the way from each label to its root.

    Its nodes are the labels, by their own numbers, and after them the clusters, level by level.
    """

    clusters: list[Weights]
    labels: Weights
    paths: NDArray[np.int32]

    @property
    def n_weights(self) -> int:
        """How many weights all nodes have."""
        return sum(len(part.weights) for part in (*self.clusters, self.labels))


def grow(X: csr_matrix, Y: csr_matrix, config: Config, progress: Progress, number: int = 0) -> Grown:
    """Train the tree of this number on all documents."""
    n_labels = Y.shape[1]
    known = np.unique(Y.indices).astype(np.int32)
    counts = levels(len(known))
    name = f"label tree {number + 1}"
    with progress.phase(f"{name}: clusters", counts[-1]) as bar:
        finest = balanced_clusters(label_centroids(X, Y), known, counts[-1], config.seed + number)
        bar.advance(counts[-1])
    paths = np.full((n_labels, len(counts) + 1), -1, dtype=np.int32)
    documents, above, clusters, first = Documents.of(X), _root(Y), [], n_labels
    for i, n in enumerate(counts):
        level = _level(Y, np.where(finest >= 0, finest // (counts[-1] // n), -1).astype(np.int32), n)
        with progress.phase(f"{name}: level {i + 1}", n) as bar:
            weights = _train(documents, level, above, np.unique(level.cluster[known]), config)
            clusters.append(replace(weights, classes=weights.classes + np.int32(first)))
            bar.advance(n)
        paths[known, len(counts) - i] = first + level.cluster[known]
        above, first = level, first + n
    paths[known, 0] = known
    with progress.phase(f"{name}: labels", len(known)) as bar:
        labels = _train(documents, _level(Y, paths[:, 0], n_labels), above, known, config)
        bar.advance(len(known))
    return Grown(clusters, labels, paths)


def together(trees: Sequence[Grown], n_features: int, config: Config) -> LabelTree:
    """Return trees as one, in which the nodes of one come after those of another."""
    weights: list[Weights] = []
    paths: list[NDArray[np.int32]] = []
    first = 0
    for tree in trees:
        weights += [replace(part, classes=part.classes + np.int32(first)) for part in (*tree.clusters, tree.labels)]
        paths.append(np.where(tree.paths >= 0, tree.paths + np.int32(first), np.int32(-1)))
        first += int(tree.paths.max()) + 1
    view = linear.inverted(weights, (n_features, first), config.precision, _NO_BIAS, np.empty(0, dtype=np.int32))
    return LabelTree(view.pointers, view.labels, view.weights, view.biases, np.concatenate(paths, axis=1))


@dataclass(frozen=True)
class _Level:
    """The cluster of every label on one level, -1 for none, and the documents of each cluster."""

    cluster: NDArray[np.int32]
    documents_of: csr_matrix


def _root(Y: csr_matrix) -> _Level:
    """Return the level of the root, whose documents are all."""
    return _Level(np.zeros(Y.shape[1], dtype=np.int32), csr_matrix(np.ones((1, Y.shape[0]), dtype=np.float32)))


def _level(Y: csr_matrix, cluster: NDArray[np.int32], n: int) -> _Level:
    """Return a level of n clusters."""
    return _Level(cluster, csr_matrix(meta_labels(Y, cluster, n).T))


def _train(documents: Documents, level: _Level, above: _Level, clusters: NDArray[np.int32], config: Config) -> Weights:
    """Tell each of these clusters from the others of the cluster above."""
    known = np.flatnonzero(level.cluster >= 0)
    groups = np.zeros(level.documents_of.shape[0], dtype=np.int32)
    groups[level.cluster[known]] = above.cluster[known]
    pointers, members = above.documents_of.indptr.astype(np.int64), above.documents_of.indices
    against = Against(groups, pointers, members, _COSTS, None)
    return linear.train(documents, level.documents_of, clusters, against, _CARE, config.seed)
