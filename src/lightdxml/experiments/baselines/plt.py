"""Probabilistic label trees, as napkinXC implements them."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines.base import Method, ranked_pairs


class PLT(Method):
    """One label tree by balanced 2-means, a logistic regression at each node (Jasinska et al., 2016), by napkinXC.

    The settings are napkinXC's defaults. It writes its model to a folder while it trains, and prediction reads that:
    phase `load`. Its LIBLINEAR draws random numbers that its seed does not fix, and no two trainings are the same, on
    one thread either.
    """

    name = "plt"
    about = "1 balanced label tree of two children a node, logistic regression at each node, exact search (napkinXC)"
    packages = ("napkinxc",)
    distributions = ("napkinxc",)
    install = 'pip install "lightdxml[napkinxc]"'
    reproducible = False
    defaults: ClassVar[Mapping[str, Any]] = {
        "tree_type": "hierarchicalKmeans",
        "arity": 2,
        "max_leaves": 100,
        "kmeans_eps": 0.0001,
        "kmeans_balanced": True,
        "flatten_tree": 0,
        "norm": True,
        "bias": 1.0,
        "optimizer": "liblinear",
        "loss": "log",
        "weights_threshold": 0.1,
        "liblinear_c": 10,
        "liblinear_eps": 0.1,
        "liblinear_max_iter": 100,
        "tree_search_type": "exact",
        "beam_search_width": 10,
        "load_as": "map",
        "ensemble": 1,
    }

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train into a temporary folder, which lives as long as the method."""
        from napkinxc import models

        self._folder = Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._model = models.PLT(str(self._folder), seed=seed, threads=threads, **self.settings)
        with self.phase("train"):
            self._model.fit(csr_matrix(X), csr_matrix(Y))
        with self.phase("load"):
            self._model.load()

    def rank(self, X: csr_matrix, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Rank labels by their probabilities."""
        return ranked_pairs(self._model.predict_proba(csr_matrix(X), top_k=k), X.shape[0], k)

    def save(self, folder: Path) -> None:
        """Copy what napkinXC wrote."""
        shutil.copytree(self._folder, folder, dirs_exist_ok=True)
