"""S_k of the paper: the k labels nearest to a document by cosine, from an exact or a sub-linear index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import faiss as _faiss
import numpy as np
from numpy.typing import NDArray

from lightdxml import inverted_file, k_means, sketches
from lightdxml.comparison import Best, Codes, places_of
from lightdxml.config import Index
from lightdxml.encoder import unit_rows
from lightdxml.inverted_file import InvertedFile
from lightdxml.kernels import ova, parallel
from lightdxml.kernels import sketches as looking_up
from lightdxml.kernels.int8 import AVAILABLE
from lightdxml.kernels.precision import as_bits, dequantize, width
from lightdxml.sketches import Sketches

# Its type information leaves out much of what its wrappers add.
faiss: Any = _faiss
Kind = Literal["exact", "sketch", "ivf", "hnsw"]
KINDS: tuple[Kind, ...] = ("exact", "sketch", "ivf", "hnsw")
# Up to so many labels predictions are searched for exactly, where the other way is by sketches or by clusters: the time
# is short, and a model without them smaller. (Sketches cost no accuracy that could be measured; clusters do.)
EXACT_LIMIT: dict[Kind, int] = {"sketch": 100_000, "ivf": 400_000}
# Fewer products of numbers than these, where a pair of document and label counts as some itself (to see whether it is
# among the best), are done exactly before sketches are made (a second of a core) or an inverted file is built (ten).
_WORTH_SKETCHING, _WORTH_TRYING, _PAIR = 1e11, 1e12, 200
# Costs of sketches in products of a document and a label as an exact search takes them: of looking up a label, of
# comparing one in bytes, with an instruction for it or without, of a document, and of making them for each label
# (benchmarks/shortlist.py --costs, D 192).
_LOOKED_UP, _COMPARED, _DOCUMENT, _SKETCH = 0.1, 2.0 if AVAILABLE else 4.5, 16_000, 1400
# A shortlist is chosen from so many times as many labels, if that has to be.
_LEAST_COMPARED = 4
# Costs of an inverted file in products of a document and a label as an exact search takes them: of a product, of a
# cluster for each document, and of building for each label (benchmarks/shortlist.py --costs, D 192).
_PRODUCT, _CLUSTER, _BUILD = 1.5, 3, 8000
# The share of the exact shortlists that sketches are to find for predictions; documents that were not trained on find
# somewhat fewer than those by which it is seen to.
_FOUND = 0.955
# The share that shortlists of training documents are to hold: they are negatives, of which there are enough, and
# positives are known.
FOUND_BY_SKETCHES, FOUND_IN_CLUSTERS = 0.9, 0.8
# And the share of labels, of those in clusters, that they are looked for among at the most: where that is too little,
# before a training has learnt much, the nearest labels are hardly nearer than others.
_MOST_LOOKED_AT = 0.25
_QUERIES, _SAMPLE = 1024, 256
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
        The search structure: faiss's, `Sketches`, or an `InvertedFile`.
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
            index.add(dequantize(self._vectors))
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
    structure: Graph | InvertedFile | Sketches | None = None,
    queries: NDArray[np.float32] | None = None,
    k: int = 200,
) -> Shortlist:
    """Index the embeddings (at length 1) of these labels.

    Parameters
    ----------
    structure
        A graph, an inverted file or sketches that were made before, which are then not made anew.
    queries, k
        For an inverted file or sketches: some documents (rows of length 1) such as will be searched, and how many
        labels of each.

    Examples
    --------
    >>> vectors = np.eye(3, dtype=np.float32)
    >>> found = build(np.array([4, 6, 8], dtype=np.int32), vectors)
    >>> found.kind, search(found, vectors[1:2], k=1).tolist()
    ('exact', [[6]])
    """
    chosen = kind_for(kind, len(labels), width(vectors))
    index: Any
    if chosen == "exact":
        index = _Exact(vectors)
    elif chosen == "sketch":
        index = structure if isinstance(structure, Sketches) else _sketched(vectors, k, queries, _FOUND)
    elif chosen == "ivf":
        built = isinstance(structure, InvertedFile)
        index = structure if built else k_means.inverted_file_of(vectors, k, queries)
    else:
        index = _graph_index(vectors, structure)
    return Shortlist(chosen, labels, vectors, index)


def kind_for(kind: Index, n_labels: int, D: int) -> Kind:
    """Return how so many labels with embeddings of D numbers are searched.

    >>> kind_for("auto", 1000, 300), kind_for("hnsw", 1000, 300)
    ('exact', 'hnsw')
    """
    if kind == "auto":
        other = sub_linear(D)
        return "exact" if n_labels <= EXACT_LIMIT[other] else other
    return kind


def sub_linear(D: int) -> Kind:
    """Return what is faster than exact search on this processor."""
    return "sketch" if looking_up.AVAILABLE and D <= looking_up.MOST_NUMBERS else "ivf"


def check_kind(kind: str | None, D: int) -> None:
    """Raise where this processor cannot search embeddings of D numbers that way.

    >>> check_kind("sketch", 10_000)
    Traceback (most recent call last):
    ValueError: D is 10000, and index sketch has room for 8448 numbers: choose a smaller D, or index ivf
    """
    if kind != "sketch" or sub_linear(D) == "sketch":
        return
    if D > looking_up.MOST_NUMBERS:
        most = looking_up.MOST_NUMBERS
        raise ValueError(f"D is {D}, and index sketch has room for {most} numbers: choose a smaller D, or index ivf")
    raise ValueError("index sketch needs a processor with AVX2 or AVX-512, and this one has neither: choose index ivf")


def _sketched(vectors: NDArray[Any], k: int, queries: NDArray[np.float32] | None, recall: float) -> Sketches:
    check_kind("sketch", width(vectors))
    if queries is None:
        queries = unit_rows(dequantize(vectors[:: max(1, len(vectors) // _SAMPLE)]))
    return sketches.sketches_of(vectors, k, queries, recall)


def for_many(shortlist: Shortlist, documents: NDArray[np.float32], k: int) -> Shortlist:
    """Return an index by which shortlists of so many documents (rows of length 1) are found in the least time.

    An exact one is left for one that finds most of the same labels where it has to compare few enough of them: before a
    training has learnt much, the nearest labels are hardly nearer than others.
    """
    sample, (n, D) = inverted_file.sample_of(documents), documents.shape
    labels, vectors = shortlist.labels, shortlist.vectors
    if shortlist.kind == "sketch":
        fewer = sketches.with_recall(shortlist.index, vectors, sample, k, FOUND_BY_SKETCHES)
        most = max(_LEAST_COMPARED * k, _most_compared(len(labels)))
        return replace(shortlist, index=replace(fewer, candidates=min(fewer.candidates, most)))
    if shortlist.kind == "ivf":
        index = inverted_file.with_recall(shortlist.index, vectors, sample, k, FOUND_IN_CLUSTERS)
        probes = inverted_file.probes_within(index, sample, _MOST_LOOKED_AT)
        return replace(shortlist, index=replace(index, probes=min(index.probes, probes)))
    if shortlist.kind == "hnsw" or not worth_trying(len(labels), n, D):
        return shortlist
    other = _sketches_for(vectors, sample, k) if sub_linear(D) == "sketch" else _clusters_for(vectors, sample, k)
    return shortlist if other is None else Shortlist(sub_linear(D), labels, vectors, other)


def _sketches_for(vectors: NDArray[Any], sample: NDArray[np.float32], k: int) -> Sketches | None:
    """Return sketches of vectors, or None where an exact search takes less time."""
    index = sketches.sketches_of(vectors, k, sample, FOUND_BY_SKETCHES)
    return index if index.candidates < _most_compared(len(vectors)) else None


def _most_compared(n: int) -> int:
    """Return with how many of n labels documents are compared in the time of an exact search, after looking them up."""
    return max(1, int(((1 - _LOOKED_UP) * n - _DOCUMENT) / _COMPARED))


def _clusters_for(vectors: NDArray[Any], sample: NDArray[np.float32], k: int) -> InvertedFile | None:
    """Return an inverted file of vectors, or None where an exact search takes less time."""
    index = k_means.inverted_file_of(vectors, k, sample, FOUND_IN_CLUSTERS)
    n = len(vectors)
    looked_at = n * inverted_file.share_of_work(index, sample)
    return index if _PRODUCT * looked_at + _CLUSTER * len(index.centres) <= n else None


def worth_trying(n_labels: int, n_documents: int, D: int) -> bool:
    """Return whether another index may find shortlists of so many documents in half the time of exact search.

    >>> worth_trying(1_000, 20_000, 192), worth_trying(100_000, 100_000, 192)
    (False, True)
    """
    if sub_linear(D) == "sketch":
        share, least = _LOOKED_UP + _DOCUMENT / n_labels + _SKETCH / max(1, n_documents), _WORTH_SKETCHING
    else:
        clusters = k_means.cluster_count(n_labels)
        share, least = _CLUSTER * clusters / n_labels + _BUILD / max(1, n_documents), _WORTH_TRYING
    return n_labels * n_documents * (D + _PAIR) > least and share < 0.5


def _graph_index(vectors: NDArray[Any], graph: Any) -> Any:
    all_wide = dequantize(vectors)
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
    index = shortlist.index
    if shortlist.kind == "sketch":
        return {
            "sketch_signs": index.signs, "sketch_scales": index.scales, "sketch_places": index.places,
            "sketch_codes": index.codes.codes, "sketch_code_scales": index.codes.scales,
            "sketch_code_shifts": index.codes.shifts,
            "sketch_candidates": np.array([index.candidates], dtype=np.int32),
        }  # fmt: skip
    if shortlist.kind == "ivf":
        probes = np.array([index.probes], dtype=np.int32)
        return {"cluster_centres": index.centres, "cluster_of": index.cluster_of, "cluster_probes": probes}
    return {}


def structure_in(arrays: dict[str, NDArray[Any]], kind: Kind) -> Graph | InvertedFile | Sketches | None:
    """Return what `structure_of` gave, from arrays of anyone; None for an exact index."""
    if kind == "hnsw":
        levels, neighbours = np.array(arrays["graph_levels"]), np.array(arrays["graph_neighbours"])
        return Graph(levels, neighbours, int(arrays["graph_entry"].item()))
    if kind == "sketch":
        codes = Codes(arrays["sketch_codes"], arrays["sketch_code_scales"], arrays["sketch_code_shifts"])
        return sketches.restore(
            arrays["sketch_signs"], arrays["sketch_scales"], arrays["sketch_places"], codes,
            int(arrays["sketch_candidates"].item()),
        )  # fmt: skip
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
    if _searched_exactly(shortlist) and len(documents) <= _FEW:
        return np.array([_scan(shortlist, document, k) for document in documents], dtype=np.int32).reshape(-1, k)
    if shortlist.kind == "sketch" and _searched_exactly(shortlist):
        return shortlist.labels[inverted_file.search_all(shortlist.vectors, documents, k)]
    if shortlist.kind in ("sketch", "ivf"):
        return _compared(shortlist, documents, k)[0]
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


def _searched_exactly(shortlist: Shortlist) -> bool:
    """Return whether all labels are compared: also those of sketches that another processor has made."""
    return shortlist.kind == "exact" or (shortlist.kind == "sketch" and sub_linear(width(shortlist.vectors)) == "ivf")


def nearest(
    shortlist: Shortlist, documents: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return what `search` returns and the cosines, the same numbers as `cosines` gives."""
    k = min(k, len(shortlist.labels))
    if shortlist.kind in ("sketch", "ivf") and k > 0 and not _searched_exactly(shortlist):
        return _compared(shortlist, documents, k)
    labels = search(shortlist, documents, k)
    return labels, cosines(shortlist, documents, labels)


def _compared(
    shortlist: Shortlist, documents: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return what sketches or an inverted file find, and the cosines."""
    given, way = (shortlist.index, shortlist.vectors), sketches if shortlist.kind == "sketch" else inverted_file
    if len(documents) > _FEW or not len(documents):
        places, near = way.search(*given, documents, k)
    else:
        found = [way.search_one(*given, document, k) for document in documents]
        places, near = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return shortlist.labels[places], near


def _scan(shortlist: Shortlist, document: NDArray[np.float32], k: int) -> NDArray[np.int32]:
    """Return the labels nearest to one document: every thread looks through a part of them.

    One document is bound by memory, which 16-bit vectors halve; faiss would use one thread and 32 bits.
    """
    vectors = as_bits(shortlist.vectors)
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
    vectors = as_bits(shortlist.vectors)

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
