"""The memory of the linear view. How many weights it keeps depends on the data: the centroids of labels tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lightdxml.kernels import parallel
from lightdxml.views.base import ViewMemory
from lightdxml.views.linear.groups import clusters_per_document, fits_all_documents
from lightdxml.views.linear.inverted import n_blocks
from lightdxml.views.tree.matcher import levels

if TYPE_CHECKING:
    from lightdxml.config import Config
    from lightdxml.training.run import TrainingData

# Weights that a label keeps, relative to the features of its documents: it has some for features of its negatives too.
_KEPT = 1.5
# Bytes per entry of the centroids while they are computed, and then.
_COMPUTED, _CENTROIDS = 24, 8
# Bytes of workspace per feature and per document of each thread.
_PER_FEATURE, _PER_DOCUMENT = 200, 80
# Labels whose features are counted.
_LOOKED_AT = 512


def memory(data: TrainingData, config: Config) -> ViewMemory:
    """Return the bytes of training: centroids, clusters, negatives, weights by label, and their inverted index."""
    if not config.linear.enabled:
        return ViewMemory()
    weights, N, V = expected_weights(data), int(data.X.shape[0]), int(data.X.shape[1])
    centroids = round(weights / _KEPT)
    clusters = pairs = 0
    if not fits_all_documents(data, config.linear):
        n_clusters = levels(len(data.known_labels), config.tree)[-1]
        pairs = N * clusters_per_document(data, config.linear, n_clusters)
        clusters = 6 * weights
    # Clusters by document, and documents by cluster.
    negatives = 4 * pairs + 4 * (pairs + data.Y.nnz)
    # Workspace of each thread: weights of a block, and the duals of all documents.
    buffers = parallel.thread_count() * (_PER_FEATURE * V + _PER_DOCUMENT * N) + 16 * V * n_blocks(data.n_labels)
    kept = _CENTROIDS * centroids + clusters + negatives + 14 * weights
    # The prior is another copy of the centroids.
    solving = _CENTROIDS * centroids + buffers + 2 * weights
    training = max(_COMPUTED * centroids, kept + solving)
    return ViewMemory(training=training, kept=kept, refit=training)


def expected_weights(data: TrainingData) -> int:
    """Return about how many weights the linear view will keep."""
    return round(_KEPT * centroid_entries(data)) + (0 if data.names is None else data.names.terms.nnz)


def centroid_entries(data: TrainingData) -> int:
    """Return about how many non-zero entries the centroids of all labels have: estimated from some labels, once."""
    return data.memo("centroid entries", lambda: _centroid_entries(data))


def _centroid_entries(data: TrainingData) -> int:
    known = data.known_labels
    # Evenly spaced by frequency, so that every part of the distribution counts.
    ordered = known[np.argsort(data.label_frequency[known], kind="stable")]
    some = ordered[np.linspace(0, len(ordered) - 1, min(_LOOKED_AT, len(ordered))).astype(int)]
    entries = 0
    for label in some:
        documents = data.label_to_docs.indices[data.label_to_docs.indptr[label] : data.label_to_docs.indptr[label + 1]]
        entries += len(np.unique(data.X[documents].indices))
    return round(entries * len(known) / max(1, len(some)))
