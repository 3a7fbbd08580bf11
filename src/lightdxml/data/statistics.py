"""Statistics of a data set: sizes, labels per document, documents per label, head and tail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.dataset import Dataset, Split
from lightdxml.data.text_files import TextFiles

_TAIL = 5


@dataclass(frozen=True)
class Statistics:
    """The statistics that the literature gives for a data set."""

    name: str
    n_train: int
    n_dev: int  # 0 if there is no such split
    n_test: int
    n_features: int | None  # None for text
    n_labels: int  # including labels without documents
    labels_per_point: float  # means over train and test, as in the Extreme Classification repository
    points_per_label: float
    share_of_labels_below_5: float  # labels with fewer than 5 training documents
    unseen_labels: int  # labels without a training document
    unlabeled: int  # training documents without labels
    empty: int  # training documents without features or text
    frequencies: NDArray[np.int64]  # training documents per label, in descending order

    def curve(self, points: int = 40) -> list[tuple[int, int]]:
        """Return (rank, number of training documents) of labels at logarithmically spaced ranks from 1."""
        if not self.n_labels:
            return []
        ranks = np.unique(np.geomspace(1, self.n_labels, points).round().astype(int))
        return [(rank, int(self.frequencies[rank - 1])) for rank in ranks.tolist()]


def describe(data: Dataset) -> Statistics:
    """Return the statistics of a data set.

    Examples
    --------
    >>> from lightdxml.data import Dataset, Split
    >>> from scipy.sparse import csr_matrix
    >>> figures = describe(Dataset("tiny", Split(Y=csr_matrix([[1, 1, 0], [0, 1, 0]]))))
    >>> figures.labels_per_point, figures.points_per_label, figures.unseen_labels
    (1.5, 1.0, 1)
    """
    sizes = {part: len(split) for part, split in data.splits.items()}
    counted = [split for part, split in data.splits.items() if part != "dev"]
    assigned = sum(split.Y.nnz for split in counted)
    frequencies = np.sort(np.bincount(data.train.Y.indices, minlength=data.n_labels))[::-1]
    return Statistics(
        name=data.name,
        n_train=sizes["train"],
        n_dev=sizes.get("dev", 0),
        n_test=sizes.get("test", 0),
        n_features=data.n_features,
        n_labels=data.n_labels,
        labels_per_point=assigned / max(1, sum(map(len, counted))),
        points_per_label=assigned / max(1, data.n_labels),
        share_of_labels_below_5=float(np.mean(frequencies < _TAIL)) if data.n_labels else 0.0,
        unseen_labels=int(np.count_nonzero(frequencies == 0)),
        unlabeled=len(unlabeled_documents(data.train)),
        empty=len(empty_documents(data.train)),
        frequencies=frequencies,
    )


def unlabeled_documents(split: Split) -> NDArray[np.int64]:
    """Return the rows of documents without labels."""
    return np.flatnonzero(np.diff(split.Y.indptr) == 0)


def empty_documents(split: Split) -> NDArray[np.int64]:
    """Return the rows of documents without features or text."""
    if split.X is not None:
        return np.flatnonzero(np.diff(split.X.indptr) == 0)
    if isinstance(split.texts, TextFiles):
        return split.texts.empty
    return np.flatnonzero([not text.strip() for text in split.texts or ()])
