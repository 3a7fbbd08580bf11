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
class TreeView:
    """Weights of nodes by feature, and the path from each label to the root.

    Attributes
    ----------
    index
        The weights of all nodes of all trees.
    paths
        Labels × nodes: from each label's own node up to the one below the root, tree after tree; -1 for labels that
        are in no tree.
    """

    name: ClassVar[str] = "tree"
    about: ClassVar[str] = "label trees"
    requires: ClassVar[tuple[str, ...]] = ()

    index: InvertedIndex
    paths: NDArray[np.int32]
    n_trees: int

    def propose(self, batch: Batch, known: NDArray[np.int32]) -> Proposal | None:
        """Propose nothing: the tree ranks the candidates of the other views."""
        return None

    def log_score(self, batch: Batch, labels: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return the negative squared-hinge penalty, summed along each label's paths.

        Examples
        --------
        >>> from scipy.sparse import csr_matrix
        >>> classes, no = np.array([0, 1], dtype=np.int32), np.empty(0, dtype=np.int32)
        >>> weights, biases = np.array([1.0, 0.5], dtype=np.float32), np.zeros(2, dtype=np.float32)
        >>> index = InvertedIndex(np.array([0, 2]), classes, weights, biases, no)
        >>> view = TreeView(index, np.array([[0, 1]], dtype=np.int32), 1)
        >>> view.log_score(Batch(csr_matrix([[1.0]], dtype=np.float32)), np.array([[0]], dtype=np.int32)).tolist()
        [[-0.25]]
        """
        total = np.empty(labels.shape, dtype=np.float32)
        depth = self.paths.shape[1]
        step = max(1, _NODES // max(1, labels.shape[1] * depth))
        for start in range(0, len(labels), step):
            part = labels[start : start + step]
            nodes = np.where(part[:, :, None] >= 0, self.paths[part], -1).reshape(len(part), -1)
            some = batch if step >= len(labels) else Batch(batch.X[start : start + step])
            penalties = hinge_log_score(search(self.index, some, 0, nodes)[2], nodes)
            total[start : start + step] = penalties.reshape(*part.shape, depth).sum(axis=2)
        # A label in no tree has no margins: it scores as if all of them were 0.
        total[(labels >= 0) & (self.paths[labels, 0] < 0)] = -depth
        return total

    def contributions(self, batch: Batch, label: int) -> Contributions:
        """Return what each feature adds to the log-score, summed over the nodes of the label's paths."""
        nodes = self.paths[label].tolist()
        if nodes[0] < 0:
            return Contributions(-float(len(nodes)), np.zeros(batch.X.nnz))
        parts = [hinge_contributions(self.index, batch, node) for node in nodes if node >= 0]
        return Contributions(sum(part.base for part in parts), np.sum([part.features for part in parts], axis=0))

    def arrays(self) -> Arrays:
        """Return weights and paths."""
        return {**self.index.arrays(self.name), "tree.paths": self.paths}

    def facts(self) -> dict[str, Any]:
        """Return the number of trees."""
        return {"trees": self.n_trees}

    @classmethod
    def restore(cls, arrays: Arrays, facts: dict[str, Any], sizes: ModelSizes) -> TreeView:
        """Return the view that these arrays make up."""
        paths, biases, n_trees = arrays["tree.paths"], arrays["tree.biases"], facts["trees"]
        depth = paths.shape[-1] if paths.ndim == 2 else 0
        expect(paths, "tree.paths", (sizes.n_labels, depth), np.int32)
        index = restore_index(arrays, cls.name, sizes.n_features, len(biases))
        if type(n_trees) is not int or not 1 <= n_trees <= depth:
            raise ValueError(f"its tree view has {n_trees!r:.30} trees")
        if not in_range(paths, -1, len(biases)):
            raise ValueError("its tree view has paths over nodes that do not exist")
        return cls(index, paths, n_trees)

    def check_values(self) -> None:
        """Check nothing more: there are no quantized rows."""

    def quantize(self, precision: str) -> TreeView:
        """Return the view with weights of lower precision."""
        return replace(self, index=self.index.quantize(precision))

    def summary(self) -> str:
        """Return the number of trees and weights."""
        trees = "1 tree" if self.n_trees == 1 else f"{self.n_trees} trees"
        return f"{trees}, {len(self.index.weights):,} weights, {self.index.weights.dtype}"

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
