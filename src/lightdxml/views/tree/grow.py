"""Label trees with labels that were not there when they were trained."""

from __future__ import annotations

import numpy as np

from lightdxml.views.base import NewLabels
from lightdxml.views.linear.grow import grown
from lightdxml.views.tree.clustering import nearest_labels
from lightdxml.views.tree.model import LabelTree, TreeView


def with_labels(view: TreeView, new: NewLabels) -> TreeView:
    """Return the trees with untrained labels in the clusters of the labels with the nearest names.

    As in training, they have a margin of 0 within their cluster.
    """
    first = view.trees[0].paths[:, 0]
    # All trees have the same labels.
    known = np.setdiff1d(np.flatnonzero(first >= 0), new.untrained)
    nearest = nearest_labels(new.names.by_label(new.n_labels), new.untrained.astype(np.int64), known)
    trees = []
    for tree in view.trees:
        more = np.full((new.n_labels - len(first), tree.paths.shape[1]), -1, dtype=np.int32)
        paths = np.concatenate([tree.paths, more])
        paths[new.untrained] = tree.paths[nearest]
        clusters = grown(tree.clusters, new.n_features, len(tree.clusters.biases), 0.0)
        trees.append(LabelTree(clusters, grown(tree.labels, new.n_features, new.n_labels, 0.0), paths))
    return TreeView(tuple(trees))
