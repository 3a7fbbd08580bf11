"""How often names occur in training documents, and how often their labels are right there.

A name such as "year" occurs in many documents that do not have the label: it says little. This is what tells apart
the names of labels without training documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lightdxml.executor import Executor, Threads
from lightdxml.kernels import occurrences, parallel
from lightdxml.kernels.sparse import Pattern, read_only
from lightdxml.persistence.arrays import Arrays
from lightdxml.views.base import expect
from lightdxml.views.names.forms import NameForms

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from lightdxml.views.base import NewLabels

# The hits that one more document is expected to have.
_EXPECTED_HITS = 0.05
# Names per piece of work.
_NAMES = 4096


@dataclass(frozen=True)
class Occurrences:
    """Counts per name.

    Attributes
    ----------
    documents
        Training documents that contain all terms of the name.
    hits
        Those of them that have the label.
    """

    documents: NDArray[np.int32]
    hits: NDArray[np.int32]

    def __add__(self, other: Occurrences) -> Occurrences:
        return Occurrences(self.documents + other.documents, self.hits + other.hits)

    def less(self, other: Occurrences) -> Occurrences:
        """Return the counts without others, which they contain."""
        documents = np.maximum(self.documents - other.documents, 0)
        return Occurrences(documents, np.clip(self.hits - other.hits, 0, documents))

    def joined(self, other: Occurrences) -> Occurrences:
        """Return these counts and, after them, those of other names."""
        pairs = (self.documents, other.documents), (self.hits, other.hits)
        return Occurrences(*(np.concatenate(pair) for pair in pairs))

    @property
    def log_rate(self) -> NDArray[np.float32]:
        """The logarithm of the share of hits among the documents, drawn to the usual share where they are few.

        >>> found = Occurrences(np.array([0, 9, 9], np.int32), np.array([0, 0, 9], np.int32))
        >>> np.exp(found.log_rate).round(3).tolist()
        [0.05000000074505806, 0.004999999888241291, 0.9049999713897705]
        """
        rates: NDArray[np.float32] = np.log((self.hits + _EXPECTED_HITS) / (self.documents + 1.0)).astype(np.float32)
        return rates

    def without(self, documents: NDArray[np.bool_], hits: NDArray[np.bool_]) -> Occurrences:
        """Return the counts without one document each that contains the name, and may have the label.

        A document may be taken for one that contains the name although it lacks a word of next to no weight, and was
        not counted.
        """
        left = np.maximum(self.documents - documents, 0)
        return Occurrences(left, np.clip(self.hits - (documents & hits), 0, left))

    def __getitem__(self, names: NDArray[np.integer]) -> Occurrences:
        return Occurrences(self.documents[names], self.hits[names])

    def arrays(self, prefix: str) -> Arrays:
        """Return the counts by name."""
        return {f"{prefix}.documents": self.documents, f"{prefix}.hits": self.hits}

    @staticmethod
    def restore(arrays: Arrays, prefix: str, n: int) -> Occurrences:
        """Return the counts of n names that these arrays make up; raise a `ValueError` if they cannot."""
        names = f"{prefix}.documents", f"{prefix}.hits"
        documents, hits = (expect(arrays[name], name, (n,), np.int32) for name in names)
        if bool((hits < 0).any()) or bool((hits > documents).any()):
            raise ValueError("its names view has names with more hits than documents")
        return Occurrences(documents, hits)


def count(
    names: NameForms, X: csr_matrix, label_documents: csr_matrix, executor: Executor | None = None
) -> Occurrences:
    """Return how often names occur in documents, X, given the documents of each label.

    >>> from scipy.sparse import csr_matrix
    >>> names = NameForms(csr_matrix([[1, 0], [0.6, 0.8]], dtype=np.float32), np.array([0, 1], np.int32))
    >>> X, Y = csr_matrix([[1, 1], [1, 0]], dtype=np.float32), csr_matrix([[1, 1], [0, 0]], dtype=np.float32)
    >>> count(names, X, csr_matrix(Y.T))
    Occurrences(documents=array([2, 1], dtype=int32), hits=array([1, 1], dtype=int32))
    """
    n = len(names.labels)
    shared = Pattern.of(names.terms), names.labels, Pattern.of(X.tocsc()), Pattern.of(label_documents)
    found = (executor or Threads()).map(_count, shared, parallel.fixed_chunks(n, _NAMES) or [(0, 0)])
    return Occurrences(*(np.concatenate(one) for one in zip(*found, strict=True)))


def _count(
    shared: tuple[Pattern, NDArray[np.int32], Pattern, Pattern], bounds: tuple[int, int]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    (terms, labels, by_term, by_label), (first, last) = shared, bounds
    part = Pattern(read_only(terms.indptr[first : last + 1]), terms.indices)
    documents, hits = np.empty(last - first, np.int32), np.empty(last - first, np.int32)
    occurrences.count(0, last - first, part, read_only(labels[first:last]), by_term, by_label, documents, hits)
    return documents, hits


def carried_over(old: Occurrences, old_labels: NDArray[np.int32], new: NewLabels) -> Occurrences:
    """Return the counts of the names of another vocabulary; those of new names are estimated.

    A label keeps its counts if it is not renamed and has as many names as before. Other names of a label that had names
    have the rate of hits of these.
    """
    n_old = int(old_labels.max(initial=-1)) + 1
    labels = np.arange(n_old + 1)
    hits, documents = (np.bincount(old_labels, one, minlength=n_old) for one in (old.hits, old.documents))
    rate = np.append(hits / np.maximum(documents, 1), 0.0)[np.minimum(new.names.labels, n_old)]
    found = Occurrences(new.expected_documents.copy(), (rate * new.expected_documents).astype(np.int32))
    before, after = np.searchsorted(old_labels, labels), np.searchsorted(new.names.labels, labels)
    keeps = np.diff(before) == np.diff(after)
    keeps[new.renamed[new.renamed < n_old]] = False
    from_old, to_new = keeps[old_labels], np.append(keeps, False)[np.minimum(new.names.labels, n_old)]
    found.documents[to_new], found.hits[to_new] = old.documents[from_old], old.hits[from_old]
    return found
