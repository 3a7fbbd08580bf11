"""The accuracy and speed of a model on a data set."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lightdxml.cli.matching import Matched, match
from lightdxml.cli.output import note

if TYPE_CHECKING:
    from lightdxml.data.dataset import Dataset
    from lightdxml.estimator import LightDXML

CUTS = (1, 3, 5)
_FIRST = 20


@dataclass(frozen=True)
class Measured:
    """Measures and prediction time per document, and the ranked labels and scores behind them."""

    metrics: dict[str, float]
    milliseconds: float
    documents: Matched
    ranked: NDArray[np.int32]
    scores: NDArray[np.float32]


def measure(estimator: LightDXML, data: Dataset, tail: float = 0.0) -> Measured:
    """Measure a model on the test part of a data set; on all documents if there is none."""
    from lightdxml.metrics import evaluate

    found = match(data, estimator.model_)
    if unknown := len(found.unknown_names):
        note(f"the model does not know {unknown:,} of the {data.n_labels:,} labels of this data: they count as missed")
    # Ignored labels are removed from the ranking: enough labels must follow them.
    depth = max(CUTS) + (0 if found.ignore is None else int(np.diff(found.ignore.indptr).max()))
    # The first documents load compiled code, which is not part of the time per document.
    estimator.rank(found.inputs[:_FIRST], 1, tail=tail)
    start = time.perf_counter()
    ranked, scores = estimator.rank(found.inputs, depth, tail=tail)
    milliseconds = 1000 * (time.perf_counter() - start) / len(found.split)
    metrics = evaluate(found.Y, ranked, CUTS, found.inv_propensity, found.ignore)
    return Measured(metrics, milliseconds, found, ranked, scores)
