"""S_k of the paper: the k labels nearest to a document by cosine, from an exact or a sub-linear index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import faiss as _faiss
import numpy as np
from numpy.typing import NDArray

from lightdxml.config import Index
from lightdxml.kernels import parallel

# Its type information leaves out much of what its wrappers add.
faiss: Any = _faiss
# Up to this many labels exact shortlists of as many documents take less time than building the graph and searching it,
# by extrapolation from 100,000 labels: 0.47 against 0.71 ms a document, and 156 s to build (benchmarks/shortlist.py).
EXACT_LIMIT = 400_000
_QUERIES = 1024
_LINKS, _BUILD_BREADTH = 32, 200


@dataclass(frozen=True)
class Shortlist:
    """An index of label embeddings.

    Attributes
    ----------
    kind
        How it is searched.
    labels
        The labels in it, by position; labels without documents are not among them.
    vectors
        Their embeddings ŷ at length 1.
    index
        The search structure.
    """

    kind: Literal["exact", "hnsw"]
    labels: NDArray[np.int32]
    vectors: NDArray[np.float32]
    index: Any


def build(labels: NDArray[np.int32], vectors: NDArray[np.float32], kind: Index = "auto") -> Shortlist:
    """Index the embeddings (at length 1) of these labels.

    Examples
    --------
    >>> vectors = np.eye(3, dtype=np.float32)
    >>> found = build(np.array([4, 6, 8], dtype=np.int32), vectors)
    >>> found.kind, search(found, vectors[1:2], k=1).tolist()
    ('exact', [[6]])
    """
    chosen: Literal["exact", "hnsw"] = "exact" if kind == "exact" or len(labels) <= EXACT_LIMIT else "hnsw"
    if kind == "hnsw":
        chosen = "hnsw"
    dimensions = vectors.shape[1]
    if chosen == "exact":
        index = faiss.IndexFlatIP(dimensions)
    else:
        index = faiss.IndexHNSWFlat(dimensions, _LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = _BUILD_BREADTH
    # Several threads would insert in an order of their own, and the graph would differ from run to run.
    _on_one_thread(lambda: index.add(vectors))
    return Shortlist(chosen, labels, vectors, index)


def _on_one_thread(call: Callable[[], Any]) -> Any:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        return call()
    finally:
        faiss.omp_set_num_threads(before)


def search(shortlist: Shortlist, documents: NDArray[np.float32], k: int) -> NDArray[np.int32]:
    """Return the labels nearest to each document (rows of length 1), nearest first; -1 for none."""
    k = min(k, len(shortlist.labels))
    found = np.empty((len(documents), k), dtype=np.int32)
    parameters = faiss.SearchParametersHNSW(efSearch=max(k, 16)) if shortlist.kind == "hnsw" else None

    def look(bounds: tuple[int, int]) -> None:
        # The setting is each thread's own. Chunks of one size on one thread each: the same bits at any thread count.
        start, stop = bounds
        _, places = _on_one_thread(lambda: shortlist.index.search(documents[start:stop], k, params=parameters))
        found[start:stop] = np.where(places >= 0, shortlist.labels[places], -1)

    parallel.run(look, parallel.fixed_chunks(len(documents), _QUERIES))
    return found


def recall_of_exact(shortlist: Shortlist, documents: NDArray[np.float32], k: int) -> float:
    """Return which share of the exact shortlists the index finds, on a sample of documents."""
    if shortlist.kind == "exact":
        return 1.0
    sample = documents[:: max(1, len(documents) // 500)]
    exact = build(shortlist.labels, shortlist.vectors, "exact")
    truth, found = search(exact, sample, k), search(shortlist, sample, k)
    hits = [len(np.intersect1d(a, b)) for a, b in zip(truth, found, strict=True)]
    return float(np.sum(hits) / truth.size)
