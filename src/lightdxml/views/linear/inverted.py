"""Sparse weights of many classes as an inverted index: for each feature the classes that have a weight for it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels import inverted_index, parallel
from lightdxml.kernels.inverted_index import BLOCK, Postings
from lightdxml.kernels.precision import as_bits, rounded
from lightdxml.persistence.arrays import Arrays
from lightdxml.views.base import Batch, expect, in_range, is_ascending, is_indptr

# Of 3, 4 and 6 it has the best sum of P over six data sets (decision 040).
SLOPE = 4.0
_MAX_EXPONENT = 80.0
_DOCUMENTS = 256
_workspace = threading.local()


@dataclass(frozen=True)
class InvertedIndex:
    """Weights of classes by feature.

    Attributes
    ----------
    indptr
        Where each feature's classes begin, for each block of 65,536 classes: blocks × features + 1.
    classes, weights
        The classes that have a weight for a feature, counted from the first of the block, and the weight, float32 or
        float16.
    biases
        The bias of each class.
    dense
        Classes that can rank high without a feature in common with the document: their bias was raised.
    """

    indptr: NDArray[np.int64]
    classes: NDArray[np.uint16]
    weights: NDArray[Any]
    biases: NDArray[np.float32]
    dense: NDArray[np.int32]

    @property
    def postings(self) -> Postings:
        """The index as kernels take it."""
        return Postings(self.indptr, self.classes, as_bits(self.weights))

    def arrays(self, prefix: str) -> Arrays:
        """Return all arrays by name."""
        names = ("indptr", "classes", "weights", "biases", "dense")
        return {f"{prefix}.{name}": getattr(self, name) for name in names}

    def quantize(self, precision: str) -> InvertedIndex:
        """Return float32 weights as float16; there is no int8 form."""
        if self.weights.dtype != np.float32:
            return self
        return replace(self, weights=rounded(self.weights, "float16"))


def n_blocks(n_classes: int) -> int:
    """Return the number of blocks of classes.

    >>> n_blocks(0), n_blocks(65_536), n_blocks(65_537)
    (1, 1, 2)
    """
    return max(1, -(-n_classes // BLOCK))


def restore_index(arrays: Arrays, prefix: str, n_features: int, n_classes: int) -> InvertedIndex:
    """Return the index that these arrays make up; raise a `ValueError` if they cannot."""
    indptr, classes, weights, biases, dense = (
        arrays[f"{prefix}.{name}"] for name in ("indptr", "classes", "weights", "biases", "dense")
    )
    expect(indptr, f"{prefix}.indptr", (n_blocks(n_classes), n_features + 1), np.int64)
    expect(classes, f"{prefix}.classes", (len(classes),), np.uint16)
    expect(weights, f"{prefix}.weights", (len(classes),), np.float16, np.float32)
    expect(biases, f"{prefix}.biases", (n_classes,), np.float32)
    expect(dense, f"{prefix}.dense", (len(dense),), np.int32)
    if not is_indptr(indptr.ravel(), len(classes)):
        raise ValueError(f"its {prefix} view has features whose weights lie nowhere")
    # All other blocks have 65,536 classes: any number of 16 bits is one of them.
    last = n_classes - BLOCK * (len(indptr) - 1)
    if not in_range(classes[indptr[-1, 0] :], 0, last) or not in_range(dense, 0, n_classes) or not is_ascending(dense):
        raise ValueError(f"its {prefix} view has weights of labels that do not exist")
    return InvertedIndex(indptr, classes, weights, biases, dense)


def search(
    index: InvertedIndex, batch: Batch, k: int, known: NDArray[np.int32], allowed: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
    """Return the k best classes of each document that are not known, their margins, and the margins of the known ones.

    The order within a row is arbitrary; -1 for none. Only classes that are allowed are found, None for all; those that
    are known must be allowed.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> weights, biases = np.array([2, 1], dtype=np.float32), -np.ones(2, dtype=np.float32)
    >>> indptr, classes, no = np.array([[0, 1, 2]]), np.array([0, 1], dtype=np.uint16), np.empty(0, dtype=np.int32)
    >>> index = InvertedIndex(indptr, classes, weights, biases, no)
    >>> batch = Batch(csr_matrix([[1.0, 0.5]], dtype=np.float32))
    >>> found, margins, _ = search(index, batch, 2, np.empty((1, 0), dtype=np.int32))
    >>> sorted(zip(found[0].tolist(), margins[0].tolist()))
    [(0, 1.0), (1, -0.5)]
    """
    n, n_classes = len(batch), len(index.biases)
    found = np.empty((n, min(k, n_classes)), dtype=np.int32)
    margins = np.empty(found.shape, dtype=np.float32)
    known_margins = np.empty(known.shape, dtype=np.float32)
    documents, postings = batch.documents, index.postings
    # Other classes have the lowest margin that there is: they are found last, if at all.
    biases = index.biases if allowed is None else np.where(allowed, index.biases, np.float32(-np.inf))

    def run(bounds: tuple[int, int]) -> None:
        totals, marks = _zeros(n_classes)
        inverted_index.search(
            *bounds, documents, postings, biases, index.dense, known, totals, marks, found, margins, known_margins
        )

    parallel.run(run, parallel.fixed_chunks(n, _DOCUMENTS))
    if allowed is not None:
        found[np.isneginf(margins)] = -1
    return found, margins, known_margins


def margins_of(index: InvertedIndex, batch: Batch, labels: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return the margins of these classes of each document; -inf for class -1.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> weights, biases = np.array([2, 1], dtype=np.float32), -np.ones(2, dtype=np.float32)
    >>> indptr, classes, no = np.array([[0, 1, 2]]), np.array([0, 1], dtype=np.uint16), np.empty(0, dtype=np.int32)
    >>> index = InvertedIndex(indptr, classes, weights, biases, no)
    >>> batch = Batch(csr_matrix([[1.0, 0.5]], dtype=np.float32))
    >>> margins_of(index, batch, np.array([[1, -1]], dtype=np.int32)).tolist()
    [[-0.5, -inf]]
    """
    margins = np.empty(labels.shape, dtype=np.float32)
    documents, postings = batch.documents, index.postings

    def run(bounds: tuple[int, int]) -> None:
        inverted_index.score_known(
            *bounds, documents, postings, index.biases, labels, _zero_slots(len(index.biases)), margins
        )

    parallel.run(run, parallel.fixed_chunks(len(batch), _DOCUMENTS))
    return margins


def _zero_slots(n: int) -> NDArray[np.int32]:
    """Return workspace of this thread, which the kernel leaves zero."""
    if not hasattr(_workspace, "slots") or len(_workspace.slots) < n:
        _workspace.slots = np.zeros(n, dtype=np.int32)
    slots: NDArray[np.int32] = _workspace.slots[:n]
    return slots


def _zeros(n: int) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Return workspace of this thread, which the kernel leaves zero: fresh memory costs time per document."""
    if not hasattr(_workspace, "marks") or len(_workspace.marks) < n:
        _workspace.totals, _workspace.marks = np.zeros(n, dtype=np.float32), np.zeros(n, dtype=np.uint8)
    return _workspace.totals[:n], _workspace.marks[:n]


def log_sigmoid(margins: NDArray[np.float32], labels: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return log σ(4 s) of margins s; 0 where there is no label.

    Unlike the hinge loss it tells margins above 1 apart, of which a document may have several.

    >>> log_sigmoid(np.array([[0.0, 3.0]], dtype=np.float32), np.array([[7, -1]], dtype=np.int32)).round(3).tolist()
    [[-0.693..., -0.0]]
    """
    odds = np.exp(np.minimum(np.float32(-SLOPE) * margins, np.float32(_MAX_EXPONENT)))
    odds[labels < 0] = 0
    odds += 1
    logs: NDArray[np.float32] = -np.log(odds)
    return logs


def feature_margins(index: InvertedIndex, batch: Batch, label: int) -> NDArray[np.float64]:
    """Return what each feature of one document adds to the margin of a class."""
    x = batch.X
    terms = np.zeros(x.nnz)
    block, within = label // BLOCK, np.uint16(label % BLOCK)
    for i, feature in enumerate(x.indices.tolist()):
        first, last = index.indptr[block, feature], index.indptr[block, feature + 1]
        at = first + np.searchsorted(index.classes[first:last], within)
        if at < last and index.classes[at] == within:
            terms[i] = float(x.data[i]) * float(index.weights[at])
    return terms
