"""Top-k of sparse rows, and which of the ranked columns are right."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel


@kernel
def contains(columns: NDArray[np.int32], first: int, last: int, column: int) -> bool:
    """Return whether columns[first:last], which is sorted, holds the column."""
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
    pointers: NDArray[np.int64],
    columns: NDArray[np.int32],
    scores: NDArray[Any],
    ignore_pointers: NDArray[np.int64],
    ignore_columns: NDArray[np.int32],
    ranked: NDArray[np.int32],
) -> int:
    """Fill ranked[start:stop] with the columns of the highest scores, best first, -1 where there are no more.

    Of equal scores the lower column comes first. Returns the first row with a NaN, or -1.
    """
    k = ranked.shape[1]
    best = np.empty(k, scores.dtype)
    for row in range(start, stop):
        ranked[row] = -1
        n = 0
        ignore_first, ignore_last = ignore_pointers[row], ignore_pointers[row + 1]
        for i in range(pointers[row], pointers[row + 1]):
            score = scores[i]
            column = columns[i]
            if np.isnan(score):
                return row
            if n == k and (score < best[k - 1] or (score == best[k - 1] and column > ranked[row, k - 1])):
                continue
            if ignore_first < ignore_last and contains(ignore_columns, ignore_first, ignore_last, column):
                continue
            place = min(n, k - 1)
            n = min(n + 1, k)
            while place > 0:
                above = best[place - 1]
                if above > score or (above == score and ranked[row, place - 1] < column):
                    break
                best[place] = above
                ranked[row, place] = ranked[row, place - 1]
                place -= 1
            best[place] = score
            ranked[row, place] = column
    return -1


@kernel
def drop_ignored(
    start: int,
    stop: int,
    ignore_pointers: NDArray[np.int64],
    ignore_columns: NDArray[np.int32],
    ranked: NDArray[np.int32],
) -> None:
    """Take the ignored columns out of ranked[start:stop]; what follows moves up, -1 fills the end."""
    k = ranked.shape[1]
    for row in range(start, stop):
        first, last = ignore_pointers[row], ignore_pointers[row + 1]
        if first == last:
            continue
        kept = 0
        for place in range(k):
            column = ranked[row, place]
            if column < 0 or not contains(ignore_columns, first, last, column):
                ranked[row, kept] = column
                kept += 1
        ranked[row, kept:] = -1


@kernel
def find_hits(
    start: int,
    stop: int,
    pointers: NDArray[np.int64],
    columns: NDArray[np.int32],
    ranked: NDArray[np.int32],
    hits: NDArray[np.bool_],
) -> int:
    """Mark in hits[start:stop] the ranked columns that are true; returns the first row that ranks one twice, or -1."""
    k = ranked.shape[1]
    # Rows are short as a rule; for long ones a sorted copy finds repeats.
    ordered = np.empty(k, np.int32)
    for row in range(start, stop):
        first, last = pointers[row], pointers[row + 1]
        n = 0
        for place in range(k):
            column = ranked[row, place]
            if column >= 0:
                hits[row, place] = contains(columns, first, last, column)
                ordered[n] = column
                n += 1
            else:
                hits[row, place] = False
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
    """Fill best with the largest weights of columns[first:last], in descending order, 0 for no more."""
    k = best.size
    best[:] = 0.0
    n = 0
    for i in range(first, last):
        weight = weights[columns[i]]
        if n == k and weight <= best[k - 1]:
            continue
        place = min(n, k - 1)
        n = min(n + 1, k)
        while place > 0 and best[place - 1] < weight:
            best[place] = best[place - 1]
            place -= 1
        best[place] = weight


@kernel
def sum_gains(
    start: int,
    stop: int,
    pointers: NDArray[np.int64],
    columns: NDArray[np.int32],
    ranked: NDArray[np.int32],
    hits: NDArray[np.bool_],
    weights: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """Add up the gains of the documents start … stop after each place.

    Parameters
    ----------
    pointers, columns
        The true labels.
    weights
        The labels' inverse propensities.
    sums
        Receives seven rows, a column for each place: hits, recall, nDCG, weighted gain and its best, weighted
        discounted gain and its best; the last two over the discounts that the document's labels can use.
    """
    k = ranked.shape[1]
    sums[:] = 0.0
    best = np.empty(k)
    for row in range(start, stop):
        first, last = pointers[row], pointers[row + 1]
        n_true = last - first
        if n_true == 0:
            continue
        _best_weights(columns, first, last, weights, best)
        found = gain = most = ideal = discounted = weighted = weighted_most = 0.0
        for place in range(k):
            discount = 1.0 / np.log2(place + 2.0)
            if place < n_true:
                ideal += discount
            if hits[row, place]:
                weight = weights[ranked[row, place]]
                found += 1.0
                discounted += discount
                gain += weight
                weighted += weight * discount
            most += best[place]
            weighted_most += best[place] * discount
            sums[0, place] += found
            sums[1, place] += found / n_true
            sums[2, place] += discounted / ideal
            sums[3, place] += gain
            sums[4, place] += most
            sums[5, place] += weighted / ideal
            sums[6, place] += weighted_most / ideal


@kernel
def count_labels(
    ranked: NDArray[np.int32],
    hits: NDArray[np.bool_],
    cut_of_place: NDArray[np.int64],
    predicted: NDArray[np.int64],
    right: NDArray[np.int64],
) -> None:
    """Count for each label how often it is predicted, and rightly so, at places that belong to each cut-off."""
    for row in range(ranked.shape[0]):
        for place in range(ranked.shape[1]):
            label = ranked[row, place]
            if label >= 0:
                predicted[cut_of_place[place], label] += 1
                if hits[row, place]:
                    right[cut_of_place[place], label] += 1


@kernel
def top_of_rows(
    start: int,
    stop: int,
    labels: NDArray[np.int32],
    scores: NDArray[np.float32],
    best_labels: NDArray[np.int32],
    best_scores: NDArray[np.float32],
) -> None:
    """Fill best_labels and best_scores [start:stop] with each row's highest scores, best first.

    Of equal scores the lower label comes first. Labels of -1 are passed over; -1 with a score of 0 fills the end.
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
            place = min(n, k - 1)
            n = min(n + 1, k)
            while place > 0:
                above = best_scores[row, place - 1]
                if above > score or (above == score and best_labels[row, place - 1] < label):
                    break
                best_scores[row, place] = above
                best_labels[row, place] = best_labels[row, place - 1]
                place -= 1
            best_scores[row, place] = score
            best_labels[row, place] = label
