"""The documents that a model has learned since training, as its journal has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from lightdxml.data.dataset import Texts
from lightdxml.learning.documents import LabeledDocuments, columns_of
from lightdxml.learning.journal import Operation
from lightdxml.learning.learn import Learner
from lightdxml.learning.stored import Journal, Opened, at_one_moment, file_of, overview, read_operation
from lightdxml.model.model import Model


@dataclass(frozen=True, eq=False, repr=False)
class Lessons:
    """What a model has learned since training: of documents with the same id the latest version, no forgotten ones.

    Attributes
    ----------
    texts
        Texts; None if there are features.
    X
        Features; None if there are texts.
    Y
        Labels, documents × labels. Labels that became one with another have the column of the one that stayed.
    label_names
        A name per column; None if labels have no names.
    ids
        An id per document; empty for those without.
    lost
        Steps whose documents the journal has no more: the whole model was changed or saved again after them.
    """

    texts: Texts | None
    X: csr_matrix | None
    Y: csr_matrix
    label_names: list[str] | None
    ids: list[str] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)

    @property
    def labels(self) -> list[list[str | int]]:
        """The labels of each document, in the form that training takes: names, or columns without names."""
        names = self.label_names
        rows = np.split(self.Y.indices, self.Y.indptr[1:-1]) if len(self) else []
        return [[j if names is None else names[j] for j in row.tolist()] for row in rows]

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Lessons: {len(self):,} documents, {self.Y.shape[1]:,} labels>"


def lessons_of(folder: Path) -> Lessons:
    """Read what a model has learned since training."""
    return at_one_moment(folder, _read)


def _read(folder: Path) -> Lessons:
    found = overview(folder)
    model, entries = found.stored.model, found.journal.entries
    opened = Opened(Learner(model), Journal(), [], {}, found.files)
    known = [entry for entry in entries if file_of(entry) in found.files]
    lost = [entry.step for entry in entries if entry.kind == "learn" and entry not in known]
    return _joined(model, [read_operation(folder, entry, opened) for entry in known], lost)


def _joined(model: Model, operations: Sequence[Operation], lost: list[int]) -> Lessons:
    """Return the documents that remain after these operations."""
    parts = [one.documents for one in operations if one.documents is not None]
    ids = [one for part in parts for one in (part.ids or [""] * len(part))]
    labels = [row for part in parts for row in part.labels]
    rows = _remaining(operations)
    texts = X = None
    if model.vectorizer is not None:
        titles = [one for part in parts for one in _titles(part)]
        bodies = [one for part in parts if part.texts is not None for one in part.texts.bodies]
        texts = Texts(bodies, titles if any(titles) else None).take(rows)
    else:
        none = csr_matrix((0, model.n_features), dtype=np.float32)
        X = csr_matrix(vstack([none, *(part.X for part in parts)]))[rows]
    kept = [ids[row] for row in rows.tolist()]
    columns = columns_of(model, LabeledDocuments(texts, X, [labels[row] for row in rows.tolist()], kept))
    names = None if model.label_names is None else [*model.label_names, *columns.new_names]
    return Lessons(texts, X, columns.Y, names, kept, lost)


def _titles(documents: LabeledDocuments) -> Sequence[str]:
    titles = None if documents.texts is None else documents.texts.titles
    return [""] * len(documents) if titles is None else titles


def _remaining(operations: Sequence[Operation]) -> NDArray[np.int64]:
    """Return the documents, numbered through all lessons, that were neither replaced nor forgotten later."""
    remaining, place_of, n = dict[int, None](), dict[str, int](), 0
    for operation in operations:
        if operation.kind == "forget":
            for gone in operation.names:
                remaining.pop(place_of.pop(gone, -1), None)
        documents = operation.documents
        if documents is None:
            continue
        for row, one in enumerate(documents.ids or [""] * len(documents), n):
            if one:
                remaining.pop(place_of.get(one, -1), None)
                place_of[one] = row
            remaining[row] = None
        n += len(documents)
    return np.array(list(remaining), dtype=np.int64)
