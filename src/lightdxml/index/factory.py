"""Choosing, building, calibrating and restoring an index."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lightdxml.index.base import Index, Kind
from lightdxml.index.exact import ExactIndex
from lightdxml.index.rabitq import QUERIES, SAMPLE, RaBitQIndex, build_rabitq, rabitq_specs, restore_rabitq
from lightdxml.kernels import fast_scan, parallel, rabitq
from lightdxml.kernels.precision import dequantize, row_width

IndexKind = Literal["auto", "exact", "rabitq"]
# Up to this many labels exact search is fast enough, and a model without codes is smaller.
EXACT_LIMIT = 100_000
# The share of the exact shortlists that shortlists of training documents hold. They are negatives, of which there are
# enough; positives are known.
_TRAINING_RECALL = 0.9
# Training documents are searched by codes from this many labels on, if at most this share of the labels is reranked.
# Before training has learned much, the nearest labels are hardly nearer than others.
TRAINING_LABELS, _TRAINING_SHARE = 40_000, 0.1
_SAMPLE_QUERIES, _RECALL_QUERIES = 256, 500


def resolve_kind(kind: IndexKind, n_labels: int, dim: int) -> Kind:
    """Return the kind of index for this many labels and dimensions.

    Raises `ValueError` if this CPU or this many dimensions rule out the kind that was asked for.

    >>> resolve_kind("auto", 1000, 300), resolve_kind("exact", 10**6, 300)
    ('exact', 'exact')
    >>> resolve_kind("rabitq", 1000, 10_000)
    Traceback (most recent call last):
    ValueError: index rabitq supports at most 8448 dimensions, not 10000: use fewer dimensions or index exact
    """
    if kind == "rabitq":
        if dim > rabitq.MAX_DIM:
            limit = f"index rabitq supports at most {rabitq.MAX_DIM} dimensions, not {dim}"
            raise ValueError(f"{limit}: use fewer dimensions or index exact")
        if not fast_scan.AVAILABLE:
            raise ValueError("index rabitq needs a CPU with AVX2, which this one lacks: use index exact")
    if kind != "auto":
        return kind
    return "rabitq" if n_labels > EXACT_LIMIT and _has_rabitq(dim) else "exact"


def training_kind(kind: IndexKind, n_labels: int, dim: int) -> Kind:
    """Return the kind of index that may search the shortlists of training documents.

    >>> training_kind("auto", 1000, 300)
    'exact'
    """
    if kind == "auto" and n_labels >= TRAINING_LABELS and _has_rabitq(dim):
        return "rabitq"
    return resolve_kind(kind, n_labels, dim)


def _has_rabitq(dim: int) -> bool:
    return fast_scan.AVAILABLE and dim <= rabitq.MAX_DIM


def build(
    vectors: NDArray[Any], kind: IndexKind = "auto", *, queries: NDArray[np.float32] | None = None, k: int = 200
) -> Index:
    """Index unit vectors.

    Parameters
    ----------
    vectors
        One row per label: float32, float16, or int8 as `kernels.precision` stores them.
    queries, k
        For RaBitQ: unit rows like the queries of later searches (by default some of the vectors), and how many
        neighbors of each are wanted. They calibrate the number of candidates.

    Examples
    --------
    >>> index = build(np.eye(3, dtype=np.float32))
    >>> index.kind, index.search(np.eye(3, dtype=np.float32)[1:2], k=1)[0].tolist()
    ('exact', [[1]])
    """
    if resolve_kind(kind, len(vectors), row_width(vectors)) == "exact" or not len(vectors):
        return ExactIndex(vectors)
    if queries is None:
        queries = dequantize(_sample(vectors, _SAMPLE_QUERIES))
    return build_rabitq(vectors, queries, k)


def restore(kind: Kind, vectors: NDArray[Any], arrays: dict[str, NDArray[Any]]) -> Index:
    """Return the index that `Index.arrays` was stored of, after a check of the arrays.

    On a CPU that cannot search RaBitQ codes, the index is exact.
    """
    for name, (shape, dtype) in array_specs(kind, len(vectors), row_width(vectors)).items():
        if name not in arrays:
            raise ValueError(f"its index has no array {name}")
        if arrays[name].shape != shape or arrays[name].dtype != dtype:
            found = f"{arrays[name].dtype} {arrays[name].shape}"
            raise ValueError(f"its index has an array {name} of {found} instead of {np.dtype(dtype)} {shape}")
    if kind == "exact":
        return ExactIndex(vectors)
    index = restore_rabitq(vectors, {name: np.ascontiguousarray(array) for name, array in arrays.items()})
    return index if _has_rabitq(row_width(vectors)) else ExactIndex(vectors)


def array_specs(kind: Kind, n: int, dim: int) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Return shape and type of each array of `Index.arrays` for n vectors.

    >>> array_specs("exact", 10, 3)
    {}
    """
    return {} if kind == "exact" else rabitq_specs(n, dim)


def training_index(index: Index, queries: NDArray[np.float32], k: int) -> Index:
    """Return an index of the same vectors that finds shortlists of many training documents in less time.

    It finds about 90% of the exact shortlists; fewer if more than a tenth of very many labels would have to be
    reranked, before training has learned much. Whether it is exact depends on the data alone, not on the speed of this
    CPU, unless the CPU cannot search codes at all.

    Parameters
    ----------
    index
        The index of the model.
    queries, k
        The documents, or a sample of them, and the size of a shortlist.
    """
    vectors = index.vectors
    n, sample = len(vectors), _sample(queries, _SAMPLE_QUERIES)
    if isinstance(index, RaBitQIndex):
        codes = index.calibrated(sample, k, _TRAINING_RECALL)
        # The negatives that are missed then are hardly nearer than others, and exact search would take hours.
        return replace(codes, candidates=min(codes.candidates, max(4 * k, int(_TRAINING_SHARE * n))))
    if training_kind("auto", n, row_width(vectors)) == "exact":
        return index
    codes = build_rabitq(vectors, sample, k, _TRAINING_RECALL)
    return codes if codes.candidates <= _TRAINING_SHARE * n else ExactIndex(vectors)


def recall_of_exact(index: Index, queries: NDArray[np.float32], k: int) -> float:
    """Return the share of the exact k nearest vectors that an index finds, on a sample of the queries."""
    if index.kind == "exact" or not len(queries):
        return 1.0
    sample = _sample(queries, _RECALL_QUERIES)
    truth, found = ExactIndex(index.vectors).search(sample, k)[0], index.search(sample, k)[0]
    hits = sum(len(np.intersect1d(a, b)) for a, b in zip(truth, found, strict=True))
    return hits / max(1, truth.size)


def index_bytes(kind: Kind, n_labels: int, dim: int, itemsize: int) -> int:
    """Return the bytes of an index: the vectors, of this many bytes per number, and the stored arrays.

    >>> index_bytes("exact", 1000, 300, 2)
    600000
    """
    stored = array_specs(kind, n_labels, dim).values()
    sizes = (math.prod(shape) * int(np.dtype(dtype).itemsize) for shape, dtype in stored)
    return n_labels * dim * itemsize + sum(sizes)


def search_bytes(n_labels: int, dim: int, k: int, n_queries: int) -> int:
    """Return the bytes that a search of this many queries needs: its result, and the buffers of each thread.

    >>> search_bytes(100_000, 300, 200, 1) < 100_000 < search_bytes(100_000, 300, 200, 10_000)
    True
    """
    k, chunk = min(k, n_labels), min(n_queries, QUERIES)
    # Per query: buffers of keys and a sorted copy; a sample of estimates, lookup tables and codes of RaBitQ.
    buffers = 32 * k + 4 * min(n_labels, SAMPLE) + 8 * dim
    return 8 * k * n_queries + parallel.thread_count() * chunk * buffers


def _sample(rows: NDArray[Any], n: int) -> NDArray[Any]:
    """Return at most n rows, evenly spaced."""
    return np.ascontiguousarray(rows[:: -(-len(rows) // n)] if len(rows) > n else rows)
