"""Annif's folders of documents: the text of a document is `a.txt`, its labels are in `a.tsv` or `a.key`.

A line of labels is `<uri>⇥name`, a URI in angle brackets, or a name. Files are plain, not compressed.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lightdxml.data.annif import is_uri, without_brackets
from lightdxml.data.dataset import Split
from lightdxml.data.detect import is_about
from lightdxml.data.documents import SplitBuilder
from lightdxml.data.errors import DataError
from lightdxml.data.files import byte_lines, check_link, decode, entries, first_line, reading
from lightdxml.data.labels import LabelIndex, names_of_rows

# Labels in a .tsv come first: they have URIs.
_TEXT, _LABELS = ".txt", (".tsv", ".key")
# What some system does not allow in the name of a file, and how many bytes all of them do.
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')
_LONGEST_NAME = 200


def files(folder: Path) -> list[Path]:
    """Return all files of texts and labels in a folder."""
    return [path for some in _by_suffix(folder).values() for path in some.values() if path.is_file()]


def holds_documents(folder: Path) -> bool:
    """Return whether a folder has texts and labels: any .key, or a .tsv of URIs that is named as a text is."""
    found = _by_suffix(folder)
    texts = found[_TEXT]
    return bool(texts and found[".key"]) or any(
        stem in texts and _lists_uris(path) for stem, path in found[".tsv"].items()
    )


def pairs(folder: Path) -> list[tuple[Path, Path]]:
    """Return the texts that have labels, with the file of the labels, sorted by file name."""
    found = _by_suffix(folder)
    return [
        (text, labels)
        for stem, text in found[_TEXT].items()
        if (labels := next((found[suffix][stem] for suffix in _LABELS if stem in found[suffix]), None))
    ]


def saved_files(folder: Path) -> list[Path]:
    """Return the files of all documents that have labels in a folder, none if there is no such folder."""
    if not folder.is_dir():
        return []
    found = _by_suffix(folder)
    return [some[text.stem] for text, _ in pairs(folder) for some in found.values() if text.stem in some]


def _by_suffix(folder: Path) -> dict[str, dict[str, Path]]:
    found: dict[str, dict[str, Path]] = {suffix: {} for suffix in (_TEXT, *_LABELS)}
    for path in entries(folder):
        if path.suffix in found and not path.name.startswith(".") and not path.is_dir():
            found[path.suffix][path.stem] = path
    return found


def _lists_uris(path: Path) -> bool:
    try:
        start = first_line(path).lstrip()
    except DataError:
        return False
    return not start or start.startswith(b"<")


def read(folder: Path, index: LabelIndex, encoding: str = "utf-8") -> Split:
    """Read all documents of a folder, sorted by file name. The id of a document is the name of its file, without .txt.

    Raises
    ------
    DataError
        If a text has no file of labels, or labels have no text. An empty file of labels means that there are none.
    """
    _check_complete(folder)
    documents = SplitBuilder(folder)
    for text, labels in pairs(folder):
        _check_name(text)
        body = "".join(line for _, line in _lines(text, encoding))
        documents.add(1, text.stem, (None, body), index.ids(_labels(labels, encoding)))
    return documents.split(len(index.names))


def _check_complete(folder: Path) -> None:
    found = _by_suffix(folder)
    for stem, path in found[_TEXT].items():
        if not is_about(path) and not any(stem in found[suffix] for suffix in _LABELS):
            expected = f"its labels in {stem}.tsv or {stem}.key beside it, an empty file for none"
            raise DataError(path, "a document without labels", expected)
    for suffix in _LABELS:
        for stem, path in found[suffix].items():
            if stem not in found[_TEXT]:
                raise DataError(path, "labels without a document", f"its text in {stem}.txt beside it")


def _check_name(path: Path) -> None:
    try:
        path.name.encode()
    except UnicodeEncodeError as error:
        raise DataError(path.parent, f"the file name {path.name!a}", "file names in UTF-8") from error


def _lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    check_link(path)
    with reading(path) as stream:
        # Thousands of small files could unpack to far more than one large file may.
        if not isinstance(stream, io.BufferedReader):
            raise DataError(path, "compressed data", "plain text: only corpora of one file may be compressed")
        for number, line in byte_lines(path, stream):
            yield number, decode(path, number, line, encoding)


def _labels(path: Path, encoding: str) -> Iterator[str]:
    for number, line in _lines(path, encoding):
        cells = (cell.strip() for cell in line.split("\t"))
        if first := next(filter(None, cells), ""):
            yield without_brackets(path, number, first)


def in_file_order(split: Split) -> Split:
    """Return a split with ids that can be file names, in the order of these names.

    They are the ids of the documents if all of them can be file names, and numbers otherwise.
    """
    width = len(str(len(split)))
    numbers = [f"{i:0{width}}" for i in range(1, len(split) + 1)]
    names = numbers if split.ids is None or not _can_be_files(split.ids) else split.ids
    order = sorted(range(len(names)), key=lambda i: f"{names[i]}{_TEXT}")
    return replace(split, ids=names).take(np.array(order, dtype=np.int64))


def _can_be_files(names: Sequence[str]) -> bool:
    differ = len({name.casefold() for name in names}) == len(names)
    return differ and all(
        name and name == name.strip(". ") and not _NOT_IN_NAMES.search(name) and len(name.encode()) <= _LONGEST_NAME
        for name in names
    )


def write(folder: Path, split: Split, label_names: Sequence[str]) -> list[Path]:
    """Write the documents of a split and return the files: labels are .tsv if all of them are URIs, .key otherwise.

    The ids of the split are the names of the files: `in_file_order` sets them.
    """
    assert split.texts is not None
    assert split.ids is not None
    folder.mkdir(parents=True, exist_ok=True)
    suffix = _LABELS[0] if all(map(is_uri, label_names)) else _LABELS[1]
    written = []
    for name, text, labels in zip(split.ids, split.texts, names_of_rows(split.Y, label_names), strict=True):
        lines = (f"<{label}>\n" if is_uri(label) else f"{label}\n" for label in labels)
        for ending, content in ((_TEXT, text), (suffix, "".join(lines))):
            written.append(folder / f"{name}{ending}")
            # Not by `writing`: to wait for the disk after each of thousands of small files takes minutes.
            written[-1].write_bytes(content.encode())
    return written


def is_line(label: str) -> bool:
    """Return whether a line of a file of labels can hold a label."""
    whole = label.splitlines() == [label] and label.strip() == label and "\t" not in label
    return whole and not label.startswith("<") and not label.endswith(">")
