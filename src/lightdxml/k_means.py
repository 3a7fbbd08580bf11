"""How the clusters of an inverted file are found: spherical k-means as seen from the mean of all vectors, in groups."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.comparison import mean_of
from lightdxml.encoder import to_unit_rows
from lightdxml.inverted_file import CHUNK, InvertedFile, one_blas_thread, probes_for, restore, search
from lightdxml.kernels import clusters as kernels
from lightdxml.kernels import parallel
from lightdxml.kernels.precision import as_bits, dequantize, width

# Clusters for the square root of the number of vectors; more cost more to find, fewer are larger than need be.
_CLUSTERS = 16.0
# So many vectors a centre, and so many rounds, move it to about where all vectors and more rounds would.
SAMPLE, _ROUNDS = 16, 5
# More centres than these are found in groups, for the square root of their number; then one looks into so many groups.
_FEW_CENTRES, _GROUPS, _SAMPLE_OF_GROUP, _GROUPS_LOOKED_INTO = 512, 2.0, 64, 16
# Rounds in which they are moved among all groups.
_ROUNDS_OF_ALL = 4
_SEED = 0
_ASSIGNED, _SAMPLE_QUERIES = 1 << 16, 256


def inverted_file_of(
    vectors: NDArray[Any], k: int, queries: NDArray[np.float32] | None = None, recall: float = 0.95
) -> InvertedFile:
    """Put vectors (of length 1) into clusters, and find into how many of them a search must look.

    Parameters
    ----------
    vectors
        float32, float16, or int8 as `precision.quantize_int8` makes it.
    k, recall
        The share of the k nearest vectors that are in the clusters that a search looks into. In bytes it may miss one
        that is there; of 16,640 in a trial it found as many as in float32.
    queries
        Such rows as will be searched for, of length 1; None for some of the vectors themselves.

    Examples
    --------
    >>> vectors = np.eye(3, dtype=np.float32)
    >>> search(inverted_file_of(vectors, k=1), vectors, vectors[1:], k=1)[0].tolist()
    [[1], [2]]
    """
    n = len(vectors)
    rng = np.random.default_rng(_SEED)
    with one_blas_thread():
        # With a vector that is no number there are no clusters, and all are looked into.
        mean = mean_of(vectors)
        centres, groups = _centres(vectors, mean, cluster_count(n), rng)
        whole = restore(centres, _assign(vectors, mean, centres, groups), len(centres))
        if queries is None:
            queries = _rows(vectors, np.sort(rng.permutation(n)[:_SAMPLE_QUERIES]))
        return replace(whole, probes=probes_for(whole, vectors, queries, min(k, n), recall))


def cluster_count(n: int) -> int:
    """Return into about how many clusters so many vectors are put.

    >>> cluster_count(1), cluster_count(100_000)
    (1, 5059)
    """
    return max(1, min(n // 8, int(_CLUSTERS * math.sqrt(n))))


def _rows(vectors: NDArray[Any], places: NDArray[Any]) -> NDArray[np.float32]:
    out = np.empty((len(places), width(vectors)), dtype=np.float32)
    kernels.widen_rows(as_bits(vectors), places.astype(np.int32), out)
    return out


def _centres(
    vectors: NDArray[Any], mean: NDArray[np.float32], n: int, rng: np.random.Generator
) -> tuple[NDArray[np.float32], InvertedFile]:
    """Return the centres that spherical k-means finds on a sample, and an inverted file of them.

    Centres are found in groups, as many in each as it has of the sample, and moved a few times more among all of them.
    """
    sample = _rows(vectors, np.sort(rng.permutation(len(vectors))[: n * SAMPLE])) - mean
    to_unit_rows(sample)
    n_groups = round(_GROUPS * math.sqrt(n)) if n > _FEW_CENTRES else 1
    middles = _k_means(sample[rng.permutation(len(sample))[: n_groups * _SAMPLE_OF_GROUP]], n_groups, rng)
    group_of = _nearest(sample, middles)
    sizes = np.bincount(group_of, minlength=n_groups)
    seeds = rng.spawn(n_groups)

    def divide(group: int) -> NDArray[np.float32]:
        return _k_means(sample[group_of == group], math.ceil(n * sizes[group] / len(sample)), seeds[group])

    parts = parallel.run(divide, range(n_groups))
    centres = np.concatenate(parts)
    owner = np.repeat(np.arange(n_groups, dtype=np.int32), [len(part) for part in parts])
    groups = restore(middles, owner, min(_GROUPS_LOOKED_INTO, n_groups))
    for _ in range(_ROUNDS_OF_ALL if n_groups > 1 else 0):
        centres = _moved(sample, search(groups, centres, sample, 1)[0][:, 0], centres)
    return centres, groups


def _k_means(rows: NDArray[np.float32], n: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return the centres of n clusters of rows (or of as many as there are rows) after a few rounds, on one thread."""
    centres = rows[np.sort(rng.permutation(len(rows))[:n])]
    for _ in range(_ROUNDS if len(rows) else 0):
        centres = _moved(rows, _nearest(rows, centres), centres)
    return centres


def _nearest(rows: NDArray[np.float32], centres: NDArray[np.float32]) -> NDArray[np.int32]:
    parts = [(rows[slice(*bounds)] @ centres.T).argmax(axis=1) for bounds in parallel.fixed_chunks(len(rows), CHUNK)]
    return np.concatenate(parts).astype(np.int32)


def _moved(
    rows: NDArray[np.float32], cluster_of: NDArray[np.int32], centres: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the direction of each cluster's rows; a centre that has lost all of them stays where it is."""
    sums = np.zeros_like(centres)
    kernels.sum_rows(rows, cluster_of, sums)
    to_unit_rows(sums)
    moved: NDArray[np.float32] = np.where(sums.any(axis=1, keepdims=True), sums, centres)
    return moved


def _assign(
    vectors: NDArray[Any], mean: NDArray[np.float32], centres: NDArray[np.float32], groups: InvertedFile
) -> NDArray[np.int32]:
    """Return the nearest centre of each vector as seen from the mean, of those in the groups that are nearest."""
    parts = [
        search(groups, centres, dequantize(vectors[first:last]) - mean, 1)[0][:, 0]
        for first, last in parallel.fixed_chunks(len(vectors), _ASSIGNED)
    ]
    return np.concatenate(parts)
