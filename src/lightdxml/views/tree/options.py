"""Settings of the label tree."""

from __future__ import annotations

from dataclasses import dataclass

from lightdxml.settings import check, setting
from lightdxml.views.linear.options import SolverOptions

SOLVER = SolverOptions(30, 0.1, 0.07)


@dataclass(frozen=True)
class TreeOptions:
    """How label trees are grown.

    Examples
    --------
    >>> TreeOptions(max_trees=1).max_trees
    1
    """

    enabled: bool = setting(True, "Try label trees where labels are too many to train on all documents.")
    branching: int = setting(64, "Clusters below the root, and below each cluster of an upper level.", low=2)
    max_leaf: int = setting(16, "Labels per cluster of the lowest level, at most.", low=1)
    cost: float = setting(1.0, "Cost C of an error.", above=0, high=1_000_000)
    max_trees: int = setting(3, "Trees in the ensemble, at most.", low=1, high=100)

    def __post_init__(self) -> None:
        check(self)
