"""Sparse linear classifiers, one a label: dual coordinate descent on the squared hinge, label by label.

The method of LIBLINEAR (Hsieh et al. 2008, algorithm 3, L2-loss, with shrinking), on rows of one sparse matrix. Labels
are independent of each other: the result is the same bits however they are shared out among threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import fast_kernel, kernel

_INFINITE = np.float32(np.inf)
# So many words of a label's documents are copied to lie together: they fit into a cache, and are gone over many times.
_FEW = 1 << 19
# Documents that are gone through one after the other where there are more.
_BLOCK = 32


@kernel
def negatives_of_labels(
    near: NDArray[np.int32],
    confused: NDArray[np.int32],
    pointers: NDArray[np.int64],
    right: NDArray[np.int32],
    wanted: NDArray[np.bool_],
    counts: NDArray[np.int64],
    documents: NDArray[np.int32],
) -> None:
    """Count, for each label that is wanted, the documents near which it stands without being theirs, or list them.

    Parameters
    ----------
    near, confused
        Labels that stand near each document, -1 for none; one that stands there twice counts once.
    pointers, right
        The labels of each document.
    counts
        If `documents` has no room, receives how many each label has; else it holds where each one's begin, and is moved
        to where they end.
    documents
        Receives the documents of one label after the other, in ascending order.
    """
    seen = np.full(wanted.size, -1, np.int32)
    for b in range(pointers.size - 1):
        for i in range(pointers[b], pointers[b + 1]):
            seen[right[i]] = b
        for i in range(near.shape[1] + confused.shape[1]):
            label = near[b, i] if i < near.shape[1] else confused[b, i - near.shape[1]]
            if label >= 0 and wanted[label] and seen[label] != b:
                seen[label] = b
                if documents.size:
                    documents[counts[label]] = b
                counts[label] += 1


@fast_kernel
def train_labels(
    labels: NDArray[np.int32],
    positive_pointers: NDArray[np.int64],
    positives: NDArray[np.int32],
    groups: NDArray[np.int32],
    negative_pointers: NDArray[np.int64],
    negatives: NDArray[np.int32],
    learnt: bool,
    pointers: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    squares: NDArray[np.float32],
    costs: tuple[float, float],
    bias: float,
    passes: int,
    tolerance: float,
    smallest: NDArray[np.float32],
    seed: int,
    room: NDArray[np.float32],
    found: NDArray[np.int32],
    weights: NDArray[np.float32],
    counts: NDArray[np.int64],
    biases: NDArray[np.float32],
) -> int:
    """Train some labels and write down their weights that are not small.

    Parameters
    ----------
    labels
        The labels to train.
    positive_pointers, positives
        The documents of every label.
    groups, negative_pointers, negatives
        The group of every label, and the documents of every group: those that are not the label's own speak against it.
    learnt
        Whether each label's bias is learnt.
    pointers, columns, values, squares
        The documents, and the squared length of each.
    costs
        How much an error on a positive and on a negative costs.
    bias
        That of all labels, where it is not learnt.
    passes, tolerance
        How many passes over a label's documents at most, and the violation of the optimality conditions to stop at.
    smallest
        Weights below it, by column, are left out.
    seed
        The order in which documents are gone through.
    room
        Scratch, one entry a column, all zero; left all zero.
    found, weights
        Receive the columns, in any order, and the weights of all labels, one label after the other.
    counts, biases
        Receive how many each has, and its bias.

    Returns
    -------
    int
        How many labels were trained before there was no room for another one's weights.
    """
    is_own = np.zeros(pointers.size - 1, np.uint8)
    own_place = np.full(room.size, -1, np.int32)
    touched = np.empty(room.size, np.int32)
    few_columns, few_values = np.empty(_FEW, np.int32), np.empty(_FEW, np.float32)
    used = 0
    for i in range(labels.size):
        label = labels[i]
        if found.size - used < room.size:
            return i
        own = positives[positive_pointers[label] : positive_pointers[label + 1]]
        others = negatives[negative_pointers[groups[label]] : negative_pointers[groups[label] + 1]]
        documents = _with_others(own, others, is_own)
        duals, moved = np.zeros(documents.size, np.float32), np.zeros(documents.size, np.uint8)
        state = np.uint64(seed) + np.uint64(label)
        words = 0
        for document in documents:
            words += pointers[document + 1] - pointers[document]
        wanted = np.full(documents.size, np.float32(-1.0))
        if words <= _FEW:
            wanted[: own.size] = np.float32(1.0)
            starts = np.empty(documents.size + 1, np.int64)
            n = _gather(documents, pointers, columns, values, own_place, touched, starts, few_columns, few_values)
            biases[i] = _descend(
                np.arange(documents.size, dtype=np.int32), wanted, duals, moved, starts, few_columns, few_values,
                squares[documents], costs, bias, learnt, passes, tolerance, state, 1, room,
            )  # fmt: skip
        else:
            # Through memory in its order, but for blocks: documents here and there would each have to be waited for.
            documents.sort()
            for document in own:
                wanted[np.searchsorted(documents, document)] = np.float32(1.0)
            biases[i] = _descend(
                documents, wanted, duals, moved, pointers, columns, values, squares, costs, bias, learnt, passes,
                tolerance, state, _BLOCK, room,
            )  # fmt: skip
            n = 0
            for j in range(documents.size):
                # One whose dual is 0 again has left rounding errors behind.
                if moved[j] == 1:
                    for at in range(pointers[documents[j]], pointers[documents[j] + 1]):
                        if own_place[columns[at]] < 0:
                            own_place[columns[at]] = columns[at]
                            touched[n] = columns[at]
                            n += 1
        kept = 0
        for column in touched[:n]:
            weight = room[own_place[column]]
            if abs(weight) >= smallest[column]:
                found[used + kept] = column
                weights[used + kept] = weight
                kept += 1
            room[own_place[column]] = 0.0
            own_place[column] = -1
        counts[i] = kept
        used += kept
    return labels.size


@kernel
def _with_others(own: NDArray[np.int32], others: NDArray[np.int32], is_own: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Return a label's own documents and after them those of the others that are not its own."""
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
def _gather(
    documents: NDArray[np.int32],
    pointers: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    own_place: NDArray[np.int32],
    touched: NDArray[np.int32],
    starts: NDArray[np.int64],
    few_columns: NDArray[np.int32],
    few_values: NDArray[np.float32],
) -> int:
    """Copy some documents to where they lie together, their columns numbered anew; return how many columns there are.

    `own_place` receives the new number of each column that is touched.
    """
    n = 0
    at = 0
    for j in range(documents.size):
        starts[j] = at
        for p in range(pointers[documents[j]], pointers[documents[j] + 1]):
            column = columns[p]
            if own_place[column] < 0:
                own_place[column] = n
                touched[n] = column
                n += 1
            few_columns[at] = own_place[column]
            few_values[at] = values[p]
            at += 1
    starts[documents.size] = at
    return n


@fast_kernel
def _descend(
    documents: NDArray[np.int32],
    wanted: NDArray[np.float32],
    duals: NDArray[np.float32],
    moved: NDArray[np.uint8],
    pointers: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    squares: NDArray[np.float32],
    costs: tuple[float, float],
    bias: float,
    learnt: bool,
    passes: int,
    tolerance: float,
    state: np.uint64,
    block: int,
    w: NDArray[np.float32],
) -> float:
    """Minimise |w|²/2 + Σ cost max(0, 1 − y (w·x + b))² into w; return b.

    Documents are gone through in an order that is drawn anew for each pass, so many together; those that ever changed w
    are marked as moved.
    """
    n = documents.size
    order, left_out = np.arange(n, dtype=np.int32), np.empty(n, np.int32)
    active = n
    b = np.float32(0.0 if learnt else bias)
    extra = np.float32(1.0 if learnt else 0.0)
    highest_before = _INFINITE
    for _ in range(passes):
        highest, lowest = -_INFINITE, _INFINITE
        state = _shuffle(order[:active], block, state)
        kept = 0
        for at in range(active):
            i = order[at]
            document, y = documents[i], wanted[i]
            diagonal = np.float32(0.5 / (costs[0] if y > 0 else costs[1]))
            score = b
            for p in range(pointers[document], pointers[document + 1]):
                score += w[columns[p]] * values[p]
            gradient = y * score - np.float32(1.0) + diagonal * duals[i]
            if duals[i] == 0:
                if gradient > highest_before:
                    # It satisfies its condition with room to spare: not looked at again until the others are done.
                    left_out[at - kept] = i
                    continue
                projected = min(gradient, np.float32(0.0))
            else:
                projected = gradient
            order[kept] = i
            kept += 1
            highest, lowest = max(highest, projected), min(lowest, projected)
            if projected != 0:
                before = duals[i]
                duals[i] = max(before - gradient / (squares[document] + diagonal + extra), np.float32(0.0))
                moved[i] = 1
                change = (duals[i] - before) * y
                for p in range(pointers[document], pointers[document + 1]):
                    w[columns[p]] += change * values[p]
                b += change * extra
        order[kept:active] = left_out[: active - kept]
        active = kept
        if highest - lowest <= tolerance:
            if active == n:
                break
            active, highest_before = n, _INFINITE
        else:
            highest_before = highest if highest > 0 else _INFINITE
    return float(b)


@kernel
def _shuffle(order: NDArray[np.int32], block: int, state: np.uint64) -> np.uint64:
    """Put blocks of so many into another order; what is left over at the end stays there. Return the next state."""
    for i in range(order.size // block - 1, 0, -1):
        # Knuth's linear congruential generator; its high bits are good enough for an order.
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        j = np.int64((state >> np.uint64(33)) % np.uint64(i + 1))
        for at in range(block):
            order[i * block + at], order[j * block + at] = order[j * block + at], order[i * block + at]
    return state
