"""Trees of documents as in FastXML: grow one, and send documents down a forest of them.

A node divides its documents in two steps. First the documents change sides until both sides rank their own labels well
(nDCG). Then a linear separator learns the sides from the features, and the documents go to the side where it puts them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels import l1_logistic
from lightdxml.kernels.forest import Trees, add_leaf, append, labels_of, leaf, no_rows, take_best, trimmed
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


class _Workspace(NamedTuple):
    """The number that a feature or label has within the current node, -1 for none; entries by column."""

    feature_slots: NDArray[np.int32]
    label_slots: NDArray[np.int32]
    rows: NDArray[np.int32]
    values: NDArray[np.float32]


@kernel
def grow(documents: Documents, discounts: NDArray[np.float64], growth: Growth, seed: int) -> Trees:
    """Return a tree; `discounts` is what each rank is worth, from the first on.

    Its node 0 is the root. A node with children has a separator: its first child takes products below 0.
    """
    n = documents.X.indptr.size - 1
    order, state = np.arange(n).astype(np.int32), np.array([seed], np.uint64)
    spans, children = np.empty((2 * n + 1, 2), np.int64), np.full((2 * n + 1, 2), -1, np.int32)
    workspace = _Workspace(
        np.full(growth.n_features, -1, np.int32),
        np.full(growth.n_labels, -1, np.int32),
        np.empty(documents.X.indices.size, np.int32),
        np.empty(documents.X.indices.size, np.float32),
    )
    weights, labels = no_rows(2 * n + 1), no_rows(2 * n + 1)
    spans[0, 0], spans[0, 1] = 0, n
    node, n_nodes = 0, 1
    while node < n_nodes:
        first, last = spans[node]
        members = order[first:last]
        features, values, n_left = _split(members, documents, discounts, growth, workspace, state)
        if 0 < n_left < members.size:
            weights, labels = append(weights, node, features, values), append(labels, node, features[:0], values[:0])
            children[node, 0], children[node, 1] = n_nodes, n_nodes + 1
            spans[n_nodes, 0], spans[n_nodes, 1] = first, first + n_left
            spans[n_nodes + 1, 0], spans[n_nodes + 1, 1] = first + n_left, last
            n_nodes += 2
        else:
            best, scores = leaf(members, documents.labels, growth.leaf_labels, workspace.label_slots)
            weights, labels = append(weights, node, best[:0], scores[:0]), append(labels, node, best, scores)
        node += 1
    return Trees(children[:n_nodes].copy(), trimmed(weights, n_nodes), trimmed(labels, n_nodes))


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
    active = labels_of(members, documents.labels, workspace.label_slots)
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
            n = add_leaf(trees.labels, _descend(trees, root, x), totals, touched, n)
        for p in range(X.indptr[b], X.indptr[b + 1]):
            x[X.indices[p]] = 0.0
        take_best(totals, touched[:n], roots.size, found[b], scores[b])


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
