"""Split documents into train, dev and test: at random, or by a hash of their ids."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lightdxml.data.dataset import Dataset, Split, Texts
from lightdxml.data.labels import label_matrix


def split(data: Dataset, test: float = 0.0, dev: float = 0.0, seed: int = 0) -> Dataset:
    """Move a random share of the training documents to `test`, and another to `dev`.

    Parameters
    ----------
    data
        The data set. It must not have a split that is asked for.
    test, dev
        The shares of the training documents, at least 0 and below 1.
    seed
        The same seed gives the same splits.

    Examples
    --------
    >>> from lightdxml.data import Dataset, Split
    >>> from scipy.sparse import csr_matrix
    >>> parts = split(Dataset("tiny", Split(Y=csr_matrix(np.eye(10)))), test=0.3).splits
    >>> {name: len(part) for name, part in parts.items()}
    {'train': 7, 'test': 3}
    """
    n = len(data.train)
    counts = {}
    for name, share in (("test", test), ("dev", dev)):
        if not 0 <= share < 1:
            raise ValueError(f"{name} is {share}: it must be at least 0 and below 1")
        if share and name in data.splits:
            raise ValueError(f"{data.name} already has a {name} split: leave it as it is with {name}=0 (--{name} 0)")
        if share:
            counts[name] = round(share * n)
            if not counts[name]:
                raise ValueError(f"{name} is {share}, less than one of {n} documents: give a larger share")
    if not counts:
        raise ValueError("test and dev are 0: give a share for at least one of them")
    if (total := sum(counts.values())) >= n:
        raise ValueError(f"test and dev take {total} of {n} documents: give smaller shares")
    order = np.random.default_rng(seed).permutation(n)
    parts = {}
    for name, count in counts.items():
        parts[name] = data.train.take(np.sort(order[:count]))
        order = order[count:]
    train = data.train.take(np.sort(order))
    return replace(data, train=train, test=parts.get("test", data.test), dev=parts.get("dev", data.dev))


class Document(NamedTuple):
    """A document with named labels."""

    id: str
    title: str
    text: str
    labels: Iterable[str]


def is_test(document_id: str) -> bool:
    """Return whether the hash of an id puts the document into the test split; this holds for one in five."""
    digest = hashlib.md5(document_id.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest, "big") % 5 == 0


def split_by_hash(name: str, documents: Iterable[Document]) -> Dataset:
    """Make a data set of documents and labels, both sorted; `is_test` splits the documents."""
    ordered = sorted(documents, key=lambda document: document.id)
    label_names = sorted({label for document in ordered for label in document.labels})
    ids = {label: i for i, label in enumerate(label_names)}
    train, test = (
        _make_split([document for document in ordered if is_test(document.id) == side], ids) for side in (False, True)
    )
    return Dataset(name, train, test, label_names=label_names)


def _make_split(documents: list[Document], ids: dict[str, int]) -> Split:
    Y = label_matrix(([ids[label] for label in document.labels] for document in documents), len(ids))
    texts = Texts([document.text for document in documents], [document.title for document in documents])
    return Split(Y=Y, texts=texts, ids=[document.id for document in documents])
