"""One training step of the sampled one-vs-all classifier: logits, gradients and updates of the labels of a batch.

The (document, label) pairs of a batch are first grouped by label. Then each label's weights are read once, updated once
and belong to one thread. Gradients to the documents are summed over a fixed number of parts in a fixed order. So there
are no races, and the bits do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.adam import NEGLIGIBLE, AdamRows, adam_row, next_mean, row_factor
from lightdxml.kernels.jit import fast_kernel, kernel
from lightdxml.kernels.precision import row_bias, row_scale, to_bfloat16, widen
from lightdxml.kernels.prefetch import prefetch_row, prefetch_row_for_write
from lightdxml.kernels.randomness import advance, below, stream, uniform
from lightdxml.kernels.sparse import Groups, Pattern

# Rows are prefetched this many labels ahead in training and in prediction: about the latency of memory.
_TRAIN_AHEAD = 2
_PREDICT_AHEAD = 6


class Pairs(NamedTuple):
    """The (document, label) pairs of a batch: where those of each document start, labels, targets and weights."""

    indptr: NDArray[np.int64]
    labels: NDArray[np.int32]
    targets: NDArray[np.float32]
    weights: NDArray[np.float32]


class RandomNegatives(NamedTuple):
    """How many random labels a document gets on average, their weight, and the seed of a batch."""

    share: float
    weight: float
    seed: int


@kernel
def collect_pairs(
    rows: NDArray[np.int32],
    positives: Pattern,
    shortlists: Pattern,
    first: int,
    negatives: RandomNegatives,
    stamps: NDArray[np.int64],
    stamp: int,
    pairs: Pairs,
) -> int:
    """List the candidates of each document among some labels without repeats; return how many pairs there are.

    Candidates are positives, shortlist and random negatives. If there are more pairs than `pairs` can take, it must
    be done again with larger ones.

    Parameters
    ----------
    rows
        The documents of the batch.
    shortlists
        Labels near each training document; those that are not among the labels are left out.
    first
        The first of the labels; there is one stamp per label. In `pairs` they are numbered from 0.
    negatives
        Random labels. Those that are candidates already are skipped.
    stamps, stamp
        Workspace with one entry per label, and a number larger than any in it. The caller adds len(rows) after the
        call.
    pairs
        Receives the pairs.
    """
    indptr, labels, targets, weights = pairs
    share, random_weight, seed = negatives
    n_labels = stamps.size
    n, most = 0, labels.size
    longest = 0
    for row in rows:
        longest = max(longest, shortlists.indptr[row + 1] - shortlists.indptr[row])
    near = np.empty(longest, np.int64)
    for b in range(rows.size):
        row = rows[b]
        mark = stamp + b
        indptr[b] = n
        for i in range(positives.indptr[row], positives.indptr[row + 1]):
            label = positives.indices[i] - first
            if 0 <= label < n_labels:
                stamps[label] = mark
                if n < most:
                    labels[n], targets[n], weights[n] = label, 1.0, 1.0
                n += 1
        n_near = 0
        for i in range(shortlists.indptr[row], shortlists.indptr[row + 1]):
            label = np.int64(shortlists.indices[i]) - first
            near[n_near] = label
            # No branch: most labels of a shortlist are not among some, and which ones cannot be predicted.
            n_near += np.int64(np.uint64(label) < np.uint64(n_labels))
        for label in near[:n_near]:
            if stamps[label] != mark:
                stamps[label] = mark
                if n < most:
                    labels[n], targets[n], weights[n] = label, 0.0, 1.0
                n += 1
        # Each part of the labels has random numbers of its own.
        state = advance(stream(seed, first * rows.size + b))
        for _ in range(np.int64(share + uniform(state))):
            state = advance(state)
            label = below(state, n_labels)
            if stamps[label] != mark:
                stamps[label] = mark
                if n < most:
                    labels[n], targets[n], weights[n] = label, 0.0, random_weight
                n += 1
    indptr[rows.size] = n
    return n


@kernel
def group_by_column(entries: Pattern, counts: NDArray[np.int32], groups: Groups) -> int:
    """Group the entries of sparse rows by column with a counting sort; return how many columns occur.

    Parameters
    ----------
    counts
        Workspace with one entry per possible column, all zero before and after.
    groups
        Receives the groups.
    """
    indptr, indices = entries
    columns, column_indptr, rows, positions = groups
    n_rows = indptr.size - 1
    for i in range(indptr[0], indptr[n_rows]):
        counts[indices[i]] += 1
    n_columns = 0
    total = 0
    for column in range(counts.size):
        count = counts[column]
        if count > 0:
            columns[n_columns] = column
            column_indptr[n_columns] = total
            n_columns += 1
            # From here on: the position of the column's next entry plus 1, so that zero still means none.
            counts[column] = total + 1
            total += count
    column_indptr[n_columns] = total
    for b in range(n_rows):
        for i in range(indptr[b], indptr[b + 1]):
            position = counts[indices[i]] - 1
            rows[position] = b
            positions[position] = i
            counts[indices[i]] += 1
    for c in range(n_columns):
        counts[columns[c]] = 0
    return n_columns


@fast_kernel
def train_step(
    start: int,
    stop: int,
    groups: Groups,
    pairs: Pairs,
    X: NDArray[np.float32],
    norms: NDArray[np.float32],
    adam: AdamRows,
    scale: np.float32,
    rate: np.float32,
    min_gradient: np.float32,
    dX: NDArray[np.float32],
) -> float:
    """Train the labels groups.columns[start:stop] on their pairs; return the summed loss, without the scale.

    Parameters
    ----------
    groups, pairs
        The pairs of the batch by label and by document.
    X
        The documents of the batch, D columns.
    norms
        Their squared norms, plus 1 for the bias.
    adam
        The weights of the labels, of which the last of D + 1 columns is the bias.
    scale
        The factor of each pair's loss.
    min_gradient
        A label is not updated if its mean squared gradient is below this share of its running mean.
    dX
        The gradient to X is added to it.
    """
    columns, indptr, rows, positions = groups
    D = X.shape[1]
    loss = 0.0
    gradient = np.empty(D + 1, np.float32)
    most = 0
    for c in range(start, stop):
        most = max(most, indptr[c + 1] - indptr[c])
    values = np.empty(most, np.float32)
    for c in range(start, stop):
        if c + _TRAIN_AHEAD < stop:
            prefetch_row_for_write(adam.rows[columns[c + _TRAIN_AHEAD]])
            prefetch_row_for_write(adam.means[columns[c + _TRAIN_AHEAD]])
        label = columns[c]
        # Slicing rows and positions here would add a tenth to the time.
        first, n = indptr[c], indptr[c + 1] - indptr[c]
        w = adam.rows[label]
        _label_logits(w, X, rows, first, n, values)
        loss += _cross_entropy_gradients(values, n, pairs, positions, first, scale)
        if min_gradient > 0:
            largest = _largest_gradient(values, n, rows, first, norms)
            if largest < min_gradient * np.float32(D + 1) * adam.squares[label]:
                continue
        if n == 1:
            _single(adam, label, X[rows[first]], dX[rows[first]], values[0], rate)
        else:
            _label_gradients(w, X, rows, first, n, values, gradient, dX)
            adam_row(adam, label, gradient, rate)
    return loss


@fast_kernel
def _label_logits(
    w: NDArray[np.float32],
    X: NDArray[np.float32],
    rows: NDArray[np.int32],
    first: int,
    n: int,
    values: NDArray[np.float32],
) -> None:
    """Fill values with the logits of a label's documents, four at a time so that w is read once for four."""
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
def _cross_entropy_gradients(
    values: NDArray[np.float32], n: int, pairs: Pairs, positions: NDArray[np.int64], first: int, scale: np.float32
) -> float:
    """Replace logits by the gradients of the binary cross-entropy (Equations 7 and 8), and return the loss."""
    targets, weights = pairs.targets, pairs.weights
    loss = 0.0
    zero, one = np.float32(0.0), np.float32(1.0)
    for i in range(n):
        score = values[i]
        y, weight = targets[positions[first + i]], weights[positions[first + i]]
        # exp(-|s|) never overflows.
        low = np.exp(-abs(score))
        probability = one / (one + low) if score >= zero else low / (one + low)
        loss += weight * (max(score, zero) - score * y + np.log1p(low))
        error = scale * weight * (probability - y)
        # Too small to matter, and CPUs are slow with denormal numbers.
        values[i] = error if abs(error) > NEGLIGIBLE else zero
    return loss


@fast_kernel
def _largest_gradient(
    errors: NDArray[np.float32], n: int, rows: NDArray[np.int32], first: int, norms: NDArray[np.float32]
) -> np.float32:
    """Return an upper bound of the squared norm of a label's gradient: all documents in one direction."""
    total = np.float32(0.0)
    for i in range(n):
        total += errors[i] * errors[i] * norms[rows[first + i]]
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
    """Fill gradient with that of a label's weights, and add those of its documents to dX, two at a time."""
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
    adam: AdamRows,
    label: int,
    x: NDArray[np.float32],
    dx: NDArray[np.float32],
    error: np.float32,
    rate: np.float32,
) -> None:
    """Do the work of `_label_gradients` and `adam_row` in one pass, for a label with one document, as most are."""
    D = x.size
    w, m = adam.rows[label], adam.means[label]
    length = np.float32(1.0)
    for d in range(D):
        length += x[d] * x[d]
    factor = row_factor(adam.squares, label, error * error * length / np.float32(D + 1), rate)
    for d in range(D):
        dx[d] += error * w[d]
        moved = next_mean(m[d], error * x[d])
        m[d] = to_bfloat16(moved)
        w[d] -= factor * moved
    moved = next_mean(m[D], error)
    m[D] = to_bfloat16(moved)
    w[D] -= factor * moved


@fast_kernel
def logits(
    start: int,
    stop: int,
    X: NDArray[np.float32],
    W: NDArray[Any],
    candidates: NDArray[np.int32],
    out: NDArray[np.float32],
) -> None:
    """Fill out[start:stop] with the logits of each document's candidates, -inf for a candidate of -1.

    Weights are float32, int8, or float16 as `precision.as_bits` passes it.
    """
    D = X.shape[1]
    for b in range(start, stop):
        x = X[b]
        for i in range(candidates.shape[1]):
            if i + _PREDICT_AHEAD < candidates.shape[1]:
                prefetch_row(W[max(0, candidates[b, i + _PREDICT_AHEAD])])
            label = candidates[b, i]
            if label < 0:
                out[b, i] = -np.inf
                continue
            w = W[label]
            score = np.float32(0.0)
            for d in range(D):
                score += widen(w[d]) * x[d]
            out[b, i] = score * row_scale(w, D) + row_bias(w, D)
