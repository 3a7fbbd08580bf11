"""Learning with label trees: labels and clusters of new documents are separated again from those next to them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.views.lesson import Lesson
from lightdxml.views.linear.groups import LabelGroups
from lightdxml.views.linear.inverted import InvertedIndex
from lightdxml.views.linear.learn import Classes, members_of, solved_again
from lightdxml.views.tree.model import LabelTree, TreeView
from lightdxml.views.tree.options import SOLVER


def learn(view: TreeView, lesson: Lesson) -> TreeView:
    """Return the trees with new labels next to the ones most like them, and all nodes above the labels of a lesson.

    As in training, a node is separated from its siblings on the documents of their parent.
    """
    return TreeView(tuple(_learned(tree, lesson) for tree in view.trees))


def _learned(tree: LabelTree, lesson: Lesson) -> LabelTree:
    paths, n_nodes = lesson.placed(tree.paths), len(tree.clusters.biases)
    index = tree.clusters
    parents, members = np.zeros(n_nodes, dtype=np.int32), _root(lesson)
    # From the top: the documents of a node are those on which its children are separated.
    for level in range(paths.shape[1] - 1, -1, -1):
        nodes, documents = _documents(lesson, paths[:, level], n_nodes)
        groups = LabelGroups(parents, members)
        index = _separated(lesson, index, nodes, documents, groups, nodes[:0])
        parents, members = _children(paths, level, n_nodes), documents
    groups = LabelGroups(np.maximum(paths[:, 0], 0), members)
    labels = _separated(lesson, tree.labels, lesson.labels, lesson.data.label_to_docs, groups, lesson.anew)
    return LabelTree(index, labels, paths)


def _separated(
    lesson: Lesson,
    index: InvertedIndex,
    nodes: NDArray[np.int32],
    documents: csr_matrix,
    groups: LabelGroups,
    anew: NDArray[np.int32],
) -> InvertedIndex:
    return solved_again(lesson, index, Classes(nodes, documents, groups), anew, lesson.config.tree.cost, SOLVER)


def _root(lesson: Lesson) -> csr_matrix:
    """Return the documents of the root: all of them."""
    return csr_matrix(np.ones((1, lesson.data.X.shape[0]), dtype=np.float32))


def _documents(lesson: Lesson, of_label: NDArray[np.int32], n_nodes: int) -> tuple[NDArray[np.int32], csr_matrix]:
    """Return the nodes of one level that are above labels of a lesson, and the documents of their labels by node."""
    is_wanted = np.zeros(n_nodes, dtype=np.bool_)
    is_wanted[of_label[lesson.labels]] = True
    return np.flatnonzero(is_wanted).astype(np.int32), members_of(lesson, of_label, is_wanted)


def _children(paths: NDArray[np.int32], level: int, n_nodes: int) -> NDArray[np.int32]:
    """Return the parent, on a level, of every node of the level below it."""
    parents = np.zeros(n_nodes, dtype=np.int32)
    if level > 0:
        known = paths[:, 0] >= 0
        parents[paths[known, level - 1]] = paths[known, level]
    return parents
