"""Scores of all labels from an inverted index: per feature, the labels that have a weight for it.

Labels are stored in 16 bits: those of the first 65,536 come first, feature by feature, then those of the next, and so
on. Half of the bytes of an index are label ids.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel
from lightdxml.kernels.precision import widen
from lightdxml.kernels.sorting import sort_with_values
from lightdxml.kernels.sparse import Csr

BLOCK_BITS = 16
BLOCK = 1 << BLOCK_BITS
# Entries of a feature that are scanned per known label; of a longer list it is faster to search for each label.
_SCANNED = 16
# Labels that are visited in order in the time of one entry of a list, and how many of them are compared at once.
_ENTRY_COST, _SCAN = 8, 64


class Postings(NamedTuple):
    """An inverted index.

    Attributes
    ----------
    indptr
        Blocks of 65,536 labels × features + 1: where the entries of each feature begin.
    labels
        The labels of each entry, ascending, counted from the first of the block.
    weights
        Their weights: float32, or float16 as `precision.as_bits` passes it.
    """

    indptr: NDArray[np.int64]
    labels: NDArray[np.uint16]
    weights: NDArray[Any]


@kernel
def search(
    start: int,
    stop: int,
    documents: Csr,
    index: Postings,
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
        The weights of labels by feature.
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
        n_entries = 0
        for i in range(document_indptr[b], document_indptr[b + 1]):
            value = values[i]
            for block in range(indptr.shape[0]):
                base = block << BLOCK_BITS
                n_entries += indptr[block, features[i] + 1] - indptr[block, features[i]]
                for p in range(indptr[block, features[i]], indptr[block, features[i] + 1]):
                    totals[base + labels[p]] += value * widen(weights[p])
        for i in range(known.shape[1]):
            label = known[b, i]
            known_scores[b, i] = biases[label] + totals[label] if label >= 0 else -np.inf
        for i in range(known.shape[1]):
            if known[b, i] >= 0:
                marks[known[b, i]] = 1
                totals[known[b, i]] = 0.0
        # One view of each row: a view per label would take most of the time.
        best_labels, best_scores, size = found[b], scores[b], 0
        for i in range(dense.size):
            label = np.int64(dense[i])
            if marks[label] == 0:
                size = push(best_labels, best_scores, size, label, biases[label] + totals[label])
                totals[label] = 0.0
        for i in range(known.shape[1]):
            if known[b, i] >= 0:
                marks[known[b, i]] = 0
        if n_entries * _ENTRY_COST > totals.size:
            size = _push_all(totals, biases, best_labels, best_scores, size)
        else:
            first, last = document_indptr[b], document_indptr[b + 1]
            size = _push_listed(features[first:last], index, totals, biases, best_labels, best_scores, size)
        for i in range(size, best_labels.size):
            best_labels[i], best_scores[i] = -1, 0.0


@kernel
def _push_listed(
    features: NDArray[np.int32],
    index: Postings,
    totals: NDArray[np.float32],
    biases: NDArray[np.float32],
    best_labels: NDArray[np.int32],
    best_scores: NDArray[np.float32],
    size: int,
) -> int:
    """Push the labels of these features to a heap, each once, and reset their totals; return the size of the heap."""
    indptr, labels, _ = index
    for feature in features:
        for block in range(indptr.shape[0]):
            base = block << BLOCK_BITS
            for p in range(indptr[block, feature], indptr[block, feature + 1]):
                label = base + labels[p]
                total = totals[label]
                if total != 0:
                    totals[label] = 0.0
                    size = push(best_labels, best_scores, size, label, biases[label] + total)
    return size


@kernel
def _push_all(
    totals: NDArray[np.float32],
    biases: NDArray[np.float32],
    labels: NDArray[np.int32],
    scores: NDArray[np.float32],
    size: int,
) -> int:
    """Push all labels whose total is not 0 to a heap, and reset the totals; return the size of the heap."""
    for first in range(0, totals.size, _SCAN):
        last = min(first + _SCAN, totals.size)
        good = size < scores.size
        if not good and scores.size > 0:
            # Without a branch, so that it becomes SIMD instructions.
            worst = scores[0]
            for label in range(first, last):
                good |= biases[label] + totals[label] >= worst
        if good:
            for label in range(first, last):
                if totals[label] != 0:
                    size = push(labels, scores, size, label, biases[label] + totals[label])
        for label in range(first, last):
            totals[label] = 0.0
    return size


@kernel
def score_known(
    start: int,
    stop: int,
    documents: Csr,
    index: Postings,
    biases: NDArray[np.float32],
    known: NDArray[np.int32],
    slots: NDArray[np.int32],
    scores: NDArray[np.float32],
) -> None:
    """Compute the scores of known labels for documents start … stop.

    Parameters
    ----------
    index
        The weights of labels by feature.
    biases
        The bias of each label.
    known
        Documents × labels, -1 for none.
    slots
        Workspace with one entry per label, all zero before and after.
    scores
        Receives the scores of `known`.
    """
    document_indptr, features, values = documents
    indptr, labels, weights = index
    distinct, totals = np.empty(known.shape[1], np.int32), np.empty(known.shape[1], np.float32)
    for b in range(start, stop):
        n = 0
        for i in range(known.shape[1]):
            if known[b, i] >= 0 and slots[known[b, i]] == 0:
                distinct[n] = known[b, i]
                slots[known[b, i]] = 1
                n += 1
        wanted = distinct[:n]
        sort_with_values(wanted, totals)
        for i in range(n):
            slots[wanted[i]] = i + 1
            totals[i] = 0.0
        for i in range(document_indptr[b], document_indptr[b + 1]):
            j = 0
            for block in range(indptr.shape[0]):
                base = block << BLOCK_BITS
                first, last = indptr[block, features[i]], indptr[block, features[i] + 1]
                if last - first <= _SCANNED * n:
                    for p in range(first, last):
                        slot = slots[base + labels[p]]
                        if slot > 0:
                            totals[slot - 1] += values[i] * widen(weights[p])
                    continue
                # Few of many: each label is searched for.
                while j < n and wanted[j] < base:
                    j += 1
                while j < n and wanted[j] < base + BLOCK:
                    first = _lower_bound(labels, first, last, wanted[j] - base)
                    if first < last and labels[first] == wanted[j] - base:
                        totals[j] += values[i] * widen(weights[first])
                    j += 1
        for i in range(known.shape[1]):
            label = known[b, i]
            scores[b, i] = biases[label] + totals[slots[label] - 1] if label >= 0 else -np.inf
        for label in wanted:
            slots[label] = 0


@kernel
def _lower_bound(labels: NDArray[np.uint16], first: int, last: int, label: int) -> int:
    """Return the first position from `first` on whose label is not below this one; `last` if there is none."""
    while first < last:
        middle = (first + last) >> 1
        if labels[middle] < label:
            first = middle + 1
        else:
            last = middle
    return first


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
    classes: NDArray[np.int32],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    features: NDArray[np.int32],
    totals: NDArray[np.int64],
) -> None:
    """Add the number of weights of each block and feature to totals, over classes with weights at these positions."""
    for i in range(starts.size):
        block = classes[i] >> BLOCK_BITS
        for j in range(starts[i], starts[i] + counts[i]):
            totals[block, features[j]] += 1


@kernel
def fill(
    classes: NDArray[np.int32],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    features: NDArray[np.int32],
    weights: NDArray[Any],
    positions: NDArray[np.int64],
    out_classes: NDArray[np.uint16],
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
        Where the next entry of each block and feature goes; advanced.
    out_classes, out_weights
        Receive the entries.
    """
    for i in range(classes.size):
        block = classes[i] >> BLOCK_BITS
        for j in range(starts[i], starts[i] + counts[i]):
            position = positions[block, features[j]]
            out_classes[position] = classes[i] - (block << BLOCK_BITS)
            out_weights[position] = weights[j]
            positions[block, features[j]] = position + 1


@kernel
def count_entries(index: Postings, slots: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
    """Count the weights of some classes: `slots` has the place of each class in `counts`, or -1."""
    for block in range(index.indptr.shape[0]):
        base = block << BLOCK_BITS
        for p in range(index.indptr[block, 0], index.indptr[block, -1]):
            slot = slots[base + index.labels[p]]
            if slot >= 0:
                counts[slot] += 1


@kernel
def collect_entries(
    index: Postings,
    slots: NDArray[np.int32],
    positions: NDArray[np.int64],
    columns: NDArray[np.int32],
    weights: NDArray[np.float32],
) -> None:
    """Copy the weights of some classes, those of each class from its position on, by ascending feature."""
    for block in range(index.indptr.shape[0]):
        base = block << BLOCK_BITS
        for feature in range(index.indptr.shape[1] - 1):
            for p in range(index.indptr[block, feature], index.indptr[block, feature + 1]):
                slot = slots[base + index.labels[p]]
                if slot >= 0:
                    columns[positions[slot]] = feature
                    weights[positions[slot]] = widen(index.weights[p])
                    positions[slot] += 1


@kernel
def count_merged(
    first: int, last: int, old: Postings, added: Postings, is_replaced: NDArray[np.uint8], counts: NDArray[np.int64]
) -> None:
    """Count the entries of features first … last in an index whose classes are replaced by those of another one.

    `added` has at least the features and blocks of `old`. `is_replaced` has an entry per class.
    """
    for block in range(added.indptr.shape[0]):
        for feature in range(first, last):
            n = added.indptr[block, feature + 1] - added.indptr[block, feature]
            if block < old.indptr.shape[0] and feature + 1 < old.indptr.shape[1]:
                for p in range(old.indptr[block, feature], old.indptr[block, feature + 1]):
                    n += 1 - is_replaced[(block << BLOCK_BITS) + old.labels[p]]
            counts[block, feature] = n


@kernel
def merge(
    first: int,
    last: int,
    old: Postings,
    added: Postings,
    is_replaced: NDArray[np.uint8],
    indptr: NDArray[np.int64],
    labels: NDArray[np.uint16],
    weights: NDArray[Any],
) -> None:
    """Write the entries of features first … last that `count_merged` has counted, by ascending class."""
    for block in range(added.indptr.shape[0]):
        base = block << BLOCK_BITS
        for feature in range(first, last):
            at = indptr[block, feature]
            q, stop = added.indptr[block, feature], added.indptr[block, feature + 1]
            if block < old.indptr.shape[0] and feature + 1 < old.indptr.shape[1]:
                for p in range(old.indptr[block, feature], old.indptr[block, feature + 1]):
                    label = old.labels[p]
                    if is_replaced[base + label] == 0:
                        while q < stop and added.labels[q] < label:
                            labels[at], weights[at] = added.labels[q], added.weights[q]
                            at, q = at + 1, q + 1
                        labels[at], weights[at] = label, old.weights[p]
                        at += 1
            while q < stop:
                labels[at], weights[at] = added.labels[q], added.weights[q]
                at, q = at + 1, q + 1
