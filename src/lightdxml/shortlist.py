"""S_k of the paper: the k labels nearest to a document by cosine, from an exact or a sub-linear index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import faiss as _faiss
import numpy as np
from numpy.typing import NDArray

from lightdxml.config import Index
from lightdxml.kernels import ova, parallel
from lightdxml.kernels.half import readable

# Its type information leaves out much of what its wrappers add.
faiss: Any = _faiss
# Up to this many labels exact shortlists of as many documents take less time than building the graph and searching it,
# by extrapolation from 100,000 labels: 0.47 against 0.71 ms a document, and 156 s to build (benchmarks/shortlist.py).
EXACT_LIMIT = 400_000
_QUERIES = 1024
_LINKS, _BUILD_BREADTH = 32, 200
# With so many links faiss has room for no more: with each level, one in as many labels is left.
_MOST_LEVELS = 6
# So many documents are looked up one by one.
_FEW = 2
_SCANNED = 8192


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
        Their embeddings ŷ at length 1, float32 or float16.
    index
        The search structure.
    """

    kind: Literal["exact", "hnsw"]
    labels: NDArray[np.int32]
    vectors: NDArray[Any]
    index: Any


@dataclass(frozen=True)
class Graph:
    """What makes up an HNSW graph besides the vectors.

    Attributes
    ----------
    levels
        On how many levels each label stands.
    neighbours
        For each label its neighbours' places on the lowest level and those above, -1 for none.
    entry
        The place from which a search starts.
    """

    levels: NDArray[np.int32]
    neighbours: NDArray[np.int32]
    entry: int


def build(
    labels: NDArray[np.int32], vectors: NDArray[Any], kind: Index = "auto", graph: Graph | None = None
) -> Shortlist:
    """Index the embeddings (at length 1) of these labels; with a graph that was built before, without building it.

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
    wide = np.ascontiguousarray(vectors, dtype=np.float32)
    if chosen == "exact":
        index = faiss.IndexFlatIP(dimensions)
        index.add(wide)
        return Shortlist(chosen, labels, vectors, index)
    index = faiss.IndexHNSWFlat(dimensions, _LINKS, faiss.METRIC_INNER_PRODUCT)
    if graph is not None:
        _restore(index, wide, graph)
    else:
        index.hnsw.efConstruction = _BUILD_BREADTH
        # Several threads would insert in an order of their own, and the graph would differ from run to run.
        _on_one_thread(lambda: index.add(wide))
    return Shortlist(chosen, labels, vectors, index)


def graph_of(shortlist: Shortlist) -> Graph:
    """Return the graph of an HNSW index, to be stored."""
    hnsw = shortlist.index.hnsw
    return Graph(faiss.vector_to_array(hnsw.levels), faiss.vector_to_array(hnsw.neighbors), int(hnsw.entry_point))


def _restore(index: Any, vectors: NDArray[np.float32], graph: Graph) -> None:
    check_graph(graph, len(vectors))
    faiss.downcast_index(index.storage).add(vectors)
    faiss.copy_array_to_vector(graph.levels, index.hnsw.levels)
    faiss.copy_array_to_vector(_first_links(graph.levels).astype(np.uint64), index.hnsw.offsets)
    faiss.copy_array_to_vector(graph.neighbours, index.hnsw.neighbors)
    index.hnsw.entry_point, index.hnsw.max_level = graph.entry, int(graph.levels.max()) - 1
    index.ntotal = len(vectors)


def _first_links(levels: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return where each label's links begin: twice as many on the lowest level as on each one above."""
    return np.concatenate([[0], np.cumsum((levels.astype(np.int64) + 1) * _LINKS)])


def check_graph(graph: Graph, n: int) -> None:
    """Raise where a graph of n labels would lead a search astray: compiled code trusts it."""
    levels, neighbours = graph.levels, graph.neighbours
    if len(levels) != n or n == 0 or levels.min() < 1 or levels.max() > _MOST_LEVELS:
        raise ValueError("its index has labels on levels that cannot be")
    first = _first_links(levels)
    if len(neighbours) != first[-1] or neighbours.min(initial=-1) < -1 or neighbours.max(initial=-1) >= n:
        raise ValueError("its index has links to labels that are not there")
    if not 0 <= graph.entry < n or levels[graph.entry] != levels.max():
        raise ValueError("its index starts from a label that is not on its highest level")
    # A link on some level must lead to a label that stands on that level as well.
    within = np.arange(len(neighbours)) - np.repeat(first[:-1], np.diff(first))
    level = np.maximum(within // _LINKS - 1, 0)
    if (levels[neighbours] <= level)[neighbours >= 0].any():
        raise ValueError("its index has links to labels that are not on their level")


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
    if shortlist.kind == "exact" and len(documents) <= _FEW:
        return np.array([_scan(shortlist, document, k) for document in documents], dtype=np.int32).reshape(-1, k)
    found = np.empty((len(documents), k), dtype=np.int32)
    parameters = faiss.SearchParametersHNSW(efSearch=max(k, 16)) if shortlist.kind == "hnsw" else None

    def look(bounds: tuple[int, int]) -> None:
        # The setting is each thread's own. Chunks of one size on one thread each: the same bits at any thread count.
        start, stop = bounds
        _, places = _on_one_thread(lambda: shortlist.index.search(documents[start:stop], k, params=parameters))
        found[start:stop] = np.where(places >= 0, shortlist.labels[places], -1)

    parallel.run(look, parallel.fixed_chunks(len(documents), _QUERIES))
    return found


def _scan(shortlist: Shortlist, document: NDArray[np.float32], k: int) -> NDArray[np.int32]:
    """Return the labels nearest to one document: every thread looks through a part of them.

    One document is bound by memory, which 16-bit vectors halve; faiss would use one thread and 32 bits.
    """
    n = len(shortlist.labels)
    cosines = np.empty(n, dtype=np.float32)
    vectors = readable(shortlist.vectors)

    def look(bounds: tuple[int, int]) -> None:
        ova.scan(*bounds, document, vectors, cosines)

    parallel.run(look, parallel.fixed_chunks(n, _SCANNED))
    if k < n:
        # Of equals the first, as faiss takes them.
        least = np.partition(cosines, n - k)[n - k]
        above = np.flatnonzero(cosines > least)
        best = np.concatenate([above, np.flatnonzero(cosines == least)[: k - len(above)]])
    else:
        best = np.arange(n)
    nearest: NDArray[np.int32] = shortlist.labels[best[np.lexsort((best, -cosines[best]))]]
    return nearest


def cosines(shortlist: Shortlist, directions: NDArray[np.float32], labels: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return the cosines of documents and these labels of each; where there is no label, any number."""
    places = np.searchsorted(shortlist.labels, np.maximum(labels, shortlist.labels[0]))
    found = np.empty(labels.shape, dtype=np.float32)
    vectors = readable(shortlist.vectors)

    def fill(first: int, last: int) -> None:
        ova.cosines(first, last, directions, vectors, places, found)

    parallel.over(fill, len(labels))
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
