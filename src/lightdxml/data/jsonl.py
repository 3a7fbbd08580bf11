"""JSON Lines: one `{"id", "title", "text", "labels"}` a line, labels as names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.data.dataset import Split, Texts
from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import text_lines, writing_text
from lightdxml.data.labels import LabelIndex, LabelRows


def records(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the objects of a JSON Lines file with their line numbers; blank lines are passed over."""
    for number, line in text_lines(path, encoding):
        if line.strip():
            yield number, parse_record(path, number, line)


def parse_record(path: Path, number: int, line: str) -> Mapping[str, Any]:
    """Return the object of a line."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(path, f"{excerpt(line)} ({error})", "one JSON object a line", line=number) from error
    if not isinstance(record, Mapping):
        raise DataError(path, excerpt(line), "one JSON object a line", line=number)
    if "\\u" in line:
        _check_characters(path, number, record)
    return record


def _check_characters(path: Path, number: int, record: Mapping[str, Any]) -> None:
    """Raise for half a character: JSON can escape a lone surrogate, no text file can hold one."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise DataError(path, "an escape that is half a character", "whole Unicode characters", line=number) from error


def text_field(path: Path, number: int, record: Mapping[str, Any], name: str) -> str | None:
    """Return a record's field that must be a string if it is there."""
    value = record.get(name)
    if value is None or isinstance(value, str):
        return value
    raise DataError(path, f"{name} {excerpt(json.dumps(value))}", f"a string as {name}", line=number)


def read(path: Path, index: LabelIndex, encoding: str = "utf-8") -> Split:
    """Read documents with named labels; their numbers come from the index, which grows."""
    texts = TextColumns()
    labels = LabelRows()
    for number, record in records(path, encoding):
        texts.add(path, number, record.get("id"), *(text_field(path, number, record, f) for f in ("title", "text")))
        labels.add(index.numbers(_label_names(path, number, record)))
    if not len(labels):
        raise DataError(path, "an empty file", "one JSON object a line")
    return texts.split(labels.matrix(len(index.names)))


class TextColumns:
    """Collects ids, titles and bodies; columns that no document fills are left out at the end."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._titles: list[str] = []
        self._bodies: list[str] = []
        self._any_id = self._any_title = False

    def add(self, path: Path, number: int, document: object, title: str | None, body: str | None) -> None:
        """Add one document; `document` is its id, a string or a number."""
        if title is None and body is None:
            raise DataError(path, "a document without title and text", "at least one of them", line=number)
        if isinstance(document, bool) or not isinstance(document, str | int | None):
            raise DataError(path, f"id {excerpt(str(document))}", "a string or a whole number as id", line=number)
        self._any_id |= document is not None
        self._any_title |= title is not None
        self._ids.append("" if document is None else str(document))
        self._titles.append(title or "")
        self._bodies.append(body or "")

    def split(self, Y: csr_matrix) -> Split:
        """Return the documents with these labels."""
        return Split(
            Y=Y,
            texts=Texts(self._bodies, self._titles if self._any_title else None),
            ids=self._ids if self._any_id else None,
        )


def _label_names(path: Path, number: int, record: Mapping[str, Any]) -> list[str]:
    names = record.get("labels")
    if not isinstance(names, list):
        found = f"labels {excerpt(json.dumps(names))}" if "labels" in record else "no labels"
        raise DataError(path, found, "labels as a list of names, [] for none", line=number)
    for name in names:
        if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
            raise DataError(path, f"label {excerpt(json.dumps(name))}", "a name that is not empty", line=number)
    return [str(name) for name in names]


def write(path: Path, split: Split, label_names: Sequence[str]) -> None:
    """Write a split's texts and labels, one object a line."""
    assert split.texts is not None
    titles, bodies = split.texts.titles, split.texts.bodies
    with writing_text(path) as stream:
        for i in range(len(split)):
            record: dict[str, Any] = {}
            if split.ids is not None:
                record["id"] = split.ids[i]
            if titles is not None:
                record["title"] = titles[i]
            record["text"] = bodies[i]
            columns = np.sort(split.Y.indices[split.Y.indptr[i] : split.Y.indptr[i + 1]])
            record["labels"] = [label_names[j] for j in columns.tolist()]
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")
