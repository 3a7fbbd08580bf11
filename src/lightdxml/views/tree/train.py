"""Growing label trees: clusters of labels by balanced 2-means, each separated from its siblings.

As in Parabel and Bonsai, a node is trained on the documents of its parent. So a label has few negatives, all of them
close to it, and its bias is learned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.persistence.arrays import Arrays, check_finite
from lightdxml.views.base import ModelSizes, ViewMemory, expect, in_range
from lightdxml.views.linear.memory import expected_weights
from lightdxml.views.linear.solver import Documents, SiblingProblem, Weights, inverted
from lightdxml.views.linear.steps import solve_step
from lightdxml.views.linear.train import solver_documents
from lightdxml.views.tree.clustering import balanced_clusters, cluster_labels, label_centroids, nearest_labels
from lightdxml.views.tree.model import LabelTree, TreeView, restore_tree
from lightdxml.views.tree.options import SOLVER, TreeOptions

if TYPE_CHECKING:
    from lightdxml.config import Config
    from lightdxml.training.run import Run, TrainingData
    from lightdxml.views.base import View

_PHASE = "label tree"
# Weights of a single tree, and of one of several, relative to what is expected of the linear view. It is 1.6 times what
# real labels keep: 0.95 of that for wordnet's tree, 0.41 for each of the three of debian-relations.
_SINGLE, _ONE_OF_SEVERAL = 0.6, 0.5
# Bytes per entry of the centroids while they are computed.
_CENTROID_BYTES = 24


def levels(n_labels: int, options: TreeOptions) -> tuple[int, ...]:
    """Return the number of clusters per level, from the top.

    >>> levels(4000, TreeOptions()), levels(50_000, TreeOptions()), levels(670_000, TreeOptions())
    ((64, 256), (64, 4096), (64, 4096, 32768))
    """
    top = options.branching
    lowest = top
    while n_labels / lowest > options.max_leaf:
        lowest *= 2
    return (*(top**i for i in range(1, 10) if top**i < lowest), lowest)


def may_help(n_labels: int, n_pairs: int, options: TreeOptions) -> bool:
    """Return whether trees may help: with few labels, or many documents per label, the linear view is enough.

    >>> [may_help(*sizes, TreeOptions()) for sizes in ((4000, 20_000), (4000, 200_000), (1000, 5000))]
    [True, False, False]
    """
    return n_labels >= options.min_labels and n_pairs < options.max_documents_per_label * n_labels


def tree_count(n_labels: int, n_pairs: int, options: TreeOptions) -> int:
    """Return the number of trees: other clusters change little where labels have few documents.

    >>> tree_count(100, 600, TreeOptions()), tree_count(100, 300, TreeOptions())
    (3, 1)
    """
    return options.max_trees if n_pairs >= options.ensemble_from * n_labels else 1


def train(run: Run, is_useful: Callable[[View], bool]) -> TreeView | None:
    """Grow trees on the training documents; None where they are of no use. The first tree decides about the others."""
    data, options = run.data, run.config.tree
    if not options.enabled or not may_help(len(data.known_labels), data.Y.nnz, options):
        return None
    few = data.X_validation.shape[0] < run.config.blend.min_documents
    n_trees = 1 if few else tree_count(len(data.known_labels), data.Y.nnz, options)
    trees = _trees(run, _PHASE, data)
    first = next(trees)
    if n_trees > 1 and not is_useful(TreeView((first,))):
        return None
    return TreeView((first, *islice(trees, n_trees - 1)))


def refit(view: TreeView, run: Run) -> TreeView:
    """Train the same trees again, held-out documents included; labels that only these have join the nearest leaf."""
    return TreeView(tuple(islice(_trees(run, f"refit {_PHASE}", run.all_data), len(view.trees))))


def _trees(run: Run, phase: str, data: TrainingData) -> Iterator[LabelTree]:
    """Grow one tree after the other, each with clusters of its own, over the labels of these documents."""
    centroids, clustered = label_centroids(data.X, data.Y), run.data.known_labels
    new = np.setdiff1d(data.known_labels, clustered)
    nearest = nearest_labels(centroids, new, clustered)
    sizes = ModelSizes(data.X.shape[1], data.n_labels)
    for number in count():
        name = f"tree {number + 1}"
        key = run.key(phase, name)
        if key not in run.products:
            leaves = _leaf_clusters(run, f"{name}, clusters", centroids, number)
            leaves[new] = leaves[nearest]
            run.products[key] = _grow(run, phase, name, data, leaves).arrays("tree")
            # The tree itself takes less memory than the weights by node. Its clusters stay, for the refit.
            run.forget(phase, f"{name}, labels")
            for i in range(len(levels(len(clustered), run.config.tree))):
                run.forget(phase, f"{name}, level {i + 1}")
        with run.from_checkpoint(key):
            check_finite(run.products[key])
            tree = restore_tree(run.products[key], "tree", sizes)
        yield tree


@dataclass(frozen=True)
class _Level:
    """The cluster of every label on one level, -1 for none, and the documents of each cluster."""

    cluster: NDArray[np.int32]
    cluster_to_docs: csr_matrix


def _grow(run: Run, phase: str, name: str, data: TrainingData, leaves: NDArray[np.int32]) -> LabelTree:
    """Grow one tree over the clusters of the lowest level: a checkpointed step per level.

    Nodes are the labels, by their own ids, and after them the clusters, level by level.
    """
    Y, documents, known = data.Y, solver_documents(data), data.known_labels.astype(np.int32)
    n_labels, counts = data.n_labels, levels(len(run.data.known_labels), run.config.tree)
    paths = np.full((n_labels, len(counts) + 1), -1, dtype=np.int32)
    parent = _Level(np.zeros(n_labels, dtype=np.int32), csr_matrix(np.ones((1, Y.shape[0]), dtype=np.float32)))
    nodes, first = [], n_labels
    for i, n in enumerate(counts):
        level = _level(Y, np.where(leaves >= 0, leaves // (counts[-1] // n), -1).astype(np.int32), n)
        clusters = np.unique(level.cluster[known])
        weights = _separate(run, phase, f"{name}, level {i + 1}", documents, level, parent, clusters)
        nodes.append(replace(weights, classes=weights.classes + np.int32(first)))
        paths[known, len(counts) - i] = first + level.cluster[known]
        parent, first = level, first + n
    paths[known, 0] = known
    nodes.append(_separate(run, phase, f"{name}, labels", documents, _level(Y, paths[:, 0], n_labels), parent, known))
    no_bias, none = 0.0, np.empty(0, dtype=np.int32)
    return LabelTree(inverted(nodes, data.X.shape[1], first, run.config.precision, no_bias, none), paths)


def _leaf_clusters(run: Run, name: str, centroids: csr_matrix, number: int) -> NDArray[np.int32]:
    """Return the leaf of every label with training documents, -1 for others."""
    known, seed = run.data.known_labels.astype(np.int32), run.config.random_state + number
    n_clusters = levels(len(known), run.config.tree)[-1]

    def compute() -> Arrays:
        return {"clusters": balanced_clusters(centroids, known, n_clusters, seed, lambda _: run.tick())}

    def check(product: Arrays) -> NDArray[np.int32]:
        clusters = expect(product["clusters"], "clusters", (centroids.shape[0],), np.int32)
        if not in_range(clusters[known], 0, n_clusters) or not (np.delete(clusters, known) == -1).all():
            raise ValueError("its labels are in clusters that do not exist")
        return np.array(clusters)

    return run.step(_PHASE, name, compute, check)


def _level(Y: csr_matrix, cluster: NDArray[np.int32], n: int) -> _Level:
    return _Level(cluster, csr_matrix(cluster_labels(Y, cluster, n).T))


def _separate(
    run: Run,
    phase: str,
    name: str,
    documents: Documents,
    level: _Level,
    parent: _Level,
    clusters: NDArray[np.int32],
) -> Weights:
    """Separate each of these clusters from its siblings."""
    known = np.flatnonzero(level.cluster >= 0)
    groups = np.zeros(level.cluster_to_docs.shape[0], dtype=np.int32)
    groups[level.cluster[known]] = parent.cluster[known]
    ordered = clusters[np.argsort(groups[clusters], kind="stable")]
    options, seed = run.config.tree, run.config.random_state
    problem = SiblingProblem(
        documents, level.cluster_to_docs, ordered, groups, parent.cluster_to_docs, options.cost, SOLVER, seed
    )
    return solve_step(run, phase, name, ordered, lambda: problem)


def memory(data: TrainingData, config: Config) -> ViewMemory:
    """Return the bytes of growing trees: centroids, weights of all nodes, their inverted index."""
    options, n_labels = config.tree, len(data.known_labels)
    if not (options.enabled and config.linear.enabled) or not may_help(n_labels, data.Y.nnz, options):
        return ViewMemory()
    n_trees = tree_count(n_labels, data.Y.nnz, options)
    weights = round((_SINGLE if n_trees == 1 else _ONE_OF_SEVERAL) * expected_weights(data, config))
    centroids = _CENTROID_BYTES * centroid_entries(data)
    # Of the last tree by node (8 bytes each), and while they are inverted 8 more; 6 remain.
    growing = centroids // 3 + 6 * (n_trees - 1) * weights + 16 * weights
    return ViewMemory(training=max(centroids, growing), kept=6 * n_trees * weights, refit=max(centroids, growing))


def centroid_entries(data: TrainingData) -> int:
    """Return an upper bound of the non-zero entries of all label centroids."""
    words = np.diff(data.X.indptr)
    per_pair = int(data.label_to_docs.indices.size and words[data.label_to_docs.indices].sum(dtype=np.int64))
    return min(per_pair, len(data.known_labels) * int(data.X.shape[1]))
