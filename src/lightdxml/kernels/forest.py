"""Trees of documents: their leaves, and the arrays that hold them while they grow and afterwards."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.inverted_index import push
from lightdxml.kernels.jit import kernel
from lightdxml.kernels.sorting import sort_with_values
from lightdxml.kernels.sparse import Csr


class Trees(NamedTuple):
    """One tree or several.

    Attributes
    ----------
    children
        The first and the last child of each node, whose numbers follow one another; -1 for leaves.
    weights
        What decides where documents go, by feature: of each node with children, or of each child.
    labels
        The labels of each leaf and their scores; other nodes have none.
    """

    children: NDArray[np.int32]
    weights: Csr
    labels: Csr


class Rows(NamedTuple):
    """Sparse rows under construction: the first `indptr[n]` entries are those of the first n rows."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]


@kernel
def no_rows(n: int) -> Rows:
    """Return space for n rows."""
    return Rows(np.zeros(n + 1, np.int64), np.empty(1024, np.int32), np.empty(1024, np.float32))


@kernel
def append(rows: Rows, row: int, indices: NDArray[np.int32], values: NDArray[np.float32]) -> Rows:
    """Return the rows with another one, in arrays of twice the size if they are full."""
    first = rows.indptr[row]
    last = first + indices.size
    all_indices, all_values = rows.indices, rows.values
    if last > all_indices.size:
        all_indices, all_values = np.empty(2 * last, np.int32), np.empty(2 * last, np.float32)
        all_indices[:first], all_values[:first] = rows.indices[:first], rows.values[:first]
    all_indices[first:last], all_values[first:last] = indices, values
    rows.indptr[row + 1] = last
    return Rows(rows.indptr, all_indices, all_values)


@kernel
def trimmed(rows: Rows, n: int) -> Csr:
    """Return the first n rows without unused space."""
    size = rows.indptr[n]
    return Csr(rows.indptr[: n + 1].copy(), rows.indices[:size].copy(), rows.values[:size].copy())


@kernel
def labels_of(members: NDArray[np.int32], labels: Csr, slots: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the labels of these documents in ascending order, and give each its position in `slots`, all -1 before."""
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
def leaf(
    members: NDArray[np.int32], labels: Csr, n_kept: int, slots: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the labels that are worth most to these documents, in ascending order, and their mean worth.

    `slots` has a -1 for each label, before and after.
    """
    active = labels_of(members, labels, slots)
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
def add_leaf(labels: Csr, leaf: int, totals: NDArray[np.float64], touched: NDArray[np.int32], n: int) -> int:
    """Add the scores of a leaf to the totals; append labels without a total to the first n of `touched`."""
    for p in range(labels.indptr[leaf], labels.indptr[leaf + 1]):
        label = labels.indices[p]
        if totals[label] == 0:
            touched[n] = label
            n += 1
        totals[label] += labels.values[p]
    return n


@kernel
def take_best(
    totals: NDArray[np.float64], touched: NDArray[np.int32], n_trees: int, best: NDArray[np.int32],
    scores: NDArray[np.float32],
) -> None:  # fmt: skip
    """Fill `best` with the labels of the highest totals, in any order, and `scores` with their means over the trees.

    Both receive -1 and 0 if there are fewer labels. All totals of touched labels become 0.
    """
    size = 0
    for label in touched:
        size = push(best, scores, size, label, np.float32(totals[label] / n_trees))
        totals[label] = 0.0
    for i in range(size, best.size):
        best[i], scores[i] = -1, 0.0


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
