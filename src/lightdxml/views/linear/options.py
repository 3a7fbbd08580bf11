"""Settings of the linear view and of its solver."""

from __future__ import annotations

from dataclasses import dataclass

from lightdxml.settings import check, setting


@dataclass(frozen=True)
class SolverOptions:
    """When dual coordinate descent stops, and which weights are pruned.

    Attributes
    ----------
    max_iter
        Passes over the documents of a label.
    prune_abs
        Weights below it are dropped.
    prune_rel
        Weights below it are dropped after scaling by the usual size of their feature relative to all features. Common
        features get a small weight for nearly every label: it changes no ranking and dominates prediction time.
    tolerance
        The largest violation of the optimality conditions to stop at.
    """

    max_iter: int
    prune_abs: float
    prune_rel: float
    tolerance: float = 0.1


# Labels trained on all documents converge in fewer passes. The first round only has to find hard negatives.
FREQUENT, FIRST_ROUND = SolverOptions(8, 0.05, 0.035), SolverOptions(4, 0.15, 0.14)
FINAL_ROUND = SolverOptions(20, 0.05, 0.035)
# Costs are compared after fewer passes: the best one is the same (bibtex, delicious, citeulike-t, eurlex57k).
COST_TRIAL = SolverOptions(4, 0.05, 0.035)


@dataclass(frozen=True)
class LinearOptions:
    """How the sparse linear classifiers are trained.

    Examples
    --------
    >>> LinearOptions(hard_negatives=50).hard_negatives
    50
    """

    enabled: bool = setting(True, "Train a sparse linear classifier per label on the features themselves.")
    shortlist_negatives: int = setting(50, "Negatives per document from its shortlist.", low=0)
    hard_negatives: int = setting(100, "Negatives per document that the first round ranks highest.", low=0)
    cost: float = setting(0.5, "Cost C of an error on a positive.", above=0, high=1_000_000)
    negative_cost: float = setting(0.25, "Cost C of an error on a negative.", above=0, high=1_000_000)
    bias: float = setting(-1.0, "Fixed bias of labels trained on hard negatives only.")
    # With hard negatives alone a learned bias accepts everything else: P@1 8 instead of 36 on wordnet.
    frequent_work: int = setting(
        500_000_000, "Features read per pass over the frequent labels, which are trained on all documents.", low=0
    )
    document_work: int = setting(25, "Fixed cost of reading a document, counted in features.", low=0)
    frequent_costs: tuple[float, ...] = setting(
        (0.25, 0.5, 1.0), "Values of C to try for frequent labels; noisy labels need a lower C."
    )
    tried_labels: int = setting(16, "Frequent labels on which these costs are tried.", low=1)
    held_out_every: int = setting(5, "Every n-th document is held out to compare these costs.", low=2)
    proposals: int = setting(100, "Candidate labels per document that the view proposes.", low=0)

    def __post_init__(self) -> None:
        check(self)
