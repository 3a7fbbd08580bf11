"""Documents with labels that a model learns, in the form in which the journal keeps them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.data.dataset import Texts
from lightdxml.data.labels import label_matrix
from lightdxml.label_columns import labels_of
from lightdxml.model.model import Model
from lightdxml.validation import check_features, check_lengths, matrix_of, texts_of

# The most labels without a name, and without a document, that may come with new ones.
_NEW_COLUMNS = 100_000
_MAX_DIGITS = 20
# Characters of an id, or of the name of a new label.
MAX_CHARACTERS = 1000


@dataclass(frozen=True, eq=False)
class LabeledDocuments:
    """Documents to learn.

    Attributes
    ----------
    texts
        Texts; None if there are features.
    X
        Features, checked; None if there are texts.
    labels
        The labels of each document: their names, or the columns of labels that have no names.
    ids
        The ids of the documents; empty if they have none.
    rejected
        Labels that were suggested wrongly, and learn that.
    """

    texts: Texts | None
    X: csr_matrix | None
    labels: list[list[str | int]]
    ids: list[str] = field(default_factory=list)
    rejected: list[str | int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.labels)


def documents_for(
    model: Model,
    X: Any,
    y: Any,
    ids: Sequence[str] | None = None,
    label_names: Sequence[str] | None = None,
    rejected: Sequence[str | int] = (),
) -> LabeledDocuments:
    """Check documents and labels, in any form that training takes, and return them as this model learns them."""
    texts, features = texts_of(X), None
    if texts is None:
        if model.vectorizer is not None:
            raise ValueError("the model was trained on texts, not on features: give texts")
        features = check_features(matrix_of(X), model.n_features)
    elif model.vectorizer is None:
        raise ValueError("the model was trained on features, not on texts: give a matrix")
    n = len(texts) if texts is not None else features.shape[0]  # type: ignore[union-attr]
    if not n:
        raise ValueError("there are no documents to learn: give at least one")
    labels = _labels(model, y, label_names)
    check_lengths(n, len(labels), "X and y")
    _check_names(model, labels)
    given = ids_of(ids)
    if ids is not None:
        check_lengths(len(ids), n, "ids and y")
        if repeated := [one for one, count in Counter(given).items() if one and count > 1]:
            raise ValueError(f"ids occur twice, such as {repeated[0]!r:.60}: give each document once")
    if texts is not None and not isinstance(texts, Texts):
        texts = Texts(list(texts))
    if isinstance(rejected, str):
        raise ValueError(f"rejected is the single label {rejected!r:.60}: give a list of labels")
    return LabeledDocuments(texts, features, labels, given, _known(model, [str(one) for one in rejected]))


def ids_of(ids: Sequence[str | None] | None) -> list[str]:
    """Return ids as strings; an empty one is no id.

    >>> ids_of(["a", 7, None])
    ['a', '7', '']
    """
    found = ["" if one is None else str(one) for one in ids or ()]
    if long := [one for one in found if len(one) > MAX_CHARACTERS]:
        count = f"{len(long[0]):,} characters, and may have {MAX_CHARACTERS:,}"
        raise ValueError(f"the id {long[0][:60]!r} … has {count}: give a shorter one")
    return found


def _check_names(model: Model, labels: list[list[str | int]]) -> None:
    """Raise a `ValueError` if a new label has no name, or one that is too long."""
    known = model.label_ids if model.label_names is not None else {}
    for name in {one for row in labels for one in row if isinstance(one, str) and one not in known}:
        if not name.strip():
            raise ValueError("a document has a label without a name: name it, or leave it out")
        if len(name) > MAX_CHARACTERS:
            count = f"{len(name):,} characters, and may have {MAX_CHARACTERS:,}"
            raise ValueError(f"the label {name[:60]!r} … has {count}: give it a shorter name")


def _known(model: Model, names: list[str]) -> list[str | int]:
    """Return labels that a model has, each once, by name or column; raise a `ValueError` if it has not all of them."""
    if model.vocabulary is not None:
        names = list(model.vocabulary.uris(names))
    found = [name for name in dict.fromkeys(names) if has_label(model, name)]
    if missing := sorted(set(names) - set(found)):
        raise ValueError(f"the model has no label {missing[0]!r:.60} that could be rejected: check its name")
    return [int(name) for name in found] if model.label_names is None else list(found)


def has_label(model: Model, label: str | int) -> bool:
    """Return whether a model has a label, given by name or column."""
    name = str(label)
    if model.label_names is not None:
        return name in model.label_ids
    return name.isdecimal() and len(name) < _MAX_DIGITS and int(name) < model.n_labels


def _labels(model: Model, y: Any, label_names: Sequence[str] | None) -> list[list[str | int]]:
    """Return the labels of each document, by name if the model's labels have names."""
    if label_names is None and model.label_names is not None and _is_model_matrix(model, y):
        label_names = model.label_names
    found = labels_of(y, label_names)
    rows = np.split(found.matrix.indices, found.matrix.indptr[1:-1])
    if model.label_names is None:
        if found.names is not None and not found.are_integers:
            raise ValueError("labels are names here, and were columns of a matrix in training: give a matrix or ids")
        columns = None if found.names is None else [int(name) for name in found.names]
        return [[int(j) if columns is None else columns[j] for j in row.tolist()] for row in rows]
    if found.names is None:
        raise ValueError("labels are columns of a matrix here, and had names in training: give names")
    if model.integer_labels and not found.are_integers:
        raise ValueError("labels are names here, and were ids in training: give ids")
    named: list[list[str | int]] = [[found.names[j] for j in row.tolist()] for row in rows]
    if model.vocabulary is not None:
        vocabulary = model.vocabulary
        named = [list(vocabulary.uris([str(one) for one in row])) for row in named]
    return named


def _is_model_matrix(model: Model, y: Any) -> bool:
    """Return whether labels are a matrix with the columns of the model."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    return len(shape) == 2 and shape[1] == model.n_labels and model.output in ("dense", "sparse", "lists")


@dataclass(frozen=True)
class Columns:
    """Labels of documents as a matrix with the columns of a model and of new labels, whose names come last."""

    Y: csr_matrix
    new_names: list[str]


def columns_of(model: Model, documents: LabeledDocuments) -> Columns:
    """Return the labels of documents as columns; unknown labels get columns after those of the model."""
    if model.label_names is None:
        rows = [[int(one) for one in row] for row in documents.labels]
        last = max((one for row in rows for one in row), default=-1)
        # Arrays have an element per label: a mistyped number would fill memory.
        if last >= model.n_labels + _NEW_COLUMNS + sum(map(len, rows)):
            raise ValueError(f"label {last} is far beyond the {model.n_labels} labels of the model: check it")
        return Columns(label_matrix(_merged(model, rows), max(model.n_labels, last + 1)), [])
    known, new = model.label_ids, dict[str, int]()
    rows = []
    for row in documents.labels:
        for one in row:
            if one not in known:
                new.setdefault(str(one), model.n_labels + len(new))
        rows.append([known[str(one)] if one in known else new[str(one)] for one in row])
    return Columns(label_matrix(_merged(model, rows), model.n_labels + len(new)), list(new))


def _merged(model: Model, rows: list[list[int]]) -> list[list[int]]:
    """Return labels of documents with those that stayed in place of those that became one with them."""
    stays: dict[int, int] = {}
    # From the last pair to the first: a label that stayed may have gone later.
    for gone, other in reversed(model.merged.tolist()):
        stays[gone] = stays.get(other, other)
    return [[stays.get(one, one) for one in row] for row in rows] if stays else rows
