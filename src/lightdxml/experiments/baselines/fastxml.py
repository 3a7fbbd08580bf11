"""FastXML and PfastreXML: many trees of documents, each of whose leaves votes for its labels."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines.base import Ranked, Settings, rank_chunks
from lightdxml.experiments.baselines.forest import Forest, rows_of
from lightdxml.kernels import fastxml, parallel
from lightdxml.kernels.fastxml import Documents, Growth
from lightdxml.kernels.forest import Trees
from lightdxml.kernels.l1_logistic import Limits
from lightdxml.kernels.sparse import Csr
from lightdxml.model.blend import top_k
from lightdxml.persistence import arrays
from lightdxml.propensity import inverse_propensity_of
from lightdxml.validation import check_features
from lightdxml.views.base import Batch
from lightdxml.views.linear.inverted import margins_of
from lightdxml.views.linear.solver import inverted_rows

_LIMITS = Limits(newton_steps=10, passes=10, tolerance=0.01)
_CHUNK = 256


class FastXML(Forest):
    """The mean of the leaves that a document reaches in 50 trees; settings and formulas are those of the authors' code.

    As there, and unlike the paper, a node is divided by labels once and then by features once. Ties of labels go to the
    lower label: the authors leave them to their sorting. The order in which the solver visits features is random, by
    our own generator.
    """

    name = "fastxml"
    # The penalty of the separators depends on the scale of the features.
    unit_rows = False
    defaults: ClassVar[Settings] = {"trees": 50, "leaf_size": 10, "leaf_labels": 100, "cost": 1.0, "bias": 1.0}

    def _grow(self, X: csr_matrix, Y: csr_matrix, seeds: list[np.random.SeedSequence]) -> list[Trees]:
        bias = np.full((X.shape[0], 1), self.settings["bias"], dtype=np.float32)
        rows = sparse.hstack([X, bias], format="csr", dtype=np.float32)
        worth, gains = self._worth(Y)
        documents = Documents(rows_of(rows), Csr(Y.indptr.astype(np.int64), Y.indices, worth), gains)
        self._n_features = rows.shape[1]
        sizes = self.settings["leaf_size"], self.settings["leaf_labels"]
        growth = Growth(self._n_features, Y.shape[1], *sizes, float(self.settings["cost"]), _LIMITS)
        discounts = _discounts(Y.shape[1])
        return parallel.run(lambda seed: fastxml.grow(documents, discounts, growth, seed.generate_state(1)[0]), seeds)

    def _worth(self, Y: csr_matrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return for each label of each document what it is worth in a leaf, and what it gains if it is ranked first.

        All labels of a document together gain 1 if they are ranked first: that is nDCG.
        """
        counts = np.diff(Y.indptr)
        ideal = np.cumsum(_discounts(int(counts.max(initial=0))))
        per_label = np.repeat(counts, counts)
        return np.ones(Y.nnz), 1 / ideal[per_label - 1]

    def _fill(
        self,
        start: int,
        stop: int,
        X: Csr,
        totals: NDArray[np.float64],
        found: NDArray[np.int32],
        scores: NDArray[np.float32],
    ) -> None:
        x = np.zeros(self._n_features, dtype=np.float32)
        x[-1] = self.settings["bias"]
        fastxml.rank(start, stop, X, self._trees, self._roots, x, totals, found, scores)


class PfastreXML(FastXML):
    """FastXML for rare labels: labels count by inverse propensity, and their centroids re-rank the best 1000 of them.

    The score is tree^α · tail^(1 − α), where tail falls with the distance of the document from the mean of the label's
    documents. The authors' newer release adds the bias feature to both, which halves these distances for unit rows; as
    in the older one, documents and centroids have no bias here. `A` and `B` are the constants of inverse propensity for
    most data sets; Amazon's and Wikipedia's have others.
    """

    name = "pfastrexml"
    defaults: ClassVar[Settings] = {
        **FastXML.defaults,
        "alpha": 0.8,
        "gamma": 30.0,
        "candidates": 1000,
        "A": 0.55,
        "B": 1.5,
    }

    def _train(self, X: csr_matrix, Y: csr_matrix, seed: int) -> None:
        super()._train(X, Y, seed)
        with self.phase("centroids"):
            counts = np.bincount(Y.indices, minlength=Y.shape[1])
            shares = csr_matrix((1 / counts[Y.indices], Y.indices, Y.indptr), Y.shape)
            centroids = csr_matrix(shares.T @ check_features(X))
            self._squares = np.asarray(centroids.multiply(centroids).sum(axis=1)).ravel()
            self._centroids = inverted_rows(centroids.astype(np.float32))

    def _worth(self, Y: csr_matrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the inverse propensity of each label of each document, twice: gains are not normalized here."""
        counts = np.bincount(Y.indices, minlength=Y.shape[1])
        worth = inverse_propensity_of(counts, Y.shape[0], self.settings["A"], self.settings["B"])[Y.indices]
        return worth, worth

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Rank the best labels of the trees by trees and centroids together."""
        candidates = min(self.settings["candidates"], self._n_labels)

        def rank(rows: slice) -> Ranked:
            labels, trees = self._best(X[rows], candidates)
            products = margins_of(self._centroids, Batch(check_features(X[rows])), labels)
            distances = self._squares[labels] + 1 - 2 * np.where(labels >= 0, products, 0).astype(np.float64)
            return top_k(labels, blended(trees, distances, self.settings["alpha"], self.settings["gamma"]), k)

        return rank_chunks(rank, X.shape[0], k, _CHUNK)

    def save(self, folder: Path) -> None:
        """Write the trees and the centroids."""
        super().save(folder)
        content = self._centroids.arrays("centroids") | {"squares": self._squares.astype(np.float32)}
        arrays.write(folder / "centroids.safetensors", content)


def blended(
    trees: NDArray[np.float32], distances: NDArray[np.float64], alpha: float, gamma: float
) -> NDArray[np.float32]:
    """Return tree^α · tail^(1 − α) of scores of trees and squared distances, with tail = 1 / (1 + exp(γ distance)).

    >>> blended(np.array([0.25, 0.0], dtype=np.float32), np.zeros(2), 0.5, 30.0).astype(float).round(4).tolist()
    [0.3536, 0.0]
    """
    # In logarithms: the exponential of a large γ overflows.
    with np.errstate(divide="ignore"):
        logs = alpha * np.log(trees, dtype=np.float64) - (1 - alpha) * np.logaddexp(0, gamma * distances)
    return np.exp(logs).astype(np.float32)


def _discounts(n: int) -> NDArray[np.float64]:
    """Return what each rank is worth: 1 / log₂(rank + 1).

    >>> _discounts(3).round(3).tolist()
    [1.0, 0.631, 0.5]
    """
    return 1 / np.log2(np.arange(2, n + 2))
