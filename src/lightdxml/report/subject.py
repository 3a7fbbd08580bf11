"""What a report is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.model.model import Model
from lightdxml.report.analysis import Measured
from lightdxml.report.markup import NAME, text


@dataclass(frozen=True, eq=False)
class Subject:
    """A model, the documents it is measured on, and the results.

    Attributes
    ----------
    model_name, data_name
        Their names, for titles.
    part
        What the documents are, such as `test documents`.
    model, history
        The model and what happened in its training.
    measured
        The predictions and the true labels.
    metrics
        All measures at k from 1 to `analysis.DEPTH`, in percent.
    frequency
        Training documents per label.
    settings
        How the model was configured, in words.
    texts, ids
        The texts and ids of the documents, or None.
    unknown_names
        Names of labels that the data has and the model does not.
    commands
        The commands that make model and report again.
    """

    model_name: str
    data_name: str
    part: str
    model: Model
    history: Sequence[dict[str, Any]]
    measured: Measured
    metrics: dict[str, float]
    frequency: NDArray[np.int64]
    settings: str = ""
    texts: Sequence[str] | None = None
    ids: Sequence[str] | None = None
    unknown_names: Sequence[str] = ()
    commands: Sequence[str] = ()

    def label(self, j: int) -> str:
        """Return the name of a label as HTML."""
        names, n = self.model.label_names, self.model.n_labels
        if j >= n:
            return f"<bdi>{text(self.unknown_names[j - n], NAME)}</bdi>"
        return f"label {j}" if names is None else f"<bdi>{text(names[j], NAME)}</bdi>"
