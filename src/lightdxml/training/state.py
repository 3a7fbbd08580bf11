"""All that a training is at a moment: what a checkpoint must hold so that it can go on to the same bits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.model import Model
from lightdxml.training.classifier import Classifier
from lightdxml.training.embedding import EmbeddingState
from lightdxml.training.label_encoder import LabelEncoder


@dataclass
class State:
    """The state of one training.

    Attributes
    ----------
    features, classifier, label_encoder
        What is trained.
    rng
        Where all chance comes from.
    shortlists
        S_k of every training document; after the last refresh only as much of it as is still needed.
    order, batch, loss
        Within an epoch: its order of documents, the next batch, and the loss so far.
    step
        The next step of the plan.
    cycle
        How many refreshes there were.
    history
        What happened, one entry a phase.
    best, best_accuracy
        The model that did best on validation documents, and how well.
    """

    features: EmbeddingState
    classifier: Classifier
    label_encoder: LabelEncoder
    rng: np.random.Generator
    shortlists: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 0), dtype=np.int32))
    order: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    batch: int = 0
    loss: float = 0.0
    step: int = 0
    cycle: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    best: Model | None = None
    best_accuracy: float = -1.0
