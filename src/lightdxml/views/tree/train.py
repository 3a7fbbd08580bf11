"""Growing label trees: a matcher each, and a classifier per label, which separates it from the rest of its cluster.

As in Parabel and Bonsai, a node is trained on the documents of its parent. So a label has few negatives, all of them
close to it, and its bias is learned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lightdxml.persistence.arrays import Arrays, check_finite
from lightdxml.views.base import ViewMemory
from lightdxml.views.linear.groups import needs_no_tree
from lightdxml.views.linear.inverted import restore_index
from lightdxml.views.linear.memory import expected_weights
from lightdxml.views.linear.solver import inverted, solver_documents
from lightdxml.views.tree.clustering import joined_clusters
from lightdxml.views.tree.matcher import PHASE, Level, match, separate
from lightdxml.views.tree.model import LabelTree, TreeView

if TYPE_CHECKING:
    from lightdxml.config import Config
    from lightdxml.training.run import Run, TrainingData
    from lightdxml.views.base import View

# Weights of a tree, relative to what is expected of the linear view.
_WEIGHTS = 2.0


def train(run: Run, is_useful: Callable[[View], bool]) -> TreeView | None:
    """Grow trees on the training documents; None where they are of no use. The first tree decides about the others."""
    data, options = run.data, run.config.tree
    if not options.enabled or needs_no_tree(data, run.config.linear):
        return None
    few = data.X_validation.shape[0] < run.config.blend.min_documents
    n_trees = 1 if few else options.max_trees
    trees = _trees(run, PHASE, data)
    first = next(trees)
    if n_trees > 1 and not is_useful(TreeView((first,))):
        return None
    return TreeView((first, *islice(trees, n_trees - 1)))


def refit(view: TreeView, run: Run) -> TreeView:
    """Train the labels again, held-out documents included; labels that only these have join the nearest cluster."""
    return TreeView(tuple(islice(_trees(run, f"refit {PHASE}", run.all_data), len(view.trees))))


def _trees(run: Run, phase: str, data: TrainingData) -> Iterator[LabelTree]:
    """Grow one tree after the other, each with clusters of its own, over the labels of these documents."""
    for number in count():
        matcher, name = match(run, number), f"tree {number + 1}, labels"
        clusters = joined_clusters(
            data, matcher.clusters, run.data.known_labels, data.trained_labels, run.config.names.documents
        )
        key = run.key(phase, f"tree {number + 1}")
        if key not in run.products:
            run.products[key] = _label_index(run, phase, name, data, clusters)
            # The index takes less memory than the weights by label.
            run.forget(phase, name)
        with run.from_checkpoint(key):
            check_finite(run.products[key])
            labels = restore_index(run.products[key], "labels", data.X.shape[1], data.n_labels)
        yield LabelTree(matcher.index, labels, matcher.paths(clusters))


def _label_index(run: Run, phase: str, name: str, data: TrainingData, clusters: NDArray[np.int32]) -> Arrays:
    """Train a classifier per label on the documents of its cluster."""
    n_clusters, known = int(clusters.max()) + 1, data.known_labels.astype(np.int32)
    own = np.where(clusters >= 0, np.arange(data.n_labels), -1).astype(np.int32)
    labels, parent = Level.of(data.Y, own, data.n_labels), Level.of(data.Y, clusters, n_clusters)
    weights = separate(run, phase, name, solver_documents(data), labels, parent, known)
    # Labels without documents are in a cluster by their names, and have a margin of 0 within it. A negative one ranked
    # rare labels lower and others no higher.
    no_bias, none = 0.0, np.empty(0, dtype=np.int32)
    index = inverted([weights], data.X.shape[1], data.n_labels, run.config.precision, no_bias, none)
    return index.arrays("labels")


def memory(data: TrainingData, config: Config) -> ViewMemory:
    """Return the bytes of growing trees: weights of all nodes, their inverted index."""
    options = config.tree
    if not options.enabled or needs_no_tree(data, config.linear):
        return ViewMemory()
    weights = round(_WEIGHTS * expected_weights(data))
    # Of the last tree by node (8 bytes each), and while they are inverted 8 more; 6 remain.
    growing = 6 * (options.max_trees - 1) * weights + 16 * weights
    return ViewMemory(training=growing, kept=6 * options.max_trees * weights, refit=growing)
