"""Learning with label trees: labels and clusters of new documents are separated again from those next to them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels.sparse import Pattern
from lightdxml.views.lesson import Lesson
from lightdxml.views.linear.groups import LabelGroups
from lightdxml.views.linear.grow import grown
from lightdxml.views.linear.inverted import InvertedIndex
from lightdxml.views.linear.learn import Classes, all_documents, members_of, solved_again
from lightdxml.views.tree.model import LabelTree, TreeView
from lightdxml.views.tree.options import SOLVER


def learn(view: TreeView, lesson: Lesson) -> TreeView:
    """Return the trees with new labels next to the ones most like them, and with the labels of a lesson.

    Clusters of labels learn all documents since they did last, once there are enough. As in training, a node is
    separated from its siblings on the documents of their parent.
    """
    return TreeView(tuple(_learned(tree, lesson) for tree in view.trees))


def _learned(tree: LabelTree, lesson: Lesson) -> LabelTree:
    paths, n_nodes = lesson.placed(tree.paths), len(tree.clusters.biases)
    clusters = grown(tree.clusters, lesson.n_features, n_nodes, SOLVER.bias)
    if lesson.clusters_since is not None:
        clusters = _learned_clusters(clusters, paths, lesson, lesson.clusters_since)
    members = _documents(lesson, paths[:, 0], n_nodes, lesson.labels)[1]
    groups = LabelGroups(np.maximum(paths[:, 0], 0), Pattern.of(members))
    labels = Classes(lesson.labels, lesson.data.label_to_docs, groups, lesson.n_earlier)
    cost = lesson.config.tree.cost
    return LabelTree(clusters, solved_again(lesson, tree.labels, labels, lesson.from_scratch, cost, SOLVER), paths)


def _learned_clusters(index: InvertedIndex, paths: NDArray[np.int32], lesson: Lesson, first_new: int) -> InvertedIndex:
    """Return the classifiers of the clusters above the labels of all documents from `first_new` on, solved again."""
    labels, n_nodes = np.unique(lesson.data.Y[first_new:].indices), len(index.biases)
    parents, members = np.zeros(n_nodes, dtype=np.int32), all_documents(lesson)
    none = np.empty(0, dtype=np.int32)
    # From the top: the documents of a node are those on which its children are separated.
    for level in range(paths.shape[1] - 1, -1, -1):
        nodes, documents = _documents(lesson, paths[:, level], n_nodes, labels)
        classes = Classes(nodes, documents, LabelGroups(parents, Pattern.of(members)), first_new)
        index = solved_again(lesson, index, classes, none, lesson.config.tree.cost, SOLVER)
        parents, members = _children(paths, level, n_nodes), documents
    return index


def _documents(
    lesson: Lesson, of_label: NDArray[np.int32], n_nodes: int, labels: NDArray[np.int32]
) -> tuple[NDArray[np.int32], csr_matrix]:
    """Return the nodes of one level that are above some labels, and the documents of all their labels by node."""
    is_wanted = np.zeros(n_nodes, dtype=np.bool_)
    above = of_label[labels]
    is_wanted[above[above >= 0]] = True
    return np.flatnonzero(is_wanted).astype(np.int32), members_of(lesson, of_label, is_wanted)


def _children(paths: NDArray[np.int32], level: int, n_nodes: int) -> NDArray[np.int32]:
    """Return the parent, on a level, of every node of the level below it."""
    parents = np.zeros(n_nodes, dtype=np.int32)
    if level > 0:
        known = paths[:, 0] >= 0
        parents[paths[known, level - 1]] = paths[known, level]
    return parents
