"""S_k of the paper: the k labels nearest to a document by cosine, from an exact or a sub-linear index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import faiss as _faiss
import numpy as np
from numpy.typing import NDArray

from lightdxml import inverted_file, k_means
from lightdxml.comparison import Best, places_of
from lightdxml.config import Index
from lightdxml.inverted_file import InvertedFile
from lightdxml.kernels import ova, parallel
from lightdxml.kernels.half import readable, wide, width

# Its type information leaves out much of what its wrappers add.
faiss: Any = _faiss
Kind = Literal["exact", "ivf", "hnsw"]
KINDS: tuple[Kind, ...] = ("exact", "ivf", "hnsw")
# Up to this many labels documents that come alone are searched exactly: the time is theirs, and so is the accuracy.
EXACT_LIMIT = 400_000
# Fewer products of numbers than these, where a pair of document and label counts as some itself (to see whether it is
# among the best), are done exactly before an inverted file is built (some ten seconds of a core).
_WORTH_TRYING, _PAIR = 1e12, 200
# Costs of an inverted file in products of a document and a label as an exact search takes them: of a product, of a
# cluster for each document, and of building for each label (benchmarks/shortlist.py --costs, D 192).
_PRODUCT, _CLUSTER, _BUILD = 1.5, 3, 8000
# The share of the exact shortlists that those of training documents are to hold: they are negatives, of which there are
# enough, and positives are known.
FOUND_IN_TRAINING = 0.8
# And the share of labels that they are looked for among, at the most: where that is too little, before a training has
# learnt much, the nearest labels are hardly nearer than others.
_MOST_LOOKED_AT = 0.25
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
        Their embeddings ŷ at length 1, float32, float16 or int8.
    index
        The search structure: faiss's, or an `InvertedFile`.
    """

    kind: Kind
    labels: NDArray[np.int32]
    vectors: NDArray[Any]
    index: Any


class _Exact:
    """All vectors as faiss searches them for many documents, made when they are first searched.

    They are a copy in float32: a process that only ever looks up single documents does without, and shares the model
    with others. Threads that come first at once may make one each; all but one are dropped.
    """

    def __init__(self, vectors: NDArray[Any]) -> None:
        self._vectors = vectors
        self._index: Any = None

    def __reduce__(self) -> Any:
        return _Exact, (self._vectors,)

    def ready(self) -> Any:
        """Return faiss's index."""
        if self._index is None:
            index = faiss.IndexFlatIP(width(self._vectors))
            index.add(wide(self._vectors))
            self._index = index
        return self._index


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
    labels: NDArray[np.int32],
    vectors: NDArray[Any],
    kind: Index = "auto",
    structure: Graph | InvertedFile | None = None,
    queries: NDArray[np.float32] | None = None,
    k: int = 200,
) -> Shortlist:
    """Index the embeddings (at length 1) of these labels.

    Parameters
    ----------
    structure
        A graph or an inverted file that was built before, which is then not built anew.
    queries, k
        For an inverted file: some documents (rows of length 1) such as will be searched, and how many labels of each.

    Examples
    --------
    >>> vectors = np.eye(3, dtype=np.float32)
    >>> found = build(np.array([4, 6, 8], dtype=np.int32), vectors)
    >>> found.kind, search(found, vectors[1:2], k=1).tolist()
    ('exact', [[6]])
    """
    chosen = kind_for(kind, len(labels))
    index: Any
    if chosen == "exact":
        index = _Exact(vectors)
    elif chosen == "ivf":
        built = isinstance(structure, InvertedFile)
        index = structure if built else k_means.inverted_file_of(vectors, k, queries)
    else:
        index = _graph_index(vectors, structure)
    return Shortlist(chosen, labels, vectors, index)


def kind_for(kind: Index, n_labels: int) -> Kind:
    """Return how so many labels are searched.

    >>> kind_for("auto", 1000), kind_for("auto", 1_000_000), kind_for("hnsw", 1000)
    ('exact', 'ivf', 'hnsw')
    """
    if kind == "auto":
        return "exact" if n_labels <= EXACT_LIMIT else "ivf"
    return kind


def for_many(shortlist: Shortlist, documents: NDArray[np.float32], k: int) -> Shortlist:
    """Return an index by which shortlists of so many documents (rows of length 1) are found in the least time.

    An exact one is left for an inverted file, which finds four in five of the same labels, where its clusters are told
    apart well enough: before a training has learnt much, they are not.
    """
    n, sample = len(shortlist.labels), inverted_file.sample_of(documents)
    if shortlist.kind == "ivf":
        index = inverted_file.with_recall(shortlist.index, shortlist.vectors, sample, k, FOUND_IN_TRAINING)
        probes = inverted_file.probes_within(index, sample, _MOST_LOOKED_AT)
        return replace(shortlist, index=replace(index, probes=min(index.probes, probes)))
    if shortlist.kind == "hnsw" or not worth_trying(n, *documents.shape):
        return shortlist
    index = k_means.inverted_file_of(shortlist.vectors, k, sample, FOUND_IN_TRAINING)
    looked_at = n * inverted_file.share_of_work(index, sample)
    if _PRODUCT * looked_at + _CLUSTER * len(index.centres) > n:
        return shortlist
    return Shortlist("ivf", shortlist.labels, shortlist.vectors, index)


def worth_trying(n_labels: int, n_documents: int, dimensions: int) -> bool:
    """Return whether an inverted file may find shortlists of so many documents in half the time of exact search.

    >>> worth_trying(20_000, 20_000, 192), worth_trying(100_000, 100_000, 192)
    (False, True)
    """
    clusters = k_means.cluster_count(n_labels)
    share = _CLUSTER * clusters / n_labels + _BUILD / max(1, n_documents)
    return n_labels * n_documents * (dimensions + _PAIR) > _WORTH_TRYING and share < 0.5


def _graph_index(vectors: NDArray[Any], graph: Any) -> Any:
    all_wide = wide(vectors)
    index = faiss.IndexHNSWFlat(width(vectors), _LINKS, faiss.METRIC_INNER_PRODUCT)
    if graph is not None:
        _restore(index, all_wide, graph)
    else:
        index.hnsw.efConstruction = _BUILD_BREADTH
        # Several threads would insert in an order of their own, and the graph would differ from run to run.
        _on_one_thread(lambda: index.add(all_wide))
    return index


def structure_of(shortlist: Shortlist) -> dict[str, NDArray[Any]]:
    """Return what an index is made of besides labels and vectors, to be stored: nothing for an exact one."""
    if shortlist.kind == "hnsw":
        hnsw = shortlist.index.hnsw
        return {
            "graph_levels": faiss.vector_to_array(hnsw.levels),
            "graph_neighbours": faiss.vector_to_array(hnsw.neighbors),
            "graph_entry": np.array([hnsw.entry_point], dtype=np.int32),
        }
    if shortlist.kind == "ivf":
        index = shortlist.index
        probes = np.array([index.probes], dtype=np.int32)
        return {"cluster_centres": index.centres, "cluster_of": index.cluster_of, "cluster_probes": probes}
    return {}


def structure_in(arrays: dict[str, NDArray[Any]], kind: Kind) -> Graph | InvertedFile | None:
    """Return what `structure_of` gave, from arrays of anyone; None for an exact index."""
    if kind == "hnsw":
        levels, neighbours = np.array(arrays["graph_levels"]), np.array(arrays["graph_neighbours"])
        return Graph(levels, neighbours, int(arrays["graph_entry"].item()))
    if kind == "ivf":
        centres, cluster_of = np.array(arrays["cluster_centres"]), np.array(arrays["cluster_of"])
        return inverted_file.restore(centres, cluster_of, int(arrays["cluster_probes"].item()))
    return None


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
    if k == 0:
        return np.empty((len(documents), 0), dtype=np.int32)
    if shortlist.kind == "exact" and len(documents) <= _FEW:
        return np.array([_scan(shortlist, document, k) for document in documents], dtype=np.int32).reshape(-1, k)
    if shortlist.kind == "ivf":
        return _clustered(shortlist, documents, k)[0]
    found = np.empty((len(documents), k), dtype=np.int32)
    exact = shortlist.kind == "exact"
    index = shortlist.index.ready() if exact else shortlist.index
    parameters = None if exact else faiss.SearchParametersHNSW(efSearch=max(k, 16))

    def look(bounds: tuple[int, int]) -> None:
        # The setting is each thread's own. Chunks of one size on one thread each: the same bits at any thread count.
        start, stop = bounds
        _, places = _on_one_thread(lambda: index.search(documents[start:stop], k, params=parameters))
        found[start:stop] = np.where(places >= 0, shortlist.labels[places], -1)

    parallel.run(look, parallel.fixed_chunks(len(documents), _QUERIES))
    return found


def nearest(
    shortlist: Shortlist, documents: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return what `search` returns and the cosines, the same numbers as `cosines` gives."""
    k = min(k, len(shortlist.labels))
    if shortlist.kind == "ivf" and k > 0:
        return _clustered(shortlist, documents, k)
    labels = search(shortlist, documents, k)
    return labels, cosines(shortlist, documents, labels)


def _clustered(
    shortlist: Shortlist, documents: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return what an inverted file finds, and the cosines."""
    given = shortlist.index, shortlist.vectors
    if len(documents) > _FEW or not len(documents):
        places, near = inverted_file.search(*given, documents, k)
    else:
        found = [inverted_file.search_one(*given, document, k) for document in documents]
        places, near = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return shortlist.labels[places], near


def _scan(shortlist: Shortlist, document: NDArray[np.float32], k: int) -> NDArray[np.int32]:
    """Return the labels nearest to one document: every thread looks through a part of them.

    One document is bound by memory, which 16-bit vectors halve; faiss would use one thread and 32 bits.
    """
    vectors = readable(shortlist.vectors)
    n = len(vectors)
    cosines = np.empty((1, n), dtype=np.float32)

    def look(bounds: tuple[int, int]) -> NDArray[np.uint64]:
        ova.scan(*bounds, document, vectors, cosines[0])
        those = np.arange(*bounds, dtype=np.int32)
        best = Best.start(1, min(k, len(those)))
        best.keep(cosines[:, slice(*bounds)], np.zeros(1, dtype=np.int64), those)
        return best.keys().ravel()

    keys = np.sort(np.concatenate(parallel.run(look, parallel.fixed_chunks(n, _SCANNED))))
    found: NDArray[np.int32] = shortlist.labels[places_of(keys[:k])]
    return found


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
    sample = np.ascontiguousarray(documents[:: max(1, len(documents) // 500)])
    k = min(k, len(shortlist.labels))
    truth = shortlist.labels[inverted_file.search_all(shortlist.vectors, sample, k)]
    found = search(shortlist, sample, k)
    hits = [len(np.intersect1d(a, b)) for a, b in zip(truth, found, strict=True)]
    return float(np.sum(hits) / truth.size)
