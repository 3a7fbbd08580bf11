"""The classifier view: the paper's one-vs-all classifier on document embeddings, log σ(w_j · x̂ + b_j)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels import classifier as kernels
from lightdxml.kernels import parallel
from lightdxml.kernels.precision import BIAS_BYTES, SCALE_BYTES, as_bits, dequantize_classifier, quantize_int8, rounded
from lightdxml.persistence.arrays import Arrays
from lightdxml.views.base import Batch, Contributions, ModelSizes, Proposal, ViewMemory, expect, mean_slope
from lightdxml.views.dense.encoder import (
    Encoder,
    check_scales,
    embeddings_of,
    feature_embeddings,
    restore_encoder,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightdxml.config import Config
    from lightdxml.training.run import Run, TrainingData
    from lightdxml.views.base import NewLabels, View
    from lightdxml.views.lesson import Lesson


@dataclass(frozen=True)
class ClassifierView:
    """One weight vector per label.

    Attributes
    ----------
    encoder
        From features to embeddings.
    W
        w_j of every label with its bias in the last column: float32, float16, or int8 with scale and bias per row.
    """

    name: ClassVar[str] = "classifier"
    about: ClassVar[str] = "one-vs-all classifier on embeddings"
    requires: ClassVar[tuple[str, ...]] = ("nearness",)

    encoder: Encoder
    W: NDArray[Any]

    def propose(self, batch: Batch, known: NDArray[np.int32]) -> Proposal | None:
        """Propose nothing: the paper scores the shortlist only."""
        return None

    def log_score(self, batch: Batch, labels: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return log σ of the logits of these labels."""
        logits = logits_of(self.encoder, self.W, batch, labels)
        log_chance: NDArray[np.float32] = -np.logaddexp(np.float32(0), -np.where(labels >= 0, logits, 0))
        return log_chance

    def contributions(self, batch: Batch, label: int) -> Contributions:
        """Return what each feature adds to log σ(w_j · x̂ + b_j)."""
        terms, rest = feature_embeddings(self.encoder, batch)
        w = dequantize_classifier(self.W[label : label + 1])[0].astype(np.float64)
        logits, start = terms @ w[:-1], float(w[-1] + rest @ w[:-1])
        slope = mean_slope(_log_sigmoid, start, float(logits.sum()))
        return Contributions(_log_sigmoid(start), slope * logits)

    def arrays(self) -> Arrays:
        """Return the classifier and its encoder."""
        return {**self.encoder.arrays(), "classifier.W": self.W}

    def facts(self) -> dict[str, Any]:
        """Return how the encoder works."""
        return {"relu": self.encoder.relu}

    @classmethod
    def restore(cls, arrays: Arrays, facts: dict[str, Any], sizes: ModelSizes) -> ClassifierView:
        """Return the view that these arrays make up."""
        encoder, W = restore_encoder(arrays, facts, sizes.n_features), arrays["classifier.W"]
        extra = SCALE_BYTES + BIAS_BYTES if W.dtype == np.int8 else 1
        expect(W, "classifier.W", (sizes.n_labels, encoder.dim + extra), np.float16, np.float32, np.int8)
        return cls(encoder, W)

    def check_values(self) -> None:
        """Check scales and biases of int8 rows."""
        check_scales(self.encoder.vectors, "encoder.vectors")
        check_scales(self.W, "classifier.W", SCALE_BYTES + BIAS_BYTES)

    def quantize(self, precision: str) -> ClassifierView:
        """Return the view with weights of lower precision."""
        W = self.W
        if precision == "int8" and W.dtype != np.int8:
            weights = dequantize_classifier(W)
            W = quantize_int8(weights[:, :-1], weights[:, -1])
        elif precision == "float16" and W.dtype == np.float32:
            W = rounded(W, precision)
        return replace(self, encoder=self.encoder.quantize(precision), W=W)

    def with_labels(self, new: NewLabels) -> ClassifierView:
        """Return the view in which untrained labels have the mean weights of labels like them."""
        some = new.examples if len(new.examples) else np.arange(len(self.W))
        mean = dequantize_classifier(self.W[some]).mean(axis=0, keepdims=True)
        row = quantize_int8(mean[:, :-1], mean[:, -1]) if self.W.dtype == np.int8 else mean.astype(self.W.dtype)
        W = np.concatenate([self.W, np.repeat(row, new.n_labels - len(self.W), axis=0)])
        W[new.untrained] = row
        return ClassifierView(self.encoder.with_features(new.n_features), W)

    def learn(self, lesson: Lesson) -> ClassifierView:
        """Return the view with the weights of labels of new documents learned again; the encoder stays."""
        from lightdxml.views.dense.learn import learn_classifier

        return learn_classifier(self, lesson)

    def summary(self) -> str:
        """Return the size of the classifier."""
        return f"{len(self.W):,} labels × {self.encoder.dim} dimensions, {self.W.dtype}"

    @classmethod
    def memory(cls, data: TrainingData, config: Config, spilled: bool) -> ViewMemory:
        """Return the bytes of the cycle, which trains both dense views."""
        from lightdxml.views.dense.memory import cycle_memory

        return cycle_memory(data, config, spilled)

    @classmethod
    def train(cls, run: Run, is_useful: Callable[[View], bool]) -> ClassifierView | None:
        """Return the classifier that the cycle trained."""
        return None if run.result is None else run.result.classifier

    def refit(self, run: Run) -> ClassifierView:
        """Return the view as it is: a few more documents do not change embeddings."""
        return self


def logits_of(encoder: Encoder, W: NDArray[Any], batch: Batch, labels: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return w_j · x̂ + b_j of these labels of each document; -inf for label -1."""
    embeddings, weights = embeddings_of(encoder, batch), as_bits(W)
    logits = np.empty(labels.shape, dtype=np.float32)

    def fill(rows: slice, columns: slice) -> None:
        part = embeddings[rows]
        kernels.logits(0, len(part), part, weights, labels[rows, columns], logits[rows, columns])

    parallel.over_cells(fill, labels.shape)
    return logits


def _log_sigmoid(value: float) -> float:
    return -float(np.logaddexp(0.0, -value))
