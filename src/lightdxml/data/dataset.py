"""Data sets in memory: `Texts`, `Split` and `Dataset`. Every reader returns them and every writer takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def largest_plausible_size(n_entries: int) -> int:
    """Return the most labels, features or rows that a data set with this many entries may claim to have.

    Some arrays have one element per claimed label or feature, so a false claim would fill memory. No known data set
    has twenty million labels.
    """
    return max(20_000_000, 100 * n_entries)


class Texts(Sequence[str]):
    r"""The texts of documents, as a sequence of strings.

    Titles and bodies are stored separately and joined on access: there is no second copy of the corpus.

    Parameters
    ----------
    bodies
        One string per document.
    titles
        One string per document; None if the data has no titles.

    Examples
    --------
    >>> texts = Texts(["a feline pet", ""], titles=["Cat", "Dog"])
    >>> list(texts)
    ['Cat\na feline pet', 'Dog']
    """

    __slots__ = ("bodies", "titles")

    def __init__(self, bodies: Sequence[str], titles: Sequence[str] | None = None) -> None:
        if titles is not None and len(titles) != len(bodies):
            raise ValueError(f"{len(titles)} titles for {len(bodies)} texts: there must be one per text")
        self.bodies = bodies
        self.titles = titles

    def __len__(self) -> int:
        return len(self.bodies)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Texts: ...
    def __getitem__(self, index: int | slice) -> str | Texts:
        if isinstance(index, slice):
            return Texts(self.bodies[index], None if self.titles is None else self.titles[index])
        body = self.bodies[index]
        title = "" if self.titles is None else self.titles[index]
        return f"{title}\n{body}" if title and body else title or body

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # compares by content, may hold lists

    def __repr__(self) -> str:
        return f"<Texts: {len(self)} documents{', with titles' if self.titles is not None else ''}>"

    def take(self, rows: NDArray[np.int64]) -> Texts:
        """Return the texts of these rows, in this order."""
        titles = None if self.titles is None else [self.titles[i] for i in rows.tolist()]
        return Texts([self.bodies[i] for i in rows.tolist()], titles)


@dataclass(frozen=True, eq=False)
class Split:
    """One part of a data set: documents and their labels.

    Attributes
    ----------
    Y
        Labels, CSR float32, documents × labels. Stored values are positive; they are 1 unless the data has weights.
    X
        Features, CSR float32, documents × features; None for text.
    texts
        The texts of the documents; None if there are only features.
    ids
        The ids of the documents in the data; None if there are none.
    ignore
        Pairs (document, label) that evaluation ignores, int64 of shape (n, 2), from filter files.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> split = Split(Y=csr_matrix([[0, 1], [1, 1]], dtype="float32"), texts=Texts(["one", "two"]))
    >>> len(split)
    2
    """

    Y: csr_matrix
    X: csr_matrix | None = None
    texts: Texts | None = None
    ids: Sequence[str] | None = None
    ignore: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        n = self.Y.shape[0]
        for name, length in (
            ("rows of X", None if self.X is None else self.X.shape[0]),
            ("texts", None if self.texts is None else len(self.texts)),
            ("ids", None if self.ids is None else len(self.ids)),
        ):
            if length is not None and length != n:
                raise ValueError(f"{length} {name} for {n} rows of labels: there must be one per row")

    def __len__(self) -> int:
        return int(self.Y.shape[0])

    def __repr__(self) -> str:
        features = "text" if self.X is None else f"{self.X.shape[1]:,} features"
        return f"<Split: {len(self):,} documents, {features}, {self.Y.shape[1]:,} labels>"

    def take(self, rows: NDArray[np.int64]) -> Split:
        """Return these rows, in this order, as a new split."""
        return Split(
            Y=self.Y[rows],
            X=None if self.X is None else self.X[rows],
            texts=None if self.texts is None else self.texts.take(rows),
            ids=None if self.ids is None else [self.ids[i] for i in rows.tolist()],
            ignore=None if self.ignore is None else _take_pairs(self.ignore, rows, len(self)),
        )


def _take_pairs(pairs: NDArray[np.int64], rows: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    new_row = np.full(n, -1, dtype=np.int64)
    new_row[rows] = np.arange(len(rows))
    kept = pairs[new_row[pairs[:, 0]] >= 0]
    return np.column_stack([new_row[kept[:, 0]], kept[:, 1]])


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set: its splits, and the names of its labels and features.

    Attributes
    ----------
    name
        The name for tables and messages.
    train, test, dev
        The splits. A data set that is a single file has only `train`.
    label_names
        One name per column of Y; None if the labels have no names.
    feature_names
        One name per column of X; None if the features have no names.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> train = Split(Y=csr_matrix([[0, 1], [1, 1]], dtype="float32"), texts=Texts(["one", "two"]))
    >>> data = Dataset("tiny", train, label_names=["odd", "number"])
    >>> data.n_labels, data.n_features, sorted(data.splits)
    (2, None, ['train'])
    """

    name: str
    train: Split
    test: Split | None = None
    dev: Split | None = None
    label_names: Sequence[str] | None = None
    feature_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        for part, split in self.splits.items():
            if split.Y.shape[1] != self.n_labels:
                raise ValueError(f"{part} has {split.Y.shape[1]} labels and train {self.n_labels}: they must agree")
            if (split.X is None) != (self.train.X is None):
                raise ValueError(f"only one of train and {part} has features: both must, or neither")
            if split.X is not None and split.X.shape[1] != self.n_features:
                raise ValueError(f"{part} has {split.X.shape[1]} features and train {self.n_features}: they must agree")
        for names, count, what in (
            (self.label_names, self.n_labels, "label"),
            (self.feature_names, self.n_features, "feature"),
        ):
            if names is not None and len(names) != count:
                raise ValueError(f"{len(names)} {what} names for {count} {what}s: there must be one per {what}")

    def __repr__(self) -> str:
        parts = ", ".join(f"{len(split):,} {part}" for part, split in self.splits.items())
        features = "text" if self.n_features is None else f"{self.n_features:,} features"
        return f"<Dataset {self.name}: {parts} documents, {features}, {self.n_labels:,} labels>"

    @property
    def splits(self) -> dict[str, Split]:
        """The splits that exist, by name."""
        parts = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: split for name, split in parts.items() if split is not None}

    @property
    def n_labels(self) -> int:
        """The number of labels, including labels without documents."""
        return int(self.train.Y.shape[1])

    @property
    def n_features(self) -> int | None:
        """The number of features; None for text."""
        return None if self.train.X is None else int(self.train.X.shape[1])
