"""Clusters of labels of nearly equal size, by balanced 2-means from the top."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from lightdxml.kernels import parallel, two_means
from lightdxml.kernels.sparse import Csr
from lightdxml.views.base import Batch
from lightdxml.views.linear.inverted import search
from lightdxml.views.linear.solver import inverted_rows

if TYPE_CHECKING:
    from lightdxml.training.run import TrainingData

_MAX_ITER, _TOLERANCE = 30, 1e-4
_SMALL = 0.1


def training_centroids(data: TrainingData) -> csr_matrix:
    """Return the centroids of all labels of training data; computed once."""
    return data.memo("centroids", lambda: label_centroids(data.X, _weighted(data)))


def _weighted(data: TrainingData) -> csr_matrix:
    """Return the labels of documents, weighted by how much each document counts."""
    return data.Y if data.weights is None else csr_matrix(diags(data.weights) @ data.Y)


def named_centroids(data: TrainingData, weight: float) -> csr_matrix:
    """Return the centroids of all labels, whose names count as this many of their documents; computed once."""
    if data.names is None or not weight:
        return training_centroids(data)
    names = data.names

    def compute() -> csr_matrix:
        return label_centroids(data.X, _weighted(data), names.by_label(data.n_labels) * np.float32(weight))

    return data.memo("named centroids", compute)


def some_centroids(data: TrainingData, labels: NDArray[np.int32], weight: float) -> csr_matrix:
    """Return the centroids of some labels, whose names count as this many of their documents: all labels × features.

    Other rows are empty.
    """
    kept = np.zeros(data.n_labels, dtype=np.float32)
    kept[labels] = 1
    names = None
    if data.names is not None and weight:
        names = diags(kept) @ data.names.by_label(data.n_labels) * np.float32(weight)
    some = csr_matrix(_weighted(data) @ diags(kept))
    some.eliminate_zeros()
    return label_centroids(data.X, some, names).astype(np.float32)


def label_centroids(X: csr_matrix, Y: csr_matrix, names: csr_matrix | None = None) -> csr_matrix:
    """Return the mean features of each label's documents, and of its name, at length 1; zeros for a label without.

    `names` are features to add to the sum of each label's documents.
    """
    sums = csr_matrix(Y.T @ X if names is None else Y.T @ X + names)
    normalize_rows(sums)
    return sums


def normalize_rows(matrix: csr_matrix) -> None:
    """Scale rows to length 1 in place; rows of zeros stay zeros."""
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    matrix.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(matrix.indptr))


def balanced_clusters(
    rows: csr_matrix,
    members: NDArray[np.int32],
    n_clusters: int,
    seed: int,
    sample_size: int = 16_384,
    after: Callable[[int], object] | None = None,
) -> NDArray[np.int32]:
    """Return the cluster of every row of the matrix, -1 for rows that are not members.

    Parameters
    ----------
    rows
        Unit rows.
    members
        The rows to cluster.
    n_clusters
        A power of two; every cluster is bisected until there are that many.
    seed
        The same seed gives the same clusters.
    sample_size
        Rows that the centers of a bisection are computed from, at most.
    after
        Called after bisections: it may stop the clustering by an exception.

    Examples
    --------
    >>> rows = csr_matrix([[1, 0], [0, 1], [0.9, 0.1], [0.1, 0.9]], dtype=np.float32)
    >>> found = balanced_clusters(rows, np.arange(4, dtype=np.int32), 2, seed=0)
    >>> bool(found[0] == found[2] != found[1] == found[3])
    True
    """
    order = np.array(members, dtype=np.int32)
    unit_rows = Csr(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(np.float32))
    bounds, workspace = [(0, len(order))], threading.local()
    depth = 0
    while len(bounds) < n_clusters:
        seeds = np.random.SeedSequence([seed, depth]).spawn(len(bounds))

        def bisect(
            node: int, bounds: list[tuple[int, int]] = bounds, seeds: list[np.random.SeedSequence] = seeds
        ) -> None:
            start, stop = bounds[node]
            if stop - start < 2:
                return
            rng, own = np.random.default_rng(seeds[node]), order[start:stop]
            # A sample tells the centers of many labels. Otherwise the first bisections, of all labels, take the most
            # time, on a single thread.
            sample = own if len(own) <= sample_size else rng.choice(own, sample_size, replace=False)
            first, second = rng.choice(len(sample), 2, replace=False)
            # The kernel leaves its workspace zero: one per thread serves all nodes.
            if not hasattr(workspace, "sums"):
                workspace.sums = np.zeros((rows.shape[1], 2))
            two_means.bisect(sample, first, second, unit_rows, _MAX_ITER, _TOLERANCE, workspace.sums)
            if sample is not own:
                two_means.divide(own, sample, unit_rows, workspace.sums)

        parallel.run(bisect, range(len(bounds)), after)
        halves = [((a, (a + b + 1) // 2), ((a + b + 1) // 2, b)) for a, b in bounds]
        bounds = [half for pair in halves for half in pair]
        depth += 1
    clusters = np.full(rows.shape[0], -1, dtype=np.int32)
    for number, (start, stop) in enumerate(bounds):
        clusters[order[start:stop]] = number
    return clusters


def joined_clusters(
    data: TrainingData,
    clusters: NDArray[np.int32],
    known: NDArray[np.int64],
    labels: NDArray[np.int64],
    name_weight: float = 0.0,
) -> NDArray[np.int32]:
    """Return clusters in which those of these labels that are not known yet join the one with the nearest centroid.

    Names of labels count as this many of their documents.

    Examples
    --------
    >>> from lightdxml.training.run import TrainingData
    >>> X = csr_matrix([[1, 0], [0, 1], [0.1, 0.9]], dtype=np.float32)
    >>> data = TrainingData(X, csr_matrix(np.eye(3, dtype=np.float32)), X, X)
    >>> joined_clusters(data, np.array([5, 7, -1], dtype=np.int32), np.array([0, 1]), np.arange(3)).tolist()
    [5, 7, 7]
    """
    new = np.setdiff1d(labels, known)
    if not len(new):
        return clusters
    joined: NDArray[np.int32] = clusters.copy()
    centroids = named_centroids(data, name_weight)
    joined[new] = clusters[data.memo(("nearest", len(new)), lambda: nearest_labels(centroids, new, known))]
    return joined


def nearest_labels(centroids: csr_matrix, labels: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the known label with the nearest centroid for each of these labels."""
    rows = csr_matrix(centroids[known])
    # What labels have in common tells little, and takes most of the time.
    rows.data[rows.data < _SMALL] = 0
    rows.eliminate_zeros()
    index = inverted_rows(rows)
    found = search(index, Batch(centroids[labels]), 1, np.empty((len(labels), 0), dtype=np.int32))[0].ravel()
    # A label that shares no feature with any other gets the first one.
    nearest: NDArray[np.int64] = known[np.maximum(found, 0)]
    return nearest


def cluster_labels(Y: csr_matrix, clusters: NDArray[np.int32], n_clusters: int) -> csr_matrix:
    """Return the clusters of each document's labels (documents × clusters)."""
    known = np.flatnonzero(clusters >= 0)
    shape = (len(clusters), n_clusters)
    of_label = csr_matrix((np.ones(len(known), dtype=np.float32), (known, clusters[known])), shape=shape)
    found = csr_matrix(Y @ of_label)
    found.data[:] = 1
    found.sort_indices()
    return found
