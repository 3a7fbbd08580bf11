"""The tree view: labels in nested clusters, and a linear classifier per cluster and per label within its cluster.

A label with three documents is separated from all data by what it shares with its cluster, and from the rest of its
cluster by what is its own. Several trees, each with clusters of its own, form an ensemble.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lightdxml.persistence.arrays import Arrays
from lightdxml.views.base import Batch, Contributions, ModelSizes, Proposal, ViewMemory, expect, in_range
from lightdxml.views.linear.inverted import InvertedIndex, log_sigmoid, margins_of, restore_index
from lightdxml.views.linear.model import sigmoid_contributions

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightdxml.config import Config
    from lightdxml.training.run import Run, TrainingData
    from lightdxml.views.base import NewLabels, View
    from lightdxml.views.lesson import Lesson

# Nodes of candidates that are scored together.
_NODES = 2_000_000
# The log-score of a margin of 0, which a missing cluster gets.
_UNKNOWN = np.float32(-np.log(2))


@dataclass(frozen=True)
class LabelTree:
    """One tree.

    Attributes
    ----------
    clusters
        The weights of the clusters by feature.
    labels
        The weights of the labels by feature: each is separated from the other labels of its cluster.
    paths
        Labels × clusters: from the one that contains the label up to the one below the root; -1 for labels that are not
        in the tree.
    """

    clusters: InvertedIndex
    labels: InvertedIndex
    paths: NDArray[np.int32]

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return len(self.clusters.weights) + len(self.labels.weights)

    def arrays(self, prefix: str) -> Arrays:
        """Return weights and paths by name."""
        own = {f"{prefix}.paths": self.paths}
        return {**self.clusters.arrays(f"{prefix}.clusters"), **self.labels.arrays(f"{prefix}.labels"), **own}

    def quantize(self, precision: str) -> LabelTree:
        """Return the tree with weights of lower precision."""
        return replace(self, clusters=self.clusters.quantize(precision), labels=self.labels.quantize(precision))


def restore_tree(arrays: Arrays, prefix: str, sizes: ModelSizes) -> LabelTree:
    """Return the tree that these arrays make up; raise a `ValueError` if they cannot."""
    paths, biases = arrays[f"{prefix}.paths"], arrays[f"{prefix}.clusters.biases"]
    depth = paths.shape[-1] if paths.ndim == 2 else 0
    expect(paths, f"{prefix}.paths", (sizes.n_labels, depth), np.int32)
    clusters = restore_index(arrays, f"{prefix}.clusters", sizes.n_features, len(biases))
    if depth < 1 or not in_range(paths, -1, len(biases)):
        raise ValueError("its tree view has paths over clusters that do not exist")
    return LabelTree(clusters, restore_index(arrays, f"{prefix}.labels", sizes.n_features, sizes.n_labels), paths)


@dataclass(frozen=True)
class TreeView:
    """Label trees; the log-score is the mean of theirs."""

    name: ClassVar[str] = "tree"
    about: ClassVar[str] = "label trees"
    requires: ClassVar[tuple[str, ...]] = ()

    trees: tuple[LabelTree, ...]

    def propose(self, batch: Batch, known: NDArray[np.int32]) -> Proposal | None:
        """Propose nothing: the tree ranks the candidates of the other views."""
        return None

    def log_score(self, batch: Batch, labels: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return log σ(4 s) of margins s, summed along each label's path: the mean over all trees.

        Examples
        --------
        >>> classes, no = np.array([0], dtype=np.uint16), np.empty(0, dtype=np.int32)
        >>> weights, bias = np.array([0.5], dtype=np.float32), np.zeros(1, dtype=np.float32)
        >>> index = InvertedIndex(np.array([[0, 1]]), classes, weights, bias, no)
        >>> view = TreeView((LabelTree(index, index, np.array([[0]], dtype=np.int32)),))
        >>> from scipy.sparse import csr_matrix
        >>> view.log_score(Batch(csr_matrix([[1.0]], dtype=np.float32)), np.array([[0]], dtype=np.int32)).tolist()
        [[-0.253...]]
        """
        total = np.zeros(labels.shape, dtype=np.float32)
        for tree in self.trees:
            step = max(1, _NODES // max(1, labels.shape[1] * tree.paths.shape[1]))
            for start in range(0, len(labels), step):
                part = labels[start : start + step]
                some = batch if step >= len(labels) else Batch(batch.X[start : start + step])
                total[start : start + step] += _log_score(tree, some, part)
        total /= np.float32(len(self.trees))
        return total

    def contributions(self, batch: Batch, label: int) -> Contributions:
        """Return what each feature adds to the log-score, summed over the nodes of the label's paths."""
        base, features = 0.0, np.zeros(batch.X.nnz)
        for tree in self.trees:
            parts = [sigmoid_contributions(tree.labels, batch, label)]
            for cluster in tree.paths[label].tolist():
                missing = Contributions(float(_UNKNOWN), np.zeros(batch.X.nnz))
                parts.append(sigmoid_contributions(tree.clusters, batch, cluster) if cluster >= 0 else missing)
            base += sum(part.base for part in parts)
            features += np.sum([part.features for part in parts], axis=0)
        return Contributions(base / len(self.trees), features / len(self.trees))

    def arrays(self) -> Arrays:
        """Return weights and paths of all trees."""
        found: Arrays = {}
        for i, tree in enumerate(self.trees):
            found |= tree.arrays(f"{self.name}.{i}")
        return found

    def facts(self) -> dict[str, Any]:
        """Return the number of trees."""
        return {"trees": len(self.trees)}

    @classmethod
    def restore(cls, arrays: Arrays, facts: dict[str, Any], sizes: ModelSizes) -> TreeView:
        """Return the view that these arrays make up."""
        n_trees = facts["trees"]
        if type(n_trees) is not int or not 1 <= n_trees <= len(arrays):
            raise ValueError(f"its tree view has {n_trees!r:.30} trees")
        return cls(tuple(restore_tree(arrays, f"{cls.name}.{i}", sizes) for i in range(n_trees)))

    def check_values(self) -> None:
        """Check nothing more: there are no quantized rows."""

    def quantize(self, precision: str) -> TreeView:
        """Return the view with weights of lower precision."""
        return TreeView(tuple(tree.quantize(precision) for tree in self.trees))

    def with_labels(self, new: NewLabels) -> TreeView:
        """Return the trees with untrained labels next to the labels with the nearest names."""
        from lightdxml.views.tree.grow import with_labels

        return with_labels(self, new)

    def learn(self, lesson: Lesson) -> TreeView:
        """Return the trees with the labels of new documents separated again from the rest of their clusters."""
        from lightdxml.views.tree.learn import learn

        return learn(self, lesson)

    def summary(self) -> str:
        """Return the number of trees and weights."""
        trees = "1 tree" if len(self.trees) == 1 else f"{len(self.trees)} trees"
        n_weights = sum(tree.n_weights for tree in self.trees)
        return f"{trees}, {n_weights:,} weights, {self.trees[0].labels.weights.dtype}"

    @classmethod
    def memory(cls, data: TrainingData, config: Config, spilled: bool) -> ViewMemory:
        """Return the bytes that training takes."""
        from lightdxml.views.tree.train import memory

        return memory(data, config)

    @classmethod
    def train(cls, run: Run, is_useful: Callable[[View], bool]) -> TreeView | None:
        """Grow trees on the training documents, if they can be of use."""
        from lightdxml.views.tree.train import train

        return train(run, is_useful)

    def refit(self, run: Run) -> TreeView:
        """Return the same trees, trained again with held-out documents."""
        from lightdxml.views.tree.train import refit

        return refit(self, run)


def _log_score(tree: LabelTree, batch: Batch, labels: NDArray[np.int32]) -> NDArray[np.float32]:
    clusters = np.where(labels[:, :, None] >= 0, tree.paths[labels], -1).reshape(len(labels), -1)
    margins = margins_of(tree.clusters, batch, clusters)
    log_scores = np.where(clusters >= 0, log_sigmoid(margins, clusters), _UNKNOWN)
    total: NDArray[np.float32] = log_scores.reshape(*labels.shape, tree.paths.shape[1]).sum(axis=2)
    return np.where(labels >= 0, total + log_sigmoid(margins_of(tree.labels, batch, labels), labels), 0)
