"""Learning with label trees: labels of new documents are separated again from the others of their clusters."""

from __future__ import annotations

import numpy as np

from lightdxml.views.lesson import Lesson
from lightdxml.views.linear.groups import LabelGroups
from lightdxml.views.linear.grow import grown
from lightdxml.views.linear.learn import Anchors, members_of, solved_again
from lightdxml.views.tree.model import LabelTree, TreeView
from lightdxml.views.tree.options import SOLVER


def learn(view: TreeView, lesson: Lesson) -> TreeView:
    """Return the trees with new labels next to the ones most like them, and the labels of a lesson solved again.

    The classifiers of the clusters stay as they are.
    """
    return TreeView(tuple(_learned(tree, lesson) for tree in view.trees))


def _learned(tree: LabelTree, lesson: Lesson) -> LabelTree:
    paths = lesson.placed(tree.paths)
    groups = np.maximum(paths[:, 0], 0)
    is_wanted = np.zeros(len(tree.clusters.biases), dtype=np.bool_)
    is_wanted[groups[lesson.labels]] = True
    members = members_of(lesson, paths[:, 0], is_wanted)
    anchors = Anchors.of(lesson, tree.labels, None)
    labels = solved_again(
        lesson, tree.labels, LabelGroups(groups, members), anchors, lesson.config.tree.cost, SOLVER
    )
    clusters = grown(tree.clusters, lesson.n_features, len(tree.clusters.biases), 0.0)
    return LabelTree(clusters, labels, paths)
