"""Scores of all labels from an inverted index: per feature, the labels that have a weight for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel
from lightdxml.kernels.precision import widen
from lightdxml.kernels.sparse import Csr


@kernel
def search(
    start: int,
    stop: int,
    documents: Csr,
    index: Csr,
    biases: NDArray[np.float32],
    dense: NDArray[np.int32],
    known: NDArray[np.int32],
    totals: NDArray[np.float32],
    marks: NDArray[np.uint8],
    found: NDArray[np.int32],
    scores: NDArray[np.float32],
    known_scores: NDArray[np.float32],
) -> None:
    """Find the labels of the highest scores for documents start … stop, and the scores of labels known already.

    Parameters
    ----------
    index
        Per feature: the labels with a weight for it. Weights are float32, or float16 as `precision.as_bits` passes it.
    biases
        The bias of each label.
    dense
        Labels that may be found although the document has no feature of theirs.
    known
        Documents × labels that are not to be found, -1 for none.
    totals, marks
        Workspace with one entry per label, all zero before and after.
    found, scores
        Receive the labels, in any order, -1 for none, and their scores.
    known_scores
        Receives the scores of `known`.
    """
    document_indptr, features, values = documents
    indptr, labels, weights = index
    for b in range(start, stop):
        for i in range(document_indptr[b], document_indptr[b + 1]):
            value = values[i]
            for p in range(indptr[features[i]], indptr[features[i] + 1]):
                totals[labels[p]] += value * widen(weights[p])
        for i in range(known.shape[1]):
            label = known[b, i]
            known_scores[b, i] = biases[label] + totals[label] if label >= 0 else -np.inf
        for i in range(known.shape[1]):
            if known[b, i] >= 0:
                marks[known[b, i]] = 1
                totals[known[b, i]] = 0.0
        # One view of each row: a view per label would take most of the time.
        best_labels, best_scores, size = found[b], scores[b], 0
        for label in dense:
            if marks[label] == 0:
                size = push(best_labels, best_scores, size, label, biases[label] + totals[label])
                totals[label] = 0.0
        for i in range(known.shape[1]):
            if known[b, i] >= 0:
                marks[known[b, i]] = 0
        # Totals are reset on the way: no label is found twice, and the next document starts from zeros.
        for i in range(document_indptr[b], document_indptr[b + 1]):
            for p in range(indptr[features[i]], indptr[features[i] + 1]):
                label = labels[p]
                total = totals[label]
                if total != 0:
                    totals[label] = 0.0
                    size = push(best_labels, best_scores, size, label, biases[label] + total)
        best_labels[size:] = -1
        best_scores[size:] = 0.0


@kernel
def push(labels: NDArray[np.int32], scores: NDArray[np.float32], size: int, label: int, score: float) -> int:
    """Push a label to a heap whose root is the worst, unless the heap is full of better ones; return its size.

    Ties go to the lower label, so that the order of pushes does not matter.
    """
    k = scores.size
    if size < k:
        i = size
        while i > 0 and _worse(score, label, scores[(i - 1) // 2], labels[(i - 1) // 2]):
            scores[i], labels[i] = scores[(i - 1) // 2], labels[(i - 1) // 2]
            i = (i - 1) // 2
        scores[i], labels[i] = score, label
        return size + 1
    if k == 0 or not _worse(scores[0], labels[0], score, label):
        return size
    i = 0
    while 2 * i + 1 < k:
        child = 2 * i + 1
        if child + 1 < k and _worse(scores[child + 1], labels[child + 1], scores[child], labels[child]):
            child += 1
        if not _worse(scores[child], labels[child], score, label):
            break
        scores[i], labels[i] = scores[child], labels[child]
        i = child
    scores[i], labels[i] = score, label
    return size


@kernel
def _worse(score: float, label: int, other_score: float, other_label: int) -> bool:
    return score < other_score or (score == other_score and label > other_label)


@kernel
def count_features(
    starts: NDArray[np.int64], counts: NDArray[np.int64], features: NDArray[np.int32], totals: NDArray[np.int64]
) -> None:
    """Add the number of weights of each feature to totals, over classes whose weights lie at these positions."""
    for i in range(starts.size):
        for j in range(starts[i], starts[i] + counts[i]):
            totals[features[j]] += 1


@kernel
def fill(
    classes: NDArray[np.int32],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    features: NDArray[np.int32],
    weights: NDArray[Any],
    positions: NDArray[np.int64],
    out_classes: NDArray[np.int32],
    out_weights: NDArray[Any],
) -> None:
    """Append the weights of some classes, one class after the other, to the lists of their features.

    Parameters
    ----------
    classes, starts, counts
        The classes, and where the weights of each lie.
    features, weights
        Weights by class.
    positions
        Where the next entry of each feature goes; advanced.
    out_classes, out_weights
        Receive the entries.
    """
    for i in range(classes.size):
        for j in range(starts[i], starts[i] + counts[i]):
            position = positions[features[j]]
            out_classes[position] = classes[i]
            out_weights[position] = weights[j]
            positions[features[j]] = position + 1
