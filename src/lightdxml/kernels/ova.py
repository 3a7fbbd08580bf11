"""The sampled one-vs-all step: scores, gradients and updates of the labels that a batch of documents names.

The (document, label) pairs of a batch are sorted by label first. Then each label's weights are read once, updated once
and belong to one thread; the gradients to the documents are summed over a fixed number of parts in a fixed order. So
there are no races, and the result is the same bits at any number of threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.adam import adam_row
from lightdxml.kernels.jit import fast_kernel, kernel


@kernel
def collect_pairs(
    rows: NDArray[np.int64],
    positive_pointers: NDArray[np.int64],
    positives: NDArray[np.int32],
    shortlists: NDArray[np.int32],
    everywhere: NDArray[np.int32],
    random_labels: NDArray[np.int32],
    random_weight: float,
    stamps: NDArray[np.int64],
    stamp: int,
    labels: NDArray[np.int32],
    targets: NDArray[np.float32],
    weights: NDArray[np.float32],
    pointers: NDArray[np.int64],
) -> None:
    """List each document's candidates once: its positives, its shortlist, frequent labels, random negatives.

    Parameters
    ----------
    rows
        The documents of the batch.
    shortlists
        Labels near each document of the training set, -1 for none.
    everywhere
        Labels that are candidates of every document.
    random_labels
        Random labels for each document of the batch; those that are candidates already are passed over.
    random_weight
        How much a random negative counts.
    stamps, stamp
        Scratch, one entry a label, and a number larger than any in it; the caller adds len(rows) after the call.
    labels, targets, weights, pointers
        Receive the pairs and where each document's begin; long enough for all.
    """
    n = 0
    for b in range(rows.size):
        row = rows[b]
        mark = stamp + b
        pointers[b] = n
        for i in range(positive_pointers[row], positive_pointers[row + 1]):
            labels[n] = positives[i]
            targets[n] = 1.0
            weights[n] = 1.0
            stamps[positives[i]] = mark
            n += 1
        for i in range(shortlists.shape[1]):
            label = shortlists[row, i]
            if label >= 0 and stamps[label] != mark:
                stamps[label] = mark
                labels[n] = label
                targets[n] = 0.0
                weights[n] = 1.0
                n += 1
        for i in range(everywhere.size):
            label = everywhere[i]
            if stamps[label] != mark:
                stamps[label] = mark
                labels[n] = label
                targets[n] = 0.0
                weights[n] = 1.0
                n += 1
        for i in range(random_labels.shape[1]):
            label = random_labels[b, i]
            if stamps[label] != mark:
                stamps[label] = mark
                labels[n] = label
                targets[n] = 0.0
                weights[n] = random_weight
                n += 1
    pointers[rows.size] = n


@kernel
def invert(
    pointers: NDArray[np.int64],
    columns: NDArray[np.int32],
    counts: NDArray[np.int32],
    found: NDArray[np.int32],
    found_pointers: NDArray[np.int64],
    rows: NDArray[np.int32],
    places: NDArray[np.int64],
) -> int:
    """Turn rows of columns into columns of rows: a counting sort of sparse rows by column.

    Parameters
    ----------
    pointers, columns
        Row b holds columns[pointers[b] : pointers[b + 1]].
    counts
        Scratch, one entry for each possible column, all zero; left all zero.
    found, found_pointers
        Receive the columns that occur, in the order of first occurrence, and where their rows begin.
    rows, places
        Receive for each entry its row and its place in `columns`.

    Returns
    -------
    int
        How many columns occur.
    """
    n_rows = pointers.size - 1
    n_found = 0
    for i in range(pointers[0], pointers[n_rows]):
        column = columns[i]
        if counts[column] == 0:
            found[n_found] = column
            n_found += 1
        counts[column] += 1
    total = 0
    for c in range(n_found):
        column = found[c]
        found_pointers[c] = total
        total += counts[column]
        # From here on: where the column's next entry goes, plus one, so that zero still means none.
        counts[column] = found_pointers[c] + 1
    found_pointers[n_found] = total
    for b in range(n_rows):
        for i in range(pointers[b], pointers[b + 1]):
            place = counts[columns[i]] - 1
            rows[place] = b
            places[place] = i
            counts[columns[i]] += 1
    for c in range(n_found):
        counts[found[c]] = 0
    return n_found


@fast_kernel
def step(
    start: int,
    stop: int,
    found: NDArray[np.int32],
    found_pointers: NDArray[np.int64],
    rows: NDArray[np.int32],
    places: NDArray[np.int64],
    targets: NDArray[np.float32],
    weights: NDArray[np.float32],
    X: NDArray[np.float32],
    W: NDArray[np.float32],
    mean: NDArray[np.float32],
    square: NDArray[np.float32],
    scale: np.float32,
    rate: np.float32,
    dX: NDArray[np.float32],
) -> float:
    """Train the labels found[start:stop] on their pairs.

    Parameters
    ----------
    found, found_pointers, rows, places
        The batch's pairs by label, from `invert`.
    targets, weights
        What is true of each pair and how much it counts, by place.
    X
        The batch's documents, D columns.
    W, mean, square
        The labels' weights, of which the last of D + 1 columns is the bias, and Adam's two means.
    scale
        What each pair's loss is multiplied by.
    dX
        The gradient to X is added to it.

    Returns
    -------
    float
        The summed loss, without the scale.
    """
    D = X.shape[1]
    loss = 0.0
    gradient = np.empty(D + 1, np.float32)
    zero, one = np.float32(0.0), np.float32(1.0)
    for c in range(start, stop):
        label = found[c]
        w = W[label]
        gradient[:] = 0.0
        for i in range(found_pointers[c], found_pointers[c + 1]):
            x = X[rows[i]]
            score = zero
            for d in range(D):
                score += w[d] * x[d]
            score += w[D]
            place = places[i]
            y, weight = targets[place], weights[place]
            # exp(-|s|) never overflows, whatever the score.
            low = np.exp(-abs(score))
            chance = one / (one + low) if score >= zero else low / (one + low)
            loss += weight * (max(score, zero) - score * y + np.log1p(low))
            error = scale * weight * (chance - y)
            dx = dX[rows[i]]
            for d in range(D):
                gradient[d] += error * x[d]
                dx[d] += error * w[d]
            gradient[D] += error
        adam_row(w, mean[label], square[label], gradient, rate)
    return loss


@fast_kernel
def scores(
    start: int,
    stop: int,
    X: NDArray[np.float32],
    W: NDArray[np.float32],
    candidates: NDArray[np.int32],
    out: NDArray[np.float32],
) -> None:
    """Fill out[start:stop] with the classifier's scores of each document's candidates, -inf where there is none."""
    D = X.shape[1]
    for b in range(start, stop):
        x = X[b]
        for i in range(candidates.shape[1]):
            label = candidates[b, i]
            if label < 0:
                out[b, i] = -np.inf
                continue
            w = W[label]
            score = np.float32(0.0)
            for d in range(D):
                score += w[d] * x[d]
            out[b, i] = score + w[D]
