"""Astec, the method that the paper starts from, module by module, on this package's kernels.

1. A surrogate task: clusters of labels, and features learned by predicting a document's clusters (`surrogate`).
2. Shortlists, once: the labels with the nearest centroids, and the labels of the nearest documents.
3. Frozen features with a residual layer of spectral norm 1 on top, which is trained in module 4.
4. The one-vs-all classifier over positives, shortlist and random negatives.
Finally a re-ranker (`reranker`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from lightdxml import index as indexes
from lightdxml.config import Config, changed
from lightdxml.experiments.baselines import reranker, surrogate
from lightdxml.experiments.baselines.base import Method
from lightdxml.experiments.baselines.reranker import Reranker, Scored
from lightdxml.experiments.baselines.surrogate import Schedule
from lightdxml.index.base import Index
from lightdxml.kernels import parallel, votes
from lightdxml.metrics import inverse_propensity
from lightdxml.model.blend import top_k
from lightdxml.persistence import arrays
from lightdxml.progress import Progress
from lightdxml.training.choose import choose
from lightdxml.validation import check_features, check_labels, split
from lightdxml.views.base import Batch
from lightdxml.views.dense import label_encoder, train_classifier, train_encoder
from lightdxml.views.dense.classifier import logits_of
from lightdxml.views.dense.encoder import Encoder, Residual, encode, normalized, rounded
from lightdxml.views.tree import clustering

_DOCUMENTS = 8192
_MOST_CLUSTERS = 65_536
_LABELS_PER_CLUSTER = 4


@dataclass
class _Found:
    """Module 2: label centroids and documents in the space of the surrogate task, with the labels of both."""

    labels: NDArray[np.int32]
    centroids: Index
    documents: Index
    Y: csr_matrix


@dataclass
class _Trained:
    """Everything that prediction needs."""

    surrogate: Encoder
    found: _Found
    residual: Residual
    W: NDArray[Any]
    beta: float
    second: Reranker | None = None


class Astec(Method):
    """DeepXML's Astec; the settings are those of its authors for EURLex-4K.

    Word vectors start at random, as LightDXML's do here; the authors start from fastText's.
    """

    name = "astec"
    about = "Astec (Dahiya et al. 2021) on this package's kernels"
    defaults: ClassVar[Mapping[str, Any]] = {
        "D": 300,
        "clusters": None,
        "batch_size": 255,
        "dropout": 0.5,
        "surrogate_epochs": 20,
        "surrogate_rate": 0.01,
        "epochs": 20,
        "rate": 0.007,
        "halved_at": 14,
        "k": 500,
        "neighbors": 100,
        "document_share": 0.075,
        "random_negatives": 50,
        "reranker": True,
        "reranker_epochs": 15,
        "reranker_rate": 0.005,
        "reranker_halved_at": 10,
        "reranker_depth": 100,
        "validation": 0.05,
    }

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        clusters = self.settings["clusters"]
        if clusters is not None and (not isinstance(clusters, int) or clusters < 1 or clusters & (clusters - 1)):
            raise ValueError(f"clusters is {clusters!r}: it must be a power of two, or None")

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train all modules."""
        with parallel.use_threads(threads), threadpool_limits(limits=1, user_api="blas"):
            X, Y = check_features(X), check_labels(Y)
            with self.phase("compile"):
                self._compile()
            self._train(X, Y, seed, Progress())

    def _compile(self) -> None:
        """Train a toy, which compiles every kernel or loads it from disk: that counts for no module."""
        once = {"surrogate_epochs": 1, "epochs": 1, "reranker_epochs": 1, "validation": 0.0}
        small = {"D": 4, "clusters": 2, "batch_size": 2, "k": 4, "neighbors": 2, "random_negatives": 1}
        toy = csr_matrix(np.eye(4, dtype=np.float32))
        Astec(**{**self.settings, **once, **small})._train(toy, toy, 0, Progress(show=False))

    def _train(self, X: csr_matrix, Y: csr_matrix, seed: int, progress: Progress) -> None:
        config = self._config(seed)
        parts = split(X, Y, config)
        rng = np.random.default_rng(seed)
        with self.phase("M1"):
            features = self._surrogate(*parts[:2], config, rng, progress)
        with self.phase("M2"):
            found, near = self._shortlists(features, *parts[:2], progress)
        with self.phase("M3+M4"):
            self._trained = self._classifier(features, found, near, *parts[:2], config, rng, progress)
        with self.phase("validation"):
            self._choose_beta(*parts)
        if self.settings["reranker"]:
            with self.phase("re-ranker"):
                self._rerank(*parts, config, rng, progress)

    def _config(self, seed: int) -> Config:
        given = self.settings
        return changed(
            Config(),
            {
                "dim": given["D"],
                "shortlist_size": given["k"],
                "learning_rate": given["rate"],
                "dense.vector_rate": 1.0,
                "dense.batch_size": given["batch_size"],
                "dense.dropout": given["dropout"],
                "dense.relu": True,
                "dense.random_negatives": given["random_negatives"],
                "dense.random_weight": 1.0,
                "validation_fraction": given["validation"],
                "random_state": seed,
            },
        )

    def _surrogate(
        self, X: csr_matrix, Y: csr_matrix, config: Config, rng: np.random.Generator, progress: Progress
    ) -> Encoder:
        """Do module 1: clusters of labels, and features that predict them."""
        known = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1])).astype(np.int32)
        n_clusters = self.settings["clusters"] or cluster_count(len(known))
        clusters = clustering.balanced_clusters(
            clustering.label_centroids(X, Y), known, n_clusters, config.random_state
        )
        clusters_of = clustering.cluster_labels(Y, clusters, n_clusters)
        schedule = self._schedule("surrogate_epochs", "surrogate_rate", "halved_at")
        return surrogate.train(X, clusters_of, config.dense, schedule, rng, progress).encoder

    def _schedule(self, epochs: str, rate: str, halved_at: str) -> Schedule:
        return Schedule(self.settings[epochs], self.settings[rate], (self.settings[halved_at],))

    def _shortlists(
        self, features: Encoder, X: csr_matrix, Y: csr_matrix, progress: Progress
    ) -> tuple[_Found, NDArray[np.int32]]:
        """Do module 2: index centroids and documents, and find the shortlists of the training documents."""
        embeddings = encode(features, X)
        label_to_docs = csr_matrix(Y.T)
        labels = np.flatnonzero(np.diff(label_to_docs.indptr)).astype(np.int32)
        centroids = normalized(label_encoder.centroids(label_to_docs, embeddings)[labels])
        directions = normalized(embeddings)
        del embeddings
        row_ids = np.arange(len(directions), dtype=np.int32)
        found = _Found(
            labels,
            indexes.build(rounded(centroids, "float16")),
            indexes.build(rounded(directions, "float16")),
            Y,
        )
        near = np.empty((len(directions), min(self.settings["k"], len(labels))), dtype=np.int32)
        with progress.phase("shortlists", len(directions)) as bar:
            for start, stop in parallel.fixed_chunks(len(directions), _DOCUMENTS):
                near[start:stop], _ = self._near(found, directions[start:stop], own=row_ids[start:stop])
                bar.advance(stop - start)
        return found, near

    def _near(
        self, found: _Found, directions: NDArray[np.float32], own: NDArray[np.int32] | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the k best labels of both indexes together, and their scores; `own` are row ids of training documents.

        A training document is not its own neighbor: it would vote for its own labels, as no new document can.
        """
        k, share = min(self.settings["k"], len(found.labels)), np.float32(self.settings["document_share"])
        by_centroid = found.labels[found.centroids.search(directions, k)[0]]
        by_document, counted = _label_votes(found, directions, self.settings["neighbors"], k, own)
        # A label may be in both: it counts once, with its votes.
        both = np.concatenate([by_document, _without(by_centroid, by_document, found.Y.shape[1])], axis=1)
        gained = np.concatenate([counted, np.zeros_like(by_centroid, dtype=np.float32)], axis=1)
        rows = np.where(both >= 0, np.searchsorted(found.labels, np.maximum(both, 0)), -1)
        cosines = indexes.cosines(found.centroids.vectors, directions, rows)
        nearness = (1 - share) * cosines + share * gained
        return top_k(both, np.where(both >= 0, nearness, -np.inf).astype(np.float32), k)

    def _classifier(
        self,
        features: Encoder,
        found: _Found,
        near: NDArray[np.int32],
        X: csr_matrix,
        Y: csr_matrix,
        config: Config,
        rng: np.random.Generator,
        progress: Progress,
    ) -> _Trained:
        """Do modules 3 and 4: train the residual layer and the classifier; the word vectors are frozen."""
        options = config.dense
        state = train_encoder.start(X.shape[1], replace(options, residual=True), rng, features.vectors)
        weights = train_classifier.start(Y.shape[1], options, rng)
        buffers = train_classifier.workspace(Y, near.shape[1], options)
        schedule = self._schedule("epochs", "rate", "halved_at")
        reranker.train_epochs(
            "classifier",
            weights,
            state,
            buffers,
            X,
            Y,
            near,
            options,
            schedule,
            rng,
            progress,
            train_encoder.update_residual,
        )
        assert state.encoder.residual is not None
        kept = Encoder(rounded(features.vectors, config.precision), features.relu)
        return _Trained(kept, found, state.encoder.residual, rounded(weights.W, config.precision), beta=1.0)

    def _candidates(self, X: csr_matrix, own: NDArray[np.int32] | None = None) -> Scored:
        """Return the candidate labels; `own` are row ids of training documents."""
        trained = self._trained
        labels, nearness = self._near(trained.found, normalized(encode(trained.surrogate, X)), own)
        encoder = replace(trained.surrogate, residual=trained.residual)
        logits = logits_of(encoder, trained.W, Batch(X), labels)
        return Scored(labels, np.where(labels >= 0, nearness, -np.inf).astype(np.float32), logits)

    def _choose_beta(self, X: csr_matrix, Y: csr_matrix, X_held: csr_matrix, Y_held: csr_matrix) -> None:
        held = self._candidates(X_held, _row_ids(X, X_held))
        curve = reranker.beta_curve(held, Y_held, inverse_propensity(Y))
        self._trained.beta, _ = choose(curve, reranker.TOLERANCE)

    def _rerank(
        self,
        X: csr_matrix,
        Y: csr_matrix,
        X_held: csr_matrix,
        Y_held: csr_matrix,
        config: Config,
        rng: np.random.Generator,
        progress: Progress,
    ) -> None:
        trained = self._trained
        schedule = self._schedule("reranker_epochs", "reranker_rate", "reranker_halved_at")
        depth = min(self.settings["reranker_depth"], len(trained.found.labels))
        second = reranker.train(
            X,
            Y,
            self._candidates,
            trained.beta,
            depth,
            replace(config.dense, random_negatives=0),
            schedule,
            rng,
            progress,
        )
        held = self._candidates(X_held, _row_ids(X, X_held))
        reranker.choose_share(second, X_held, Y_held, held, trained.beta, inverse_propensity(Y))
        trained.second = second

    def rank(self, X: csr_matrix, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the best labels by classifier and nearness together, and by the re-ranker."""
        trained = self._trained
        X = check_features(X, len(trained.surrogate.vectors))
        labels = np.empty((X.shape[0], k), dtype=np.int32)
        scores = np.empty((X.shape[0], k), dtype=np.float32)
        for start, stop in parallel.fixed_chunks(X.shape[0], _DOCUMENTS):
            candidates = self._candidates(X[start:stop])
            beta = trained.beta
            if trained.second is not None:
                candidates = reranker.rerank(trained.second, X[start:stop], candidates, beta)
                beta = trained.second.beta
            labels[start:stop], scores[start:stop] = top_k(candidates.labels, candidates.blend(beta), k)
        # As LightDXML does: nothing is known about a document without features.
        labels[np.diff(X.indptr) == 0] = -1
        scores[labels < 0] = 0
        return labels, scores

    def save(self, folder: Path) -> None:
        """Write everything that prediction needs, the document embeddings of the second index included."""
        trained = self._trained
        content: dict[str, NDArray[Any]] = {
            "word_vectors": trained.surrogate.vectors,
            "residual": trained.residual.R,
            "residual_bias": trained.residual.bias,
            "classifier": trained.W,
            "index_labels": trained.found.labels,
            "index_vectors": trained.found.centroids.vectors,
            "documents": trained.found.documents.vectors,
            "document_pointers": trained.found.Y.indptr.astype(np.int32),
            "document_labels": trained.found.Y.indices,
        }
        for name, index in (("index", trained.found.centroids), ("documents", trained.found.documents)):
            content |= {f"{name}_{part}": array for part, array in index.arrays().items()}
        arrays.write(folder / "astec.safetensors", content)
        if trained.second is not None:
            second = {"word_vectors": trained.second.encoder.vectors, "classifier": trained.second.W}
            arrays.write(folder / "reranker.safetensors", second)


def cluster_count(n_labels: int) -> int:
    """Return the number of clusters of that many labels: the power of two nearest to a quarter of them.

    This gives the authors' 1,024 for the 3,993 labels of EURLex-4K and 65,536 for the 352,072 of WikiSeeAlsoTitles-350K.

    >>> cluster_count(3_993), cluster_count(352_072), cluster_count(3)
    (1024, 65536, 1)
    """
    wanted = max(1.0, n_labels / _LABELS_PER_CLUSTER)
    return min(int(2 ** round(np.log2(wanted))), _MOST_CLUSTERS)


def _row_ids(X: csr_matrix, X_held: csr_matrix) -> NDArray[np.int32] | None:
    """Return the row ids of validation documents if they are the training documents, else None."""
    return np.arange(X.shape[0], dtype=np.int32) if X_held is X else None


def _label_votes(
    found: _Found, directions: NDArray[np.float32], neighbors: int, k: int, own: NDArray[np.int32] | None
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the labels of the nearest documents, and their votes relative to the most votes."""
    near, nearness = found.documents.search(directions, neighbors + (own is not None))
    if own is not None:
        near = np.where(near == own[:, None], -1, near).astype(np.int32)
    best = np.empty((len(near), k), dtype=np.int32)
    counted = np.empty((len(near), k), dtype=np.float32)
    indptr = found.Y.indptr.astype(np.int64)

    def fill(first: int, last: int) -> None:
        totals = np.zeros(found.Y.shape[1], dtype=np.float32)
        votes.count(first, last, near, nearness, indptr, found.Y.indices, totals, best, counted)

    parallel.over(fill, len(near))
    return best, counted / np.maximum(counted[:, :1], np.float32(1e-30))


def _without(labels: NDArray[np.int32], others: NDArray[np.int32], n_labels: int) -> NDArray[np.int32]:
    """Return the labels with -1 for those that the same row of `others` has."""
    left: NDArray[np.int32] = labels.copy()

    def fill(first: int, last: int) -> None:
        seen = np.zeros(n_labels + 1, dtype=bool)
        for row in range(first, last):
            seen[others[row]] = True
            left[row, seen[labels[row]]] = -1
            seen[others[row]] = False

    parallel.over(fill, len(labels))
    return left
