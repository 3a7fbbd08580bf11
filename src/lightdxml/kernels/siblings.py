"""Linear classifiers of classes with the same documents, eight at a time.

The method is that of `kernels.linear`. Siblings in a label tree are trained on the documents of their parent, so a
document's features are read once for eight classes, whose weights lie side by side in memory. Blocks of eight are
formed in the order of the classes: the bits do not depend on threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from lightdxml.kernels import intrinsics as llvm
from lightdxml.kernels.jit import fast_kernel
from lightdxml.kernels.linear import Solver, gather, shuffle
from lightdxml.kernels.sparse import Csr, Pattern

LANES = 8
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_INFINITY = np.float32(np.inf)
# The documents of a group are copied side by side if they have at most this many entries.
MAX_COPIED = 1 << 21
# Otherwise the random order is one of blocks of this many documents, so that memory is read in sequence.
_BLOCK = 32


def _write_scores(builder: Any, indices: Any, values: Any, start: Any, stop: Any, W: Any, b: Any, score: Any) -> None:
    """Write what computes the scores of one document in all lanes: two sums, of every other feature, and the bias."""
    sums = [llvm.cgutils.alloca_once(builder, _VECTOR) for _ in range(2)]
    builder.store(llvm.load_unaligned(builder, b.data, _VECTOR), sums[0])
    builder.store(ir.Constant(_VECTOR, None), sums[1])
    even = builder.and_(builder.sub(stop, start), start.type(-2))
    middle = builder.add(start, even)
    with llvm.cgutils.for_range_slice(builder, start, middle, start.type(2)) as (at, _):
        for i, total in enumerate(sums):
            _write_product(builder, indices, values, builder.add(at, at.type(i)), W, total)
    with builder.if_then(builder.icmp_signed("<", middle, stop)):
        _write_product(builder, indices, values, middle, W, sums[0])
    llvm.store_unaligned(builder, builder.fadd(builder.load(sums[0]), builder.load(sums[1])), score.data)


def _write_product(builder: Any, indices: Any, values: Any, at: Any, W: Any, total: Any) -> None:
    """Add a feature's value times its weights to a sum."""
    pointer, value = _write_entry(builder, indices, values, at, W)
    product = builder.fmul(llvm.load_unaligned(builder, pointer, _VECTOR), value, flags=("contract",))
    builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)


def _write_entry(builder: Any, indices: Any, values: Any, at: Any, W: Any) -> tuple[Any, Any]:
    """Return a pointer to the weights of a feature, and its value in all lanes."""
    column = builder.sext(builder.load(builder.gep(indices.data, [at])), at.type)
    value = builder.load(builder.gep(values.data, [at]))
    return llvm.row_start(builder, W, column), llvm.broadcast(builder, value, LANES)


def _write_add(builder: Any, indices: Any, values: Any, start: Any, stop: Any, change: Any, W: Any) -> None:
    """Write what adds a document to the weights of all lanes, times the change of its dual in each."""
    changes = llvm.load_unaligned(builder, change.data, _VECTOR)
    with llvm.cgutils.for_range_slice(builder, start, stop, start.type(1)) as (at, _):
        pointer, value = _write_entry(builder, indices, values, at, W)
        product = builder.fmul(changes, value, flags=("contract",))
        after = builder.fadd(llvm.load_unaligned(builder, pointer, _VECTOR), product, flags=("contract",))
        llvm.store_unaligned(builder, after, pointer)


_scores, _add = llvm.intrinsic(_write_scores), llvm.intrinsic(_write_add)


@fast_kernel
def train_siblings(
    classes: NDArray[np.int32],
    positives: Pattern,
    groups: NDArray[np.int32],
    members: Pattern,
    X: Csr,
    squares: NDArray[np.float32],
    solver: Solver,
    prune_below: NDArray[np.float32],
    max_copied: int,
    W: NDArray[np.float32],
    biases: NDArray[np.float32],
    columns: NDArray[np.int32],
    weights: NDArray[np.float32],
    counts: NDArray[np.int64],
) -> int:
    """Train classes and store their weights, without those near zero.

    Parameters
    ----------
    classes
        The classes to train, those of one group one after the other.
    positives
        The documents of every class. They belong to its group.
    groups, members
        The group of every class, and the documents of every group, ascending: negatives unless they are the class's.
    X, squares
        The documents, and the squared norm of each.
    solver
        Costs and stopping rule. The bias of each class is learned, from this value on.
    prune_below
        Per column, the absolute value below which a weight is dropped.
    max_copied
        `MAX_COPIED`.
    W
        Workspace, columns × lanes, all zero before and after.
    biases
        Receives the bias of each class.
    columns, weights
        Receive the columns, in any order, and the weights of one class after the other.
    counts
        Receives the number of weights of each class.

    Returns
    -------
    int
        How many classes were trained before `columns` might be too short for the next block.
    """
    indptr = X.indptr
    position_of, touched = np.full(W.shape[0], -1, np.int32), np.empty(W.shape[0], np.int32)
    place_of = np.full(indptr.size - 1, -1, np.int32)
    copied_indices, copied_values = np.empty(0, np.int32), np.empty(0, np.float32)
    copied = Csr(np.zeros(1, np.int64), copied_indices, copied_values)
    documents, own_squares, rows = np.empty(0, np.int32), squares[:0], np.empty(0, np.int32)
    group, n_touched, is_copied = np.int32(-1), 0, False
    used, first = 0, 0
    while first < classes.size:
        if columns.size - used < LANES * W.shape[0]:
            return first
        if groups[classes[first]] != group:
            for column in touched[:n_touched]:
                position_of[column] = -1
            group = groups[classes[first]]
            documents = members.indices[members.indptr[group] : members.indptr[group + 1]]
            entries = 0
            for i in range(documents.size):
                place_of[documents[i]] = i
                entries += indptr[documents[i] + 1] - indptr[documents[i]]
            is_copied = entries <= max_copied
            n_touched = 0
            if is_copied:
                if copied_indices.size < entries:
                    copied_indices, copied_values = np.empty(entries, np.int32), np.empty(entries, np.float32)
                copied = Csr(np.empty(documents.size + 1, np.int64), copied_indices, copied_values)
                n_touched = gather(documents, X, position_of, touched, copied)
                own_squares, rows = squares[documents], np.arange(documents.size, dtype=np.int32)
        last = first
        while last < classes.size and last - first < LANES and groups[classes[last]] == group:
            last += 1
        targets = np.full((documents.size, LANES), np.float32(-1.0))
        for i in range(first, last):
            for p in range(positives.indptr[classes[i]], positives.indptr[classes[i] + 1]):
                targets[place_of[positives.indices[p]], i - first] = np.float32(1.0)
        state = np.uint64(solver.seed) + np.uint64(classes[first])
        bias = np.full(LANES, np.float32(solver.bias))
        if is_copied:
            _descend(rows, targets, copied, own_squares, last - first, solver, state, 1, W, bias)
        else:
            _descend(documents, targets, X, squares, last - first, solver, state, _BLOCK, W, bias)
        n = n_touched if is_copied else W.shape[0]
        for i in range(first, last):
            kept = used
            for j in range(n):
                column = touched[j] if is_copied else np.int32(j)
                weight = W[j, i - first]
                if abs(weight) >= prune_below[column]:
                    columns[used] = column
                    weights[used] = weight
                    used += 1
            counts[i] = used - kept
            biases[i] = bias[i - first]
        W[:n] = 0.0
        first = last
    return classes.size


@fast_kernel
def _descend(
    documents: NDArray[np.int32],
    targets: NDArray[np.float32],
    X: Csr,
    squares: NDArray[np.float32],
    lanes: int,
    solver: Solver,
    state: np.uint64,
    block: int,
    W: NDArray[np.float32],
    b: NDArray[np.float32],
) -> None:
    """Minimize |w|²/2 + Σ cost max(0, 1 − y (w·x + b))² for each lane, into W and b."""
    indptr, indices, values = X
    n = documents.size
    duals = np.zeros((n, LANES), np.float32)
    order, shrunk = np.arange(n, dtype=np.int32), np.empty(n, np.int32)
    score, change = np.empty(LANES, np.float32), np.zeros(LANES, np.float32)
    highest, lowest = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    highest_before = np.full(LANES, _INFINITY)
    halves = np.float32(0.5 / solver.costs[0]), np.float32(0.5 / solver.costs[1])
    active = n
    for _ in range(solver.max_iter):
        highest[:] = -_INFINITY
        lowest[:] = _INFINITY
        state = shuffle(order[:active], block, state)
        kept = 0
        for at in range(active):
            i = order[at]
            start, stop = indptr[documents[i]], indptr[documents[i] + 1]
            _scores(indices, values, start, stop, W, b, score)
            norm = squares[documents[i]] + np.float32(1.0)
            is_active, is_changed = False, False
            for lane in range(lanes):
                y, dual = targets[i, lane], duals[i, lane]
                diagonal = halves[0] if y > 0 else halves[1]
                gradient = y * score[lane] - np.float32(1.0) + diagonal * dual
                change[lane] = 0.0
                if dual == 0 and gradient > highest_before[lane]:
                    continue
                is_active = True
                projected = min(gradient, np.float32(0.0)) if dual == 0 else gradient
                highest[lane], lowest[lane] = max(highest[lane], projected), min(lowest[lane], projected)
                if projected != 0:
                    after = max(dual - gradient / (norm + diagonal), np.float32(0.0))
                    change[lane] = (after - dual) * y
                    duals[i, lane] = after
                    b[lane] += change[lane]
                    is_changed = True
            if not is_active:
                # Shrinking: its conditions hold by a margin, so it is skipped until the others have converged.
                shrunk[at - kept] = i
                continue
            order[kept] = i
            kept += 1
            if is_changed:
                _add(indices, values, start, stop, change, W)
        order[kept:active] = shrunk[: active - kept]
        active = kept
        is_converged = True
        for lane in range(lanes):
            is_converged &= highest[lane] - lowest[lane] <= solver.tolerance
            highest_before[lane] = highest[lane] if highest[lane] > 0 else _INFINITY
        if is_converged:
            if active == n:
                break
            active = n
            highest_before[:] = _INFINITY
