"""Linear classifiers of classes with the same documents, sixteen at a time.

Dual coordinate descent on the squared hinge loss: the method of LIBLINEAR (Hsieh et al. 2008, algorithm 3, L2-loss,
with shrinking). The classes of a group are trained on the same documents. A feature of a document is read once for
sixteen classes, whose weights lie side by side in memory: one cache line. Blocks of sixteen are formed in the order of
the classes, so the bits do not depend on threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from lightdxml.kernels import intrinsics as llvm
from lightdxml.kernels.jit import fast_kernel, kernel
from lightdxml.kernels.randomness import shuffle
from lightdxml.kernels.sparse import Csr, Pattern

LANES = 16
_VECTOR, _BITS = ir.VectorType(ir.FloatType(), LANES), ir.IntType(LANES)
_INFINITY = np.float32(np.inf)
# The documents of a group are copied side by side if they have at most this many entries.
MAX_COPIED = 1 << 21
# Otherwise the random order is one of blocks of this many documents, so that memory is read in sequence.
_BLOCK = 32
# Passes over all documents before `Solver.hard` applies to classes that start from scratch.
_FULL_PASSES = 2


class Solver(NamedTuple):
    """How classes are trained: minimize |w − prior|²/2 + (b − bias)²/(2 bias_rate) + Σ cost max(0, 1 − y (w·x + b))².

    Attributes
    ----------
    cost
        The cost of an error.
    bias, bias_rate
        Where the bias of a class starts, and how freely it is learned: 1 as another weight, 0 not at all.
    max_iter, tolerance
        The most passes over the documents, and the violation of the optimality conditions at which to stop.
    seed
        Seed of the order of documents.
    hard
        By how much documents must miss the margin to be visited: after two passes or, if all classes of a block start
        near their solution, from the first pass on. 0 for all documents that may matter.
    """

    cost: float
    bias: float
    bias_rate: float
    max_iter: int
    tolerance: float
    seed: int
    hard: float


def _constant(value: float) -> Any:
    return ir.Constant(_VECTOR, [value] * LANES)


def _write_visit(
    builder: Any,
    indices: Any,
    values: Any,
    start: Any,
    stop: Any,
    W: Any,
    b: Any,
    targets: Any,
    ignored: Any,
    duals: Any,
    i: Any,
    constants: Any,
    bounds: Any,
    outcome: Any,
) -> None:
    """Write a step of coordinate descent: the duals of one document in all lanes, and the weights that they change.

    Entries of `constants` are 1/(2 cost), the inverse of the second derivative, and the bias rate. Rows of `bounds` are
    the highest and lowest projected gradient of this pass, and the highest of the last pass. `outcome` receives whether
    the document is needed in any lane.
    """
    score = _write_scores(builder, indices, values, start, stop, W, b)
    lanes = ir.VectorType(ir.IntType(1), LANES)
    is_positive = builder.bitcast(builder.load(builder.gep(targets.data, [i])), lanes)
    is_ignored = builder.bitcast(builder.load(builder.gep(ignored.data, [i])), lanes)
    half, inverse = (_broadcast(builder, constants, k) for k in (0, 1))
    y = builder.select(is_positive, _constant(1.0), _constant(-1.0))
    dual_row = llvm.row_start(builder, duals, i)
    dual, zero = llvm.load_unaligned(builder, dual_row, _VECTOR), _constant(0.0)
    rows = [llvm.row_start(builder, bounds, i.type(k)) for k in range(3)]
    highest, lowest, before = (llvm.load_unaligned(builder, row, _VECTOR) for row in rows)
    error = _multiply_add(builder, y, score, _constant(-1.0))
    gradient = _multiply_add(builder, half, dual, error)
    is_zero = builder.fcmp_ordered("==", dual, zero)
    # Shrinking: the condition holds by a margin, so the document is skipped until the others have converged.
    is_skipped = builder.and_(is_zero, builder.fcmp_ordered(">", gradient, before))
    is_skipped = builder.or_(is_skipped, is_ignored)
    negative = builder.select(builder.fcmp_ordered("<", gradient, zero), gradient, zero)
    projected = builder.select(is_zero, negative, gradient)
    up = builder.select(builder.fcmp_ordered(">", projected, highest), projected, highest)
    down = builder.select(builder.fcmp_ordered("<", projected, lowest), projected, lowest)
    llvm.store_unaligned(builder, builder.select(is_skipped, highest, up), rows[0])
    llvm.store_unaligned(builder, builder.select(is_skipped, lowest, down), rows[1])
    after = builder.fsub(dual, builder.fmul(gradient, inverse))
    after = builder.select(builder.fcmp_ordered(">", after, zero), after, zero)
    is_still = builder.or_(is_skipped, builder.fcmp_ordered("==", projected, zero))
    after = builder.select(is_still, dual, after)
    is_needed = builder.icmp_unsigned("!=", builder.bitcast(is_skipped, _BITS), _BITS(2**LANES - 1))
    builder.store(builder.zext(is_needed, ir.IntType(64)), outcome.data)
    difference = builder.fsub(after, dual)
    is_changed = builder.bitcast(builder.fcmp_unordered("!=", difference, zero), _BITS)
    with builder.if_then(builder.icmp_unsigned("!=", is_changed, _BITS(0))):
        llvm.store_unaligned(builder, after, dual_row)
        change = builder.fmul(difference, y)
        bias = llvm.load_unaligned(builder, b.data, _VECTOR)
        bias = _multiply_add(builder, change, _broadcast(builder, constants, 2), bias)
        llvm.store_unaligned(builder, bias, b.data)
        _write_add(builder, indices, values, start, stop, change, W)


def _write_scores(builder: Any, indices: Any, values: Any, start: Any, stop: Any, W: Any, b: Any) -> Any:
    """Return the scores of one document in all lanes: two sums, of every other feature, and the bias."""
    sums = [llvm.cgutils.alloca_once(builder, _VECTOR) for _ in range(2)]
    builder.store(llvm.load_unaligned(builder, b.data, _VECTOR), sums[0])
    builder.store(ir.Constant(_VECTOR, None), sums[1])
    even = builder.and_(builder.sub(stop, start), start.type(-2))
    middle = builder.add(start, even)
    with llvm.cgutils.for_range_slice(builder, start, middle, start.type(2)) as (at, _):
        for k, total in enumerate(sums):
            _write_product(builder, indices, values, builder.add(at, at.type(k)), W, total)
    with builder.if_then(builder.icmp_signed("<", middle, stop)):
        _write_product(builder, indices, values, middle, W, sums[0])
    return builder.fadd(builder.load(sums[0]), builder.load(sums[1]))


def _write_product(builder: Any, indices: Any, values: Any, at: Any, W: Any, total: Any) -> None:
    """Add a feature's value times its weights to a sum."""
    pointer, value = _write_entry(builder, indices, values, at, W)
    weights = llvm.load_unaligned(builder, pointer, _VECTOR)
    builder.store(_multiply_add(builder, weights, value, builder.load(total)), total)


def _write_add(builder: Any, indices: Any, values: Any, start: Any, stop: Any, change: Any, W: Any) -> None:
    """Add a document to the weights of all lanes, times the change of its dual in each."""
    with llvm.cgutils.for_range_slice(builder, start, stop, start.type(1)) as (at, _):
        pointer, value = _write_entry(builder, indices, values, at, W)
        weights = llvm.load_unaligned(builder, pointer, _VECTOR)
        llvm.store_unaligned(builder, _multiply_add(builder, change, value, weights), pointer)


def _write_entry(builder: Any, indices: Any, values: Any, at: Any, W: Any) -> tuple[Any, Any]:
    """Return a pointer to the weights of a feature, and its value in all lanes."""
    column = builder.sext(builder.load(builder.gep(indices.data, [at])), at.type)
    value = builder.load(builder.gep(values.data, [at]))
    return builder.gep(W.data, [builder.mul(column, column.type(LANES))]), llvm.broadcast(builder, value, LANES)


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return builder.fadd(builder.fmul(a, b, flags=("contract",)), c, flags=("contract",))


def _broadcast(builder: Any, array: Any, k: int) -> Any:
    """Return entry k of an array in all lanes."""
    return llvm.broadcast(builder, builder.load(builder.gep(array.data, [ir.IntType(64)(k)])), LANES)


def _write_score(builder: Any, indices: Any, values: Any, start: Any, stop: Any, W: Any, b: Any, scores: Any) -> None:
    """Write the scores of one document in all lanes."""
    llvm.store_unaligned(builder, _write_scores(builder, indices, values, start, stop, W, b), scores.data)


_visit = llvm.intrinsic(_write_visit)
_score = llvm.intrinsic(_write_score)


@fast_kernel
def train_classes(
    classes: NDArray[np.int32],
    positives: Pattern,
    groups: NDArray[np.int32],
    members: Pattern,
    X: Csr,
    squares: NDArray[np.float32],
    document_weights: NDArray[np.float32],
    solver: Solver,
    prior: Csr,
    prior_biases: NDArray[np.float32],
    is_solved: NDArray[np.uint8],
    first_new: int,
    own: NDArray[np.int32],
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
    X, squares, document_weights
        The documents, the squared norm of each, and how much each counts.
    solver
        Costs, bias and stopping rule.
    prior, prior_biases
        Per class, the weights and the bias towards which it is regularized, where it starts; no rows for zero, and no
        biases for that of the solver.
    is_solved, first_new
        Per class, whether its prior solves the problem of all documents before `first_new`; empty if none does. It then
        contains what these documents have added to the weights.
    own
        Per class, a document that it is not trained on, -1 for none; empty if no class has one.
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
    position_of, touched = np.empty(W.shape[0], np.int32), np.empty(W.shape[0], np.int32)
    for column in range(W.shape[0]):
        position_of[column] = -1
    place_of = np.zeros(indptr.size - 1, np.int32)
    copied_indices, copied_values = np.empty(0, np.int32), np.empty(0, np.float32)
    copied = Csr(np.zeros(1, np.int64), copied_indices, copied_values)
    own_squares, own_weights, rows = np.empty(0, np.float32), np.empty(0, np.float32), np.empty(0, np.int32)
    begin, n_documents, n_earlier = 0, 0, 0
    targets, ignored, bias = np.empty(0, np.uint16), np.empty(0, np.uint16), np.empty(LANES, np.float32)
    group, n_touched, is_copied = np.int32(-1), 0, False
    used, first = 0, 0
    while first < classes.size:
        if columns.size - used < LANES * W.shape[0]:
            return first
        if groups[classes[first]] != group:
            for i in range(n_touched):
                position_of[touched[i]] = -1
            group = groups[classes[first]]
            begin = members.indptr[group]
            n_documents = members.indptr[group + 1] - begin
            n_earlier = 0
            while n_earlier < n_documents and members.indices[begin + n_earlier] < first_new:
                n_earlier += 1
            if rows.size < n_documents:
                rows, own_squares = np.empty(n_documents, np.int32), np.empty(n_documents, np.float32)
                own_weights = np.empty(n_documents, np.float32)
                targets, ignored = np.empty(n_documents, np.uint16), np.empty(n_documents, np.uint16)
            entries = 0
            for i in range(n_documents):
                document = members.indices[begin + i]
                place_of[document] = i
                entries += indptr[document + 1] - indptr[document]
                rows[i], own_squares[i], own_weights[i] = document, squares[document], document_weights[document]
            is_copied = entries <= max_copied
            n_touched = 0
            if is_copied:
                if copied_indices.size < entries:
                    copied_indices, copied_values = np.empty(entries, np.int32), np.empty(entries, np.float32)
                copied = Csr(np.empty(n_documents + 1, np.int64), copied_indices, copied_values)
                n_touched = _gather(rows, n_documents, X, position_of, touched, copied)
                for i in range(n_documents):
                    rows[i] = i
        last = first
        while last < classes.size and last - first < LANES and groups[classes[last]] == group:
            last += 1
        for i in range(n_documents):
            targets[i], ignored[i] = 0, 0
        for i in range(first, last):
            if own.size > 0 and own[classes[i]] >= 0:
                place = place_of[own[classes[i]]]
                if place < n_documents and members.indices[begin + place] == own[classes[i]]:
                    ignored[place] |= np.uint16(1) << np.uint16(i - first)
            for p in range(positives.indptr[classes[i]], positives.indptr[classes[i] + 1]):
                place = place_of[positives.indices[p]]
                if place < n_documents and members.indices[begin + place] == positives.indices[p]:
                    targets[place] |= np.uint16(1) << np.uint16(i - first)
        block, n = classes[first:last], n_touched if is_copied else W.shape[0]
        # The copy and the documents themselves may be arrays of different types, writable and not.
        if is_copied:
            _solve(
                block, rows, n_documents, n_earlier, targets, ignored, copied, own_squares, own_weights, solver, prior,
                prior_biases, is_solved, position_of, 1, W, bias,
            )  # fmt: skip
        else:
            _solve(
                block, rows, n_documents, n_earlier, targets, ignored, X, own_squares, own_weights, solver, prior,
                prior_biases, is_solved, position_of[:0], _BLOCK, W, bias,
            )  # fmt: skip
        for i in range(first, last):
            kept = used
            for j in range(n):
                column = touched[j] if is_copied else np.int32(j)
                weight = W[j, i - first]
                if abs(weight) >= prune_below[column]:
                    columns[used] = column
                    weights[used] = weight
                    used += 1
            if is_copied and classes[i] + 1 < prior.indptr.size:
                # No document of the group has these columns, so their weights stay as they are.
                for p in range(prior.indptr[classes[i]], prior.indptr[classes[i] + 1]):
                    column = prior.indices[p]
                    if position_of[column] < 0 and abs(prior.values[p]) >= prune_below[column]:
                        columns[used] = column
                        weights[used] = prior.values[p]
                        used += 1
            counts[i] = used - kept
            biases[i] = bias[i - first]
        for j in range(n):
            for lane in range(LANES):
                W[j, lane] = 0.0
        first = last
    return classes.size


@kernel
def _gather(
    documents: NDArray[np.int32],
    n_documents: int,
    X: Csr,
    position_of: NDArray[np.int32],
    touched: NDArray[np.int32],
    copied: Csr,
) -> int:
    """Copy documents side by side with their columns renumbered from 0; return how many columns there are.

    `position_of` receives the new number of each column.
    """
    indptr, indices, values = X
    copied_indptr, copied_indices, copied_values = copied
    n = 0
    at = 0
    for j in range(n_documents):
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
    copied_indptr[n_documents] = at
    return n


@fast_kernel
def _solve(
    block: NDArray[np.int32],
    rows: NDArray[np.int32],
    n_documents: int,
    n_earlier: int,
    targets: NDArray[np.uint16],
    ignored: NDArray[np.uint16],
    X: Csr,
    squares: NDArray[np.float32],
    weights: NDArray[np.float32],
    solver: Solver,
    prior: Csr,
    prior_biases: NDArray[np.float32],
    is_solved: NDArray[np.uint8],
    position_of: NDArray[np.int32],
    shuffled: int,
    W: NDArray[np.float32],
    bias: NDArray[np.float32],
) -> None:
    """Train the classes of a block on these rows of X, into W and `bias`.

    `position_of` is the row of W of each column; empty if it is the column itself. Only the first rows of W are used.
    """
    duals, is_warm = np.zeros((n_documents, LANES), np.float32), 0
    _load(block, prior, position_of, W)
    for lane in range(LANES):
        has_own = lane < block.size and prior_biases.size > 0
        bias[lane] = prior_biases[block[lane]] if has_own else np.float32(solver.bias)
        if lane < block.size and is_solved.size > 0 and is_solved[block[lane]]:
            is_warm |= 1 << lane
    if is_warm:
        _recover_duals(rows, n_earlier, targets, ignored, X, weights, is_warm, solver.cost, W, bias, duals)
    state = np.uint64(solver.seed) + np.uint64(block[0])
    # Classes near their solution need no full pass: the duals tell which of the earlier documents matter.
    are_warm = is_warm == (1 << block.size) - 1
    full_passes, first_unseen = (0, n_earlier) if are_warm else (_FULL_PASSES, n_documents)
    _descend(
        rows, n_documents, first_unseen, targets, ignored, X, squares, weights, block.size, solver, full_passes, state,
        shuffled, duals, W, bias,
    )  # fmt: skip


@kernel
def _load(block: NDArray[np.int32], rows: Csr, position_of: NDArray[np.int32], W: NDArray[np.float32]) -> None:
    """Write the weights of the classes of a block into their lanes, without columns that no document of it has."""
    for lane in range(block.size):
        if block[lane] + 1 < rows.indptr.size:
            for p in range(rows.indptr[block[lane]], rows.indptr[block[lane] + 1]):
                position = position_of[rows.indices[p]] if position_of.size > 0 else rows.indices[p]
                if position >= 0:
                    W[position, lane] = rows.values[p]


@fast_kernel
def _recover_duals(
    documents: NDArray[np.int32],
    n: int,
    targets: NDArray[np.uint16],
    ignored: NDArray[np.uint16],
    X: Csr,
    weights: NDArray[np.float32],
    is_warm: int,
    cost: float,
    W: NDArray[np.float32],
    b: NDArray[np.float32],
    duals: NDArray[np.float32],
) -> None:
    """Compute the duals of a solution from its weights: 2 cost (1 − y score), where that is positive."""
    indptr, indices, values = X
    scores = np.empty(LANES, np.float32)
    for i in range(n):
        _score(indices, values, indptr[documents[i]], indptr[documents[i] + 1], W, b, scores)
        scale = np.float32(2 * cost * weights[i])
        for lane in range(LANES):
            bit = 1 << lane
            margin = scores[lane] if targets[i] & bit else -scores[lane]
            if is_warm & bit and not ignored[i] & bit and margin < 1:
                duals[i, lane] = scale * (1 - margin)


@kernel
def _keep_hard(
    order: NDArray[np.int32],
    n: int,
    first_unseen: int,
    duals: NDArray[np.float32],
    weights: NDArray[np.float32],
    least: np.float32,
) -> int:
    """Move documents not seen yet, and those with a dual of at least this, times their weight, to the front.

    Return their number.
    """
    kept = 0
    for at in range(n):
        i = order[at]
        for lane in range(LANES):
            if i >= first_unseen or duals[i, lane] >= least * weights[i]:
                order[at], order[kept] = order[kept], i
                kept += 1
                break
    return kept


@fast_kernel
def _descend(
    documents: NDArray[np.int32],
    n: int,
    first_unseen: int,
    targets: NDArray[np.uint16],
    ignored: NDArray[np.uint16],
    X: Csr,
    squares: NDArray[np.float32],
    weights: NDArray[np.float32],
    lanes: int,
    solver: Solver,
    full_passes: int,
    state: np.uint64,
    block: int,
    duals: NDArray[np.float32],
    W: NDArray[np.float32],
    b: NDArray[np.float32],
) -> None:
    """Minimize the loss of each lane on n documents, into W and b, which hold the prior and what the duals add to it.

    `squares` and `weights` are the squared norms of these documents, one after the other, and how much each counts.
    Each pass visits them in a new random order of blocks. `full_passes` are those before `Solver.hard` applies. Without
    any, documents from `first_unseen` on are visited in all passes. Bit k of a target says whether the document is a
    positive of lane k, bit k of `ignored` whether lane k is not trained on it.
    """
    indptr, indices, values = X
    order, shrunk = np.empty(n, np.int32), np.empty(n, np.int32)
    for i in range(n):
        order[i] = i
    bounds = np.empty((3, LANES), np.float32)
    for lane in range(LANES):
        # Lanes without a class are always skipped.
        bounds[2, lane] = _INFINITY if lane < lanes else -_INFINITY
    constants, outcome = np.empty(3, np.float32), np.zeros(1, np.int64)
    constants[2] = np.float32(solver.bias_rate)
    active = n
    for number in range(solver.max_iter):
        if number == full_passes and solver.hard > 0:
            n = active = _keep_hard(order, n, first_unseen, duals, weights, np.float32(2 * solver.cost * solver.hard))
        for lane in range(LANES):
            bounds[0, lane], bounds[1, lane] = -_INFINITY, _INFINITY
        state = shuffle(order, active, block, state)
        kept = 0
        for at in range(active):
            i = order[at]
            document = documents[i]
            constants[0] = np.float32(0.5 / (solver.cost * weights[i]))
            constants[1] = 1 / (squares[i] + constants[2] + constants[0])
            _visit(
                indices, values, indptr[document], indptr[document + 1], W, b, targets, ignored, duals, i, constants,
                bounds, outcome,
            )  # fmt: skip
            if outcome[0] == 0:
                shrunk[at - kept] = i
            else:
                order[kept] = i
                kept += 1
        for at in range(kept, active):
            order[at] = shrunk[at - kept]
        active = kept
        is_converged = True
        for lane in range(lanes):
            is_converged &= bounds[0, lane] - bounds[1, lane] <= solver.tolerance
            bounds[2, lane] = bounds[0, lane] if bounds[0, lane] > 0 else _INFINITY
        if is_converged:
            if active == n:
                break
            active = n
            for lane in range(lanes):
                bounds[2, lane] = _INFINITY
