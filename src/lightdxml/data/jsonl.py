"""JSON Lines, in two forms: with label names, and the raw text of the Extreme Classification repository.

The first has objects `{"id", "title", "text", "labels"}`, or with fields of other names. The second has objects
`{"uid", "title", "content", "target_ind", "target_rel"}`, whose labels are ids with relevances.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lightdxml.data.cells import labels_of_cell, listed
from lightdxml.data.dataset import Split
from lightdxml.data.documents import SplitBuilder
from lightdxml.data.errors import DataError, excerpt, shortened
from lightdxml.data.files import text_lines, writing_text
from lightdxml.data.labels import LabelIndex, names_of_rows
from lightdxml.data.options import ReadOptions, expected_columns
from lightdxml.data.xc_text import ID_LIMIT


def read(path: Path, index: LabelIndex, options: ReadOptions) -> Split:
    """Read documents with named labels; the index assigns the label ids."""
    documents, columns = SplitBuilder(path), options.columns
    seen: set[str] = set()
    for number, record in records(path, options.encoding):
        seen.update(record)
        texts = title_and_body(path, number, record, columns.text, columns.title)
        document_id = None if columns.id is None else record.get(columns.id)
        labels = _label_names(path, number, record, columns.labels, options.label_separator)
        documents.add(number, document_id, texts, index.ids(labels))
    if columns.missing_in(seen):
        raise DataError(path, f"the fields {shortened(', '.join(sorted(seen)))}", expected_columns(columns, seen))
    return documents.split(len(index.names))


def read_xc(path: Path, encoding: str = "utf-8") -> Split:
    """Read XC raw text. The largest label id sets the width of Y, which holds the relevances (1 if there are none)."""
    documents = SplitBuilder(path)
    n_labels = 0
    for number, record in records(path, encoding):
        texts = title_and_body(path, number, record, "content")
        labels = _label_ids(path, number, record)
        n_labels = max([n_labels, *(label + 1 for label in labels)])
        documents.add(number, record.get("uid"), texts, labels, _relevances(path, number, record, len(labels)))
    return documents.split(n_labels)


def records(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the objects of a JSON Lines file with their line numbers, skipping blank lines."""
    for number, line in text_lines(path, encoding):
        if line.strip():
            yield number, parse_record(path, number, line)


def parse_record(path: Path, number: int, line: str) -> Mapping[str, Any]:
    """Parse the JSON object of a line."""
    try:
        record = json.loads(line)
        if "\\u" in line:
            json.dumps(record, ensure_ascii=False).encode()  # fails for an escaped lone surrogate
    except (ValueError, RecursionError) as error:
        raise DataError(path, f"{excerpt(line)} ({error})", "one JSON object per line", line=number) from error
    if not isinstance(record, Mapping):
        raise DataError(path, excerpt(line), "one JSON object per line", line=number)
    return record


def _shown(value: Any) -> str:
    """Return a value as JSON, in which some values of other tables are strings."""
    return json.dumps(value, default=str)


def title_and_body(
    path: Path, number: int, record: Mapping[str, Any], body: str, title: str | None = "title"
) -> tuple[str | None, str | None]:
    """Return the title of a record and its body, the fields with these names. At least one of them must exist."""
    names = [name for name in (title, body) if name is not None]
    for name in names:
        value = record.get(name)
        if value is not None and not isinstance(value, str):
            raise DataError(path, f"{name} {excerpt(_shown(value))}", f"a string as {name}", line=number)
    if all(record.get(name) is None for name in names):
        expected = "at least one of them" if len(names) > 1 else "it"
        expected += "" if body in ("text", "content") else " (check --text-column)"
        raise DataError(path, f"a document without {' and '.join(names)}", expected, line=number)
    return None if title is None else record.get(title), record.get(body)


def _label_names(
    path: Path, number: int, record: Mapping[str, Any], field: str, separator: str | None
) -> Iterable[str]:
    names = record.get(field)
    if isinstance(names, str):
        names = listed(names) if separator is None else labels_of_cell(names, separator)
    if not isinstance(names, list):
        found = f"{field} {excerpt(json.dumps(record[field]))}" if field in record else f"no {field}"
        expected = f"{field} as a list of names, [] for none (or --separator, if they are in one string)"
        raise DataError(path, found, expected, line=number)
    for name in names:
        if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
            raise DataError(path, f"label {excerpt(json.dumps(name))}", "a name that is not empty", line=number)
    return [str(name) for name in names]


def _label_ids(path: Path, number: int, record: Mapping[str, Any]) -> list[int]:
    labels = record.get("target_ind")
    if not isinstance(labels, list):
        raise DataError(path, f"target_ind {excerpt(json.dumps(labels))}", "a list of label ids", line=number)
    for label in labels:
        if isinstance(label, bool) or not isinstance(label, int) or not 0 <= label < ID_LIMIT:
            found = f"label {excerpt(json.dumps(label))} in target_ind"
            raise DataError(path, found, "non-negative integers", line=number)
    return labels


def _relevances(path: Path, number: int, record: Mapping[str, Any], n: int) -> list[float]:
    weights = record.get("target_rel")
    if weights is None:
        return [1.0] * n
    if not isinstance(weights, list) or len(weights) != n:
        found = f"target_rel {excerpt(json.dumps(weights))}"
        raise DataError(path, found, f"a list of {n} numbers, one per label in target_ind", line=number)
    for weight in weights:
        # The comparison is also false for NaN and for numbers beyond float32.
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 3.4e38:
            found = f"relevance {excerpt(json.dumps(weight))} in target_rel"
            raise DataError(path, found, "finite, non-negative numbers", line=number)
    return weights


def write(path: Path, split: Split, label_names: Sequence[str]) -> None:
    """Write the texts and labels of a split, one object per line."""
    assert split.texts is not None
    titles, bodies = split.texts.titles, split.texts.bodies
    with writing_text(path) as stream:
        for i, labels in enumerate(names_of_rows(split.Y, label_names)):
            record: dict[str, Any] = {}
            if split.ids is not None:
                record["id"] = split.ids[i]
            if titles is not None:
                record["title"] = titles[i]
            record["text"] = bodies[i]
            record["labels"] = labels
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")
