"""The steps of the cycle in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lightdxml.views.dense.options import DenseOptions


@dataclass(frozen=True)
class Step:
    """A step of the cycle: a refresh, with or without training of the label encoder, or a classifier epoch."""

    kind: Literal["refresh", "refresh without training", "classifier"]
    epoch: int = 0


def plan(options: DenseOptions) -> list[Step]:
    """Return the steps of Algorithm 1 in their order.

    >>> [step.kind for step in plan(DenseOptions(epochs=3, refresh_every=2))]
    ['refresh', 'classifier', 'classifier', 'refresh', 'classifier', 'refresh without training']
    """
    steps = [Step("refresh")]
    for epoch in range(options.epochs):
        steps.append(Step("classifier", epoch))
        if (epoch + 1) % options.refresh_every == 0:
            steps.append(Step("refresh"))
    if options.epochs % options.refresh_every:
        # One more, so that the index is as new as the encoder. The paper counts no label epochs for it.
        steps.append(Step("refresh without training"))
    return steps


def shortlist_length(options: DenseOptions, step: int) -> int:
    """Return how many labels per training document the search of this refresh has to find.

    After the last refresh nothing uses them.

    >>> options = DenseOptions(epochs=1, refresh_every=1)
    >>> [shortlist_length(options, step) for step in (0, 2)]
    [200, 0]
    """
    return options.shortlist_size if step + 1 < len(plan(options)) else 0
