"""CRAFTML: trees of documents, divided by clusters of their labels; each leaf votes for its labels."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines.base import Settings
from lightdxml.experiments.baselines.forest import Forest, rows_of
from lightdxml.kernels import craftml, parallel
from lightdxml.kernels.craftml import Growth
from lightdxml.kernels.forest import Trees
from lightdxml.kernels.sparse import Csr
from lightdxml.persistence import arrays


class CRAFTML(Forest):
    """CRAFTML (Siblini et al., 2018): the mean of the leaves that a document reaches in 50 trees.

    Settings and formulas are those of craftml-rs, a version by others. Each tree hashes features and labels in its own
    way, with random signs. As in the code with which the published rows agree, centroids keep their greatest entries,
    not those of the greatest absolute value: so each tree prefers another half of the features. Hash functions and
    random numbers are our own. Ties go to the first cluster and the lower bucket.
    """

    name = "craftml"
    defaults: ClassVar[Settings] = {
        "trees": 50,
        "leaf_size": 10,
        "feature_buckets": 10_000,
        "label_buckets": 10_000,
        "clusters": 10,
        "rounds": 2,
        "sample": 20_000,
        "kept_share": 0.1,
        "least_kept": 10,
    }

    def _grow(self, X: csr_matrix, Y: csr_matrix, seeds: list[np.random.SeedSequence]) -> list[Trees]:
        growth = Growth(**{name: value for name, value in self.settings.items() if name != "trees"})
        documents, labels = rows_of(X), rows_of(Y)
        states = np.array([seed.generate_state(3) for seed in seeds], dtype=np.int64)
        self._seeds = states[:, 0].copy()

        def grow(own: list[int]) -> Trees:
            of_features, of_labels, of_tree = own
            rows = craftml.hashed(documents, growth.feature_buckets, of_features)
            targets = craftml.hashed(labels, growth.label_buckets, of_labels)
            return craftml.grow(rows, targets, labels, growth, of_tree)

        return parallel.run(grow, states.tolist())

    def _fill(
        self,
        start: int,
        stop: int,
        X: Csr,
        totals: NDArray[np.float64],
        found: NDArray[np.int32],
        scores: NDArray[np.float32],
    ) -> None:
        x = np.zeros(self.settings["feature_buckets"], dtype=np.float32)
        craftml.rank(start, stop, X, self._trees, self._roots, self._seeds, x, totals, found, scores)

    def save(self, folder: Path) -> None:
        """Write the trees, and the seeds by which they hash features."""
        super().save(folder)
        arrays.write(folder / "seeds.safetensors", {"seeds": self._seeds})
