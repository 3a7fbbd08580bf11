"""The documents that each label is trained on: all of them or, where that would take too long, the hard negatives.

Labels of a cluster share their documents. These are the documents of its labels, and those for which the label tree
finds the cluster among the best: matcher-aware negatives, as in PECOS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import matching, parallel
from lightdxml.kernels.linear import LANES
from lightdxml.kernels.sparse import Pattern, read_only
from lightdxml.persistence.arrays import Arrays
from lightdxml.views.base import expect, in_range
from lightdxml.views.linear.options import LinearOptions
from lightdxml.views.tree.clustering import joined_clusters
from lightdxml.views.tree.matcher import Matcher, match, nearest_clusters

if TYPE_CHECKING:
    from lightdxml.training.run import Run, TrainingData

_PHASE, _HARD = "linear view", "hard negatives"
_CHUNK = 8192


@dataclass(frozen=True)
class LabelGroups:
    """Labels that are trained on the same documents.

    Attributes
    ----------
    of_label
        The group of every label.
    members
        The documents of each group.
    """

    of_label: NDArray[np.int32]
    members: Pattern

    def order(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return labels ordered by group, as the solver takes them."""
        ordered: NDArray[np.int32] = labels[np.argsort(self.of_label[labels], kind="stable")]
        return ordered


def fits_all_documents(data: TrainingData, options: LinearOptions) -> bool:
    """Return whether all labels can be trained on all documents within the work that is allowed."""
    return _fits(len(data.trained_labels), data, options)


def needs_no_tree(data: TrainingData, options: LinearOptions) -> bool:
    """Return whether labels with documents are so few that each could be trained on all documents."""
    return _fits(len(data.known_labels), data, options)


def _fits(n_labels: int, data: TrainingData, options: LinearOptions) -> bool:
    return -(-n_labels // LANES) * _pass(data, options) <= options.work


def clusters_per_document(data: TrainingData, options: LinearOptions, n_clusters: int) -> int:
    """Return of how many clusters a document can be a negative within the work that is allowed."""
    blocks = -(-len(data.trained_labels) // (n_clusters * LANES))
    allowed = options.work // max(1, blocks * _pass(data, options))
    return min(n_clusters, max(options.min_clusters, allowed))


def _pass(data: TrainingData, options: LinearOptions) -> int:
    """Return the work of one pass over all documents for one block of labels."""
    return int(data.X.nnz + options.document_work * data.X.shape[0])


def training_groups(run: Run) -> LabelGroups:
    """Return the groups of the training documents; computed once."""
    return run.data.memo("groups", lambda: _training_groups(run))


def _training_groups(run: Run) -> LabelGroups:
    data = run.data
    if fits_all_documents(data, run.config.linear):
        return _one_group(data)
    matcher = match(run, 0)
    weight = run.config.names.documents
    clusters = joined_clusters(data, matcher.clusters, data.known_labels, data.trained_labels, weight)
    return _matched(data, clusters, _hard_negatives(run, matcher))


def refit_groups(run: Run) -> LabelGroups:
    """Return the groups with the held-out documents, and with labels that only these have."""
    if fits_all_documents(run.data, run.config.linear):
        return _one_group(run.all_data)
    return _matched(run.all_data, *document_clusters(run))


def document_clusters(run: Run) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the cluster of every label, -1 for none, and the clusters that each document is a negative of.

    Held-out documents come after the training documents.
    """
    data, matcher = run.data, match(run, 0)
    every, weight = run.all_data if data.held_out else data, run.config.names.documents
    clusters = joined_clusters(every, matcher.clusters, data.known_labels, every.trained_labels, weight)
    hard = _hard_negatives(run, matcher)
    if data.held_out:
        hard = np.concatenate([hard, nearest_clusters(matcher, data.X_validation, hard.shape[1])])
    return clusters, hard


def _one_group(data: TrainingData) -> LabelGroups:
    return LabelGroups(np.zeros(data.n_labels, np.int32), Pattern.full(data.X.shape[0]))


def _matched(data: TrainingData, clusters: NDArray[np.int32], hard: NDArray[np.int32]) -> LabelGroups:
    """Return groups of the documents of each cluster's labels and of those that have the cluster in `hard`."""
    n_clusters = int(max(clusters.max(initial=0), hard.max(initial=0))) + 1
    placed = read_only(hard), Pattern.of(data.Y), read_only(clusters)
    indptr = np.zeros(n_clusters + 1, dtype=np.int64)
    matching.group_documents(*placed, indptr[1:], np.empty(0, dtype=np.int32))
    np.cumsum(indptr, out=indptr)
    # Documents have many clusters each: these are the largest arrays, so there is no copy on the way.
    documents = np.empty(indptr[-1], dtype=np.int32)
    matching.group_documents(*placed, indptr[:-1].copy(), documents)
    return LabelGroups(np.maximum(clusters, 0), Pattern(indptr, documents))


def _hard_negatives(run: Run, matcher: Matcher) -> NDArray[np.int32]:
    """Return the clusters of labels that the label tree ranks highest for each training document."""
    data = run.data
    size = clusters_per_document(data, run.config.linear, matcher.n_clusters)

    def check(product: Arrays) -> NDArray[np.int32]:
        found = expect(product["clusters"], "hard negatives", (data.X.shape[0], size), np.int32)
        if not in_range(found, 0, matcher.n_clusters):
            raise ValueError("its hard negatives are clusters that do not exist")
        return found

    chunks = parallel.fixed_chunks(data.X.shape[0], _CHUNK)
    return run.map(_PHASE, _HARD, _mine, (matcher, data.X, size), chunks, check)


def _mine(shared: tuple[Matcher, csr_matrix, int], bounds: tuple[int, int]) -> Arrays:
    matcher, X, size = shared
    return {"clusters": nearest_clusters(matcher, X[slice(*bounds)], size)}
