"""The names of labels as rows of terms. A label may have several names (preferred and alternative ones), or none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class NameForms:
    """Names, those of one label after the other.

    Attributes
    ----------
    terms
        Names × features, unit rows: TF-IDF, as of documents.
    labels
        The label of each name, ascending.
    """

    terms: csr_matrix
    labels: NDArray[np.int32]

    def __getitem__(self, rows: NDArray[np.integer] | slice) -> NameForms:
        return NameForms(self.terms[rows], self.labels[rows])

    def key(self, row: int) -> tuple[int, bytes]:
        """Return what names of the same label and the same terms have in common."""
        return int(self.labels[row]), self.terms.indices[self.terms.indptr[row] : self.terms.indptr[row + 1]].tobytes()

    @cached_property
    def shares(self) -> csr_matrix:
        """The share of each term in its name: squared TF-IDF. The shares of a name sum to 1."""
        shares = self.terms.copy()
        shares.data = np.square(shares.data)
        return shares

    def by_label(self, n_labels: int) -> csr_matrix:
        """Return the mean of each label's names at length 1, labels × features; zeros for a label without a name."""
        from scipy.sparse import csr_matrix

        n = len(self.labels)
        of_label = csr_matrix((np.ones(n, np.float32), (self.labels, np.arange(n))), shape=(n_labels, n))
        sums = csr_matrix(of_label @ self.terms)
        lengths = np.sqrt(np.asarray(sums.multiply(sums).sum(axis=1)).ravel())
        sums.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(sums.indptr))
        return sums

    @cached_property
    def n_terms(self) -> NDArray[np.uint8]:
        """The number of terms of each name, at most 255."""
        counts: NDArray[np.uint8] = np.minimum(np.diff(self.terms.indptr), 255).astype(np.uint8)
        return counts

    @cached_property
    def ambiguity(self) -> NDArray[np.uint8]:
        """How many labels have a name of the same terms, at most 255.

        >>> from scipy.sparse import csr_matrix
        >>> terms = csr_matrix([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
        >>> NameForms(terms, np.array([0, 1, 1], dtype=np.int32)).ambiguity.tolist()
        [2, 2, 1]
        """
        lengths = np.diff(self.terms.indptr)
        # Numbers of the sets of terms: those of the first term, of the first two, and so on.
        terms = np.zeros(len(self.labels), dtype=np.int64)
        for place in range(int(lengths.max(initial=0))):
            rows = np.flatnonzero(lengths > place)
            longer = terms[rows] * self.terms.shape[1] + self.terms.indices[self.terms.indptr[rows] + place]
            terms[rows] = np.unique(longer, return_inverse=True)[1]
        # Sets of different lengths may have the same number.
        same = np.unique(lengths * len(terms) + terms, return_inverse=True)[1]
        n_labels = int(self.labels.max(initial=0)) + 1
        names = np.unique(same * n_labels + self.labels) // n_labels
        return np.minimum(np.bincount(names)[same], 255).astype(np.uint8)
