"""Trees of documents as in CRAFTML: grow one, and send documents down a forest of them.

A node divides its documents in two steps. Spherical k-means finds clusters of their labels. Then the documents of each
cluster get a centroid of their features, and all documents of the node go to the nearest centroid. Features and labels
are hashed: each tree sees other ones together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels import randomness
from lightdxml.kernels.forest import Trees, add_leaf, append, leaf, no_rows, take_best, trimmed
from lightdxml.kernels.inverted_index import push
from lightdxml.kernels.jit import kernel
from lightdxml.kernels.sorting import sort_with_values
from lightdxml.kernels.sparse import Csr

# k-means++ draws documents by 1.5 less the cosine to the nearest start, if that is not as good as 1.
_FARTHEST, _SAME = 1.5, 1 - 1e-4


class Growth(NamedTuple):
    """How a tree is grown.

    Attributes
    ----------
    leaf_size
        The most documents of a node that is not divided.
    feature_buckets, label_buckets
        Numbers of buckets that features and labels are hashed into.
    clusters, rounds, sample
        The most clusters of a node, the rounds of k-means, and the most documents that it looks at.
    kept_share, least_kept
        The share of the features of a centroid that is kept, and how many are kept at least.
    """

    leaf_size: int
    feature_buckets: int
    label_buckets: int
    clusters: int
    rounds: int
    sample: int
    kept_share: float
    least_kept: int


class _Sums(NamedTuple):
    """Sums of rows by cluster: columns × clusters, and the columns whose sums may not be 0."""

    values: NDArray[np.float64]
    is_touched: NDArray[np.bool_]
    touched: NDArray[np.int32]


@kernel
def hashed(X: Csr, n_buckets: int, seed: int) -> Csr:
    """Return rows of length 1, in which columns of the same bucket are added up, each with a random sign."""
    indptr, size = np.zeros(X.indptr.size, np.int64), 0
    buckets, values = np.empty(X.indices.size, np.int32), np.empty(X.indices.size, np.float32)
    totals, slots = np.zeros(n_buckets, np.float64), np.full(n_buckets, -1, np.int64)
    for i in range(X.indptr.size - 1):
        first = size
        for p in range(X.indptr[i], X.indptr[i + 1]):
            bucket, sign = _bucket(X.indices[p], n_buckets, seed)
            if slots[bucket] < 0:
                slots[bucket] = size
                buckets[size] = bucket
                size += 1
            totals[bucket] += sign * X.values[p]
        square = 0.0
        for p in range(first, size):
            square += totals[buckets[p]] ** 2
        for p in range(first, size):
            values[p] = totals[buckets[p]] / np.sqrt(square) if square > 0 else 0.0
            totals[buckets[p]], slots[buckets[p]] = 0.0, -1
        indptr[i + 1] = size
    return Csr(indptr, buckets[:size].copy(), values[:size].copy())


@kernel
def _bucket(column: int, n_buckets: int, seed: int) -> tuple[int, float]:
    state = randomness.stream(seed, column)
    return randomness.below(state, n_buckets), 1.0 if state & np.uint64(1) else -1.0


@kernel
def grow(X: Csr, Y: Csr, labels: Csr, growth: Growth, seed: int) -> Trees:
    """Return a tree of documents with these hashed features, hashed labels, and labels.

    Its node 0 is the root. All other nodes have a centroid.
    """
    n = labels.indptr.size - 1
    n_labels = 1 + labels.indices.max() if labels.indices.size else 0
    order, state, slots = np.arange(n).astype(np.int32), np.array([seed], np.uint64), np.full(n_labels, -1, np.int32)
    spans, children = np.empty((2 * n + 1, 2), np.int64), np.full((2 * n + 1, 2), -1, np.int32)
    features, targets = (
        _no_sums(growth.feature_buckets, growth.clusters),
        _no_sums(growth.label_buckets, growth.clusters),
    )
    none, nothing = np.empty(0, np.int32), np.empty(0, np.float32)
    weights, leaves = append(no_rows(2 * n + 1), 0, none, nothing), no_rows(2 * n + 1)
    spans[0, 0], spans[0, 1] = 0, n
    node, n_nodes = 0, 1
    while node < n_nodes:
        first, last = spans[node]
        members = order[first:last]
        n_children = 0
        if members.size > growth.leaf_size:
            some = _sample(members, growth.sample, state)
            clusters, n_clusters = _label_clusters(some, Y, growth, targets, state)
            centroids = _centroids(some, clusters, n_clusters, X, growth, features)
            clusters = _nearest_centroid(members, X, centroids, n_clusters, features)
            ends = _divide(members, clusters, n_clusters)
            for c in range(n_clusters):
                n_children += ends[c + 1] > ends[c]
        if n_children > 1:
            leaves = append(leaves, node, none, nothing)
            children[node, 0], children[node, 1] = n_nodes, n_nodes + n_children - 1
            for c in range(n_clusters):
                if ends[c + 1] > ends[c]:
                    own, stop = centroids.indptr[c], centroids.indptr[c + 1]
                    weights = append(weights, n_nodes, centroids.indices[own:stop], centroids.values[own:stop])
                    spans[n_nodes, 0], spans[n_nodes, 1] = first + ends[c], first + ends[c + 1]
                    n_nodes += 1
        else:
            best, scores = leaf(members, labels, n_labels, slots)
            leaves = append(leaves, node, best, scores)
        node += 1
    return Trees(children[:n_nodes].copy(), trimmed(weights, n_nodes), trimmed(leaves, n_nodes))


@kernel
def _no_sums(n_columns: int, n_clusters: int) -> _Sums:
    values = np.zeros((n_columns, n_clusters), np.float64)
    return _Sums(values, np.zeros(n_columns, np.bool_), np.empty(n_columns, np.int32))


@kernel
def _sample(members: NDArray[np.int32], size: int, state: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Return that many of these documents at random, or all."""
    some: NDArray[np.int32] = members.copy()
    if size >= some.size:
        return some
    for i in range(size):
        j = i + randomness.next_below(state, some.size - i)
        some[i], some[j] = some[j], some[i]
    return some[:size]


@kernel
def _label_clusters(
    members: NDArray[np.int32], Y: Csr, growth: Growth, sums: _Sums, state: NDArray[np.uint64]
) -> tuple[NDArray[np.int32], int]:
    """Return the cluster of each document by its labels, and the number of clusters: spherical k-means."""
    clusters, n_clusters = _start(members, Y, growth.clusters, sums, state)
    for _ in range(growth.rounds):
        n_clusters = _renumber(clusters, n_clusters)
        n_touched = _add_up(members, clusters, Y, sums)
        for c in range(n_clusters):
            _scale(sums, n_touched, c)
        for i in range(members.size):
            clusters[i] = _nearest(Y, members[i], sums.values, n_clusters)
        _clear(sums, n_touched)
    return clusters, _renumber(clusters, n_clusters)


@kernel
def _start(
    members: NDArray[np.int32], Y: Csr, k: int, sums: _Sums, state: NDArray[np.uint64]
) -> tuple[NDArray[np.int32], int]:
    """Draw documents that are far from each other by their labels; return the nearest of these for each document."""
    clusters, cosines = np.zeros(members.size, np.int32), np.zeros(members.size, np.float64)
    start = sums.values[:, 0]
    for c in range(k):
        drawn = _draw(cosines, state)
        if drawn < 0:
            return clusters, c
        first, last = Y.indptr[members[drawn]], Y.indptr[members[drawn] + 1]
        for p in range(first, last):
            start[Y.indices[p]] = Y.values[p]
        for i in range(members.size):
            cosine = 0.0
            for p in range(Y.indptr[members[i]], Y.indptr[members[i] + 1]):
                cosine += Y.values[p] * start[Y.indices[p]]
            if cosine > cosines[i]:
                clusters[i], cosines[i] = c, cosine
        for p in range(first, last):
            start[Y.indices[p]] = 0.0
    return clusters, k


@kernel
def _draw(cosines: NDArray[np.float64], state: NDArray[np.uint64]) -> int:
    """Return a random position, rather one with a low cosine; -1 if all are as good as 1."""
    total = 0.0
    for cosine in cosines:
        total += _FARTHEST - cosine if cosine <= _SAME else 0.0
    state[0] = randomness.advance(state[0])
    left, last = randomness.uniform(state[0]) * total, -1
    for i in range(cosines.size):
        if cosines[i] <= _SAME:
            last = i
            left -= _FARTHEST - cosines[i]
            if left < 0:
                break
    return last


@kernel
def _renumber(clusters: NDArray[np.int32], n_clusters: int) -> int:
    """Leave out empty clusters; return how many there are."""
    numbers, n = np.full(n_clusters, -1, np.int32), 0
    for cluster in clusters:
        numbers[cluster] = 0
    for c in range(n_clusters):
        if numbers[c] == 0:
            numbers[c] = n
            n += 1
    for i in range(clusters.size):
        clusters[i] = numbers[clusters[i]]
    return n


@kernel
def _add_up(members: NDArray[np.int32], clusters: NDArray[np.int32], rows: Csr, sums: _Sums) -> int:
    """Add the rows of each cluster up; return the number of touched columns."""
    n = 0
    for i in range(members.size):
        for p in range(rows.indptr[members[i]], rows.indptr[members[i] + 1]):
            column = rows.indices[p]
            sums.values[column, clusters[i]] += rows.values[p]
            if not sums.is_touched[column]:
                sums.is_touched[column] = True
                sums.touched[n] = column
                n += 1
    return n


@kernel
def _scale(sums: _Sums, n_touched: int, cluster: int) -> None:
    """Make the sums of a cluster a vector of length 1."""
    square = 0.0
    for at in range(n_touched):
        square += sums.values[sums.touched[at], cluster] ** 2
    for at in range(n_touched):
        sums.values[sums.touched[at], cluster] /= np.sqrt(square) if square > 0 else 1.0


@kernel
def _clear(sums: _Sums, n_touched: int) -> None:
    for at in range(n_touched):
        sums.values[sums.touched[at]] = 0.0
        sums.is_touched[sums.touched[at]] = False


@kernel
def _nearest(rows: Csr, row: int, centroids: NDArray[np.float64], n_clusters: int) -> int:
    """Return the cluster whose centroid has the greatest product with a row, the first one of several."""
    products = np.zeros(n_clusters, np.float64)
    for p in range(rows.indptr[row], rows.indptr[row + 1]):
        centroid = centroids[rows.indices[p]]
        for c in range(n_clusters):
            products[c] += rows.values[p] * centroid[c]
    best = 0
    for c in range(1, n_clusters):
        if products[c] > products[best]:
            best = c
    return best


@kernel
def _centroids(
    members: NDArray[np.int32], clusters: NDArray[np.int32], n_clusters: int, X: Csr, growth: Growth, sums: _Sums
) -> Csr:
    """Return the sum of the features of each cluster at length 1, with the greatest entries only.

    Great, not far from 0: signs are random, so each tree prefers another half of the features.
    """
    n_touched = _add_up(members, clusters, X, sums)
    rows = no_rows(n_clusters)
    for c in range(n_clusters):
        n = 0
        for at in range(n_touched):
            n += sums.values[sums.touched[at], c] != 0
        n_kept = min(n, max(growth.least_kept, int(np.ceil(growth.kept_share * n))))
        columns, sizes, size = np.empty(n_kept, np.int32), np.empty(n_kept, np.float32), 0
        for at in range(n_touched):
            value = sums.values[sums.touched[at], c]
            if value != 0:
                size = push(columns, sizes, size, sums.touched[at], np.float32(value))
        sort_with_values(columns, sizes)
        square = 0.0
        for column in columns:
            square += sums.values[column, c] ** 2
        for at in range(n_kept):
            sizes[at] = sums.values[columns[at], c] / np.sqrt(square)
        rows = append(rows, c, columns, sizes)
    _clear(sums, n_touched)
    return trimmed(rows, n_clusters)


@kernel
def _nearest_centroid(
    members: NDArray[np.int32], X: Csr, centroids: Csr, n_clusters: int, sums: _Sums
) -> NDArray[np.int32]:
    """Return the cluster of each document by its features."""
    for c in range(n_clusters):
        for p in range(centroids.indptr[c], centroids.indptr[c + 1]):
            sums.values[centroids.indices[p], c] = centroids.values[p]
    clusters = np.empty(members.size, np.int32)
    for i in range(members.size):
        clusters[i] = _nearest(X, members[i], sums.values, n_clusters)
    for column in centroids.indices:
        sums.values[column] = 0.0
    return clusters


@kernel
def _divide(members: NDArray[np.int32], clusters: NDArray[np.int32], n_clusters: int) -> NDArray[np.int64]:
    """Order the members by cluster, keeping their order otherwise; return where each cluster begins and ends."""
    ends, before = np.zeros(n_clusters + 1, np.int64), members.copy()
    for cluster in clusters:
        ends[cluster + 1] += 1
    for c in range(n_clusters):
        ends[c + 1] += ends[c]
    at = ends.copy()
    for i in range(before.size):
        members[at[clusters[i]]] = before[i]
        at[clusters[i]] += 1
    return ends


@kernel
def rank(
    start: int,
    stop: int,
    X: Csr,
    trees: Trees,
    roots: NDArray[np.int32],
    seeds: NDArray[np.int64],
    x: NDArray[np.float32],
    totals: NDArray[np.float64],
    found: NDArray[np.int32],
    scores: NDArray[np.float32],
) -> None:
    """Fill found[start:stop] with the labels of the highest mean over the trees, in any order, and `scores` with it.

    Parameters
    ----------
    X
        The documents, whose features are not hashed yet.
    roots, seeds
        The root of each tree, and the seed by which its features are hashed.
    x, totals
        Workspace with one entry per bucket and per label, all zero before and after.
    found, scores
        Receive -1 and 0 if there are fewer labels.
    """
    touched = np.empty(totals.size, np.int32)
    for b in range(start, stop):
        n = 0
        for t in range(roots.size):
            for p in range(X.indptr[b], X.indptr[b + 1]):
                bucket, sign = _bucket(X.indices[p], x.size, seeds[t])
                x[bucket] += sign * X.values[p]
            n = add_leaf(trees.labels, _descend(trees, roots[t], x), totals, touched, n)
            for p in range(X.indptr[b], X.indptr[b + 1]):
                x[_bucket(X.indices[p], x.size, seeds[t])[0]] = 0.0
        take_best(totals, touched[:n], roots.size, found[b], scores[b])


@kernel
def _descend(trees: Trees, node: int, x: NDArray[np.float32]) -> int:
    """Return the leaf of a document."""
    indptr, features, weights = trees.weights
    while trees.children[node, 0] >= 0:
        best, nearest = -np.inf, node
        for child in range(trees.children[node, 0], trees.children[node, 1] + 1):
            product = 0.0
            for p in range(indptr[child], indptr[child + 1]):
                product += np.float64(weights[p]) * x[features[p]]
            if product > best:
                best, nearest = product, child
        node = nearest
    return node
