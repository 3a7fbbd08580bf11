"""LightDXML itself, with its defaults and with the paper's settings, as a method of the benchmark."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import __version__
from lightdxml.config import SHORT_NAMES, Config, configure, resolved, walk
from lightdxml.experiments.baselines import reranker
from lightdxml.experiments.baselines.base import Method, Ranked, Settings
from lightdxml.experiments.baselines.reranker import Reranker, Scored
from lightdxml.kernels import blas, parallel
from lightdxml.model import store
from lightdxml.model.blend import PaperBlend
from lightdxml.model.model import predict
from lightdxml.training.fit import fit
from lightdxml.validation import check_features, check_labels, split
from lightdxml.views.base import Batch
from lightdxml.views.dense.classifier import ClassifierView, logits_of

# The paper's module table counts its steps 1 and 2 as module 1, step 3 as module 2, step 4 as modules 3 and 4.
_MODULES = {"label encoder": "M1", "index": "M2", "shortlist": "M2", "classifier": "M3+M4"}
# The paper's data sets by their numbers of labels.
_PAPER_SETS = {
    "paper/EURLex-4K": 3_993,
    "paper/AmazonCat-13K": 13_330,
    "paper/Wiki10-31K": 30_938,
    "paper/WikiSeeAlsoTitles-350K": 352_072,
    "paper/AmazonTitles-670K": 670_091,
}
# Settings that only the benchmark has. `other_betas`: values of β to measure in addition to the chosen one.
_OWN = {"preset": "default", "other_betas": None, "reranker": False, **reranker.SETTINGS}


class Ours(Method):
    """LightDXML with the default preset; any setting can be given by short or full name, None takes the preset's.

    A re-ranker works on the paper's two views, so with it there is no linear view.
    """

    name = "lightdxml"
    defaults: ClassVar[Settings] = {
        **dict.fromkeys([*SHORT_NAMES, *(name for name, _, _ in walk() if name != "random_state")]),
        **_OWN,
    }

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train."""
        n_documents, n_features = X.shape
        config = resolved(self.config(n_documents, Y.shape[1], seed), n_documents, n_features)
        with parallel.use_threads(threads):
            self._model, history = fit(X, Y, config)
            self._reranker: Reranker | None = None
            for entry in history:
                name = _MODULES.get(entry["phase"], entry["phase"])
                self.phases[name] = self.phases.get(name, 0.0) + entry["seconds"]
            if self.settings["reranker"]:
                with self.phase("re-ranker"), blas.on_one_thread():
                    parts = split(check_features(X), check_labels(Y), config)
                    held, rng = self._candidates(parts[2]), np.random.default_rng(seed)
                    self._reranker = reranker.train(
                        parts, self._candidates, held, self._beta, config.dense, self.settings, rng
                    )

    def config(self, documents: int, labels: int, seed: int) -> Config:
        """Return the settings for that many documents and labels."""
        given = {name: value for name, value in self.settings.items() if name not in _OWN and value is not None}
        if self.settings["reranker"]:
            given["linear"] = False
        return configure(self.preset(labels), documents, {**given, "random_state": seed})

    def preset(self, labels: int) -> str:
        """Return the name of the preset for that many labels."""
        return str(self.settings["preset"])

    @property
    def _beta(self) -> float:
        return self._model.blend.weights["classifier"]

    def _candidates(self, X: csr_matrix, own: NDArray[np.int32] | None = None) -> Scored:
        """Return the shortlists of documents with cosines and logits."""
        batch, views = Batch(X), self._model.views
        proposal = views["nearness"].propose(batch, np.empty((len(batch), 0), dtype=np.int32))
        assert proposal is not None
        classifier = views.get("classifier")
        logits = np.zeros(proposal.labels.shape, dtype=np.float32)
        if isinstance(classifier, ClassifierView):
            logits = logits_of(classifier.encoder, classifier.W, batch, proposal.labels)
        return Scored(proposal.labels, proposal.log_scores + 1, logits)

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Return the best labels by the blended score, or by that of the re-ranker."""
        X = check_features(X, self._model.n_features)
        if self._reranker is None:
            return predict(self._model, X, k)
        return reranker.rank(X, k, self._candidates, self._beta, self._reranker)

    def with_other_betas(self) -> Iterator[tuple[float, Method]]:
        """Yield the trained model with each of the values of β in the setting `other_betas`."""
        for beta in self.settings["other_betas"] or ():
            # A classifier whose chosen weight is 0 is not part of the model.
            if beta == 0 or "classifier" in self._model.views:
                other = copy(self)
                other._model = replace(self._model, blend=PaperBlend(beta))
                yield beta, other

    def save(self, folder: Path) -> None:
        """Write the model as `lightdxml train` does."""
        store.save(self._model, folder / "model", __version__, [])
        if self._reranker is not None:
            self._reranker.save(folder)


class OursFast(Ours):
    """LightDXML with the preset `fast`."""

    name = "lightdxml-fast"
    defaults: ClassVar[Settings] = {**Ours.defaults, "preset": "fast"}


class OursPaper(Ours):
    """LightDXML with the paper's settings for that one of its data sets that is nearest in the number of labels."""

    name = "lightdxml-paper"
    defaults: ClassVar[Settings] = {**Ours.defaults, "preset": "nearest of the paper"}

    def preset(self, labels: int) -> str:
        """Return the paper's preset for the nearest number of labels.

        >>> OursPaper().preset(4_271), OursPaper().preset(24_000)
        ('paper/EURLex-4K', 'paper/Wiki10-31K')
        """
        return min(_PAPER_SETS, key=lambda name: abs(math.log(_PAPER_SETS[name] / max(1, labels))))
