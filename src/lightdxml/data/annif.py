"""Annif's corpora of one file: TSV without a header, CSV with a column `subject_uris`, and JSON Lines with `subjects`.

A label is a URI without its angle brackets or, where a corpus has no URI, the name of the subject. Names beside URIs
are left out, as a vocabulary gives them. So is metadata.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lightdxml.data import jsonl, table
from lightdxml.data.dataset import Split
from lightdxml.data.documents import SplitBuilder
from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import text_lines, writing_text
from lightdxml.data.labels import LabelIndex, names_of_rows
from lightdxml.data.options import Columns

_COLUMNS = Columns(id="document_id", labels="subject_uris")
_BRACKETED = re.compile(r"<[^<>]+>")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>]+")
# What a word after the tab must be to tell a TSV from other text.
_CERTAIN_URI = re.compile(r"<[^<>]+>|(https?://|urn:)[^\s<>]+")
_BREAK = re.compile(r"\r\n|[\t\r\n]")


def is_tsv(line: str) -> bool:
    r"""Return whether a line is a text, a tab and URIs, or a text and a tab: a document without labels.

    >>> is_tsv("A cat\t<urn:cat> <urn:pet>"), is_tsv("A cat\t"), is_tsv("<urn:cat>\tcat")
    (True, True, False)
    """
    text, tab, rest = line.rstrip("\r\n").partition("\t")
    certain = all(_CERTAIN_URI.fullmatch(word) for word in rest.split())
    return bool(tab) and certain and not _BRACKETED.fullmatch(text.strip())


def is_csv(header: str) -> bool:
    """Return whether a line names the columns `text` and `subject_uris`."""
    return table.labeled_delimiter(header, _COLUMNS) is not None


def is_uri(label: str) -> bool:
    """Return whether a label is a URI, and not a name.

    >>> is_uri("http://example.org/cat"), is_uri("solar energy")
    (True, False)
    """
    return _URI.fullmatch(label) is not None


def read_tsv(path: Path, index: LabelIndex, encoding: str = "utf-8") -> Split:
    """Read lines of a text, a tab and URIs with spaces between them, skipping blank lines."""
    documents = SplitBuilder(path)
    for number, line in text_lines(path, encoding):
        text, tab, rest = line.rstrip("\r\n").partition("\t")
        if tab:
            documents.add(number, None, (None, text), index.ids(_uris(path, number, rest)))
        elif text.strip():
            raise DataError(path, f"no tab in {excerpt(text)}", "a text, a tab and the URIs of its labels", line=number)
    return documents.split(len(index.names))


def read_csv(path: Path, index: LabelIndex, encoding: str = "utf-8") -> Split:
    """Read a table with columns `text` and `subject_uris`, and optionally `title` and `document_id`."""
    documents = SplitBuilder(path)
    for number, row in table.file_rows(path, encoding, _COLUMNS):
        labels = index.ids(_uris(path, number, row[_COLUMNS.labels]))
        documents.add(number, *table.id_and_texts(row, _COLUMNS), labels)
    return documents.split(len(index.names))


def read_jsonl(path: Path, index: LabelIndex, encoding: str = "utf-8") -> Split:
    """Read objects `{"document_id", "text", "subjects": [{"uri", "label"}]}`; without subjects, there are no labels."""
    documents = SplitBuilder(path)
    for number, record in jsonl.records(path, encoding):
        texts = jsonl.title_and_body(path, number, record, "text")
        documents.add(number, record.get("document_id"), texts, index.ids(_subjects(path, number, record)))
    return documents.split(len(index.names))


def _uris(path: Path, number: int, cell: str) -> Iterator[str]:
    """Yield the URIs of a cell, with spaces between them."""
    for word in cell.split():
        label = without_brackets(path, number, word)
        # A word without brackets and colon is a part of a name, or of a text with a tab in it.
        if label == word and not is_uri(word):
            expected = "URIs with spaces between them (ids that are no URIs in angle brackets)"
            raise DataError(path, excerpt(word), expected, line=number)
        yield label


def without_brackets(path: Path, number: int, word: str) -> str:
    """Return a URI without its angle brackets, or a name as it is."""
    if _BRACKETED.fullmatch(word):
        return word[1:-1]
    opens, closes = word.startswith("<"), word.endswith(">")
    if (opens and closes) or (opens and ">" not in word) or (closes and "<" not in word):
        raise DataError(path, excerpt(word), "a URI in one pair of angle brackets, as <URI>", line=number)
    return word


def _subjects(path: Path, number: int, record: Mapping[str, Any]) -> Iterator[str]:
    subjects = record.get("subjects", [])
    if not isinstance(subjects, list):
        found = f"subjects {excerpt(json.dumps(subjects))}"
        raise DataError(path, found, "a list of objects with a uri or a label, [] for none", line=number)
    for subject in subjects:
        uri, name = (subject.get("uri"), subject.get("label")) if isinstance(subject, Mapping) else (None, None)
        if isinstance(uri, str) and uri.strip():
            yield without_brackets(path, number, uri.strip())
        elif uri in (None, "") and isinstance(name, str) and name:
            yield name
        else:
            found = f"subject {excerpt(json.dumps(subject))}"
            raise DataError(path, found, "an object with a uri or a label that is not empty", line=number)


def write_tsv(path: Path, split: Split, label_names: Sequence[str]) -> None:
    """Write a text, a tab and URIs per line. Tabs and line ends in texts become spaces; ids are left out."""
    assert split.texts is not None
    with writing_text(path) as stream:
        for text, labels in zip(split.texts, names_of_rows(split.Y, label_names), strict=True):
            stream.write(f"{_BREAK.sub(' ', text)}\t{_bracketed(labels)}\n")


def write_csv(path: Path, split: Split, label_names: Sequence[str]) -> None:
    """Write columns `text` and `subject_uris` and, if there are ids, `document_id`.

    Null characters become spaces, as Python 3.10 cannot read them in a table.
    """
    assert split.texts is not None
    with writing_text(path) as stream:
        # All cells are quoted: before Python 3.13, a cell with a carriage return was not.
        writer = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(["text", "subject_uris"] if split.ids is None else ["text", "subject_uris", "document_id"])
        for i, labels in enumerate(names_of_rows(split.Y, label_names)):
            cells = [split.texts[i], _bracketed(labels), *([] if split.ids is None else [split.ids[i]])]
            writer.writerow(cell.replace("\0", " ") for cell in cells)


def write_jsonl(path: Path, split: Split, label_names: Sequence[str]) -> None:
    """Write objects with `document_id`, if there are ids, `text` and `subjects`; labels that are no URIs are names."""
    assert split.texts is not None
    with writing_text(path) as stream:
        for i, labels in enumerate(names_of_rows(split.Y, label_names)):
            record: dict[str, Any] = {} if split.ids is None else {"document_id": split.ids[i]}
            record["text"] = split.texts[i]
            record["subjects"] = [{"uri" if is_uri(label) else "label": label} for label in labels]
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")


def _bracketed(labels: Sequence[str]) -> str:
    return " ".join(f"<{label}>" for label in labels)


def is_word(label: str) -> bool:
    """Return whether a cell of URIs can hold a label."""
    return _BRACKETED.fullmatch(f"<{label}>") is not None and label.split() == [label]
