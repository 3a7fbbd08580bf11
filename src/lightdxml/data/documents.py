"""What the builders share: from documents with named labels to a data set with a fixed split."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from lightdxml.data.dataset import Dataset, Split, Texts
from lightdxml.data.labels import label_matrix


class Document(NamedTuple):
    """One document on its way into a data set."""

    id: str
    title: str
    text: str
    labels: Iterable[str]


def is_test(document_id: str) -> bool:
    """Say whether a document is for testing: one in five is, by a hash of its id.

    Examples
    --------
    >>> is_test("numpy.linalg.svd"), is_test("numpy.linalg.pinv")
    (False, True)
    """
    digest = hashlib.md5(document_id.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest, "big") % 5 == 0


def split_by_hash(name: str, documents: Iterable[Document]) -> Dataset:
    """Make a data set of documents with named labels, sorted by id; `is_test` says which side each is on.

    Examples
    --------
    >>> data = split_by_hash("tiny", [Document("b", "B", "bee", {"x"}), Document("a", "A", "ay", {"y", "x"})])
    >>> list(data.train.ids), data.label_names, data.train.Y.toarray().tolist()
    (['a', 'b'], ['x', 'y'], [[1.0, 1.0], [1.0, 0.0]])
    """
    ordered = sorted(documents, key=lambda document: document.id)
    label_names = sorted({label for document in ordered for label in document.labels})
    column = {label: j for j, label in enumerate(label_names)}
    sides: tuple[list[Document], list[Document]] = ([], [])
    for document in ordered:
        sides[is_test(document.id)].append(document)
    train, test = (_split(side, column) for side in sides)
    return Dataset(name, train, test, label_names=label_names)


def _split(documents: list[Document], column: dict[str, int]) -> Split:
    rows = [sorted(column[label] for label in document.labels) for document in documents]
    texts = Texts([document.text for document in documents], [document.title for document in documents])
    return Split(Y=label_matrix(rows, len(column)), texts=texts, ids=[document.id for document in documents])
