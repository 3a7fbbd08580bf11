"""What every reader returns and every writer takes: `Texts`, `Split`, `Dataset`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

_ANY_WIDTH = 20_000_000
_WIDTH_PER_ENTRY = 100


def believable_width(n_entries: int) -> int:
    """Return how many labels, features or rows data with so many entries may claim to have.

    What is counted by label or feature takes memory for each that is claimed; twenty million are more than any known
    data set has.

    >>> believable_width(3), believable_width(10**6)
    (20000000, 100000000)
    """
    return max(_ANY_WIDTH, _WIDTH_PER_ENTRY * n_entries)


class Texts(Sequence[str]):
    r"""The documents' texts, title and body kept apart and joined only when asked for.

    A sequence of strings to whoever only wants strings; no joined copy of the corpus is ever held.

    Parameters
    ----------
    bodies
        One string a document.
    titles
        One string a document, or None where the data has no titles.

    Examples
    --------
    >>> texts = Texts(["a feline pet", ""], titles=["Cat", "Dog"])
    >>> texts[0]
    'Cat\na feline pet'
    >>> list(texts)
    ['Cat\na feline pet', 'Dog']
    """

    __slots__ = ("bodies", "titles")

    def __init__(self, bodies: Sequence[str], titles: Sequence[str] | None = None) -> None:
        if titles is not None and len(titles) != len(bodies):
            raise ValueError(f"{len(titles)} titles for {len(bodies)} texts: there must be one each")
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
        titles = self.titles
        return Texts(
            [self.bodies[i] for i in rows.tolist()],
            None if titles is None else [titles[i] for i in rows.tolist()],
        )


@dataclass(frozen=True, eq=False)
class Split:
    """One part of a data set: documents and their labels.

    Attributes
    ----------
    Y
        Labels, CSR float32, documents × labels; what is stored is positive (1 unless the data says otherwise).
    X
        Features, CSR float32, documents × features; None for text.
    texts
        The documents' texts; None where there are only features.
    ids
        The documents' own names, where the data has them.
    ignore
        Pairs (document, label) that take no part in evaluation, int64 of shape (n, 2), from filter files.

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
                raise ValueError(f"{length} {name} for {n} rows of labels: there must be one each")

    def __len__(self) -> int:
        return int(self.Y.shape[0])

    def __repr__(self) -> str:
        features = "text" if self.X is None else f"{self.X.shape[1]:,} features"
        return f"<Split: {len(self):,} documents, {features}, {self.Y.shape[1]:,} labels>"

    def take(self, rows: NDArray[np.int64]) -> Split:
        """Return these rows, in this order, as a split of its own."""
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
    """A data set: its parts, and the names of labels and features.

    Attributes
    ----------
    name
        What to call it in tables.
    train, test, dev
        The parts; a single file is all `train`.
    label_names
        One name a label, in the order of Y's columns; None where only numbers are known.
    feature_names
        One name a feature, in the order of X's columns; None where only numbers are known.

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
                raise ValueError(f"{len(names)} {what} names for {count} {what}s: there must be one each")

    def __repr__(self) -> str:
        parts = ", ".join(f"{len(split):,} {part}" for part, split in self.splits.items())
        features = "text" if self.n_features is None else f"{self.n_features:,} features"
        return f"<Dataset {self.name}: {parts} documents, {features}, {self.n_labels:,} labels>"

    @property
    def splits(self) -> dict[str, Split]:
        """The parts that are there, by name."""
        parts = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: split for name, split in parts.items() if split is not None}

    @property
    def n_labels(self) -> int:
        """The number of labels, those without documents included."""
        return int(self.train.Y.shape[1])

    @property
    def n_features(self) -> int | None:
        """The number of features; None for text."""
        return None if self.train.X is None else int(self.train.X.shape[1])
