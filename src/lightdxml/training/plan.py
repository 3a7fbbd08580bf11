"""What a training will do: its steps in their order, and how many documents it sets aside to decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lightdxml.config import Config

_MOST_VALIDATION = 5000
_FEWEST_TO_SPLIT = 20


@dataclass(frozen=True)
class Step:
    """A step of the cycle: a refresh, with or without training the label encoder, or an epoch of the classifier."""

    what: Literal["refresh", "refresh without training", "classifier"]
    epoch: int = 0


def plan(config: Config) -> list[Step]:
    """Return the steps of the paper's step 5 in their order.

    >>> [step.what for step in plan(Config(e_model=3, e_hat_label=2))]
    ['refresh', 'classifier', 'classifier', 'refresh', 'classifier', 'refresh without training']
    """
    steps = [Step("refresh")]
    for epoch in range(config.e_model):
        steps.append(Step("classifier", epoch))
        if (epoch + 1) % config.e_hat_label == 0:
            steps.append(Step("refresh"))
    if config.e_model % config.e_hat_label:
        # A last refresh, so that the index is as new as the features; the paper counts no epochs for it.
        steps.append(Step("refresh without training"))
    return steps


def shortlist_length(config: Config, step: int) -> int:
    """Return how many labels of its shortlist a training document needs after this refresh.

    After the last one only the sparse view uses them.

    >>> config = Config(e_model=1, e_hat_label=1, k=200, sparse_negatives=100)
    >>> [shortlist_length(config, step) for step in (0, 2)]
    [200, 50]
    """
    if step + 1 < len(plan(config)):
        return config.k
    return config.near_negatives if config.sparse else 0


def validation_size(documents: int, config: Config) -> int:
    """Return how many of so many documents are set aside to choose β and the epoch; 0 where there are too few.

    >>> validation_size(1000, Config()), validation_size(10, Config())
    (50, 0)
    """
    return 0 if documents < _FEWEST_TO_SPLIT else min(round(config.validation * documents), _MOST_VALIDATION)
