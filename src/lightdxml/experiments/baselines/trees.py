"""Parabel and Bonsai: label trees with a linear classifier at each node, implemented by omikuji."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.data.xc_text import write_labeled
from lightdxml.experiments.baselines.base import Method, Ranked, Settings, ranked_pairs


class Parabel(Method):
    """Balanced binary label trees (Prabhu et al., 2018), by omikuji with its default settings.

    omikuji reads its training data from a file. Phase `files` is the time to write it; `train` includes reading.
    omikuji takes no seed, so that two runs differ.
    """

    name = "parabel"
    about = "3 balanced binary label trees with a linear classifier per node (omikuji)"
    packages = ("omikuji",)
    distributions = ("omikuji",)
    install = 'pip install "lightdxml[omikuji]"'
    reproducible = False
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
        with tempfile.TemporaryDirectory() as folder, _quiet():
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
        with _quiet():
            self._model.save(str(folder))


class Bonsai(Parabel):
    """Shallow, unbalanced label trees (Khandagale et al., 2019), by omikuji with the settings in its README."""

    name = "bonsai"
    about = "3 shallow label trees of up to 100 children per node with a linear classifier per node (omikuji)"
    defaults: ClassVar[Settings] = {**Parabel.defaults, "cluster_k": 100, "cluster_balanced": False, "max_depth": 3}


@contextmanager
def _quiet() -> Iterator[None]:
    """Discard what compiled code writes to the terminal: omikuji's log cannot be turned off."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in kept:
            os.dup2(nowhere, number)
        yield
    finally:
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
