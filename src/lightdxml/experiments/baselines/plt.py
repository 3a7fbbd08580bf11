"""Probabilistic label trees, implemented by napkinXC."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import ClassVar

from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines.base import Method, Ranked, Settings, ranked_pairs


class PLT(Method):
    """One label tree by balanced 2-means, logistic regression at each node (Jasinska et al., 2016), by napkinXC.

    The settings are napkinXC's defaults. napkinXC writes its model to a folder while it trains and reads it for
    prediction: phase `load`. Its LIBLINEAR uses random numbers that the seed does not control, so that two runs differ.
    """

    name = "plt"
    about = "1 balanced binary label tree with logistic regression per node, exact search (napkinXC)"
    packages = ("napkinxc",)
    distributions = ("napkinxc",)
    install = 'pip install "lightdxml[napkinxc]"'
    reproducible = False
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
