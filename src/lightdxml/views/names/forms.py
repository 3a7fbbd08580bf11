"""The names of labels as rows of terms. A label may have several names (preferred and alternative ones), or none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
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
        indptr, indices = self.terms.indptr.tolist(), self.terms.indices
        keys = [indices[first:last].tobytes() for first, last in pairwise(indptr)]
        owners: dict[bytes, set[int]] = {}
        for key, label in zip(keys, self.labels.tolist(), strict=True):
            owners.setdefault(key, set()).add(label)
        return np.array([min(255, len(owners[key])) for key in keys], dtype=np.uint8)
