"""Scores that another system gave to labels: JSON Lines, one object per document, plain or compressed.

An object is `{"id": …, "labels": [{"uri" or "label": …, "score": …}, …]}`, as `lightdxml predict --json` prints it, or
`{"document_id": …, "results": [{"uri", "label", "score"}, …]}`, as Annif's REST API returns it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import text_lines
from lightdxml.data.jsonl import parse_record

_LARGEST = 3.4e38
_FORM = 'labels as [{"uri": …, "score": …}, …]'


class ScoredLabel(NamedTuple):
    """A label as another system gives it: its URI and its name, either of which may be empty, and its score."""

    uri: str
    name: str
    score: float


@dataclass(frozen=True)
class ScoredDocument:
    """The labels of a document, in the order of the file; the id is None if it has none."""

    id: str | None
    labels: list[ScoredLabel]


def read(path: Path) -> Iterator[ScoredDocument]:
    """Yield the documents of a file. All of them have different ids, or none has one."""
    ids: set[str] = set()
    count = 0
    for number, line in text_lines(path):
        if not line.strip():
            continue
        record = parse_record(path, number, line)
        document = ScoredDocument(_id(path, number, record), _labels(path, number, record))
        if (document.id is None) == bool(ids) and count:
            raise DataError(path, "documents with and without an id", "an id for all or for none", line=number)
        if document.id is not None:
            if document.id in ids:
                raise DataError(path, f"a second document {excerpt(document.id)}", "each document once", line=number)
            ids.add(document.id)
        count += 1
        yield document
    if not count:
        raise DataError(path, "no documents", "one JSON object per document")


def _id(path: Path, number: int, record: Mapping[str, Any]) -> str | None:
    value = record.get("id", record.get("document_id"))
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise DataError(path, f"id {excerpt(json.dumps(value))}", "a string or an integer as id", line=number)
    return None if value is None else str(value)


def _labels(path: Path, number: int, record: Mapping[str, Any]) -> list[ScoredLabel]:
    labels = record.get("labels", record.get("results"))
    if not isinstance(labels, list):
        found = "no labels" if labels is None else f"labels {excerpt(json.dumps(labels))}"
        raise DataError(path, found, f"{_FORM}, [] for none", line=number)
    return [_label(path, number, one) for one in labels]


def _label(path: Path, number: int, one: Any) -> ScoredLabel:
    uri, name = (_name(one.get(field)) for field in ("uri", "label")) if isinstance(one, Mapping) else ("", "")
    if uri is None or name is None or not uri + name:
        raise DataError(path, f"label {excerpt(json.dumps(one))}", _FORM, line=number)
    score = one.get("score")
    # The comparison is also false for NaN and for numbers beyond float32.
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= _LARGEST:
        found = f"score {excerpt(json.dumps(score))} of {excerpt(uri or name)}"
        raise DataError(path, found, "a finite number of at least 0", line=number)
    return ScoredLabel(uri, name, float(score))


def _name(value: Any) -> str | None:
    """Return a name as a string, empty if there is none; None if it is no name. Labels without names are numbers."""
    if value is None:
        return ""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None
