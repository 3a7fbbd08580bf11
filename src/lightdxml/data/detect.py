"""Detect the format of a file from its content, and its role in a folder from its name."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

from lightdxml.data import annif, arrow, npz, table
from lightdxml.data.errors import DataError, EmptyFileError, excerpt, shortened
from lightdxml.data.files import base_name, byte_lines, decode, first_line, reading
from lightdxml.data.jsonl import parse_record
from lightdxml.data.options import DEFAULT_COLUMNS, Columns, ReadOptions
from lightdxml.data.xc_text import parse_header

Format = Literal[
    "xc-text", "xc-matrix", "svmlight", "npz", "jsonl", "xc-json", "table",
    "annif-tsv", "annif-csv", "annif-jsonl", "annif-txt", "parquet", "arrow",
]  # fmt: skip
Part = Literal["train", "test", "dev"]
Side = Literal["X", "Y"]

_PARTS: dict[str, Part] = {
    **dict.fromkeys(("train", "training", "trn", "tr"), "train"),
    **dict.fromkeys(("test", "testing", "tst", "te"), "test"),
    **dict.fromkeys(("dev", "development", "val", "valid", "validation"), "dev"),
}
_SIDES: dict[str, Side] = {
    **dict.fromkeys(("y", "labels", "label"), "Y"),
    **dict.fromkeys(("x", "xf", "features", "feat"), "X"),
}
_FORMATS = (
    "XC text (a first line of three numbers), svmlight lines, a matrix (two numbers), JSON Lines with labels, "
    "XC raw-text JSON, .npz, a CSV, TSV or Parquet file with columns text and labels, or a corpus of Annif"
)
# svmlight has no signature: a line that starts like a number or a comment is taken for it.
_SVMLIGHT = re.compile(rb"[-+]?\d|#")
# All that lines of numbers may contain, and how many of them decide where the first one can be text.
_NUMERIC_LINE = re.compile(rb"[-+.,:\deE\s]*(#.*)?", re.S)
_LINES = 100
_DEFAULT = ReadOptions()
_ABOUT = re.compile(r"(read.?me|licen[sc]e|copying|notice|change(s|log)|about|citation).*")


def detect(path: Path, options: ReadOptions = _DEFAULT) -> Format:
    """Return the format of a file; its first line decides. A folder is one of documents, or a saved data set."""
    if path.is_dir():
        return "arrow" if arrow.is_saved(path) else "annif-txt"
    encoding, columns = options.encoding, options.columns
    line = first_line(path)
    start = line.lstrip()
    if not line:
        raise EmptyFileError(path, "an empty file", _FORMATS)
    if line.startswith(npz.MAGIC):
        _check_archive(path)
        return "npz"
    if line.startswith(arrow.MAGIC):
        return "parquet"
    text = line.decode(encoding, errors="replace")
    if annif.is_tsv(text) and not _is_other_than_tsv(path, text, columns):
        return "annif-tsv"
    if start.startswith(b"{"):
        return _json_format(path, decode(path, 1, start, encoding), columns)
    if _SVMLIGHT.match(start):
        header = parse_header(path, line)
        if header is None:
            return "svmlight"
        return "xc-matrix" if header.n_labels is None else "xc-text"
    if start.startswith(b"["):
        raise DataError(path, "a JSON array", "one JSON object per line", line=1)
    if table.labeled_delimiter(text, columns):
        return "table"
    if annif.is_csv(text):
        return "annif-csv"
    if len(table.guess_columns(text)) > 1:
        raise table.missing_columns(path, text, columns)
    raise DataError(path, f"{excerpt(line.strip())}, an unknown format", _FORMATS, line=1)


def _is_other_than_tsv(path: Path, line: str, columns: Columns) -> bool:
    """Return whether a first line with a tab, and perhaps URIs, may be one of a format that has a signature."""
    return (
        table.labeled_delimiter(line, columns) is not None
        or annif.is_csv(line)
        or (line.lstrip().startswith("{") and line.rstrip().endswith("}"))
        or (_SVMLIGHT.match(line.lstrip().encode()) is not None and _is_numeric(path))
    )


def _is_numeric(path: Path) -> bool:
    """Return whether the first lines have no character that XC text and svmlight have not, but for comments."""
    return all(map(_NUMERIC_LINE.fullmatch, _first_lines(path)))


def _first_lines(path: Path) -> Iterator[bytes]:
    with reading(path) as stream:
        for _, line in islice(byte_lines(path, stream), _LINES):
            yield line


def is_data(path: Path, options: ReadOptions) -> bool:
    """Return whether a file among documents is data, and not a document that starts with a number or has a tab."""
    kind = detect_or_none(path, options)
    if kind in ("xc-text", "xc-matrix", "svmlight"):
        return _is_numeric(path) and any(b":" in line for line in _first_lines(path))
    return kind not in (None, "annif-tsv")


def detect_or_none(path: Path, options: ReadOptions = _DEFAULT) -> Format | None:
    """Return the format of a file, or None if it is not data."""
    try:
        return detect(path, options)
    except DataError:
        return None


def _check_archive(path: Path) -> None:
    """Raise a `DataError` for zip files that are not SciPy's; the npz reader reports damaged ones."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return
    if "[Content_Types].xml" in members:
        raise DataError(path, "an Excel workbook", "a CSV file: save the sheet as CSV UTF-8")
    if not any(member.endswith(".npy") for member in members):
        raise DataError(path, "a zip archive", "its content: unpack it first")


def _json_format(path: Path, line: str, columns: Columns) -> Format:
    record = parse_record(path, 1, line)
    if "target_ind" in record and columns.labels == DEFAULT_COLUMNS.labels:
        return "xc-json"
    if columns.labels in record:
        return "jsonl"
    if "subjects" in record or "document_id" in record:
        return "annif-jsonl"
    found = f"JSON with the fields {shortened(', '.join(record))}"
    if columns.labels != DEFAULT_COLUMNS.labels:
        raise DataError(path, found, f"a field {columns.labels}: check --label-column", line=1)
    expected = "a field labels, target_ind or subjects: give its name, as in --text-column NAME --label-column NAME"
    raise DataError(path, found, expected, line=1)


def is_about(path: Path) -> bool:
    """Return whether the name of a file is that of a README, a license or the like."""
    return _ABOUT.fullmatch(base_name(path)) is not None


def name_words(path: Path) -> list[str]:
    """Split the name of a file into words in lower case."""
    return [word for word in re.split(r"[^a-z0-9]+", base_name(path)) if word]


def part_of(path: Path) -> Part | None:
    """Return the split that the name of a file indicates.

    >>> part_of(Path("X.trn.npz")), part_of(Path("eurlex_test.txt")), part_of(Path("data.csv"))
    ('train', 'test', None)
    """
    found = {_PARTS[word] for word in name_words(path) if word in _PARTS}
    return found.pop() if len(found) == 1 else None


def side_of(path: Path) -> Side | None:
    """Return whether the name of a file indicates features (X) or labels (Y).

    >>> side_of(Path("trn_X_Y.txt")), side_of(Path("X.trn.npz"))
    ('Y', 'X')
    """
    found = {_SIDES[word] for word in name_words(path) if word in _SIDES}
    return "Y" if "Y" in found else "X" if found else None
