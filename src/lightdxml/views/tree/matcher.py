"""The matcher of a label tree: nested clusters of labels, and a linear classifier per cluster.

It tells which clusters of labels a document may belong to. The linear view takes its hard negatives from there, and
the tree view adds a classifier per label.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import matching, parallel
from lightdxml.kernels.sparse import Csr, Pattern
from lightdxml.persistence.arrays import Arrays, check_finite
from lightdxml.views.base import expect, in_range
from lightdxml.views.linear.inverted import InvertedIndex, restore_index
from lightdxml.views.linear.solver import Documents, Problem, Weights, inverted, solver_documents
from lightdxml.views.linear.steps import solve_step
from lightdxml.views.tree.clustering import balanced_clusters, cluster_labels, training_centroids
from lightdxml.views.tree.options import SOLVER, TreeOptions

if TYPE_CHECKING:
    from lightdxml.training.run import Run

PHASE = "label tree"
_DOCUMENTS = 256


@dataclass(frozen=True)
class Matcher:
    """Clusters of labels on several levels.

    Attributes
    ----------
    clusters
        The cluster of every label on the lowest level, -1 for labels without documents.
    levels
        The number of clusters per level, from the top. All clusters of a level have the same number of children.
    index
        The weights of the clusters, which are numbered level by level.
    """

    clusters: NDArray[np.int32]
    levels: tuple[int, ...]
    index: InvertedIndex

    @property
    def n_clusters(self) -> int:
        """Number of clusters on the lowest level."""
        return self.levels[-1]

    def paths(self, clusters: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the clusters that contain these ones of the lowest level, from there up; -1 for cluster -1."""
        firsts = np.concatenate([[0], np.cumsum(self.levels)[:-1]])
        columns = [
            np.where(clusters >= 0, first + clusters // (self.n_clusters // n), -1)
            for first, n in zip(firsts, self.levels, strict=True)
        ]
        return np.stack(columns[::-1], axis=-1).astype(np.int32)


def levels(n_labels: int, options: TreeOptions) -> tuple[int, ...]:
    """Return the number of clusters per level, from the top.

    >>> levels(4000, TreeOptions()), levels(50_000, TreeOptions()), levels(670_000, TreeOptions())
    ((64, 256), (64, 4096), (64, 4096, 65536))
    """
    top = options.branching
    lowest = top
    while n_labels / lowest > options.max_leaf:
        lowest *= 2
    return (*(top**i for i in range(1, 10) if top**i < lowest), lowest)


def match(run: Run, number: int) -> Matcher:
    """Return the matcher of a tree, trained on the training documents: once, in steps that are checkpointed."""
    return run.data.memo(("matcher", number), lambda: _train(run, number))


def nearest_clusters(matcher: Matcher, X: csr_matrix, size: int) -> NDArray[np.int32]:
    """Return the clusters of the lowest level that score highest for each document, in ascending order."""
    found = np.empty((X.shape[0], size), dtype=np.int32)
    index, documents = matcher.index, Csr.of(X)
    levels = np.array(matcher.levels, dtype=np.int64)

    def run(bounds: tuple[int, int]) -> None:
        matching.best_leaves(*bounds, documents, index.postings, index.biases, levels, found)

    parallel.run(run, parallel.fixed_chunks(X.shape[0], _DOCUMENTS))
    return found


@dataclass(frozen=True)
class Level:
    """The cluster of every label on one level, -1 for none, and the documents of each cluster."""

    cluster: NDArray[np.int32]
    cluster_to_docs: csr_matrix

    @staticmethod
    def of(Y: csr_matrix, cluster: NDArray[np.int32], n: int) -> Level:
        """Return a level with n clusters."""
        return Level(cluster, csr_matrix(cluster_labels(Y, cluster, n).T))


def separate(
    run: Run, phase: str, name: str, documents: Documents, level: Level, parent: Level, clusters: NDArray[np.int32]
) -> Weights:
    """Separate each of these clusters from the others with the same parent."""
    known = np.flatnonzero(level.cluster >= 0)
    groups = np.zeros(level.cluster_to_docs.shape[0], dtype=np.int32)
    groups[level.cluster[known]] = parent.cluster[known]
    ordered = clusters[np.argsort(groups[clusters], kind="stable")]
    cost, seed = run.config.tree.cost, run.config.random_state
    problem = partial(
        Problem,
        documents,
        level.cluster_to_docs,
        ordered,
        groups,
        Pattern.of(parent.cluster_to_docs),
        cost,
        SOLVER,
        seed,
    )
    return solve_step(run, phase, name, ordered, problem)


def _train(run: Run, number: int) -> Matcher:
    data, name = run.data, f"tree {number + 1}"
    counts = levels(len(data.known_labels), run.config.tree)
    clusters = _clusters(run, f"{name}, clusters", counts[-1], number)
    key = run.key(PHASE, f"{name}, matcher")
    if key not in run.products:
        run.products[key] = _index(run, name, clusters, counts).arrays("clusters")
        # The index takes less memory than the weights by cluster.
        for i in range(len(counts)):
            run.forget(PHASE, _level_name(name, i))
    with run.from_checkpoint(key):
        check_finite(run.products[key])
        index = restore_index(run.products[key], "clusters", data.X.shape[1], sum(counts))
    return Matcher(clusters, counts, index)


def _index(run: Run, name: str, clusters: NDArray[np.int32], counts: tuple[int, ...]) -> InvertedIndex:
    """Train a classifier per cluster, level by level."""
    data = run.data
    everything = csr_matrix(np.ones((1, data.X.shape[0]), dtype=np.float32))
    parent = Level(np.zeros(data.n_labels, dtype=np.int32), everything)
    nodes, first = [], 0
    for i, n in enumerate(counts):
        level = Level.of(data.Y, np.where(clusters >= 0, clusters // (counts[-1] // n), -1).astype(np.int32), n)
        known = np.unique(level.cluster[data.known_labels])
        weights = separate(run, PHASE, _level_name(name, i), solver_documents(data), level, parent, known)
        nodes.append(replace(weights, classes=weights.classes + np.int32(first)))
        parent, first = level, first + n
    no_bias, none = 0.0, np.empty(0, dtype=np.int32)
    return inverted(nodes, data.X.shape[1], first, run.config.precision, no_bias, none)


def _level_name(name: str, i: int) -> str:
    return f"{name}, level {i + 1}"


def _clusters(run: Run, name: str, n_clusters: int, number: int) -> NDArray[np.int32]:
    """Return the cluster of every label with training documents, -1 for others."""
    known, seed = run.data.known_labels.astype(np.int32), run.config.random_state + number

    def compute() -> Arrays:
        centroids, sample = training_centroids(run.data), run.config.tree.sample
        return {"clusters": balanced_clusters(centroids, known, n_clusters, seed, sample, lambda _: run.tick())}

    def check(product: Arrays) -> NDArray[np.int32]:
        clusters = expect(product["clusters"], "clusters", (run.data.n_labels,), np.int32)
        if not in_range(clusters[known], 0, n_clusters) or not (np.delete(clusters, known) == -1).all():
            raise ValueError("its labels are in clusters that do not exist")
        return np.array(clusters)

    return run.step(PHASE, name, compute, check)
