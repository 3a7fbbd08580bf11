"""Documents that contain all terms of a name, by the documents of each term."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel
from lightdxml.kernels.ranking import contains
from lightdxml.kernels.sparse import Pattern


@kernel
def count(
    start: int,
    stop: int,
    names: Pattern,
    labels: NDArray[np.int32],
    term_documents: Pattern,
    label_documents: Pattern,
    documents: NDArray[np.int32],
    hits: NDArray[np.int32],
) -> None:
    """Count the documents of names start … stop, and those of them that have the name's label.

    Parameters
    ----------
    names, labels
        The terms and the label of each name.
    term_documents, label_documents
        The documents of each term and of each label, ascending.
    documents, hits
        Receive the counts; 0 for a name without terms.
    """
    name_indptr, terms = names
    term_indptr, of_term = term_documents
    label_indptr, of_label = label_documents
    for name in range(start, stop):
        documents[name] = hits[name] = 0
        first, last = name_indptr[name], name_indptr[name + 1]
        if first == last:
            continue
        rarest = first
        for i in range(first + 1, last):
            fewest = term_indptr[terms[rarest] + 1] - term_indptr[terms[rarest]]
            if term_indptr[terms[i] + 1] - term_indptr[terms[i]] < fewest:
                rarest = i
        label = labels[name]
        for p in range(term_indptr[terms[rarest]], term_indptr[terms[rarest] + 1]):
            is_whole = True
            for i in range(first, last):
                if i != rarest and not contains(of_term, term_indptr[terms[i]], term_indptr[terms[i] + 1], of_term[p]):
                    is_whole = False
                    break
            if is_whole:
                documents[name] += 1
                if contains(of_label, label_indptr[label], label_indptr[label + 1], of_term[p]):
                    hits[name] += 1
