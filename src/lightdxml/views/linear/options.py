"""Settings of the linear view and of its solver."""

from __future__ import annotations

from dataclasses import dataclass

from lightdxml.settings import check, setting


@dataclass(frozen=True)
class SolverOptions:
    """When dual coordinate descent stops, which weights are pruned, and how the bias is learned.

    Attributes
    ----------
    max_iter
        Passes over the documents of a class.
    prune_abs
        Weights below it are dropped.
    prune_rel
        Weights below it are dropped after scaling by the usual size of their feature relative to all features. Common
        features get a small weight for nearly every label: it changes no ranking and dominates prediction time.
    tolerance
        The largest violation of the optimality conditions to stop at.
    bias, bias_rate
        Where the bias of a class starts, and how freely it is learned: 1 as another weight, 0 not at all.
    hard
        By how much documents must miss the margin, after two passes, to be visited again; 0 for all that may matter.
        If all classes of a block start near their solution, it applies from the first pass on.
    """

    max_iter: int
    prune_abs: float
    prune_rel: float
    tolerance: float = 0.1
    bias: float = 0.0
    bias_rate: float = 1.0
    hard: float = 0.0


# A label sees documents that resemble its own, not all documents. A free bias would accept all others: P@1 20 instead
# of 33 on wordnet. A fixed one would be too low for labels of a third of all documents.
SOLVER = SolverOptions(30, 0.1, 0.07, bias=-1.0, bias_rate=0.3)

MAX_COST = 1_000_000


@dataclass(frozen=True)
class LinearOptions:
    """How the sparse linear classifiers are trained.

    Examples
    --------
    >>> LinearOptions(prior=0).prior
    0
    """

    enabled: bool = setting(True, "Train a sparse linear classifier per label on the features themselves.")
    costs: tuple[float, ...] = setting(
        (0.25, 0.5, 1.0), "Values of C, the cost of an error, to choose from; noisy labels need a lower one."
    )
    default_cost: float = setting(0.5, "C with few validation documents.", above=0, high=MAX_COST)
    tried_labels: int = setting(256, "Labels on which these costs are compared, at least.", low=1)
    tried_share: float = setting(0.25, "Share of all labels on which these costs are compared.", low=0, high=1)
    # Rare labels have few documents to learn from: their mean is a better guess than nothing.
    prior: float = setting(
        2.0, "Weights are regularized towards this multiple of the label's centroid.", low=0, high=1000
    )
    work: int = setting(
        200_000_000, "Features read per pass over all labels. If it allows, labels are trained on all documents.", low=0
    )
    document_work: int = setting(25, "Fixed cost of reading a document, counted in features.", low=0)
    min_clusters: int = setting(40, "Clusters of labels per document that it is a negative of, at least.", low=1)
    proposals: int = setting(100, "Candidate labels per document that the view proposes.", low=0)

    def __post_init__(self) -> None:
        check(self)
        numbers = all(isinstance(cost, int | float) and 0 < cost <= MAX_COST for cost in self.costs)
        if not self.costs or not numbers:
            raise ValueError(f"linear.costs is {self.costs!r}: it must be numbers above 0 and at most {MAX_COST:,}")
