"""Methods of other packages: Parabel and Bonsai (omikuji), probabilistic label trees (napkinXC), and fastText.

The package of a method is imported when the method is trained, not before.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.data.files import writing_text
from lightdxml.data.xc_text import write_labeled
from lightdxml.experiments.baselines.base import Method, Ranked, Settings, ranked_pairs

_BATCH = 4096
_LABEL = "__label__"
_MIN_RATE = 0.001


class Parabel(Method):
    """Balanced binary label trees (Prabhu et al., 2018), by omikuji with its default settings.

    omikuji reads its training data from a file. Phase `files` is the time to write it; `train` includes reading.
    omikuji takes no seed, so that two runs differ.
    """

    name = "parabel"
    package = "omikuji"
    defaults: ClassVar[Settings] = {
        "n_trees": 3,
        "max_depth": 20,
        "min_branch_size": 100,
        "cluster_k": 2,
        "cluster_balanced": True,
        "linear_c": 1.0,
        "linear_weight_threshold": 0.1,
        "beam_size": 10,
    }

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train. The seed is not used."""
        import omikuji

        parameters = omikuji.Model.default_hyper_param()
        for name in self.settings.keys() - {"beam_size"}:
            setattr(parameters, name, self.settings[name])
        # omikuji rejects documents without features; documents without labels teach it nothing.
        kept = (np.diff(X.indptr) > 0) & (np.diff(Y.indptr) > 0)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "train.txt"
            with self.phase("files"):
                write_labeled(path, X[kept], Y[kept])
            with self.phase("train"):
                self._model = omikuji.Model.train_on_data(str(path), parameters, threads)
        self._model.init_prediction_thread_pool(threads)

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Rank labels one document at a time: omikuji's Python interface has no batches."""
        return ranked_pairs(self._pairs(X, k), X.shape[0], k)

    def _pairs(self, X: csr_matrix, k: int) -> Iterator[list[tuple[int, float]]]:
        for start, stop in zip(X.indptr, X.indptr[1:], strict=False):
            features = list(zip(X.indices[start:stop].tolist(), X.data[start:stop].tolist(), strict=True))
            yield self._model.predict(features, beam_size=self.settings["beam_size"], top_k=k)

    def save(self, folder: Path) -> None:
        """Write the trees in omikuji's format."""
        self._model.save(str(folder))


class Bonsai(Parabel):
    """Shallow, unbalanced label trees (Khandagale et al., 2019), by omikuji with the settings in its README."""

    name = "bonsai"
    defaults: ClassVar[Settings] = {**Parabel.defaults, "cluster_k": 100, "cluster_balanced": False, "max_depth": 3}


class PLT(Method):
    """One label tree by balanced 2-means, logistic regression at each node (Jasinska et al., 2016), by napkinXC.

    The settings are napkinXC's defaults. napkinXC writes its model to a folder while it trains and reads it for
    prediction: phase `load`. Its LIBLINEAR uses random numbers that the seed does not control, so that two runs differ.
    """

    name = "plt"
    package = "napkinxc"
    defaults: ClassVar[Settings] = {
        "arity": 2,
        "max_leaves": 100,
        "loss": "log",
        "liblinear_c": 10,
        "weights_threshold": 0.1,
        "tree_search_type": "exact",
        "ensemble": 1,
    }

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train into a temporary folder, which lives as long as this object."""
        from napkinxc import models

        self._folder = Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._model = models.PLT(str(self._folder), seed=seed, threads=threads, **self.settings)
        with self.phase("train"):
            self._model.fit(csr_matrix(X), csr_matrix(Y))
        with self.phase("load"):
            self._model.load()

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Rank labels by their probabilities."""
        return ranked_pairs(self._model.predict_proba(csr_matrix(X), top_k=k), X.shape[0], k)

    def save(self, folder: Path) -> None:
        """Copy napkinXC's files."""
        shutil.copytree(self._folder, folder, dirs_exist_ok=True)


class FastText(Method):
    """fastText's supervised training with loss `ova` (Joulin et al., 2017).

    fastText reads texts: each document becomes a line with one word `w<feature>` per feature, so that word counts,
    weights and word order are lost. Phase `files` is the time to write the lines.

    The settings are those of fastText's tutorial for several labels per document, without pairs of words, which need
    word order. If the learning rate diverges, as it does with many labels per document, it is halved, and `settings`
    has the value that was used. With several threads fastText is not reproducible: its updates race.
    """

    name = "fasttext"
    package = "fasttext"
    distribution = "fasttext-community"
    defaults: ClassVar[Settings] = {"lr": 0.5, "epoch": 25, "dim": 50, "wordNgrams": 1, "loss": "ova"}

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train on a temporary text file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "train.txt"
            with self.phase("files"), writing_text(path) as stream:
                for labels, words in zip(_lines(Y, _LABEL), _lines(X, "w"), strict=True):
                    if labels:
                        stream.write(f"{labels} {words}\n")
            with self.phase("train"):
                self._model = self._train(path, seed, threads)

    def _train(self, path: Path, seed: int, threads: int) -> Any:
        """Train with the first learning rate that does not diverge."""
        import fasttext

        fixed = {"seed": seed, "thread": threads, "verbose": 0, "label": _LABEL}
        try:
            return fasttext.train_supervised(str(path), **fixed, **self.settings)
        except RuntimeError as error:
            if "NaN" not in str(error) or self.settings["lr"] < _MIN_RATE:
                raise
        self.settings["lr"] /= 2
        return self._train(path, seed, threads)

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Rank labels by their probabilities."""
        return ranked_pairs(self._pairs(X, k), X.shape[0], k)

    def _pairs(self, X: csr_matrix, k: int) -> Iterator[Iterator[tuple[int, float]]]:
        for start in range(0, X.shape[0], _BATCH):
            names, scores = self._model.predict(list(_lines(X[start : start + _BATCH], "w")), k=k)
            for row_names, row_scores in zip(names, scores, strict=True):
                yield zip((int(name.removeprefix(_LABEL)) for name in row_names), row_scores, strict=True)

    def save(self, folder: Path) -> None:
        """Write the model in fastText's format."""
        self._model.save_model(str(folder / "model.bin"))


def _lines(matrix: csr_matrix, prefix: str) -> Iterator[str]:
    """Yield one line of words per row.

    >>> list(_lines(csr_matrix([[0, 1, 1], [0, 0, 0]]), "w"))
    ['w1 w2', '']
    """
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        yield " ".join([f"{prefix}{column}" for column in matrix.indices[start:stop].tolist()])
