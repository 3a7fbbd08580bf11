"""The journal of a model: what was changed since training, in which order, and with what result."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.data.dataset import Texts
from lightdxml.data.files import memory_budget
from lightdxml.learning import forget
from lightdxml.learning.documents import LabeledDocuments
from lightdxml.learning.kept import has_unit_rows
from lightdxml.learning.learn import Learner, learn
from lightdxml.model.model import Model
from lightdxml.views.base import in_range, is_indptr

_MAX_LABELS = 1 << 31
# Bytes of the objects that a bracket or a comma of JSON stands for, at most.
_OBJECT_BYTES = 100
_MATRIX = {"indptr": "<i8", "indices": "<i4", "values": "<f4"}


@dataclass(frozen=True, eq=False)
class Operation:
    """A change of a model.

    Attributes
    ----------
    kind
        `learn`, `retire`, `merge` or `forget`.
    documents
        The documents to learn; None for other kinds.
    names
        Labels to retire, the label that goes and the one that stays, or ids of documents to forget.
    """

    kind: str
    documents: LabeledDocuments | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """An entry of the journal.

    Attributes
    ----------
    step
        Its number, from 1.
    time
        When it happened (UTC).
    kind
        The kind of operation.
    figures
        What it has changed.
    version
        The checksum of the model after it.
    """

    step: int
    time: str
    kind: str
    figures: dict[str, Any] = field(default_factory=dict)
    version: str = ""


def apply(learner: Learner, operation: Operation) -> tuple[Learner, dict[str, Any]]:
    """Return the learner after an operation, and figures for the journal. The same operation gives the same bits."""
    return KINDS[operation.kind](learner, operation)


def _learn(learner: Learner, operation: Operation) -> tuple[Learner, dict[str, Any]]:
    assert operation.documents is not None
    after, learned = learn(learner, operation.documents)
    return after, asdict(learned)


def _retire(learner: Learner, operation: Operation) -> tuple[Learner, dict[str, Any]]:
    if not operation.names:
        raise ValueError("there are no labels to retire: give at least one")
    columns = [column_of(learner, name) for name in operation.names]
    return forget.retire(learner, columns), {"retired": list(operation.names)}


def _merge(learner: Learner, operation: Operation) -> tuple[Learner, dict[str, Any]]:
    gone, stays = operation.names
    after = forget.merge(learner, column_of(learner, gone), column_of(learner, stays))
    return after, {"merged": gone, "into": stays}


def _forget(learner: Learner, operation: Operation) -> tuple[Learner, dict[str, Any]]:
    if not operation.names:
        raise ValueError("there are no documents to forget: give at least one id")
    after = forget.forget(learner, operation.names)
    return after, {"forgotten": learner.model.n_documents - after.model.n_documents}


KINDS: dict[str, Callable[[Learner, Operation], tuple[Learner, dict[str, Any]]]] = {
    "learn": _learn,
    "retire": _retire,
    "merge": _merge,
    "forget": _forget,
}


def column_of(learner: Learner, label: str) -> int:
    """Return the column of a label: its name, URI or preferred name, or its number if labels have no names."""
    model = learner.model
    if model.label_names is None:
        found = int(label) if label.isdecimal() and int(label) < model.n_labels else None
    else:
        names = [label] if model.vocabulary is None else [label, *model.vocabulary.uris([label])]
        found = next((model.label_ids[name] for name in names if name in model.label_ids), None)
    if found is None:
        raise ValueError(f"the model has no label {label!r:.100}: check its name or URI")
    return found


def pack(operation: Operation) -> bytes:
    """Return an operation as compressed JSON."""
    content: dict[str, Any] = {"kind": operation.kind, "names": operation.names}
    if (documents := operation.documents) is not None:
        content |= {"labels": documents.labels, "ids": documents.ids, "rejected": documents.rejected}
        if documents.texts is not None:
            content |= {"texts": list(documents.texts.bodies), "titles": documents.texts.titles}
        if (X := documents.X) is not None:
            arrays = X.indptr.astype("<i8"), X.indices.astype("<i4"), X.data.astype("<f4")
            encoded = (base64.b64encode(one.tobytes()).decode() for one in arrays)
            content["X"] = {"n_features": X.shape[1], **dict(zip(_MATRIX, encoded, strict=True))}
    written = json.dumps(content).encode()
    # What compresses too well looks like a decompression bomb: it is not compressed at all.
    for level in (6, 0):
        # Without the time: the same operation is the same file.
        packed = gzip.compress(written, level, mtime=0)
        if _takes(written) <= memory_budget(len(packed)):
            return packed
    raise ValueError("these documents are mostly brackets and commas, and too many for the journal: give fewer at once")


def _takes(content: bytes) -> int:
    """Return how much memory JSON takes when it is parsed, at most: its text, and its objects."""
    return 2 * len(content) + _OBJECT_BYTES * sum(content.count(mark) for mark in (b"[", b"{", b","))


def unpack(content: bytes) -> Operation:
    """Return the operation that `pack` has packed; raise a `ValueError` if there is none."""
    unzipped, limit = zlib.decompressobj(wbits=31), memory_budget(len(content))
    unpacked = unzipped.decompress(content, limit // 2)
    if unzipped.unconsumed_tail or _takes(unpacked) > limit:
        raise ValueError("an entry of its journal is far larger than its file")
    found = json.loads(unpacked)
    if found["kind"] not in KINDS:
        raise ValueError("an entry of its journal is not an operation")
    names = _strings(found["names"])
    if found["kind"] != "learn":
        if not names:
            raise ValueError("an entry of its journal changes nothing")
        if found["kind"] == "merge" and len(names) != 2:
            raise ValueError("an entry of its journal merges other than two labels")
        return Operation(found["kind"], None, tuple(names))
    labels, rejected = found["labels"], found["rejected"]
    if not all(isinstance(row, list) and all(_is_label(one) for one in row) for row in [*labels, rejected]):
        raise ValueError("an entry of its journal has labels that are neither names nor numbers")
    texts = X = None
    if "texts" in found:
        titles = found["titles"]
        texts = Texts(_strings(found["texts"]), None if titles is None else _strings(titles))
    else:
        X = _matrix(found["X"])
    documents = LabeledDocuments(texts, X, labels, _strings(found["ids"]), rejected)
    n = len(texts) if texts is not None else X.shape[0] if X is not None else 0
    if not n or n != len(labels) or len(documents.ids) not in (0, n):
        raise ValueError("an entry of its journal has labels or ids of other documents")
    return Operation("learn", documents)


def check_fits(model: Model, operation: Operation) -> None:
    """Raise a `ValueError` if an operation has documents of another kind than the model's."""
    if (documents := operation.documents) is None:
        return
    n_features = model.n_features if documents.X is None else documents.X.shape[1]
    if (documents.X is None) != (model.vectorizer is not None) or n_features != model.n_features:
        raise ValueError("an entry of its journal has documents of another model")
    kind = int if model.label_names is None else str
    if not all(type(one) is kind for row in [*documents.labels, documents.rejected] for one in row):
        raise ValueError("an entry of its journal has labels of another model")


def _is_label(found: Any) -> bool:
    return type(found) is str or (type(found) is int and 0 <= found < _MAX_LABELS)


def _matrix(found: dict[str, Any]) -> csr_matrix:
    """Return a matrix as it was packed: compiled code trusts it, so it is checked, but not normalized again."""
    raw = {name: base64.b64decode(found[name], validate=True) for name in _MATRIX}
    indptr, indices, values = (np.frombuffer(raw[name], dtype=kind) for name, kind in _MATRIX.items())
    n_features = found["n_features"]
    is_sound = len(indices) == len(values) and is_indptr(indptr, len(indices)) and in_range(indices, 0, n_features)
    X = csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_features))
    if not is_sound or not X.has_canonical_format or not has_unit_rows(X):
        raise ValueError("an entry of its journal has features that are none")
    return X


def _strings(found: Any) -> list[str]:
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError("an entry of its journal has texts that are none")
    return found
