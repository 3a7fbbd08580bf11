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
from lightdxml.views.linear.inverted import InvertedIndex, hinge_log_score, restore_index, search
from lightdxml.views.linear.model import hinge_contributions

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightdxml.config import Config
    from lightdxml.training.run import Run, TrainingData
    from lightdxml.views.base import View

# Nodes of candidates that are scored together.
_NODES = 2_000_000


@dataclass(frozen=True)
class LabelTree:
    """One tree.

    Attributes
    ----------
    index
        The weights of its nodes by feature.
    paths
        Labels × nodes: from each label's own node up to the one below the root; -1 for labels that are not in the tree.
    """

    index: InvertedIndex
    paths: NDArray[np.int32]

    def arrays(self, prefix: str) -> Arrays:
        """Return weights and paths by name."""
        return {**self.index.arrays(prefix), f"{prefix}.paths": self.paths}


def restore_tree(arrays: Arrays, prefix: str, sizes: ModelSizes) -> LabelTree:
    """Return the tree that these arrays make up; raise a `ValueError` if they cannot."""
    paths, biases = arrays[f"{prefix}.paths"], arrays[f"{prefix}.biases"]
    depth = paths.shape[-1] if paths.ndim == 2 else 0
    expect(paths, f"{prefix}.paths", (sizes.n_labels, depth), np.int32)
    index = restore_index(arrays, prefix, sizes.n_features, len(biases))
    if depth < 1 or not in_range(paths, -1, len(biases)):
        raise ValueError("its tree view has paths over nodes that do not exist")
    return LabelTree(index, paths)


@dataclass(frozen=True)
class TreeView:
    """Label trees, whose log-scores are added."""

    name: ClassVar[str] = "tree"
    about: ClassVar[str] = "label trees"
    requires: ClassVar[tuple[str, ...]] = ()

    trees: tuple[LabelTree, ...]

    def propose(self, batch: Batch, known: NDArray[np.int32]) -> Proposal | None:
        """Propose nothing: the tree ranks the candidates of the other views."""
        return None

    def log_score(self, batch: Batch, labels: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return the negative squared-hinge penalty, summed along each label's path in every tree.

        Examples
        --------
        >>> from scipy.sparse import csr_matrix
        >>> classes, no = np.array([0, 1], dtype=np.int32), np.empty(0, dtype=np.int32)
        >>> weights, biases = np.array([1.0, 0.5], dtype=np.float32), np.zeros(2, dtype=np.float32)
        >>> index = InvertedIndex(np.array([0, 2]), classes, weights, biases, no)
        >>> view = TreeView((LabelTree(index, np.array([[0, 1]], dtype=np.int32)),))
        >>> view.log_score(Batch(csr_matrix([[1.0]], dtype=np.float32)), np.array([[0]], dtype=np.int32)).tolist()
        [[-0.25]]
        """
        total = np.zeros(labels.shape, dtype=np.float32)
        for tree in self.trees:
            step = max(1, _NODES // max(1, labels.shape[1] * tree.paths.shape[1]))
            for start in range(0, len(labels), step):
                part = labels[start : start + step]
                some = batch if step >= len(labels) else Batch(batch.X[start : start + step])
                total[start : start + step] += _log_score(tree, some, part)
        return total

    def contributions(self, batch: Batch, label: int) -> Contributions:
        """Return what each feature adds to the log-score, summed over the nodes of the label's paths."""
        base, features = 0.0, np.zeros(batch.X.nnz)
        for tree in self.trees:
            for node in tree.paths[label].tolist():
                # A node that is missing scores as a margin of 0 does.
                part = hinge_contributions(tree.index, batch, node) if node >= 0 else Contributions(-1.0, features * 0)
                base, features = base + part.base, features + part.features
        return Contributions(base, features)

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
        return TreeView(tuple(replace(tree, index=tree.index.quantize(precision)) for tree in self.trees))

    def summary(self) -> str:
        """Return the number of trees and weights."""
        trees = "1 tree" if len(self.trees) == 1 else f"{len(self.trees)} trees"
        n_weights = sum(len(tree.index.weights) for tree in self.trees)
        return f"{trees}, {n_weights:,} weights, {self.trees[0].index.weights.dtype}"

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
    depth = tree.paths.shape[1]
    nodes = np.where(labels[:, :, None] >= 0, tree.paths[labels], -1).reshape(len(labels), -1)
    penalties = hinge_log_score(search(tree.index, batch, 0, nodes)[2], nodes)
    total: NDArray[np.float32] = penalties.reshape(*labels.shape, depth).sum(axis=2)
    # A label that is not in the tree has no margins: it scores as if all of them were 0.
    total[(labels >= 0) & (tree.paths[labels, 0] < 0)] = -depth
    return total
