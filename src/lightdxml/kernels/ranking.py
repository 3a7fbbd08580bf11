"""Top-k of sparse rows, and which of the ranked columns are true."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel
from lightdxml.kernels.sorting import sort_with_values
from lightdxml.kernels.sparse import Csr, Pattern

# Rows with at most this many columns are searched for repeats without sorting.
_SHORT = 16


@kernel
def contains(columns: NDArray[np.int32], first: int, last: int, column: int) -> bool:
    """Return whether columns[first:last], which is sorted, contains the column."""
    while first < last:
        middle = (first + last) // 2
        if columns[middle] < column:
            first = middle + 1
        elif columns[middle] > column:
            last = middle
        else:
            return True
    return False


@kernel
def top_k(start: int, stop: int, scores: Csr, ignored: Pattern, ranked: NDArray[np.int32]) -> int:
    """Fill ranked[start:stop] with the columns of the highest scores, best first, padded with -1.

    Ties go to the lower column. Returns the first row with a NaN, or -1.
    """
    indptr, columns, values = scores
    best = np.empty(ranked.shape[1], values.dtype)
    for row in range(start, stop):
        own = ranked[row]
        own[:] = -1
        n = 0
        ignore_first, ignore_last = ignored.indptr[row], ignored.indptr[row + 1]
        for i in range(indptr[row], indptr[row + 1]):
            if np.isnan(values[i]):
                return row
            if ignore_first < ignore_last and contains(ignored.indices, ignore_first, ignore_last, columns[i]):
                continue
            n = _insert(own, best, n, columns[i], values[i])
    return -1


@kernel
def _insert(labels: NDArray[np.int32], scores: NDArray[Any], n: int, label: int, score: float) -> int:
    """Insert a label into the n best, which are sorted, unless there is no space and all are better; return the new n.

    Ties go to the lower label.
    """
    k = scores.size
    if n == k and (score < scores[k - 1] or (score == scores[k - 1] and label > labels[k - 1])):
        return n
    rank = min(n, k - 1)
    while rank > 0:
        above = scores[rank - 1]
        if above > score or (above == score and labels[rank - 1] < label):
            break
        scores[rank], labels[rank] = above, labels[rank - 1]
        rank -= 1
    scores[rank], labels[rank] = score, label
    return min(n + 1, k)


@kernel
def drop_ignored(start: int, stop: int, ignored: Pattern, ranked: NDArray[np.int32]) -> None:
    """Remove the ignored columns from ranked[start:stop]; later ones move up, padded with -1."""
    k = ranked.shape[1]
    for row in range(start, stop):
        first, last = ignored.indptr[row], ignored.indptr[row + 1]
        if first == last:
            continue
        kept = 0
        for rank in range(k):
            column = ranked[row, rank]
            if column < 0 or not contains(ignored.indices, first, last, column):
                ranked[row, kept] = column
                kept += 1
        ranked[row, kept:] = -1


@kernel
def find_hits(start: int, stop: int, truth: Pattern, ranked: NDArray[np.int32], hits: NDArray[np.bool_]) -> int:
    """Mark the true ones of ranked[start:stop] in hits; return the first row that ranks a column twice, or -1."""
    for row in range(start, stop):
        first, last = truth.indptr[row], truth.indptr[row + 1]
        for rank in range(ranked.shape[1]):
            column = ranked[row, rank]
            hits[row, rank] = column >= 0 and contains(truth.indices, first, last, column)
        if _has_repeat(ranked[row]):
            return row
    return -1


@kernel
def _has_repeat(columns: NDArray[np.int32]) -> bool:
    """Return whether a column occurs twice; -1 may."""
    # Most rows are short: each column is compared with all before it. In a sorted copy, the one before is enough.
    is_long = columns.size > _SHORT
    compared = np.empty(columns.size, np.int32)
    for i in range(columns.size):
        compared[i] = columns[i]
    if is_long:
        # There are no values to move.
        sort_with_values(compared, compared)
    for i in range(1, columns.size):
        for j in range(i - 1 if is_long else 0, i):
            if compared[i] == compared[j] and compared[i] >= 0:
                return True
    return False


@kernel
def sum_gains(
    start: int,
    stop: int,
    truth: Pattern,
    ranked: NDArray[np.int32],
    hits: NDArray[np.bool_],
    weights: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """Sum the gains of documents start … stop up to each rank.

    Parameters
    ----------
    truth
        The true labels.
    weights
        The labels' inverse propensities.
    sums
        Receives eight rows with a column per rank: hits, recall, nDCG, weighted gain and the best possible one,
        weighted discounted gain and the best possible one, both divided by the ideal discounts of the document, and
        hits divided by the best possible number.
    """
    k = ranked.shape[1]
    sums[:] = 0.0
    best_labels, best = np.empty(k, np.int32), np.empty(k)
    for row in range(start, stop):
        labels = truth.indices[truth.indptr[row] : truth.indptr[row + 1]]
        n_true = labels.size
        if n_true == 0:
            continue
        best[:] = 0.0
        n = 0
        for label in labels:
            n = _insert(best_labels, best, n, label, weights[label])
        found = gain = most = ideal = discounted = weighted = weighted_most = 0.0
        for rank in range(k):
            discount = 1.0 / np.log2(rank + 2.0)
            if rank < n_true:
                ideal += discount
            if hits[row, rank]:
                weight = weights[ranked[row, rank]]
                found += 1.0
                discounted += discount
                gain += weight
                weighted += weight * discount
            most += best[rank]
            weighted_most += best[rank] * discount
            sums[0, rank] += found
            sums[1, rank] += found / n_true
            sums[2, rank] += discounted / ideal
            sums[3, rank] += gain
            sums[4, rank] += most
            sums[5, rank] += weighted / ideal
            sums[6, rank] += weighted_most / ideal
            sums[7, rank] += found / min(rank + 1, n_true)


@kernel
def count_labels(
    ranked: NDArray[np.int32],
    hits: NDArray[np.bool_],
    cutoff_of_rank: NDArray[np.int64],
    predicted: NDArray[np.int64],
    correct: NDArray[np.int64],
) -> None:
    """Count per label and cutoff how often the label is predicted, and how often correctly."""
    for row in range(ranked.shape[0]):
        for rank in range(ranked.shape[1]):
            label = ranked[row, rank]
            if label >= 0:
                predicted[cutoff_of_rank[rank], label] += 1
                if hits[row, rank]:
                    correct[cutoff_of_rank[rank], label] += 1


@kernel
def top_of_rows(
    start: int,
    stop: int,
    labels: NDArray[np.int32],
    scores: NDArray[Any],
    best_labels: NDArray[np.int32],
    best_scores: NDArray[Any],
) -> None:
    """Fill best_labels[start:stop] and best_scores[start:stop] with each row's highest scores, best first.

    Ties go to the lower label. Labels of -1 are skipped; rows are padded with -1 and a score of 0.
    """
    for row in range(start, stop):
        own_labels, own_scores = best_labels[row], best_scores[row]
        for i in range(own_labels.size):
            own_labels[i], own_scores[i] = -1, 0.0
        n = 0
        for i in range(labels.shape[1]):
            if labels[row, i] >= 0:
                n = _insert(own_labels, own_scores, n, labels[row, i], scores[row, i])


@kernel
def ranks_of(
    start: int,
    stop: int,
    labels: NDArray[np.int32],
    scores: NDArray[np.float64],
    wanted: NDArray[np.int32],
    found: NDArray[np.float64],
    ranks: NDArray[np.int64],
) -> None:
    """Fill found[start:stop] with the scores of wanted labels, and ranks[start:stop] with their ranks, from 0.

    Ties go to the lower label. Wanted labels of -1 are skipped.
    """
    for row in range(start, stop):
        for i in range(wanted.shape[1]):
            label = wanted[row, i]
            if label < 0:
                continue
            place = 0
            while labels[row, place] != label:
                place += 1
            score, rank = scores[row, place], 0
            for j in range(labels.shape[1]):
                other = labels[row, j]
                if other >= 0 and (scores[row, j] > score or (scores[row, j] == score and other < label)):
                    rank += 1
            found[row, i], ranks[row, i] = score, rank
