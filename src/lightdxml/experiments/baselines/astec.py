"""Astec, the method that the paper starts from, module by module, on this package's kernels.

1. A surrogate task: clusters of labels, and features learned by predicting a document's clusters.
2. Shortlists, once: the labels with the nearest centroids, and the labels of the nearest documents.
3. Frozen features with a residual layer of spectral norm 1 on top, which is trained in module 4.
4. The one-vs-all classifier over positives, shortlist and random negatives.
Finally a re-ranker (`reranker`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import index as indexes
from lightdxml.config import Config, changed
from lightdxml.experiments.baselines import reranker
from lightdxml.experiments.baselines.base import Method, Ranked, Settings, label_votes, rank_chunks
from lightdxml.experiments.baselines.reranker import CHUNK, Reranker, Schedule, Scored
from lightdxml.kernels import adam, blas, parallel
from lightdxml.kernels.precision import rounded
from lightdxml.metrics import inverse_propensity
from lightdxml.model.blend import sigmoid, top_k
from lightdxml.persistence import arrays
from lightdxml.validation import check_features, check_labels, split
from lightdxml.views.base import Batch
from lightdxml.views.dense import label_encoder, train_classifier, train_encoder
from lightdxml.views.dense.classifier import logits_of
from lightdxml.views.dense.encoder import Encoder, encode, normalized
from lightdxml.views.dense.options import DenseOptions
from lightdxml.views.dense.train_classifier import Classifier
from lightdxml.views.tree import clustering

_MOST_CLUSTERS = 65_536
_LABELS_PER_CLUSTER = 4
# Gradients to the documents are summed over parts of this many clusters, whatever the number of threads.
_CLUSTERS = 512
# Settings that LightDXML has as well, under the same names.
_SHARED = {
    "dim": 300,
    "shortlist_size": 500,
    "dense.batch_size": 255,
    "dense.dropout": 0.5,
    "dense.random_negatives": 50,
    "validation_fraction": 0.05,
}
_FIXED = {"dense": "always", "dense.vector_rate": 1.0, "dense.relu": True, "dense.random_weight": 1.0}


class Astec(Method):
    """DeepXML's Astec; the settings are those of its authors for EURLex-4K.

    Word vectors start at random, as LightDXML's do here; the authors start from fastText's.
    """

    name = "astec"
    defaults: ClassVar[Settings] = {
        **_SHARED,
        "clusters": None,
        "surrogate_epochs": 20,
        "surrogate_rate": 0.01,
        "epochs": 20,
        "rate": 0.007,
        "halved_at": 14,
        "neighbors": 100,
        "document_share": 0.075,
        "reranker": True,
        **reranker.SETTINGS,
    }

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._reranker: Reranker | None = None

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train all modules."""
        with parallel.use_threads(threads), blas.on_one_thread():
            with self.phase("compile"):
                self._compile()
            self._train(check_features(X), check_labels(Y), seed)

    def _compile(self) -> None:
        """Train a toy, which compiles every kernel or loads it from disk: that counts for no module."""
        once = {"surrogate_epochs": 1, "epochs": 1, "reranker_epochs": 1, "validation_fraction": 0.0}
        small = {"dim": 4, "clusters": 2, "dense.batch_size": 2, "shortlist_size": 4, "neighbors": 2}
        toy = csr_matrix(np.eye(4, dtype=np.float32))
        Astec(**{**self.settings, **once, **small})._train(toy, toy, 0)

    def _train(self, X: csr_matrix, Y: csr_matrix, seed: int) -> None:
        given = {name: self.settings[name] for name in _SHARED}
        config = changed(Config(), {**_FIXED, **given, "random_state": seed})
        parts = split(X, Y, config)
        rng = np.random.default_rng(seed)
        with self.phase("M1"):
            features = self._learn_features(*parts[:2], config, rng)
        with self.phase("M2"):
            shortlists = self._build_shortlists(features, *parts[:2])
        with self.phase("M3+M4"):
            self._train_classifier(features, shortlists, *parts[:2], config, rng)
        with self.phase("validation"):
            own = np.arange(parts[2].shape[0], dtype=np.int32) if parts[2] is parts[0] else None
            held = self._candidates(parts[2], own)
            self._beta, _ = reranker.choose_beta(held, parts[3], inverse_propensity(parts[1]))
        if self.settings["reranker"]:
            with self.phase("re-ranker"):
                self._reranker = reranker.train(
                    parts, self._candidates, held, self._beta, config.dense, self.settings, rng
                )

    def _learn_features(self, X: csr_matrix, Y: csr_matrix, config: Config, rng: np.random.Generator) -> Encoder:
        """Do module 1: cluster the labels, and train word vectors to predict the clusters of each document."""
        known = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1])).astype(np.int32)
        n_clusters = self.settings["clusters"] or cluster_count(len(known))
        centroids = clustering.label_centroids(X, Y)
        clusters = clustering.balanced_clusters(centroids, known, n_clusters, config.random_state)
        targets = clustering.cluster_labels(Y, clusters, n_clusters)
        schedule = Schedule(*(self.settings[name] for name in ("surrogate_epochs", "surrogate_rate", "halved_at")))
        return _train_surrogate(X, targets, config.dense, schedule, rng)

    def _build_shortlists(self, features: Encoder, X: csr_matrix, Y: csr_matrix) -> NDArray[np.int32]:
        """Do module 2: index centroids and documents, and return the shortlists of the training documents."""
        embeddings = encode(features, X)
        label_to_docs = csr_matrix(Y.T)
        self._Y = Y
        self._labels = np.flatnonzero(np.diff(label_to_docs.indptr)).astype(np.int32)
        centroids = normalized(label_encoder.centroids(label_to_docs, embeddings)[self._labels])
        directions = normalized(embeddings)
        self._centroids = indexes.build(rounded(centroids, "float16"))
        self._documents = indexes.build(rounded(directions, "float16"))
        n, own = len(directions), np.arange(len(directions), dtype=np.int32)
        k = min(self.settings["shortlist_size"], len(self._labels))
        return rank_chunks(lambda rows: self._nearest(directions[rows], own[rows]), n, k, CHUNK)[0]

    def _nearest(self, directions: NDArray[np.float32], own: NDArray[np.int32] | None = None) -> Ranked:
        """Return the best labels of both indexes together, and their scores; `own` are row ids of training documents.

        A training document is not its own neighbor: it would vote for its own labels, as no new document can.
        """
        k = min(self.settings["shortlist_size"], len(self._labels))
        near, nearness = self._documents.search(directions, self.settings["neighbors"] + (own is not None))
        if own is not None:
            near = np.where(near == own[:, None], -1, near).astype(np.int32)
        by_document, votes = label_votes(near, nearness, self._Y, k)
        by_centroid = self._labels[self._centroids.search(directions, k)[0]]
        # A label may be in both: it counts once, with its votes, which are relative to the most votes.
        labels = np.concatenate([by_document, _without(by_centroid, by_document, self._Y.shape[1])], axis=1)
        votes = np.pad(votes / np.maximum(votes[:, :1], np.float32(1e-30)), ((0, 0), (0, by_centroid.shape[1])))
        rows = np.where(labels >= 0, np.searchsorted(self._labels, np.maximum(labels, 0)), -1)
        share = np.float32(self.settings["document_share"])
        return top_k(
            labels, (1 - share) * indexes.cosines(self._centroids.vectors, directions, rows) + share * votes, k
        )

    def _train_classifier(
        self,
        features: Encoder,
        shortlists: NDArray[np.int32],
        X: csr_matrix,
        Y: csr_matrix,
        config: Config,
        rng: np.random.Generator,
    ) -> None:
        """Do modules 3 and 4: train the residual layer and the classifier; the word vectors are frozen."""
        options = config.dense
        state = train_encoder.start(X.shape[1], replace(options, residual=True), rng, features.vectors)
        classifier = train_classifier.start(Y.shape[1], options, rng)
        training = train_classifier.divide(classifier, Y, options)
        training.take_shortlists(shortlists)
        schedule = Schedule(*(self.settings[name] for name in ("epochs", "rate", "halved_at")))
        for rows, rate in schedule.batches(X.shape[0], options.batch_size, rng):
            train_classifier.train_batch(training, state, X, rows, options, rate, rng, train_encoder.update_residual)
        self._features = Encoder(rounded(features.vectors, config.precision), features.relu)
        self._residual = state.encoder.residual
        self._W = rounded(classifier.W, config.precision)

    def _candidates(self, X: csr_matrix, own: NDArray[np.int32] | None = None) -> Scored:
        """Return the candidate labels; `own` are row ids of training documents."""
        labels, nearness = self._nearest(normalized(encode(self._features, X)), own)
        logits = logits_of(replace(self._features, residual=self._residual), self._W, Batch(X), labels)
        return Scored(labels, np.where(labels >= 0, nearness, -np.inf).astype(np.float32), logits)

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Return the best labels by classifier and nearness together, and by the re-ranker."""
        X = check_features(X, len(self._features.vectors))
        return reranker.rank(X, k, self._candidates, self._beta, self._reranker)

    def save(self, folder: Path) -> None:
        """Write everything that prediction needs, the document embeddings of the second index included."""
        content = replace(self._features, residual=self._residual).arrays()
        content |= {"classifier.W": self._W, "labels": self._labels}
        content |= {"document_indptr": self._Y.indptr.astype(np.int32), "document_labels": self._Y.indices}
        for name, index in (("centroids", self._centroids), ("documents", self._documents)):
            content |= {f"{name}.{part}": array for part, array in index.arrays().items()}
            content[name] = index.vectors
        arrays.write(folder / "astec.safetensors", content)
        if self._reranker is not None:
            self._reranker.save(folder)


def cluster_count(n_labels: int) -> int:
    """Return the number of clusters of that many labels: the power of two nearest to a quarter of them.

    This gives the authors' 1,024 for the 3,993 labels of EURLex-4K and 65,536 for WikiSeeAlsoTitles-350K.

    >>> cluster_count(3_993), cluster_count(352_072), cluster_count(3)
    (1024, 65536, 1)
    """
    wanted = max(1.0, n_labels / _LABELS_PER_CLUSTER)
    return min(int(2 ** round(np.log2(wanted))), _MOST_CLUSTERS)


def _without(labels: NDArray[np.int32], others: NDArray[np.int32], n_labels: int) -> NDArray[np.int32]:
    """Return the labels with -1 for those that the same row of `others` has.

    >>> _without(np.array([[3, 1, 0]], dtype=np.int32), np.array([[0, 3, -1]], dtype=np.int32), 4).tolist()
    [[-1, 1, -1]]
    """
    left: NDArray[np.int32] = labels.copy()
    seen = np.zeros(n_labels + 1, dtype=bool)  # the last entry is for label -1
    for row in range(len(labels)):
        seen[others[row]] = True
        left[row, seen[labels[row]]] = -1
        seen[others[row]] = False
    return left


def _train_surrogate(
    X: csr_matrix, targets: csr_matrix, options: DenseOptions, schedule: Schedule, rng: np.random.Generator
) -> Encoder:
    """Train word vectors and a one-vs-all classifier of the clusters, all of them at every step."""
    features = train_encoder.start(X.shape[1], options, rng, None)
    clusters = train_classifier.start(targets.shape[1], options, rng)
    for rows, rate in schedule.batches(X.shape[0], options.batch_size, rng):
        batch = train_encoder.forward(features, X[rows], options.dropout, rng)
        clusters.steps += 1
        corrected = adam.bias_corrected_rate(rate, clusters.steps)
        gradient = _update_clusters(clusters, batch.embedding, targets[rows].toarray(), corrected)
        train_encoder.backward(features, batch, gradient, corrected)
    return features.encoder


def _update_clusters(
    clusters: Classifier, embeddings: NDArray[np.float32], targets: NDArray[np.float32], rate: np.float32
) -> NDArray[np.float32]:
    """Update the weights of all clusters by binary cross-entropy; return the gradient to the embeddings."""

    def update(bounds: tuple[int, int]) -> NDArray[np.float32]:
        part = slice(*bounds)
        W = clusters.W[part]
        errors = (sigmoid(embeddings @ W[:, :-1].T + W[:, -1]) - targets[:, part]) * np.float32(1 / len(embeddings))
        to_embeddings: NDArray[np.float32] = errors @ W[:, :-1]
        gradient = np.concatenate([errors.T @ embeddings, errors.sum(axis=0)[:, None]], axis=1)
        adam.adam_rows(adam.AdamRows(W, clusters.mean[part], clusters.square[part]), gradient, rate)
        return to_embeddings

    parts = parallel.run(update, parallel.fixed_chunks(len(clusters.W), _CLUSTERS))
    total: NDArray[np.float32] = np.sum(parts, axis=0, dtype=np.float32)
    return total
