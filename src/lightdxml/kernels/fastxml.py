"""Trees of documents as in FastXML: grow one, and send documents down a forest of them.

A node divides its documents in two steps. First the documents change sides until both sides rank their own labels well
(nDCG). Then a linear separator learns the sides from the features, and the documents go to the side where it puts them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels import l1_logistic
from lightdxml.kernels.inverted_index import push
from lightdxml.kernels.jit import kernel
from lightdxml.kernels.l1_logistic import Limits
from lightdxml.kernels.randomness import next_below
from lightdxml.kernels.sorting import sort_by_score, sort_with_values
from lightdxml.kernels.sparse import Csr

# Documents stop to change sides when the mean nDCG grows by less.
_MIN_GAIN = 1e-6


class Documents(NamedTuple):
    """Training documents.

    Attributes
    ----------
    X
        Their features.
    labels
        Their labels, with what each is worth in a leaf.
    gains
        What each of these labels is worth when it is ranked first.
    """

    X: Csr
    labels: Csr
    gains: NDArray[np.float64]


class Growth(NamedTuple):
    """How a tree is grown.

    Attributes
    ----------
    n_features, n_labels
        Numbers of columns.
    leaf_size
        The most documents of a node that is not divided.
    leaf_labels
        The most labels that a leaf keeps.
    cost
        The cost of errors of a separator, relative to its L1 norm.
    limits
        When the training of a separator stops.
    """

    n_features: int
    n_labels: int
    leaf_size: int
    leaf_labels: int
    cost: float
    limits: Limits


class Trees(NamedTuple):
    """One tree or several.

    Attributes
    ----------
    children
        The two children of each node, -1 for leaves: those with a product below 0, and the others.
    weights
        The separator of each node by feature; leaves have none.
    labels
        The labels of each leaf and their scores; other nodes have none.
    """

    children: NDArray[np.int32]
    weights: Csr
    labels: Csr


class _Rows(NamedTuple):
    """Sparse rows under construction: the first `indptr[n]` entries are those of the first n rows."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]


class _Workspace(NamedTuple):
    """The number that a feature or label has within the current node, -1 for none; entries by column."""

    feature_slots: NDArray[np.int32]
    label_slots: NDArray[np.int32]
    rows: NDArray[np.int32]
    values: NDArray[np.float32]


@kernel
def grow(documents: Documents, discounts: NDArray[np.float64], growth: Growth, seed: int) -> Trees:
    """Return a tree, whose node 0 is the root; `discounts` is what each rank is worth, from the first on."""
    n = documents.X.indptr.size - 1
    order, state = np.arange(n).astype(np.int32), np.array([seed], np.uint64)
    spans, children = np.empty((2 * n + 1, 2), np.int64), np.full((2 * n + 1, 2), -1, np.int32)
    workspace = _Workspace(
        np.full(growth.n_features, -1, np.int32),
        np.full(growth.n_labels, -1, np.int32),
        np.empty(documents.X.indices.size, np.int32),
        np.empty(documents.X.indices.size, np.float32),
    )
    weights, labels = _no_rows(2 * n + 1), _no_rows(2 * n + 1)
    spans[0, 0], spans[0, 1] = 0, n
    node, n_nodes = 0, 1
    while node < n_nodes:
        first, last = spans[node]
        members = order[first:last]
        features, values, n_left = _split(members, documents, discounts, growth, workspace, state)
        if 0 < n_left < members.size:
            weights, labels = _append(weights, node, features, values), _append(labels, node, features[:0], values[:0])
            children[node, 0], children[node, 1] = n_nodes, n_nodes + 1
            spans[n_nodes, 0], spans[n_nodes, 1] = first, first + n_left
            spans[n_nodes + 1, 0], spans[n_nodes + 1, 1] = first + n_left, last
            n_nodes += 2
        else:
            best, scores = _leaf(members, documents.labels, growth.leaf_labels, workspace.label_slots)
            weights, labels = _append(weights, node, best[:0], scores[:0]), _append(labels, node, best, scores)
        node += 1
    return Trees(children[:n_nodes].copy(), _trimmed(weights, n_nodes), _trimmed(labels, n_nodes))


@kernel
def _no_rows(n: int) -> _Rows:
    return _Rows(np.zeros(n + 1, np.int64), np.empty(1024, np.int32), np.empty(1024, np.float32))


@kernel
def _append(rows: _Rows, row: int, indices: NDArray[np.int32], values: NDArray[np.float32]) -> _Rows:
    """Return the rows with another one, in arrays of twice the size if they are full."""
    first = rows.indptr[row]
    last = first + indices.size
    all_indices, all_values = rows.indices, rows.values
    if last > all_indices.size:
        all_indices, all_values = np.empty(2 * last, np.int32), np.empty(2 * last, np.float32)
        all_indices[:first], all_values[:first] = rows.indices[:first], rows.values[:first]
    all_indices[first:last], all_values[first:last] = indices, values
    rows.indptr[row + 1] = last
    return _Rows(rows.indptr, all_indices, all_values)


@kernel
def _trimmed(rows: _Rows, n: int) -> Csr:
    size = rows.indptr[n]
    return Csr(rows.indptr[: n + 1].copy(), rows.indices[:size].copy(), rows.values[:size].copy())


@kernel
def _split(
    members: NDArray[np.int32],
    documents: Documents,
    discounts: NDArray[np.float64],
    growth: Growth,
    workspace: _Workspace,
    state: NDArray[np.uint64],
) -> tuple[NDArray[np.int32], NDArray[np.float32], int]:
    """Order the members by side; return the features and weights that decide it, and how many are on the left.

    All or none of them are on the left if they cannot be divided.
    """
    if members.size > growth.leaf_size:
        sides = _label_sides(members, documents, discounts, workspace, state)
        if _has_both(sides):
            features, weights, sides = _separate(members, sides, documents.X, growth, workspace, state)
            return features, weights, _divide(members, sides)
    return np.empty(0, np.int32), np.empty(0, np.float32), 0


@kernel
def _has_both(sides: NDArray[np.bool_]) -> bool:
    for side in sides:
        if side != sides[0]:
            return True
    return False


@kernel
def _divide(members: NDArray[np.int32], sides: NDArray[np.bool_]) -> int:
    """Move the members of side 0 to the front, keeping their order otherwise; return how many these are."""
    before, left = members.copy(), 0
    for i in range(before.size):
        left += not sides[i]
    a, b = 0, left
    for i in range(before.size):
        if sides[i]:
            members[b] = before[i]
            b += 1
        else:
            members[a] = before[i]
            a += 1
    return left


@kernel
def _labels_of(members: NDArray[np.int32], labels: Csr, slots: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the labels of these documents in ascending order, and give each its position in `slots`."""
    n_entries = 0
    for member in members:
        n_entries += labels.indptr[member + 1] - labels.indptr[member]
    found, n = np.empty(min(n_entries, slots.size), np.int32), 0
    for member in members:
        for p in range(labels.indptr[member], labels.indptr[member + 1]):
            if slots[labels.indices[p]] < 0:
                slots[labels.indices[p]] = 0
                found[n] = labels.indices[p]
                n += 1
    found = found[:n]
    sort_with_values(found, np.empty(n, np.int32))
    for i in range(n):
        slots[found[i]] = i
    return found


@kernel
def _label_sides(
    members: NDArray[np.int32],
    documents: Documents,
    discounts: NDArray[np.float64],
    workspace: _Workspace,
    state: NDArray[np.uint64],
) -> NDArray[np.bool_]:
    """Return a side of each document such that both sides rank the labels of their documents well, from random sides.

    Each side ranks all labels of the node by what they are worth to its documents, and each document goes to the side
    with the better ranking for it, until the mean nDCG grows no more.
    """
    active = _labels_of(members, documents.labels, workspace.label_slots)
    worth = np.empty((2, active.size), np.float64)
    sides = np.empty(members.size, np.bool_)
    for i in range(members.size):
        sides[i] = next_below(state, 2) == 1
    before = -np.inf
    while True:
        gain = _rank(members, sides, documents, workspace.label_slots, discounts, worth) / members.size
        _change_sides(members, documents, workspace.label_slots, worth, sides)
        if gain - before < _MIN_GAIN:
            break
        before = gain
    for label in active:
        workspace.label_slots[label] = -1
    return sides


@kernel
def _rank(
    members: NDArray[np.int32],
    sides: NDArray[np.bool_],
    documents: Documents,
    slots: NDArray[np.int32],
    discounts: NDArray[np.float64],
    worth: NDArray[np.float64],
) -> float:
    """Fill `worth` with the discount of each label's rank on each side; return the total gain. Ties go by label."""
    indptr, labels = documents.labels.indptr, documents.labels.indices
    sums = np.zeros(worth.shape, np.float64)
    for i in range(members.size):
        own = sums[np.int64(sides[i])]
        for p in range(indptr[members[i]], indptr[members[i] + 1]):
            own[slots[labels[p]]] += documents.gains[p]
    gain = 0.0
    for side in range(2):
        ranked = np.arange(worth.shape[1]).astype(np.int32)
        sort_by_score(ranked, sums[side])
        for rank in range(ranked.size):
            worth[side, ranked[rank]] = discounts[rank]
            gain += discounts[rank] * sums[side, rank]
    return gain


@kernel
def _change_sides(
    members: NDArray[np.int32],
    documents: Documents,
    slots: NDArray[np.int32],
    worth: NDArray[np.float64],
    sides: NDArray[np.bool_],
) -> None:
    """Move each document to the side whose ranking is better for it; it stays if both are as good."""
    indptr, labels = documents.labels.indptr, documents.labels.indices
    for i in range(members.size):
        difference = 0.0
        for p in range(indptr[members[i]], indptr[members[i] + 1]):
            slot = slots[labels[p]]
            difference += documents.gains[p] * (worth[1, slot] - worth[0, slot])
        if difference != 0:
            sides[i] = difference > 0


@kernel
def _separate(
    members: NDArray[np.int32],
    sides: NDArray[np.bool_],
    X: Csr,
    growth: Growth,
    workspace: _Workspace,
    state: NDArray[np.uint64],
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.bool_]]:
    """Learn sides of documents; return the features and weights of the separator, and the sides by it.

    Errors on both sides cost as much in total.
    """
    features, columns = _by_column(members, X, workspace)
    n_right = 0
    for side in sides:
        n_right += side
    costs = np.empty(sides.size, np.float64)
    for i in range(sides.size):
        costs[i] = growth.cost * sides.size / (n_right if sides[i] else sides.size - n_right)
    weights = l1_logistic.fit(columns, sides, costs, growth.limits, state)
    kept = np.flatnonzero(weights.astype(np.float32)).astype(np.int32)
    kept_features = features[kept]
    sort_with_values(kept_features, kept)
    kept_weights = weights[kept].astype(np.float32)
    # As in prediction, to the bit: sums over features in ascending order.
    products = np.zeros(sides.size, np.float64)
    for i in range(kept.size):
        for p in range(columns.indptr[kept[i]], columns.indptr[kept[i] + 1]):
            products[columns.indices[p]] += np.float64(kept_weights[i]) * columns.values[p]
    return kept_features, kept_weights, products >= 0


@kernel
def _by_column(members: NDArray[np.int32], X: Csr, workspace: _Workspace) -> tuple[NDArray[np.int32], Csr]:
    """Return the features of these documents, and their entries by feature with the positions of the documents."""
    slots, n_entries = workspace.feature_slots, 0
    for member in members:
        n_entries += X.indptr[member + 1] - X.indptr[member]
    features, n = np.empty(min(n_entries, slots.size), np.int32), 0
    ends = np.zeros(features.size + 1, np.int64)
    for member in members:
        for p in range(X.indptr[member], X.indptr[member + 1]):
            feature = X.indices[p]
            if slots[feature] < 0:
                slots[feature] = n
                features[n] = feature
                n += 1
            ends[slots[feature] + 1] += 1
    features, ends = features[:n], ends[: n + 1]
    for j in range(n):
        ends[j + 1] += ends[j]
    starts = ends[:n].copy()
    for i in range(members.size):
        for p in range(X.indptr[members[i]], X.indptr[members[i] + 1]):
            slot = slots[X.indices[p]]
            workspace.rows[starts[slot]], workspace.values[starts[slot]] = i, X.values[p]
            starts[slot] += 1
    for feature in features:
        slots[feature] = -1
    return features, Csr(ends, workspace.rows[:n_entries], workspace.values[:n_entries])


@kernel
def _leaf(
    members: NDArray[np.int32], labels: Csr, n_kept: int, slots: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the labels that are worth most to these documents, in ascending order, and their mean worth."""
    active = _labels_of(members, labels, slots)
    sums = np.zeros(active.size, np.float64)
    for member in members:
        for p in range(labels.indptr[member], labels.indptr[member + 1]):
            sums[slots[labels.indices[p]]] += labels.values[p]
    best, scores = np.empty(min(n_kept, active.size), np.int32), np.empty(min(n_kept, active.size), np.float32)
    size = 0
    for i in range(active.size):
        size = push(best, scores, size, active[i], np.float32(sums[i] / members.size))
        slots[active[i]] = -1
    sort_with_values(best, scores)
    return best, scores


@kernel
def rank(
    start: int,
    stop: int,
    X: Csr,
    trees: Trees,
    roots: NDArray[np.int32],
    x: NDArray[np.float32],
    totals: NDArray[np.float64],
    found: NDArray[np.int32],
    scores: NDArray[np.float32],
) -> None:
    """Fill found[start:stop] with the labels of the highest mean over the trees, in any order, and `scores` with it.

    Parameters
    ----------
    X
        The documents, without the bias feature.
    roots
        The root of each tree.
    x, totals
        Workspace with one entry per feature and per label, all zero before and after but the last feature, the bias.
    found, scores
        Receive -1 and 0 if there are fewer labels.
    """
    touched = np.empty(totals.size, np.int32)
    for b in range(start, stop):
        for p in range(X.indptr[b], X.indptr[b + 1]):
            x[X.indices[p]] = X.values[p]
        n = 0
        for root in roots:
            n = _add_leaf(trees, _descend(trees, root, x), totals, touched, n)
        for p in range(X.indptr[b], X.indptr[b + 1]):
            x[X.indices[p]] = 0.0
        best, best_scores, size = found[b], scores[b], 0
        for i in range(n):
            size = push(best, best_scores, size, touched[i], np.float32(totals[touched[i]] / roots.size))
            totals[touched[i]] = 0.0
        for i in range(size, best.size):
            best[i], best_scores[i] = -1, 0.0


@kernel
def _descend(trees: Trees, node: int, x: NDArray[np.float32]) -> int:
    """Return the leaf of a document."""
    indptr, features, weights = trees.weights
    while trees.children[node, 0] >= 0:
        product = 0.0
        for p in range(indptr[node], indptr[node + 1]):
            product += np.float64(weights[p]) * x[features[p]]
        node = trees.children[node, np.int64(product >= 0)]
    return node


@kernel
def _add_leaf(trees: Trees, leaf: int, totals: NDArray[np.float64], touched: NDArray[np.int32], n: int) -> int:
    """Add the scores of a leaf to the totals; append labels without a total to the first n of `touched`."""
    indptr, labels, scores = trees.labels
    for p in range(indptr[leaf], indptr[leaf + 1]):
        if totals[labels[p]] == 0:
            touched[n] = labels[p]
            n += 1
        totals[labels[p]] += scores[p]
    return n


def joined(trees: list[Trees]) -> tuple[Trees, NDArray[np.int32]]:
    """Return several trees as one structure, and the root of each."""
    sizes = np.array([len(tree.children) for tree in trees])
    roots = (np.cumsum(sizes) - sizes).astype(np.int32)
    children = [np.where(tree.children < 0, -1, tree.children + root) for tree, root in zip(trees, roots, strict=True)]
    weights, labels = _joined_rows([tree.weights for tree in trees]), _joined_rows([tree.labels for tree in trees])
    return Trees(np.concatenate(children).astype(np.int32), weights, labels), roots


def _joined_rows(parts: list[Csr]) -> Csr:
    counts: Any = np.concatenate([np.diff(part.indptr) for part in parts])
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    indices = np.concatenate([part.indices for part in parts])
    return Csr(indptr, indices, np.concatenate([part.values for part in parts]))
