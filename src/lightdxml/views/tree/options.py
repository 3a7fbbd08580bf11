"""Settings of the label tree."""

from __future__ import annotations

from dataclasses import dataclass

from lightdxml.settings import check, setting
from lightdxml.views.linear.options import SolverOptions

# A tree has many nodes per label: it is pruned harder than the linear view. Half the weights, P within .2 (wordnet).
SOLVER = SolverOptions(30, 0.22, 0.07)


@dataclass(frozen=True)
class TreeOptions:
    """How label trees are grown.

    Examples
    --------
    >>> TreeOptions(max_trees=1).max_trees
    1
    """

    enabled: bool = setting(True, "Train label trees where there are many labels with few documents.")
    branching: int = setting(64, "Clusters below the root, and below each cluster of an upper level.", low=2)
    max_leaf: int = setting(24, "Labels per cluster of the lowest level, at most.", low=1)
    cost: float = setting(1.0, "Cost C of an error.", above=0, high=1_000_000)
    min_labels: int = setting(2048, "Labels from which on trees are tried; below, the linear view is enough.", low=0)
    max_documents_per_label: float = setting(20.0, "Documents per label above which no label tree is tried.", low=0)
    max_trees: int = setting(3, "Trees in the ensemble, at most.", low=1, high=100)
    # With few documents per label other clusters change little of what can be learned.
    ensemble_from: float = setting(4.0, "Documents per label from which on more than one tree is grown.", low=0)

    def __post_init__(self) -> None:
        check(self)
