"""The memory of the linear view. How many weights it keeps depends on the data: a few labels are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lightdxml.views.base import ViewMemory
from lightdxml.views.linear.options import FINAL_ROUND
from lightdxml.views.linear.solver import Negatives, Problem, solve
from lightdxml.views.linear.train import frequent_cost, solver_documents, split_by_frequency

if TYPE_CHECKING:
    from lightdxml.config import Config
    from lightdxml.training.run import TrainingData

# Labels to try. Of frequent labels, the choice of their cost says how many weights they keep.
_TRIED = 32
# Real hard negatives leave more weights than the nearest documents do: up to 1.6 times as many on random labels.
_HARDER = 1.6
# Below this many weights, trying is not worth the time: the bound is small anyway.
_FEW = 500_000
# Centroids that are multiplied with all documents at once: dense ones, which is faster, but few of them.
_CENTROIDS = 8


def memory(data: TrainingData, config: Config) -> ViewMemory:
    """Return the bytes of training: negatives, weights by label, and their inverted index."""
    options, N = config.linear, data.X.shape[0]
    if not options.enabled:
        return ViewMemory()
    weights = expected_weights(data, config)
    hard = 4 * N * min(options.hard_negatives, data.n_labels)
    # Hard negatives by document and all negatives by label; weights by label (8 bytes each), inverted (8 more).
    negatives = hard + 4 * N * (options.hard_negatives + options.shortlist_negatives)
    return ViewMemory(training=negatives + 16 * weights, kept=hard + 14 * weights, refit=negatives + 16 * weights)


def expected_weights(data: TrainingData, config: Config) -> int:
    """Return about how many weights the linear view will keep: some labels are trained on likely negatives."""
    frequent, rest = split_by_frequency(data.label_frequency, data.X, config.linear)
    bound = (len(frequent) + len(rest)) * int(data.X.shape[1])
    if bound <= _FEW:
        return bound
    return data.memo(("weights", config.linear), lambda: _tried_weights(data, config, len(frequent), rest))


def _tried_weights(data: TrainingData, config: Config, n_frequent: int, rest: NDArray[np.int32]) -> int:
    total = n_frequent * frequent_cost(data, config)[1] if n_frequent else 0.0
    if len(rest):
        # Evenly spaced by frequency, so that every part of the distribution is tried.
        ordered = rest[np.argsort(data.label_frequency[rest], kind="stable")]
        some = np.unique(ordered[np.linspace(0, len(ordered) - 1, _TRIED).astype(int)])
        negatives = _likely_negatives(data, config, some, len(rest))
        solved = solve(Problem(solver_documents(data), data.label_to_docs, some, negatives, FINAL_ROUND, 0))
        total += len(rest) * float(solved.counts.mean()) * _HARDER
    return round(total)


def _likely_negatives(data: TrainingData, config: Config, labels: NDArray[np.int32], n_rest: int) -> Negatives:
    """Return the documents nearest to each label's centroid, as many as a label has negatives on average."""
    options, N = config.linear, data.X.shape[0]
    mean = N * (options.hard_negatives + options.shortlist_negatives) / max(1, n_rest)
    usual = max(1.0, float(data.label_frequency[data.label_frequency > 0].mean()))
    groups, parts = np.zeros(data.n_labels, dtype=np.int32), []
    for i, label in enumerate(labels.tolist()):
        if i % _CENTROIDS == 0:
            centroids = (data.label_to_docs[labels[i : i + _CENTROIDS]] @ data.X).toarray()
            scores = data.X @ np.ascontiguousarray(centroids.T)
        # Frequent labels are near more documents than rare ones.
        n = int(min(N, mean * (1 + data.label_frequency[label] / usual) / 2)) + 1
        groups[label] = i
        parts.append(np.sort(np.argpartition(-scores[:, i % _CENTROIDS], min(n, N) - 1)[:n]).astype(np.int32))
    indptr = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    costs = options.cost, options.negative_cost
    return Negatives(groups, indptr, np.concatenate(parts), costs, options.bias)
