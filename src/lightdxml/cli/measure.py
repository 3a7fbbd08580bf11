"""The accuracy and speed of a model on a data set."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lightdxml.cli import matching
from lightdxml.cli.output import note

if TYPE_CHECKING:
    from lightdxml.data.dataset import Dataset, Split
    from lightdxml.estimator import LightDXML

CUTS = (1, 3, 5)
_FIRST = 20


@dataclass(frozen=True)
class Measured:
    """Measures, the time that prediction took, and the ranked labels, scores and true labels behind them."""

    metrics: dict[str, float]
    seconds: float
    split: Split
    ranked: Any
    scores: Any
    Y: Any

    @property
    def milliseconds(self) -> float:
        """Prediction time per document."""
        return 1000 * self.seconds / len(self.split)


def measure(estimator: LightDXML, data: Dataset, tail: float = 0.0) -> Measured:
    """Measure a model on the test part of a data set; on all documents if there is none."""
    from lightdxml.metrics import evaluate

    model, split = estimator.model_, matching.measured_part(data)
    if missing := matching.unknown_names(data.label_names, model):
        note(f"{len(missing):,} of {data.n_labels:,} labels of this data are not in the model: they count as missed")
    Y, documents = matching.to_model(split.Y, data.label_names, model), matching.inputs_of(split)
    ignore = matching.ignored(split, data.label_names, model)
    # Ignored labels are removed from the ranking: enough labels must follow them.
    depth = max(CUTS) + (0 if ignore is None else int(np.diff(ignore.indptr).max()))
    # The first documents load compiled code, which is not part of the time per document.
    estimator.rank(documents[:_FIRST], 1, tail=tail)
    start = time.perf_counter()
    ranked, scores = estimator.rank(documents, depth, tail=tail)
    seconds = time.perf_counter() - start
    frequency, n_documents = matching.label_frequency(data, model, Y.shape[1])
    inv_propensity = matching.inverse_propensity(data.name, frequency, n_documents)
    return Measured(evaluate(Y, ranked, CUTS, inv_propensity, ignore), seconds, split, ranked, scores, Y)
