"""LightDXML itself, as it comes and with the paper's settings, behind the same calls as its peers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from lightdxml import __version__, arrays, model, storage
from lightdxml.experiments.baselines import reranker
from lightdxml.experiments.baselines.base import Method
from lightdxml.experiments.baselines.reranker import Reranker
from lightdxml.experiments.baselines.surrogate import Schedule
from lightdxml.config import Config, configure
from lightdxml.kernels import parallel
from lightdxml.metrics import inverse_propensity
from lightdxml.model import Model
from lightdxml.progress import Progress
from lightdxml.training.fit import check_labels, fit, set_aside

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


class Ours(Method):
    """LightDXML with the default preset; any setting of `Config` can be given, None takes the preset's.

    With a re-ranker, which is for two views, there is no sparse view.
    """

    name = "lightdxml"
    about = "LightDXML, default preset"
    defaults: ClassVar[Mapping[str, Any]] = {
        "preset": "default",
        **{field.name: None for field in fields(Config) if field.name != "seed"},
        "reranker": False,
        "reranker_epochs": 15,
        "reranker_rate": 0.005,
        "reranker_halved_at": 10,
        "reranker_depth": 100,
    }

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train."""
        config = self.config(Y.shape[0], Y.shape[1], seed)
        progress = Progress()
        with parallel.use_threads(threads):
            result = fit(X, Y, config, progress=progress)
            self._model, self._reranker = result.model, None
            for entry in result.history:
                name = _MODULES.get(entry["phase"], entry["phase"])
                self.phases[name] = self.phases.get(name, 0.0) + entry["seconds"]
            if self.settings["reranker"]:
                with self.phase("re-ranker"), threadpool_limits(limits=1, user_api="blas"):
                    self._reranker = self._train_reranker(X, Y, config, progress)

    def config(self, documents: int, labels: int, seed: int) -> Config:
        """Return the settings for so many documents and labels."""
        names = {field.name for field in fields(Config)}
        given = {name: value for name, value in self.settings.items() if name in names and value is not None}
        if self.settings["reranker"]:
            given["sparse"] = False
        return configure(self.preset(labels), documents, seed=seed, **given)

    def preset(self, labels: int) -> str:
        """Return the name of the preset for so many labels."""
        return str(self.settings["preset"])

    def _train_reranker(self, X: csr_matrix, Y: csr_matrix, config: Config, progress: Progress) -> Reranker:
        chosen, trained = self.settings, self._model
        parts = set_aside(model.check_features(X), check_labels(Y), config)
        schedule = Schedule(chosen["reranker_epochs"], chosen["reranker_rate"], (chosen["reranker_halved_at"],))
        second = reranker.train(
            *parts[:2],
            lambda some, _: model.find_candidates(trained, some),
            trained.beta,
            min(chosen["reranker_depth"], trained.n_labels),
            replace(config, random_negatives=0, feature_rate=1.0),
            schedule,
            np.random.default_rng(config.seed),
            progress,
        )
        held = model.find_candidates(trained, parts[2])
        reranker.choose(second, *parts[2:], held, trained.beta, inverse_propensity(parts[1]))
        return second

    def rank(self, X: csr_matrix, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the best labels by the blended score, or by the re-ranker's."""
        if self._reranker is None:
            return model.predict(self._model, X, k)
        return _reranked(self._model, self._reranker, model.check_features(X, self._model.n_features), k)

    def along(self, setting: str, values: Sequence[Any]) -> Iterator[tuple[Any, Method]]:
        """Yield the trained model with each of these values of `beta`."""
        if setting != "beta" or self._reranker is not None:
            yield from super().along(setting, values)
        for value in values:
            other = copy(self)
            other._model = replace(self._model, beta=value)
            yield value, other

    def save(self, folder: Path) -> None:
        """Write the model as `lightdxml train` does."""
        storage.save(self._model, folder / "model", __version__, [])
        if self._reranker is not None:
            second = {"word_vectors": self._reranker.encoder.vectors, "classifier": self._reranker.W}
            arrays.write(folder / "reranker.safetensors", second)


class OursPaper(Ours):
    """LightDXML with the paper's settings for the data set of its own that is nearest in the number of labels."""

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


def _reranked(trained: Model, second: Reranker, X: csr_matrix, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    labels = np.empty((X.shape[0], k), dtype=np.int32)
    scores = np.empty((X.shape[0], k), dtype=np.float32)
    for start, stop in parallel.fixed_chunks(X.shape[0], _DOCUMENTS):
        candidates = model.find_candidates(trained, X[start:stop])
        candidates = reranker.rerank(second, X[start:stop], candidates, trained.beta)
        labels[start:stop], scores[start:stop] = model.top(candidates.labels, model.blend(candidates, second.beta), k)
    # As without a re-ranker: a document without features gets no labels.
    labels[np.diff(X.indptr) == 0] = -1
    scores[labels < 0] = 0
    return labels, scores
