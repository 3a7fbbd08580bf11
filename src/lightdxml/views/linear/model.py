"""The linear view: a sparse linear classifier per label on the features themselves.

Where a label has a few short documents, dense embeddings lose the words that matter. This view keeps a weight for the
features that separate a label from the labels it competes with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lightdxml.persistence.arrays import Arrays
from lightdxml.views.base import Batch, Contributions, ModelSizes, Proposal, ViewMemory, mean_slope
from lightdxml.views.linear.inverted import (
    SLOPE,
    InvertedIndex,
    feature_margins,
    log_sigmoid,
    margins_of,
    restore_index,
    search,
)
from lightdxml.views.linear.options import MAX_COST, LinearOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightdxml.config import Config
    from lightdxml.training.run import Run, TrainingData
    from lightdxml.views.base import NewLabels, View
    from lightdxml.views.lesson import Lesson


@dataclass(frozen=True)
class LinearView:
    """Weights of labels by feature.

    Attributes
    ----------
    index
        The weights.
    proposals
        Candidates per document.
    cost
        The cost C of an error with which it was trained.
    """

    name: ClassVar[str] = "linear"
    about: ClassVar[str] = "sparse linear classifier on the features"
    requires: ClassVar[tuple[str, ...]] = ()

    index: InvertedIndex
    proposals: int
    cost: float = LinearOptions.default_cost

    def propose(self, batch: Batch, known: NDArray[np.int32]) -> Proposal | None:
        """Return the labels of the largest margins; one pass over the index scores the known labels too."""
        labels, margins, known_margins = search(self.index, batch, self.proposals, known, batch.allowed)
        every = np.concatenate([known, labels], axis=1)
        return Proposal(labels, log_sigmoid(np.concatenate([known_margins, margins], axis=1), every))

    def log_score(self, batch: Batch, labels: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return log σ(4 s) of these labels, s being their margins."""
        return log_sigmoid(margins_of(self.index, batch, labels), labels)

    def contributions(self, batch: Batch, label: int) -> Contributions:
        """Return what each feature adds to the log-score."""
        return sigmoid_contributions(self.index, batch, label)

    def arrays(self) -> Arrays:
        """Return the weights."""
        return self.index.arrays(self.name)

    def facts(self) -> dict[str, Any]:
        """Return how many candidates the view proposes, and the cost of an error."""
        return {"proposals": self.proposals, "cost": self.cost}

    @classmethod
    def restore(cls, arrays: Arrays, facts: dict[str, Any], sizes: ModelSizes) -> LinearView:
        """Return the view that these arrays make up."""
        proposals = facts["proposals"]
        if type(proposals) is not int or not 0 <= proposals <= 1 << 20:
            raise ValueError(f"its linear view proposes {proposals!r:.30} labels")
        # Older models do not have it.
        cost = facts.get("cost", LinearOptions.default_cost)
        if type(cost) not in (int, float) or not 0 < cost <= MAX_COST:
            raise ValueError(f"its linear view has a cost {cost!r:.30}")
        return cls(restore_index(arrays, cls.name, sizes.n_features, sizes.n_labels), proposals, float(cost))

    def check_values(self) -> None:
        """Check nothing more: there are no quantized rows."""

    def quantize(self, precision: str) -> LinearView:
        """Return the view with weights of lower precision."""
        return replace(self, index=self.index.quantize(precision))

    def with_labels(self, new: NewLabels) -> LinearView:
        """Return the view with names as weights of untrained labels."""
        from lightdxml.views.linear.grow import with_labels

        return with_labels(self, new)

    def learn(self, lesson: Lesson) -> LinearView:
        """Return the view with the labels of new documents solved again."""
        from lightdxml.views.linear.learn import learn

        return learn(self, lesson)

    def summary(self) -> str:
        """Return the number of weights."""
        return f"{len(self.index.weights):,} weights, {self.index.weights.dtype}; proposes {self.proposals} labels"

    @classmethod
    def memory(cls, data: TrainingData, config: Config, spilled: bool) -> ViewMemory:
        """Return the bytes that training takes."""
        from lightdxml.views.linear.memory import memory

        return memory(data, config)

    @classmethod
    def train(cls, run: Run, is_useful: Callable[[View], bool]) -> LinearView | None:
        """Train the view on the training documents."""
        from lightdxml.views.linear.train import train

        return train(run) if run.config.linear.enabled else None

    def refit(self, run: Run) -> LinearView:
        """Return the view with the labels of the held-out documents trained again, with these documents."""
        from lightdxml.views.linear.train import refit

        return refit(self, run)


def sigmoid_contributions(index: InvertedIndex, batch: Batch, label: int) -> Contributions:
    """Return what each feature adds to log σ(4 s) of a class."""
    margins, bias = feature_margins(index, batch, label), float(index.biases[label])
    return Contributions(_log_sigmoid(bias), mean_slope(_log_sigmoid, bias, float(margins.sum())) * margins)


def _log_sigmoid(margin: float) -> float:
    return -float(np.logaddexp(0.0, -SLOPE * margin))
