"""Astec, the method that the paper starts from, module by module, on this package's kernels.

1. A surrogate task: labels in clusters, features learnt by telling a document's clusters (`clustering`, `surrogate`).
2. Shortlists, once: the labels with the nearest centroids, and the labels of the nearest documents.
3. Features frozen, with a residual layer of spectral norm 1 on top, which is trained with 4.
4. The one-vs-all classifier over positives, shortlist and random negatives.
Last, a re-ranker (`reranker`).
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

from lightdxml.persistence import arrays
from lightdxml import shortlist as shortlists
from lightdxml.experiments.baselines import reranker, surrogate
from lightdxml.experiments.baselines.base import Method
from lightdxml.experiments.baselines.reranker import Reranker
from lightdxml.experiments.baselines.surrogate import Schedule
from lightdxml.config import Config
from lightdxml.encoder import Encoder, Residual, encode, rounded, unit_rows
from lightdxml.kernels import ova, parallel, votes
from lightdxml.kernels.precision import as_bits
from lightdxml.metrics import inverse_propensity
from lightdxml.model import Candidates, blend, check_features, top
from lightdxml.progress import Progress
from lightdxml.shortlist import Shortlist
from lightdxml.training import blend as blending
from lightdxml.training import classifier, clustering, embedding, label_encoder
from lightdxml.training.fit import check_labels, set_aside

_DOCUMENTS = 8192
_MOST_CLUSTERS = 65_536
_LABELS_PER_CLUSTER = 4


@dataclass
class _Found:
    """Module 2: where labels and documents lie in the space of the surrogate task."""

    centroids: Shortlist
    documents: Shortlist
    labels_of: csr_matrix


@dataclass
class _Trained:
    """All that prediction needs."""

    surrogate: Encoder
    found: _Found
    residual: Residual
    W: NDArray[Any]
    beta: float
    second: Reranker | None = None


class Astec(Method):
    """DeepXML's Astec; the settings are those of its authors for EURLex-4K.

    There is no pretrained fastText here: word vectors begin at random, as LightDXML's do.
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
        "neighbours": 100,
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
            raise ValueError(f"clusters is {clusters!r}: it must be a power of two, as 1, 2, 4, 8 …, or None")

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train all modules."""
        with parallel.use_threads(threads), threadpool_limits(limits=1, user_api="blas"):
            X, Y = check_features(X), check_labels(Y)
            with self.phase("compile"):
                self._compile()
            self._train(X, Y, seed, Progress())

    def _compile(self) -> None:
        """Train a toy, which compiles every kernel or loads it from disk: no module's time is to hold that."""
        once = {"surrogate_epochs": 1, "epochs": 1, "reranker_epochs": 1, "validation": 0.0}
        small = {"D": 4, "clusters": 2, "batch_size": 2, "k": 4, "neighbours": 2, "random_negatives": 1}
        toy = csr_matrix(np.eye(4, dtype=np.float32))
        Astec(**{**self.settings, **once, **small})._train(toy, toy, 0, Progress(show=False))

    def _train(self, X: csr_matrix, Y: csr_matrix, seed: int, progress: Progress) -> None:
        config = self._config(seed)
        parts = set_aside(X, Y, config)
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
        chosen = self.settings
        return Config(
            D=chosen["D"],
            k=chosen["k"],
            learning_rate=chosen["rate"],
            feature_rate=1.0,
            batch_size=chosen["batch_size"],
            dropout=chosen["dropout"],
            relu=True,
            random_negatives=chosen["random_negatives"],
            random_weight=1.0,
            validation=chosen["validation"],
            seed=seed,
        )

    def _surrogate(
        self, X: csr_matrix, Y: csr_matrix, config: Config, rng: np.random.Generator, progress: Progress
    ) -> Encoder:
        """Do module 1: clusters of labels, and the features that tell them."""
        known = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1])).astype(np.int32)
        n_clusters = self.settings["clusters"] or cluster_count(len(known))
        clusters = clustering.balanced_clusters(clustering.label_centroids(X, Y), known, n_clusters, config.seed)
        meta = clustering.meta_labels(Y, clusters, n_clusters)
        schedule = self._schedule("surrogate_epochs", "surrogate_rate", "halved_at")
        return surrogate.train(X, meta, config, schedule, rng, progress).encoder

    def _schedule(self, epochs: str, rate: str, halved_at: str) -> Schedule:
        return Schedule(self.settings[epochs], self.settings[rate], (self.settings[halved_at],))

    def _shortlists(
        self, features: Encoder, X: csr_matrix, Y: csr_matrix, progress: Progress
    ) -> tuple[_Found, NDArray[np.int32]]:
        """Do module 2: index centroids and documents, and find each training document's labels."""
        embeddings = encode(features, X)
        documents_of = csr_matrix(Y.T)
        labels = np.flatnonzero(np.diff(documents_of.indptr)).astype(np.int32)
        centroids = unit_rows(label_encoder.centroids(documents_of, embeddings)[labels])
        directions = unit_rows(embeddings)
        del embeddings
        numbers = np.arange(len(directions), dtype=np.int32)
        found = _Found(
            shortlists.build(labels, rounded(centroids, "float16")),
            shortlists.build(numbers, rounded(directions, "float16")),
            Y,
        )
        near = np.empty((len(directions), min(self.settings["k"], len(labels))), dtype=np.int32)
        with progress.phase("shortlists", len(directions)) as bar:
            for start, stop in parallel.fixed_chunks(len(directions), _DOCUMENTS):
                near[start:stop], _ = self._near(found, directions[start:stop], own=numbers[start:stop])
                bar.advance(stop - start)
        return found, near

    def _near(
        self, found: _Found, directions: NDArray[np.float32], own: NDArray[np.int32] | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the k best labels of both indices together, and how near they are; `own` are the documents' numbers.

        A training document is no neighbour of its own: it would vote for its own labels, as no new document can.
        """
        k, share = min(self.settings["k"], len(found.centroids.labels)), np.float32(self.settings["document_share"])
        by_centroid = shortlists.search(found.centroids, directions, k)
        by_document, counted = _label_votes(found, directions, self.settings["neighbours"], k, own)
        # A label may be in both: it counts once, with its votes.
        both = np.concatenate([by_document, _without(by_centroid, by_document, found.labels_of.shape[1])], axis=1)
        gained = np.concatenate([counted, np.zeros_like(by_centroid, dtype=np.float32)], axis=1)
        cosines = shortlists.cosines(found.centroids, directions, both)
        nearness = (1 - share) * cosines + share * gained
        return top(both, np.where(both >= 0, nearness, -np.inf).astype(np.float32), k)

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
        """Do modules 3 and 4: train the residual layer and the classifier; the word vectors stay what they are."""
        state = embedding.start(X.shape[1], replace(config, residual=True), rng, features.vectors)
        weights = classifier.start(Y.shape[1], config, rng)
        room = classifier.scratch(Y, near.shape[1], 0, config)
        schedule = self._schedule("epochs", "rate", "halved_at")
        reranker.train_epochs(
            "classifier", weights, state, room, X, Y, near, config, schedule, rng, progress, embedding.move_residual
        )
        assert state.encoder.residual is not None
        kept = Encoder(rounded(features.vectors, config.precision), features.relu)
        return _Trained(kept, found, state.encoder.residual, rounded(weights.W, config.precision), beta=1.0)

    def _candidates(self, X: csr_matrix, own: NDArray[np.int32] | None = None) -> Candidates:
        """Return the labels to choose from; `own` are the numbers of documents that were trained on."""
        trained = self._trained
        labels, nearness = self._near(trained.found, unit_rows(encode(trained.surrogate, X)), own)
        embeddings = encode(replace(trained.surrogate, residual=trained.residual), X)
        logits = np.empty(labels.shape, dtype=np.float32)

        def fill(first: int, last: int) -> None:
            ova.scores(first, last, embeddings, as_bits(trained.W), labels, logits)

        parallel.over(fill, len(labels))
        return Candidates(labels, np.where(labels >= 0, nearness, -np.inf).astype(np.float32), logits)

    def _choose_beta(self, X: csr_matrix, Y: csr_matrix, X_held: csr_matrix, Y_held: csr_matrix) -> None:
        held = self._candidates(X_held, _numbers(X, X_held))
        curve = blending.curve(held, Y_held, inverse_propensity(Y))
        self._trained.beta, _ = blending.choose(curve)

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
        depth = min(self.settings["reranker_depth"], len(trained.found.centroids.labels))
        second = reranker.train(
            X, Y, self._candidates, trained.beta, depth, replace(config, random_negatives=0), schedule, rng, progress
        )
        held = self._candidates(X_held, _numbers(X, X_held))
        reranker.choose(second, X_held, Y_held, held, trained.beta, inverse_propensity(Y))
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
            labels[start:stop], scores[start:stop] = top(candidates.labels, blend(candidates, beta), k)
        # As LightDXML does: nothing is known of a document without features.
        labels[np.diff(X.indptr) == 0] = -1
        scores[labels < 0] = 0
        return labels, scores

    def save(self, folder: Path) -> None:
        """Write everything that prediction needs; with it the documents' embeddings, which the second index is."""
        trained = self._trained
        content: dict[str, NDArray[Any]] = {
            "word_vectors": trained.surrogate.vectors,
            "residual": trained.residual.R,
            "residual_bias": trained.residual.bias,
            "classifier": trained.W,
            "index_labels": trained.found.centroids.labels,
            "index_vectors": trained.found.centroids.vectors,
            "documents": trained.found.documents.vectors,
            "document_pointers": trained.found.labels_of.indptr.astype(np.int32),
            "document_labels": trained.found.labels_of.indices,
        }
        for name, index in (("index", trained.found.centroids), ("documents", trained.found.documents)):
            content |= {f"{name}_{part}": array for part, array in shortlists.structure_of(index).items()}
        arrays.write(folder / "astec.safetensors", content)
        if trained.second is not None:
            second = {"word_vectors": trained.second.encoder.vectors, "classifier": trained.second.W}
            arrays.write(folder / "reranker.safetensors", second)


def cluster_count(n_labels: int) -> int:
    """Return into how many clusters so many labels are put: the power of two nearest to a quarter of them.

    So the authors' 1,024 for the 3,993 labels of EURLex-4K and 65,536 for the 352,072 of WikiSeeAlsoTitles-350K.

    >>> cluster_count(3_993), cluster_count(352_072), cluster_count(3)
    (1024, 65536, 1)
    """
    wanted = max(1.0, n_labels / _LABELS_PER_CLUSTER)
    return min(int(2 ** round(np.log2(wanted))), _MOST_CLUSTERS)


def _numbers(X: csr_matrix, X_held: csr_matrix) -> NDArray[np.int32] | None:
    """Return the documents' numbers where those to validate on are those that were trained on, else None."""
    return np.arange(X.shape[0], dtype=np.int32) if X_held is X else None


def _label_votes(
    found: _Found, directions: NDArray[np.float32], neighbours: int, k: int, own: NDArray[np.int32] | None
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the labels of the nearest documents, and their votes as a share of the most that one has."""
    near = shortlists.search(found.documents, directions, neighbours + (own is not None))
    if own is not None:
        near = np.where(near == own[:, None], -1, near).astype(np.int32)
    nearness = shortlists.cosines(found.documents, directions, near)
    best = np.empty((len(near), k), dtype=np.int32)
    counted = np.empty((len(near), k), dtype=np.float32)
    pointers = found.labels_of.indptr.astype(np.int64)

    def fill(first: int, last: int) -> None:
        room = np.zeros(found.labels_of.shape[1], dtype=np.float32)
        votes.count(first, last, near, nearness, pointers, found.labels_of.indices, room, best, counted)

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
