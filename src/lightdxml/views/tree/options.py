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
    branching: int = setting(64, "Clusters below the root, and below each one of an upper level: a power of 2.", low=2)
    max_leaf: int = setting(16, "Labels per cluster of the lowest level, at most.", low=1)
    cost: float = setting(1.0, "Cost C of an error.", above=0, high=1_000_000)
    sample: int = setting(16_384, "Labels that the two centers of a bisection are computed from, at most.", low=2)
    max_trees: int = setting(3, "Trees in the ensemble, at most.", low=1, high=100)

    def __post_init__(self) -> None:
        check(self)
        if self.branching & (self.branching - 1):
            raise ValueError(f"tree.branching is {self.branching}: it must be a power of 2")
