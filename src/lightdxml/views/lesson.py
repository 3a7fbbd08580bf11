"""What a trained model learns: new documents, next to those of training or to what its weights say of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from lightdxml.config import Config
    from lightdxml.training.run import TrainingData
    from lightdxml.views.dense.label_encoder import LabelEncoder
    from lightdxml.views.names.forms import NameForms

# The share of new documents among those of a label from which on it is trained from scratch.
_MANY = 0.1


@dataclass(frozen=True)
class Clusters:
    """The clusters of labels that the linear view takes its hard negatives from.

    Attributes
    ----------
    of_label
        The cluster of each label.
    of_document
        Documents × clusters of which each document is a negative.
    """

    of_label: NDArray[np.int32]
    of_document: NDArray[np.int32]


@dataclass(frozen=True)
class Lesson:
    """What a trained model learns.

    Attributes
    ----------
    data
        All documents to learn from: those of earlier on, then the new ones. Its features and labels are those of the
        model and, after them, new ones.
    n_earlier
        The number of documents of earlier on.
    remembers
        Whether these are the documents that the model was trained on. Otherwise they stand for them, and the model's
        weights are changed as little as possible.
    labels
        The labels to train again, ascending.
    fresh, nearest
        Labels that had no document before, ascending, new ones among them; and for each the label that is most like it,
        of those that had.
    frequency
        Number of documents of each label, those that are no longer at hand included.
    evidence
        Number of new documents that each label has, or that it was suggested for wrongly.
    config
        How the model was trained.
    added_names
        Names of labels that the model does not know yet; None if there are none.
    merged
        Labels that become one with another: pairs of the label that goes and the one that stays.
    removed
        Features and labels of documents that were learned before and do not count any more; None if there are none.
    clusters
        The clusters of hard negatives; None if labels are trained on all documents.
    clusters_since
        The first document that the clusters of label trees have not learned yet; None if they do not learn now.
    label_encoder
        The label encoder that made the label embeddings; None if it is not known.
    """

    data: TrainingData
    n_earlier: int
    remembers: bool
    labels: NDArray[np.int32]
    fresh: NDArray[np.int32]
    nearest: NDArray[np.int32]
    frequency: NDArray[np.int32]
    evidence: NDArray[np.int32]
    config: Config
    added_names: NameForms | None = None
    merged: tuple[tuple[int, int], ...] = ()
    removed: tuple[csr_matrix, csr_matrix] | None = None
    clusters: Clusters | None = None
    clusters_since: int | None = None
    label_encoder: LabelEncoder | None = None

    @cached_property
    def from_scratch(self) -> NDArray[np.int32]:
        """Those of the labels that are trained from scratch: many of their documents are new, or they have changed."""
        new = np.bincount(self.new_labels.indices, minlength=self.n_labels)[self.labels]
        all_of_them = self.frequency[self.labels]
        is_mostly_new = new >= _MANY * all_of_them if self.remembers else new == all_of_them
        gone: list[int] = [] if self.removed is None else self.removed[1].indices.tolist()
        named = [] if self.added_names is None else self.added_names.labels.tolist()
        changed = [*gone, *named, *(label for pair in self.merged for label in pair)]
        return self.labels[is_mostly_new | np.isin(self.labels, changed)]

    @property
    def n_removed(self) -> int:
        """Number of documents that do not count any more."""
        return 0 if self.removed is None else int(self.removed[0].shape[0])

    @property
    def n_labels(self) -> int:
        """Number of labels, new ones included."""
        return self.data.n_labels

    @property
    def n_features(self) -> int:
        """Number of features, new ones included."""
        return int(self.data.X.shape[1])

    @cached_property
    def new_features(self) -> csr_matrix:
        """The features of the new documents."""
        return self.data.X[self.n_earlier :]

    @cached_property
    def new_labels(self) -> csr_matrix:
        """The labels of the new documents."""
        return self.data.Y[self.n_earlier :]

    def placed(self, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return rows of numbers per label, with rows of new labels.

        Labels without a place, which have -1, get that of the label most like them.
        """
        more = np.full((self.n_labels - len(rows), *rows.shape[1:]), -1, dtype=np.int32)
        found = np.concatenate([rows, more])
        has_none = (found if found.ndim == 1 else found[:, 0])[self.fresh] < 0
        found[self.fresh[has_none]] = found[self.nearest[has_none]]
        return found
