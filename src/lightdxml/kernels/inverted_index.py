"""Scores of all labels from an inverted index: for each word the labels that have a weight for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.precision import widen
from lightdxml.kernels.jit import kernel


@kernel
def best(
    start: int,
    stop: int,
    document_pointers: NDArray[np.int64],
    words: NDArray[np.int32],
    values: NDArray[np.float32],
    pointers: NDArray[np.int64],
    labels: NDArray[np.int32],
    weights: NDArray[Any],
    biases: NDArray[np.float32],
    everywhere: NDArray[np.int32],
    others: NDArray[np.int32],
    totals: NDArray[np.float32],
    marks: NDArray[np.uint8],
    found: NDArray[np.int32],
    scores: NDArray[np.float32],
    other_scores: NDArray[np.float32],
) -> None:
    """Find the labels of the highest scores of documents start … stop, besides others, whose scores are given too.

    Parameters
    ----------
    document_pointers, words, values
        The documents.
    pointers, labels, weights
        By word: the labels with a weight for it; float32, or float16 as `precision.as_bits` hands them over.
    biases
        What a label's score begins at.
    everywhere
        Labels that may be found without a word of theirs in the document.
    others
        Documents × labels that are not to be found, -1 for none.
    totals, marks
        Scratch, one entry a label, all zero; left all zero.
    found, scores
        Receive the labels, in no order, -1 for none, and their scores.
    other_scores
        Receives the scores of `others`.
    """
    k = found.shape[1]
    for b in range(start, stop):
        for i in range(document_pointers[b], document_pointers[b + 1]):
            value = values[i]
            for p in range(pointers[words[i]], pointers[words[i] + 1]):
                totals[labels[p]] += value * widen(weights[p])
        for i in range(others.shape[1]):
            label = others[b, i]
            other_scores[b, i] = biases[label] + totals[label] if label >= 0 else -np.inf
        for i in range(others.shape[1]):
            if others[b, i] >= 0:
                marks[others[b, i]] = 1
                totals[others[b, i]] = 0.0
        # One view of each, as making one for every label would take most of the time.
        best_labels, best_scores, size = found[b], scores[b], 0
        for label in everywhere:
            if marks[label] == 0:
                size = push(best_labels, best_scores, size, label, biases[label] + totals[label])
                totals[label] = 0.0
        for i in range(others.shape[1]):
            if others[b, i] >= 0:
                marks[others[b, i]] = 0
        # What has been looked at is 0 again: no label is found twice, and nothing is left for the next document.
        for i in range(document_pointers[b], document_pointers[b + 1]):
            for p in range(pointers[words[i]], pointers[words[i] + 1]):
                label = labels[p]
                total = totals[label]
                if total != 0:
                    totals[label] = 0.0
                    size = push(best_labels, best_scores, size, label, biases[label] + total)
        for i in range(size, k):
            found[b, i] = -1
            scores[b, i] = 0.0


@kernel
def push(labels: NDArray[np.int32], scores: NDArray[np.float32], size: int, label: int, score: float) -> int:
    """Put a label into a heap whose root is the worst, if there is room or it is better; return the size.

    Of labels with the same score the lower one is better: what is kept does not depend on the order of coming.
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
