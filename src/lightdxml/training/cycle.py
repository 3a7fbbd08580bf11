"""The cycle: label embeddings, shortlists, classifier, and again, until validation accuracy is best.

The paper's Algorithm 1 in its own order. Step 1: documents as sums of word vectors (`embedding`). Step 2: label
encoder Z_l (`label_encoder`). Step 3: shortlists S_k (`lightdxml.shortlist`). Step 4: classifier and features, jointly
(`classifier`). Step 5: this file. Step 6: the blended prediction (`blend`, `lightdxml.model`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from lightdxml import shortlist as shortlists
from lightdxml.config import Config
from lightdxml.encoder import encode, rounded, unit_rows
from lightdxml.metrics import inverse_propensity
from lightdxml.model import Model, find_candidates
from lightdxml.progress import Progress
from lightdxml.shortlist import Shortlist
from lightdxml.training import blend, classifier, embedding, label_encoder

_HALVED_AT = (14, 21, 25)


@dataclass
class Result:
    """A trained model and how it came about: one entry of `history` a phase."""

    model: Model
    history: list[dict[str, Any]] = field(default_factory=list)


def train(
    X: csr_matrix,
    Y: csr_matrix,
    X_validation: csr_matrix,
    Y_validation: csr_matrix,
    config: Config,
    progress: Progress,
    vectors: NDArray[np.float32] | None = None,
) -> Result:
    """Train on X (rows of length 1) and Y; choose β and the epoch on the validation documents."""
    # BLAS on one thread: our own threads share the work out in a way that does not depend on their number.
    with threadpool_limits(limits=1, user_api="blas"):
        run = _Run(X, Y, X_validation, Y_validation, config, progress, vectors)
        run.refresh(train_labels=True)
        for epoch in range(config.e_model):
            run.train_classifier(epoch)
            if (epoch + 1) % config.e_hat_label == 0:
                run.refresh(train_labels=True)
        if config.e_model % config.e_hat_label:
            # A last refresh, so that the index is as new as the features; the paper counts no epochs for it.
            run.refresh(train_labels=False)
        run.finish()
        return Result(run.best, run.history)


class _Run:
    """The state of one training."""

    def __init__(
        self,
        X: csr_matrix,
        Y: csr_matrix,
        X_validation: csr_matrix,
        Y_validation: csr_matrix,
        config: Config,
        progress: Progress,
        vectors: NDArray[np.float32] | None,
    ) -> None:
        self.X, self.Y, self.config, self.progress = X, Y, config, progress
        self.X_validation, self.Y_validation = X_validation, Y_validation
        self.rng = np.random.default_rng(config.seed)
        self.documents_of = csr_matrix(Y.T)
        frequency = np.diff(self.documents_of.indptr)
        self.frequency = frequency.astype(np.int32)
        self.labels = np.flatnonzero(frequency)
        most_frequent = np.argsort(-frequency, kind="stable")[: min(config.frequent_labels, len(self.labels))]
        self.everywhere = np.sort(most_frequent).astype(np.int32)
        self.inv_propensity = inverse_propensity(Y)
        self.features = embedding.start(X.shape[1], config, self.rng, vectors)
        self.classifier = classifier.start(Y.shape[1], config, self.rng)
        self.label_encoder = label_encoder.start(config.D)
        self.room = classifier.scratch(Y, min(config.k, len(self.labels)), len(self.everywhere), config)
        self.shortlists = np.empty((0, 0), dtype=np.int32)
        self.history: list[dict[str, Any]] = []
        self.cycle = 0
        self.best: Model
        self.best_accuracy = -1.0

    def refresh(self, *, train_labels: bool) -> None:
        """Do steps 2 and 3: centroids, Z_l, index, shortlists; then see how good the model is."""
        self.cycle += 1
        embeddings = encode(self.features.encoder, self.X)
        mu = label_encoder.centroids(self.documents_of, embeddings)
        if train_labels:
            self._train_label_encoder(mu, embeddings)
        index = self._build_index(mu)
        self._find_shortlists(index, embeddings)
        self._validate(index)

    def _train_label_encoder(self, mu: NDArray[np.float32], embeddings: NDArray[np.float32]) -> None:
        config = self.config
        with self.progress.phase(f"cycle {self.cycle}: label encoder", config.e_label) as bar:
            for epoch in range(config.e_label):
                start = time.perf_counter()
                loss = label_encoder.train_epoch(
                    self.label_encoder,
                    self.documents_of,
                    self.labels,
                    mu,
                    embeddings,
                    config.label_learning_rate,
                    self.rng,
                )
                bar.advance(1, loss=loss)
                self._note("label encoder", start, epoch=epoch, loss=loss)

    def _build_index(self, mu: NDArray[np.float32]) -> Shortlist:
        start = time.perf_counter()
        embedded = rounded(unit_rows(label_encoder.embed(self.label_encoder, mu[self.labels])), self.config.precision)
        index = shortlists.build(self.labels.astype(np.int32), embedded, self.config.index)
        self._note("index", start, kind=index.kind)
        return index

    def _find_shortlists(self, index: Shortlist, embeddings: NDArray[np.float32]) -> None:
        start = time.perf_counter()
        directions = unit_rows(embeddings)
        with self.progress.phase(f"cycle {self.cycle}: shortlists ({index.kind})", len(directions)) as bar:
            self.shortlists = shortlists.search(index, directions, self.config.k)
            recall = shortlists.recall_of_exact(index, directions, self.config.k)
            bar.advance(len(directions), recall=recall)
        self._note("shortlist", start, recall_of_exact=recall)

    def train_classifier(self, epoch: int) -> None:
        """Do step 4: one epoch of classifier and features."""
        start = time.perf_counter()
        config, n = self.config, self.X.shape[0]
        order = self.rng.permutation(n)
        batches = range(0, n, config.batch_size)
        loss = 0.0
        with self.progress.phase(f"cycle {self.cycle}: classifier, epoch {epoch + 1}/{config.e_model}", n) as bar:
            for i, first in enumerate(batches):
                rows = order[first : first + config.batch_size]
                rate = _rate(config, epoch, i / len(batches))
                loss += classifier.train_batch(
                    self.classifier, self.features, self.room, self.X, self.Y, rows,
                    self.shortlists, self.everywhere, config, rate, self.rng,
                )  # fmt: skip
                bar.advance(len(rows), loss=loss / (first + len(rows)))
        self._note("classifier", start, epoch=epoch, loss=loss / n)

    def _validate(self, index: Shortlist) -> None:
        """Measure the model on the validation documents and keep a copy of the best one."""
        start = time.perf_counter()
        model = Model(
            self.features.encoder, self.classifier.W, index, self.everywhere, self.config.beta or 0.0, self.config,
            label_frequency=self.frequency, n_documents=self.X.shape[0],
        )  # fmt: skip
        candidates = find_candidates(model, self.X_validation)
        betas = blend.GRID if self.config.beta is None else (self.config.beta,)
        results = blend.curve(candidates, self.Y_validation, self.inv_propensity, betas)
        beta, figures = blend.choose(results)
        self._note("validation", start, beta=beta, curve=results, **figures)
        self.progress.say(
            f"cycle {self.cycle}: validation P@1 {figures['P@1']:.2f}, PSP@1 {figures['PSP@1']:.2f}, β {beta:g}"
        )
        accuracy = max(blend.mean(measured, "P") for _, measured in results)
        # Of equals the later one: a handful of validation documents cannot tell, and it has learnt more.
        if accuracy >= self.best_accuracy:
            self.best_accuracy = accuracy
            model.encoder, model.classifier = model.encoder.copy(), model.classifier.copy()
            model.beta, model.metrics = beta, figures
            self.best = model

    def finish(self) -> None:
        """Round the best model to the precision in which it is kept, and measure what that costs."""
        start = time.perf_counter()
        model, before = self.best, self.best.metrics
        model.encoder.vectors = rounded(model.encoder.vectors, self.config.precision)
        model.classifier = rounded(model.classifier, self.config.precision)
        candidates = find_candidates(model, self.X_validation)
        ((_, model.metrics),) = blend.curve(candidates, self.Y_validation, self.inv_propensity, (model.beta,))
        self._note("rounding", start, precision=self.config.precision, before=before, after=model.metrics)

    def _note(self, phase: str, start: float, **figures: Any) -> None:
        self.history.append({"cycle": self.cycle, "phase": phase, "seconds": time.perf_counter() - start, **figures})


def _rate(config: Config, epoch: int, share: float) -> float:
    """Return the learning rate after this share of an epoch."""
    if config.schedule == "steps":
        return config.learning_rate * 0.5 ** sum(epoch >= at for at in _HALVED_AT)
    return config.learning_rate * 0.5 * (1 + float(np.cos(np.pi * (epoch + share) / config.e_model)))
