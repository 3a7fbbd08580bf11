"""Top-k of sparse rows, and which of the ranked columns are true."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel


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
def top_k(
    start: int,
    stop: int,
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    scores: NDArray[Any],
    ignore_indptr: NDArray[np.int64],
    ignore_columns: NDArray[np.int32],
    ranked: NDArray[np.int32],
) -> int:
    """Fill ranked[start:stop] with the columns of the highest scores, best first, padded with -1.

    Ties go to the lower column. Returns the first row with a NaN, or -1.
    """
    k = ranked.shape[1]
    best = np.empty(k, scores.dtype)
    for row in range(start, stop):
        ranked[row] = -1
        n = 0
        ignore_first, ignore_last = ignore_indptr[row], ignore_indptr[row + 1]
        for i in range(indptr[row], indptr[row + 1]):
            score = scores[i]
            column = columns[i]
            if np.isnan(score):
                return row
            if n == k and (score < best[k - 1] or (score == best[k - 1] and column > ranked[row, k - 1])):
                continue
            if ignore_first < ignore_last and contains(ignore_columns, ignore_first, ignore_last, column):
                continue
            rank = min(n, k - 1)
            n = min(n + 1, k)
            while rank > 0:
                above = best[rank - 1]
                if above > score or (above == score and ranked[row, rank - 1] < column):
                    break
                best[rank] = above
                ranked[row, rank] = ranked[row, rank - 1]
                rank -= 1
            best[rank] = score
            ranked[row, rank] = column
    return -1


@kernel
def drop_ignored(
    start: int,
    stop: int,
    ignore_indptr: NDArray[np.int64],
    ignore_columns: NDArray[np.int32],
    ranked: NDArray[np.int32],
) -> None:
    """Remove the ignored columns from ranked[start:stop]; later ones move up, padded with -1."""
    k = ranked.shape[1]
    for row in range(start, stop):
        first, last = ignore_indptr[row], ignore_indptr[row + 1]
        if first == last:
            continue
        kept = 0
        for rank in range(k):
            column = ranked[row, rank]
            if column < 0 or not contains(ignore_columns, first, last, column):
                ranked[row, kept] = column
                kept += 1
        ranked[row, kept:] = -1


@kernel
def find_hits(
    start: int,
    stop: int,
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    ranked: NDArray[np.int32],
    hits: NDArray[np.bool_],
) -> int:
    """Mark the true ones of ranked[start:stop] in hits; return the first row that ranks a column twice, or -1."""
    k = ranked.shape[1]
    # Most rows are short. In long ones, a sorted copy finds repeats.
    ordered = np.empty(k, np.int32)
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        n = 0
        for rank in range(k):
            column = ranked[row, rank]
            if column >= 0:
                hits[row, rank] = contains(columns, first, last, column)
                ordered[n] = column
                n += 1
            else:
                hits[row, rank] = False
        if n <= 16:
            for a in range(n):
                for b in range(a):
                    if ordered[a] == ordered[b]:
                        return row
        else:
            distinct = np.sort(ordered[:n])
            for a in range(1, n):
                if distinct[a] == distinct[a - 1]:
                    return row
    return -1


@kernel
def _best_weights(
    columns: NDArray[np.int32], first: int, last: int, weights: NDArray[np.float64], best: NDArray[np.float64]
) -> None:
    """Fill best with the largest weights of columns[first:last], in descending order, padded with 0."""
    k = best.size
    best[:] = 0.0
    n = 0
    for i in range(first, last):
        weight = weights[columns[i]]
        if n == k and weight <= best[k - 1]:
            continue
        rank = min(n, k - 1)
        n = min(n + 1, k)
        while rank > 0 and best[rank - 1] < weight:
            best[rank] = best[rank - 1]
            rank -= 1
        best[rank] = weight


@kernel
def sum_gains(
    start: int,
    stop: int,
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    ranked: NDArray[np.int32],
    hits: NDArray[np.bool_],
    weights: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """Sum the gains of documents start … stop up to each rank.

    Parameters
    ----------
    indptr, columns
        The true labels.
    weights
        The labels' inverse propensities.
    sums
        Receives seven rows with a column per rank: hits, recall, nDCG, weighted gain and the best possible one,
        weighted discounted gain and the best possible one. The last two are divided by the ideal discounts of the
        document.
    """
    k = ranked.shape[1]
    sums[:] = 0.0
    best = np.empty(k)
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        n_true = last - first
        if n_true == 0:
            continue
        _best_weights(columns, first, last, weights, best)
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
    scores: NDArray[np.float32],
    best_labels: NDArray[np.int32],
    best_scores: NDArray[np.float32],
) -> None:
    """Fill best_labels[start:stop] and best_scores[start:stop] with each row's highest scores, best first.

    Ties go to the lower label. Labels of -1 are skipped; rows are padded with -1 and a score of 0.
    """
    k = best_labels.shape[1]
    for row in range(start, stop):
        best_labels[row] = -1
        best_scores[row] = 0.0
        n = 0
        for i in range(labels.shape[1]):
            label, score = labels[row, i], scores[row, i]
            if label < 0:
                continue
            if n == k:
                last = best_scores[row, k - 1]
                if score < last or (score == last and label > best_labels[row, k - 1]):
                    continue
            rank = min(n, k - 1)
            n = min(n + 1, k)
            while rank > 0:
                above = best_scores[row, rank - 1]
                if above > score or (above == score and best_labels[row, rank - 1] < label):
                    break
                best_scores[row, rank] = above
                best_labels[row, rank] = best_labels[row, rank - 1]
                rank -= 1
            best_scores[row, rank] = score
            best_labels[row, rank] = label
