"""LightDXML itself, with its defaults and with the paper's settings, as a method of the bench."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from lightdxml import __version__
from lightdxml.config import SHORT_NAMES, Config, changed, configure, walk
from lightdxml.experiments.baselines import reranker
from lightdxml.experiments.baselines.base import Method
from lightdxml.experiments.baselines.reranker import Reranker, Scored
from lightdxml.experiments.baselines.surrogate import Schedule
from lightdxml.kernels import parallel
from lightdxml.metrics import inverse_propensity
from lightdxml.model import store
from lightdxml.model.blend import PaperBlend, top_k
from lightdxml.model.model import Model, predict
from lightdxml.persistence import arrays
from lightdxml.progress import Progress
from lightdxml.training.fit import fit
from lightdxml.validation import check_features, check_labels, split
from lightdxml.views.base import Batch, no_proposals
from lightdxml.views.dense.classifier import ClassifierView, logits_of

# The paper's module table counts its steps 1 and 2 as module 1, step 3 as module 2, step 4 as modules 3 and 4.
_MODULES = {"label encoder": "M1", "index": "M2", "shortlist": "M2", "classifier": "M3+M4"}
_DOCUMENTS = 8192
# The paper's data sets by their numbers of labels.
_PAPER_SETS = {
    "paper/EURLex-4K": 3_993,
    "paper/AmazonCat-13K": 13_330,
    "paper/Wiki10-31K": 30_938,
    "paper/WikiSeeAlsoTitles-350K": 352_072,
    "paper/AmazonTitles-670K": 670_091,
}
_RERANKER = {
    "reranker": False,
    "reranker_epochs": 15,
    "reranker_rate": 0.005,
    "reranker_halved_at": 10,
    "reranker_depth": 100,
}


class Ours(Method):
    """LightDXML with the default preset; any setting can be given by short or full name, None takes the preset's.

    A re-ranker works on the paper's two views, so with it there is no linear view.
    """

    name = "lightdxml"
    about = "LightDXML, default preset"
    defaults: ClassVar[Mapping[str, Any]] = {
        "preset": "default",
        **dict.fromkeys([*SHORT_NAMES, *(name for name, _, _ in walk() if name != "random_state")]),
        **_RERANKER,
    }

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train."""
        config = self.config(Y.shape[0], Y.shape[1], seed)
        progress = Progress()
        with parallel.use_threads(threads):
            self._model, history = fit(X, Y, config, progress=progress)
            self._reranker: Reranker | None = None
            for entry in history:
                name = _MODULES.get(entry["phase"], entry["phase"])
                self.phases[name] = self.phases.get(name, 0.0) + entry["seconds"]
            if self.settings["reranker"]:
                with self.phase("re-ranker"), threadpool_limits(limits=1, user_api="blas"):
                    self._reranker = self._train_reranker(X, Y, config, progress)

    def config(self, documents: int, labels: int, seed: int) -> Config:
        """Return the settings for that many documents and labels."""
        own = ("preset", *_RERANKER)
        given = {name: value for name, value in self.settings.items() if name not in own and value is not None}
        if self.settings["reranker"]:
            given["linear"] = False
        return configure(self.preset(labels), documents, {**given, "random_state": seed})

    def preset(self, labels: int) -> str:
        """Return the name of the preset for that many labels."""
        return str(self.settings["preset"])

    def _train_reranker(self, X: csr_matrix, Y: csr_matrix, config: Config, progress: Progress) -> Reranker:
        given, trained = self.settings, self._model
        parts = split(check_features(X), check_labels(Y), config)
        schedule = Schedule(given["reranker_epochs"], given["reranker_rate"], (given["reranker_halved_at"],))
        beta, depth = trained.blend.weights["classifier"], min(given["reranker_depth"], trained.n_labels)
        second = reranker.train(
            *parts[:2],
            lambda some, _: _scored(trained, some),
            beta,
            depth,
            changed(config, {"dense.random_negatives": 0, "dense.vector_rate": 1.0}).dense,
            schedule,
            np.random.default_rng(config.random_state),
            progress,
        )
        reranker.choose_share(second, *parts[2:], _scored(trained, parts[2]), beta, inverse_propensity(parts[1]))
        return second

    def rank(self, X: csr_matrix, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the best labels by the blended score, or by that of the re-ranker."""
        X = check_features(X, self._model.n_features)
        return predict(self._model, X, k) if self._reranker is None else _reranked(self._model, self._reranker, X, k)

    def along(self, setting: str, values: Sequence[Any]) -> Iterator[tuple[Any, Method]]:
        """Yield the trained model with each of these values of `beta`."""
        if setting != "beta" or self._reranker is not None or not isinstance(self._model.blend, PaperBlend):
            yield from super().along(setting, values)
        # A classifier whose chosen weight is 0 is not part of the model.
        possible = values if "classifier" in self._model.views else [value for value in values if value == 0]
        for value in possible:
            other = copy(self)
            other._model = replace(self._model, blend=PaperBlend(value))
            yield value, other

    def save(self, folder: Path) -> None:
        """Write the model as `lightdxml train` does."""
        store.save(self._model, folder / "model", __version__, [])
        if self._reranker is not None:
            second = {"word_vectors": self._reranker.encoder.vectors, "classifier": self._reranker.W}
            arrays.write(folder / "reranker.safetensors", second)


class OursPaper(Ours):
    """LightDXML with the paper's settings for that one of its data sets that is nearest in the number of labels."""

    name = "lightdxml-paper"
    about = "LightDXML, the paper's settings"
    defaults: ClassVar[Mapping[str, Any]] = {**Ours.defaults, "preset": "nearest of the paper"}

    def preset(self, labels: int) -> str:
        """Return the paper's preset for the nearest number of labels.

        >>> OursPaper().preset(4_271), OursPaper().preset(24_000)
        ('paper/EURLex-4K', 'paper/Wiki10-31K')
        """
        if self.settings["preset"] != self.defaults["preset"]:
            return super().preset(labels)
        return min(_PAPER_SETS, key=lambda name: abs(math.log(_PAPER_SETS[name] / max(1, labels))))


def _scored(model: Model, X: csr_matrix) -> Scored:
    """Return the shortlists of documents with cosines and logits."""
    batch = Batch(X)
    proposal = model.views["nearness"].propose(batch, no_proposals(np.empty((len(batch), 0), dtype=np.int32)))
    assert proposal is not None
    classifier = model.views.get("classifier")
    logits = np.zeros(proposal.labels.shape, dtype=np.float32)
    if isinstance(classifier, ClassifierView):
        logits = logits_of(classifier.encoder, classifier.W, batch, proposal.labels)
    return Scored(proposal.labels, proposal.log_scores + 1, logits)


def _reranked(trained: Model, second: Reranker, X: csr_matrix, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    labels = np.empty((X.shape[0], k), dtype=np.int32)
    scores = np.empty((X.shape[0], k), dtype=np.float32)
    for start, stop in parallel.fixed_chunks(X.shape[0], _DOCUMENTS):
        candidates = _scored(trained, X[start:stop])
        candidates = reranker.rerank(second, X[start:stop], candidates, trained.blend.weights["classifier"])
        labels[start:stop], scores[start:stop] = top_k(candidates.labels, candidates.blend(second.beta), k)
    # As without a re-ranker: a document without features gets no labels.
    labels[np.diff(X.indptr) == 0] = -1
    scores[labels < 0] = 0
    return labels, scores
