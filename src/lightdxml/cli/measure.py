"""Measuring a model on a data set, for the commands that do."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lightdxml.cli import matching
from lightdxml.cli.output import errors

if TYPE_CHECKING:
    from lightdxml.data.dataset import Dataset, Split
    from lightdxml.estimator import LightDXML

CUTS = (1, 3, 5)
_FIRST = 20


@dataclass(frozen=True)
class Measured:
    """What was measured, and the ranked labels with their scores and the truth that it was measured on."""

    figures: dict[str, float]
    seconds: float
    split: Split
    ranked: Any
    scores: Any
    Y: Any

    @property
    def milliseconds(self) -> float:
        """What a document took."""
        return 1000 * self.seconds / len(self.split)


def say_unseen(loaded: Dataset, model: Any) -> None:
    """Say how many labels of the data the model does not know."""
    if missing := matching.unseen_names(loaded.label_names, model):
        errors.print(
            f"{len(missing):,} of {loaded.n_labels:,} labels of this data are not in the model, and count as missed",
            soft_wrap=True,
        )


def measure(estimator: LightDXML, loaded: Dataset, tail: float = 0.0) -> Measured:
    """Measure a model on the test part of a data set; of a single file, on all of it."""
    import numpy as np

    from lightdxml.metrics import evaluate

    split = loaded.test if loaded.test is not None else loaded.train
    Y = matching.to_model(split.Y, loaded.label_names, estimator.model_)
    ignore = matching.ignored(split, loaded.label_names, estimator.model_)
    # What is ignored is taken out of the ranking, and what follows moves up: enough must follow.
    depth = max(CUTS) + (0 if ignore is None else int(np.diff(ignore.tocsr().indptr).max()))
    # Compiled code is loaded, and an index for many made, with the first documents: that is not what a document takes.
    estimator.rank(matching.features_of(split)[:_FIRST], 1, tail=tail)
    start = time.perf_counter()
    ranked, scores = estimator.rank(matching.features_of(split), depth, tail=tail)
    seconds = time.perf_counter() - start
    frequency, n_documents = matching.frequency_of(loaded, estimator.model_, Y.shape[1])
    q = matching.inverse_propensity_of(loaded.name, frequency, n_documents)
    return Measured(evaluate(Y, ranked, CUTS, q, ignore), seconds, split, ranked, scores, Y)
