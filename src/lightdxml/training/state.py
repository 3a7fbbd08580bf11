"""The state of the cycle, and its result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import index as indexes
from lightdxml.config import Config
from lightdxml.kernels.precision import rounded
from lightdxml.views.dense import label_encoder, train_classifier, train_encoder
from lightdxml.views.dense.classifier import ClassifierView
from lightdxml.views.dense.encoder import encode, normalize
from lightdxml.views.dense.label_encoder import LabelEncoder
from lightdxml.views.dense.nearness import NearnessView
from lightdxml.views.dense.train_classifier import Classifier, Training
from lightdxml.views.dense.train_encoder import EncoderState

if TYPE_CHECKING:
    from lightdxml.executor import Executor
    from lightdxml.training.run import Run, TrainingData

_SAMPLE = 256


def _no_shortlists() -> NDArray[np.int32]:
    return np.empty((0, 0), dtype=np.int32)


@dataclass
class Best:
    """The dense views that did best on validation documents, and how well.

    Attributes
    ----------
    classifier, nearness
        The views, in the precision of the finished model.
    beta
        The best weight of the classifier in the paper's blend.
    accuracy
        The mean of P@1, 3, 5 by which models are compared.
    is_latest
        Whether they come from the latest refresh: only then does the label encoder fit them.
    """

    classifier: ClassifierView
    nearness: NearnessView
    beta: float
    accuracy: float
    is_latest: bool = True


@dataclass
class CycleState:
    """The complete state of Algorithm 1. Training that is resumed from it gives the same bits.

    Attributes
    ----------
    encoder, classifier, label_encoder
        What is trained.
    rng
        The source of all randomness.
    shortlists
        S_k of every training document, from the latest refresh.
    order, batch, loss
        Within an epoch: its order of documents, the next batch, and the loss so far.
    step
        The next step of the plan.
    refreshes
        The number of refreshes so far.
    best
        The best dense views so far.
    """

    encoder: EncoderState
    classifier: Classifier
    label_encoder: LabelEncoder
    rng: np.random.Generator
    shortlists: NDArray[np.int32] = field(default_factory=_no_shortlists)
    order: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    batch: int = 0
    loss: float = 0.0
    step: int = 0
    refreshes: int = 0
    best: Best | None = None
    _training: Training | None = None

    @property
    def training(self) -> Training:
        """The classifier where it is trained: from the first step on."""
        assert self._training is not None
        return self._training

    @contextmanager
    def divided(self, data: TrainingData, config: Config, executor: Executor) -> Iterator[None]:
        """Keep the parts of the classifier where they are trained, inside the `with` block."""
        self._training = train_classifier.divide(self.classifier, data.Y, config.dense, executor)
        try:
            self._training.take_shortlists(self.shortlists)
            yield
        finally:
            self._training.release()

    def collected(self) -> Classifier:
        """Return the classifier with its latest weights, which may be in other processes."""
        return self.classifier if self._training is None else self._training.collect()

    def mark(self) -> tuple[LabelEncoder, dict[str, Any]]:
        """Return what a refresh changes before it can be checkpointed."""
        return deepcopy(self.label_encoder), dict(self.rng.bit_generator.state)

    def rewind(self, mark: tuple[LabelEncoder, dict[str, Any]]) -> None:
        """Go back to a mark, as if the refresh had not begun."""
        self.label_encoder, self.rng.bit_generator.state = mark
        self.refreshes -= 1
        self.shortlists = _no_shortlists()


def start(data: TrainingData, config: Config, vectors: NDArray[np.float32] | None) -> CycleState:
    """Return the state before the first step: random weights, or given word vectors."""
    rng = np.random.default_rng(config.random_state)
    return CycleState(
        encoder=train_encoder.start(data.X.shape[1], config.dense, rng, vectors),
        classifier=train_classifier.start(data.n_labels, config.dense, rng),
        label_encoder=label_encoder.start(config.dense.dim),
        rng=rng,
    )


@dataclass(frozen=True)
class DenseResult:
    """What the cycle has found.

    Attributes
    ----------
    classifier, nearness, beta
        The best dense views and the classifier's weight in the paper's blend.
    label_encoder
        The label encoder that made the embeddings in the index; None if it has been trained on since.
    """

    classifier: ClassifierView
    nearness: NearnessView
    beta: float
    label_encoder: LabelEncoder | None

    def with_new_labels(self, run: Run) -> NearnessView | None:
        """Return the nearness view with labels that only held-out documents have; None if there are none."""
        view, data = self.nearness, run.data
        new = np.setdiff1d(data.Y_validation.indices, view.labels).astype(np.int32)
        if not len(new):
            return None
        documents = encode(view.encoder, data.X_validation)
        added = label_encoder.centroids(csr_matrix(data.Y_validation.T)[new], documents)
        if self.label_encoder is not None:
            added = label_encoder.embed(self.label_encoder, added)
        normalize(added)
        normalize(documents)
        labels = np.concatenate([view.labels, new])
        order = np.argsort(labels, kind="stable")
        vectors = np.concatenate([view.index.vectors, rounded(added, run.config.precision)])[order]
        index = indexes.build(vectors, run.config.dense.index, queries=sample(documents), k=view.shortlist_size)  # type: ignore[arg-type]
        return replace(view, labels=labels[order], index=index)


def sample(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return some rows, evenly spaced: queries on which the recall of an index is calibrated."""
    return np.ascontiguousarray(rows[:: max(1, len(rows) // _SAMPLE)][:_SAMPLE])
