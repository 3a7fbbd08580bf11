"""Learning without the training documents: the weights of labels stand for the documents that made them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from lightdxml.data.labels import label_matrix
from lightdxml.model.model import Model
from lightdxml.training.run import TrainingData
from lightdxml.views.base import Batch
from lightdxml.views.linear.grow import weights_of
from lightdxml.views.linear.inverted import search
from lightdxml.views.linear.model import LinearView
from lightdxml.views.tree.clustering import normalize_rows

# Labels per new document that are rehearsed: those that the linear view takes for the best.
_LABELS = 20


def data(
    model: Model, X: csr_matrix, Y: csr_matrix, old_features: csr_matrix, own: NDArray[np.int32] | None, but: int = -1
) -> tuple[TrainingData, int]:
    """Return documents to learn from, and how many of them, the first ones, only stand for earlier documents.

    Such a document has the words for which a label has positive weights. There is one for each label that competes
    with those of the new documents.

    Parameters
    ----------
    model
        The model before it learns.
    X, Y
        Features and labels of the new documents, new words and labels included.
    old_features
        Their features without new words.
    own
        The labels that new documents are themselves; None if they are none.
    but
        A label that competes with none, because it becomes one with theirs; -1 for none.
    """
    labels = _competing(model, old_features)
    labels = labels[labels != but]
    earlier = typical_documents(model, labels, X.shape[1])
    rows = label_matrix([[label] for label in labels.tolist()], Y.shape[1])
    nowhere = np.full(len(labels), -1, dtype=np.int32)
    data = TrainingData(
        csr_matrix(vstack([earlier, X])), csr_matrix(vstack([rows, Y])), X[:0], Y[:0],
        own=None if own is None else np.concatenate([nowhere, own]),
    )  # fmt: skip
    return data, len(labels)


def _competing(model: Model, X: csr_matrix) -> NDArray[np.int32]:
    """Return the labels that the linear view takes for the best of some document, ascending."""
    view = model.views.get("linear")
    if not isinstance(view, LinearView):
        return np.empty(0, dtype=np.int32)
    found = search(view.index, Batch(X), _LABELS, np.empty((X.shape[0], 0), dtype=np.int32))[0]
    return np.unique(found[found >= 0]).astype(np.int32)


def typical_documents(model: Model, labels: NDArray[np.int32], n_features: int) -> csr_matrix:
    """Return a document for each label, with the words for which the linear view has positive weights."""
    view = model.views.get("linear")
    if not isinstance(view, LinearView):
        return csr_matrix((len(labels), n_features), dtype=np.float32)
    rows = csr_matrix(weights_of(view.index, labels)[labels])
    np.maximum(rows.data, 0, out=rows.data)
    rows.eliminate_zeros()
    normalize_rows(rows)
    rows.resize(rows.shape[0], n_features)
    return rows
