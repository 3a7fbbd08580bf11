"""The memory of the cycle: weights, optimizer state, embeddings, shortlists and the index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lightdxml import index as indexes
from lightdxml.views.base import ViewMemory

if TYPE_CHECKING:
    from lightdxml.config import Config
    from lightdxml.training.run import TrainingData

_QUERIES = 8192


def cycle_memory(data: TrainingData, config: Config, spilled: bool) -> ViewMemory:
    """Return the bytes that the cycle needs at its peak, and those of the dense views that remain."""
    options, N, V, L = config.dense, data.X.shape[0], data.X.shape[1], data.n_labels
    if not options.enabled:
        return ViewMemory()
    D, known, itemsize = options.dim, len(data.known_labels), 2 if config.precision == "float16" else 4
    numbers = V * D + L * (D + 1)
    kind = indexes.resolve_kind(options.index, known, D)  # type: ignore[arg-type]
    index = indexes.index_bytes(kind, known, D, itemsize)
    best = itemsize * numbers + index
    k = min(options.shortlist_size, known)
    shortlists = 0 if spilled else 4 * N * k
    pairs = min(options.batch_size, N) * (k + options.random_negatives + data.Y.nnz // max(1, N) + 1)
    # float32 weights and bfloat16 means; buffers by feature, by label and by pair of a batch.
    always = 6 * numbers + 20 * (V + L) + 24 * pairs + 72 * min(options.batch_size, N) * D + best
    # Centroids, and the label embeddings before and after the label encoder.
    embeddings, centroids = 4 * N * D, 4 * D * (L + 2 * known)
    search = index + indexes.search_bytes(known, D, k, _QUERIES)
    validation = 4 * data.X_validation.shape[0] * (8 * k + 2 * D)
    phases = (
        embeddings + centroids,
        embeddings + 4 * D * known + index,
        embeddings + shortlists + 2 * search,
        shortlists + index + validation,
    )
    return ViewMemory(training=always + max(phases), kept=best)
