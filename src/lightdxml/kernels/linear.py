"""Sparse linear classifiers, one per label: dual coordinate descent on the squared hinge loss.

The method of LIBLINEAR (Hsieh et al. 2008, algorithm 3, L2-loss, with shrinking). Labels are independent of each other:
the bits do not depend on how they are distributed over threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import fast_kernel, kernel
from lightdxml.kernels.sparse import Csr, Pattern

_INFINITY = np.float32(np.inf)
# The documents of a label are copied side by side if they have at most this many entries: these fit in a cache.
_COPIED = 1 << 19
# Otherwise the random order is one of blocks of this many documents, so that memory is read in sequence.
_BLOCK = 32


@kernel
def group_negatives(
    near: NDArray[np.int32],
    hard: NDArray[np.int32],
    true_labels: Pattern,
    wanted: NDArray[np.bool_],
    counts: NDArray[np.int64],
    documents: NDArray[np.int32],
) -> None:
    """Count or list the negatives of each wanted label: documents that have it as a near label or a hard negative.

    Parameters
    ----------
    near, hard
        Near labels and hard negatives of each document, -1 for none. A label in both counts once.
    true_labels
        The labels of each document.
    counts
        If `documents` is empty: receives how many negatives each label has. Otherwise: where each label's start in
        `documents`; receives where they end.
    documents
        Receives the negatives of one label after the other, in ascending order.
    """
    indptr, labels = true_labels
    seen = np.full(wanted.size, -1, np.int32)
    for b in range(indptr.size - 1):
        for i in range(indptr[b], indptr[b + 1]):
            seen[labels[i]] = b
        for i in range(near.shape[1] + hard.shape[1]):
            label = near[b, i] if i < near.shape[1] else hard[b, i - near.shape[1]]
            if label >= 0 and wanted[label] and seen[label] != b:
                seen[label] = b
                if documents.size:
                    documents[counts[label]] = b
                counts[label] += 1


class Solver(NamedTuple):
    """How labels are trained.

    Attributes
    ----------
    costs
        The cost of an error on a positive and on a negative.
    bias
        The fixed bias of all labels.
    max_iter, tolerance
        The most passes over a label's documents, and the violation of the optimality conditions at which to stop.
    seed
        Seed of the order of documents.
    """

    costs: tuple[float, float]
    bias: float
    max_iter: int
    tolerance: float
    seed: int


@fast_kernel
def train_labels(
    labels: NDArray[np.int32],
    positives: Pattern,
    groups: NDArray[np.int32],
    negatives: Pattern,
    X: Csr,
    squares: NDArray[np.float32],
    solver: Solver,
    prune_below: NDArray[np.float32],
    w: NDArray[np.float32],
    columns: NDArray[np.int32],
    weights: NDArray[np.float32],
    counts: NDArray[np.int64],
) -> int:
    """Train some labels and store their weights, without those near zero.

    Parameters
    ----------
    labels
        The labels to train.
    positives
        The documents of every label.
    groups, negatives
        The group of every label, and the documents of every group, which are negatives unless they are the label's.
    X, squares
        The documents, and the squared norm of each.
    prune_below
        Per column, the absolute value below which a weight is dropped.
    w
        Workspace with one entry per column, all zero before and after.
    columns, weights
        Receive the columns, in any order, and the weights of one label after the other.
    counts
        Receives the number of weights of each label.

    Returns
    -------
    int
        How many labels were trained before `columns` might be too short for the next one.
    """
    indptr, indices, _ = X
    is_own = np.zeros(indptr.size - 1, np.uint8)
    position_of = np.full(w.size, -1, np.int32)
    touched = np.empty(w.size, np.int32)
    copied_indices, copied_values = np.empty(_COPIED, np.int32), np.empty(_COPIED, np.float32)
    used = 0
    for i in range(labels.size):
        label = labels[i]
        if columns.size - used < w.size:
            return i
        own = positives.indices[positives.indptr[label] : positives.indptr[label + 1]]
        others = negatives.indices[negatives.indptr[groups[label]] : negatives.indptr[groups[label] + 1]]
        documents = _with_others(own, others, is_own)
        changed = np.zeros(documents.size, np.uint8)
        state = np.uint64(solver.seed) + np.uint64(label)
        entries = 0
        for document in documents:
            entries += indptr[document + 1] - indptr[document]
        targets = np.full(documents.size, np.float32(-1.0))
        if entries <= _COPIED:
            targets[: own.size] = np.float32(1.0)
            copied = Csr(np.empty(documents.size + 1, np.int64), copied_indices, copied_values)
            n = gather(documents, X, position_of, touched, copied)
            every = np.arange(documents.size, dtype=np.int32)
            _descend(every, targets, changed, copied, squares[documents], solver, state, 1, w)
        else:
            # In the order of memory, except for blocks: scattered documents would each wait for memory.
            documents.sort()
            for document in own:
                targets[np.searchsorted(documents, document)] = np.float32(1.0)
            _descend(documents, targets, changed, X, squares, solver, state, _BLOCK, w)
            n = 0
            for j in range(documents.size):
                # A document whose dual is 0 again has left rounding errors in w.
                if changed[j] == 1:
                    for p in range(indptr[documents[j]], indptr[documents[j] + 1]):
                        if position_of[indices[p]] < 0:
                            position_of[indices[p]] = indices[p]
                            touched[n] = indices[p]
                            n += 1
        kept = 0
        for column in touched[:n]:
            weight = w[position_of[column]]
            if abs(weight) >= prune_below[column]:
                columns[used + kept] = column
                weights[used + kept] = weight
                kept += 1
            w[position_of[column]] = 0.0
            position_of[column] = -1
        counts[i] = kept
        used += kept
    return labels.size


@kernel
def _with_others(own: NDArray[np.int32], others: NDArray[np.int32], is_own: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Return a label's own documents, followed by the others that are not its own."""
    documents = np.empty(own.size + others.size, np.int32)
    documents[: own.size] = own
    for document in own:
        is_own[document] = 1
    size = own.size
    for document in others:
        if is_own[document] == 0:
            documents[size] = document
            size += 1
    for document in own:
        is_own[document] = 0
    return documents[:size]


@kernel
def gather(
    documents: NDArray[np.int32], X: Csr, position_of: NDArray[np.int32], touched: NDArray[np.int32], copied: Csr
) -> int:
    """Copy documents side by side with their columns renumbered from 0; return how many columns there are.

    `position_of` receives the new number of each column.
    """
    indptr, indices, values = X
    copied_indptr, copied_indices, copied_values = copied
    n = 0
    at = 0
    for j in range(documents.size):
        copied_indptr[j] = at
        for p in range(indptr[documents[j]], indptr[documents[j] + 1]):
            column = indices[p]
            if position_of[column] < 0:
                position_of[column] = n
                touched[n] = column
                n += 1
            copied_indices[at] = position_of[column]
            copied_values[at] = values[p]
            at += 1
    copied_indptr[documents.size] = at
    return n


@fast_kernel
def _descend(
    documents: NDArray[np.int32],
    targets: NDArray[np.float32],
    changed: NDArray[np.uint8],
    X: Csr,
    squares: NDArray[np.float32],
    solver: Solver,
    state: np.uint64,
    block: int,
    w: NDArray[np.float32],
) -> None:
    """Minimize |w|²/2 + Σ cost max(0, 1 − y (w·x + b))² into w, with a fixed b.

    Each pass visits the documents in a new random order of blocks. Documents that ever changed w are marked.
    """
    indptr, indices, values = X
    costs = solver.costs
    n = documents.size
    duals, order, shrunk = np.zeros(n, np.float32), np.arange(n, dtype=np.int32), np.empty(n, np.int32)
    active = n
    b = np.float32(solver.bias)
    highest_before = _INFINITY
    for _ in range(solver.max_iter):
        highest, lowest = -_INFINITY, _INFINITY
        state = shuffle(order[:active], block, state)
        kept = 0
        for at in range(active):
            i = order[at]
            document, y = documents[i], targets[i]
            diagonal = np.float32(0.5 / (costs[0] if y > 0 else costs[1]))
            score = b
            for p in range(indptr[document], indptr[document + 1]):
                score += w[indices[p]] * values[p]
            gradient = y * score - np.float32(1.0) + diagonal * duals[i]
            if duals[i] == 0:
                if gradient > highest_before:
                    # Shrinking: its condition holds by a margin, so it is skipped until the others have converged.
                    shrunk[at - kept] = i
                    continue
                projected = min(gradient, np.float32(0.0))
            else:
                projected = gradient
            order[kept] = i
            kept += 1
            highest, lowest = max(highest, projected), min(lowest, projected)
            if projected != 0:
                before = duals[i]
                duals[i] = max(before - gradient / (squares[document] + diagonal), np.float32(0.0))
                changed[i] = 1
                change = (duals[i] - before) * y
                for p in range(indptr[document], indptr[document + 1]):
                    w[indices[p]] += change * values[p]
        order[kept:active] = shrunk[: active - kept]
        active = kept
        if highest - lowest <= solver.tolerance:
            if active == n:
                break
            active, highest_before = n, _INFINITY
        else:
            highest_before = highest if highest > 0 else _INFINITY


@kernel
def shuffle(order: NDArray[np.int32], block: int, state: np.uint64) -> np.uint64:
    """Shuffle blocks of this size, without the incomplete one at the end; return the next random state."""
    for i in range(order.size // block - 1, 0, -1):
        # Knuth's linear congruential generator: its high bits are good enough for a shuffle.
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        j = np.int64((state >> np.uint64(33)) % np.uint64(i + 1))
        for at in range(block):
            order[i * block + at], order[j * block + at] = order[j * block + at], order[i * block + at]
    return state
