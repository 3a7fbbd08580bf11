"""The sampled one-vs-all step: scores, gradients and updates of the labels that a batch of documents names.

The (document, label) pairs of a batch are sorted by label first. Then each label's weights are read once, updated once
and belong to one thread; the gradients to the documents are summed over a fixed number of parts in a fixed order. So
there are no races, and the result is the same bits at any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.adam import NEGLIGIBLE, adam_row, next_mean, row_factor
from lightdxml.kernels.prefetch import prefetch_row, prefetch_row_for_write
from lightdxml.kernels.precision import row_bias, row_scale, to_bfloat16, widen
from lightdxml.kernels.jit import fast_kernel, kernel

# By so many labels are rows asked for before it is their turn: about as long as memory takes.
_AHEAD = 2
_AHEAD_TO_READ = 6


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
        Receive the columns that occur, in ascending order, and where their rows begin: memory is then walked in order.
    rows, places
        Receive for each entry its row and its place in `columns`.

    Returns
    -------
    int
        How many columns occur.
    """
    n_rows = pointers.size - 1
    for i in range(pointers[0], pointers[n_rows]):
        counts[columns[i]] += 1
    n_found = 0
    total = 0
    for column in range(counts.size):
        count = counts[column]
        if count > 0:
            found[n_found] = column
            found_pointers[n_found] = total
            n_found += 1
            # From here on: where the column's next entry goes, plus one, so that zero still means none.
            counts[column] = total + 1
            total += count
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
    lengths: NDArray[np.float32],
    W: NDArray[np.float32],
    mean: NDArray[np.uint16],
    square: NDArray[np.float32],
    scale: np.float32,
    rate: np.float32,
    least: np.float32,
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
    lengths
        Their squared lengths, and 1 for the bias.
    W, mean, square
        The labels' weights, of which the last of D + 1 columns is the bias, and Adam's two means of them.
    scale
        What each pair's loss is multiplied by.
    least
        A label whose mean squared gradient is less than this share of what it usually is stays as it is.
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
    most = 0
    for c in range(start, stop):
        most = max(most, found_pointers[c + 1] - found_pointers[c])
    values = np.empty(most, np.float32)
    for c in range(start, stop):
        if c + _AHEAD < stop:
            prefetch_row_for_write(W[found[c + _AHEAD]])
            prefetch_row_for_write(mean[found[c + _AHEAD]])
        label = found[c]
        w = W[label]
        first = found_pointers[c]
        n = found_pointers[c + 1] - first
        _label_scores(w, X, rows, first, n, values)
        loss += _errors(values, n, targets, weights, places, first, scale)
        if least > 0 and _most(values, n, rows, first, lengths) < least * np.float32(D + 1) * square[label]:
            continue
        if n == 1:
            _single(W, mean, square, label, X[rows[first]], dX[rows[first]], values[0], rate)
        else:
            _label_gradients(w, X, rows, first, n, values, gradient, dX)
            adam_row(W, mean, square, label, gradient, rate)
    return loss


@fast_kernel
def _label_scores(
    w: NDArray[np.float32],
    X: NDArray[np.float32],
    rows: NDArray[np.int32],
    first: int,
    n: int,
    values: NDArray[np.float32],
) -> None:
    """Fill values with the label's scores of its documents, four at a time so that w is read once for them."""
    D = X.shape[1]
    i = 0
    while i + 4 <= n:
        x0, x1, x2, x3 = X[rows[first + i]], X[rows[first + i + 1]], X[rows[first + i + 2]], X[rows[first + i + 3]]
        s0 = s1 = s2 = s3 = np.float32(0.0)
        for d in range(D):
            s0 += w[d] * x0[d]
            s1 += w[d] * x1[d]
            s2 += w[d] * x2[d]
            s3 += w[d] * x3[d]
        values[i], values[i + 1], values[i + 2], values[i + 3] = s0 + w[D], s1 + w[D], s2 + w[D], s3 + w[D]
        i += 4
    while i < n:
        x = X[rows[first + i]]
        s = np.float32(0.0)
        for d in range(D):
            s += w[d] * x[d]
        values[i] = s + w[D]
        i += 1


@fast_kernel
def _errors(
    values: NDArray[np.float32],
    n: int,
    targets: NDArray[np.float32],
    weights: NDArray[np.float32],
    places: NDArray[np.int64],
    first: int,
    scale: np.float32,
) -> float:
    """Turn scores into the gradients of the loss by them, and return the loss."""
    loss = 0.0
    zero, one = np.float32(0.0), np.float32(1.0)
    for i in range(n):
        score = values[i]
        y, weight = targets[places[first + i]], weights[places[first + i]]
        # exp(-|s|) never overflows, whatever the score.
        low = np.exp(-abs(score))
        chance = one / (one + low) if score >= zero else low / (one + low)
        loss += weight * (max(score, zero) - score * y + np.log1p(low))
        error = scale * weight * (chance - y)
        # What is lost in rounding anyway must not become numbers that processors are slow with (denormals).
        values[i] = error if abs(error) > NEGLIGIBLE else zero
    return loss


@fast_kernel
def _most(
    errors: NDArray[np.float32],
    n: int,
    rows: NDArray[np.int32],
    first: int,
    lengths: NDArray[np.float32],
) -> np.float32:
    """Return what the squared length of a label's gradient is at the most: that of documents in one direction."""
    total = np.float32(0.0)
    for i in range(n):
        total += errors[i] * errors[i] * lengths[rows[first + i]]
    most: np.float32 = total * np.float32(n)
    return most


@fast_kernel
def _label_gradients(
    w: NDArray[np.float32],
    X: NDArray[np.float32],
    rows: NDArray[np.int32],
    first: int,
    n: int,
    errors: NDArray[np.float32],
    gradient: NDArray[np.float32],
    dX: NDArray[np.float32],
) -> None:
    """Fill gradient with that of the label's weights, and add the documents' to dX, two at a time."""
    D = X.shape[1]
    gradient[:] = 0.0
    bias = np.float32(0.0)
    i = 0
    while i + 2 <= n:
        r0, r1 = rows[first + i], rows[first + i + 1]
        x0, x1, d0, d1 = X[r0], X[r1], dX[r0], dX[r1]
        e0, e1 = errors[i], errors[i + 1]
        for d in range(D):
            gradient[d] += e0 * x0[d] + e1 * x1[d]
            d0[d] += e0 * w[d]
            d1[d] += e1 * w[d]
        bias += e0 + e1
        i += 2
    if i < n:
        row = rows[first + i]
        x, dx, error = X[row], dX[row], errors[i]
        for d in range(D):
            gradient[d] += error * x[d]
            dx[d] += error * w[d]
        bias += error
    gradient[D] = bias


@fast_kernel
def _single(
    W: NDArray[np.float32],
    mean: NDArray[np.uint16],
    square: NDArray[np.float32],
    label: int,
    x: NDArray[np.float32],
    dx: NDArray[np.float32],
    error: np.float32,
    rate: np.float32,
) -> None:
    """Do what `_label_gradients` and `adam_row` do for a label with one document, which most are, in one go."""
    D = x.size
    w, m = W[label], mean[label]
    length = np.float32(1.0)
    for d in range(D):
        length += x[d] * x[d]
    factor = row_factor(square, label, error * error * length / np.float32(D + 1), rate)
    for d in range(D):
        dx[d] += error * w[d]
        moved = next_mean(m[d], error * x[d])
        m[d] = to_bfloat16(moved)
        w[d] -= factor * moved
    moved = next_mean(m[D], error)
    m[D] = to_bfloat16(moved)
    w[D] -= factor * moved


@fast_kernel
def cosines(
    start: int,
    stop: int,
    directions: NDArray[np.float32],
    vectors: NDArray[Any],
    places: NDArray[np.int64],
    out: NDArray[np.float32],
) -> None:
    """Fill out[start:stop] with the products of each document and the vectors at its places; both have length 1.

    Vectors are float32, int8, or float16 as `precision.as_bits` hands it over.
    """
    D = directions.shape[1]
    for b in range(start, stop):
        x = directions[b]
        for i in range(places.shape[1]):
            if i + _AHEAD_TO_READ < places.shape[1]:
                prefetch_row(vectors[places[b, i + _AHEAD_TO_READ]])
            vector = vectors[places[b, i]]
            product = np.float32(0.0)
            for d in range(D):
                product += widen(vector[d]) * x[d]
            out[b, i] = product * row_scale(vector, D)


@fast_kernel
def scan(
    start: int, stop: int, direction: NDArray[np.float32], vectors: NDArray[Any], out: NDArray[np.float32]
) -> None:
    """Fill out[start:stop] with the products of one document and these vectors (of any kind)."""
    for i in range(start, stop):
        vector = vectors[i]
        product = np.float32(0.0)
        for d in range(direction.size):
            product += widen(vector[d]) * direction[d]
        out[i] = product * row_scale(vector, direction.size)


@fast_kernel
def scores(
    start: int,
    stop: int,
    X: NDArray[np.float32],
    W: NDArray[Any],
    candidates: NDArray[np.int32],
    out: NDArray[np.float32],
) -> None:
    """Fill out[start:stop] with the classifier's scores of each document's candidates, -inf where there is none.

    Weights are float32, int8, or float16 as `precision.as_bits` hands it over.
    """
    D = X.shape[1]
    for b in range(start, stop):
        x = X[b]
        for i in range(candidates.shape[1]):
            if i + _AHEAD_TO_READ < candidates.shape[1]:
                prefetch_row(W[max(0, candidates[b, i + _AHEAD_TO_READ])])
            label = candidates[b, i]
            if label < 0:
                out[b, i] = -np.inf
                continue
            w = W[label]
            score = np.float32(0.0)
            for d in range(D):
                score += widen(w[d]) * x[d]
            out[b, i] = score * row_scale(w, D) + row_bias(w, D)
