"""What a file is, seen from its content; and what part a file plays in a folder, seen from its name."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Literal

from lightdxml.data import npz, table
from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import base_name, decode, first_line
from lightdxml.data.xc_text import parse_header

Format = Literal["xc-text", "xc-matrix", "svmlight", "npz", "jsonl", "xc-json", "table"]
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
_KNOWN = (
    "XC text (a first line with three numbers), svmlight lines, a matrix (two numbers), JSON Lines with labels, "
    "XC raw-text JSON, .npz, or a CSV or TSV with columns text and labels"
)
# svmlight has no signature: what begins like a number, or with a comment, is read as it and judged there.
_NUMBER_LINE = re.compile(rb"[-+]?\d|#")


def recognise(path: Path, encoding: str = "utf-8") -> Format:
    """Return the format of a file from its first line."""
    line = first_line(path)
    start = line.lstrip()
    if not line:
        raise DataError(path, "an empty file", _KNOWN)
    if line.startswith(npz.MAGIC):
        _check_archive(path)
        return "npz"
    if start.startswith(b"{"):
        return _json_format(path, decode(path, 1, start, encoding))
    if _NUMBER_LINE.match(start):
        header = parse_header(path, line)
        if header is None:
            return "svmlight"
        return "xc-matrix" if header.n_labels is None else "xc-text"
    if start.startswith(b"["):
        raise DataError(path, "a JSON array", "one JSON object a line", line=1)
    text = line.decode(encoding, errors="replace")
    if table.delimiter_of(text):
        return "table"
    columns = table.guess_columns(text)
    if len(columns) > 1:
        found = f"the columns {', '.join(columns)}"
        raise DataError(path, found, "text (or title) and labels among them: rename the columns", line=1)
    raise DataError(path, f"{excerpt(line.strip())}, which is no known format", _KNOWN, line=1)


def _check_archive(path: Path) -> None:
    """Tell other zip files from SciPy's; damaged ones are left to the reader of npz."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return
    if "[Content_Types].xml" in members:
        raise DataError(path, "an Excel workbook", "its sheet saved as CSV (UTF-8)")
    if not any(member.endswith(".npy") for member in members):
        raise DataError(path, "a zip archive", "it unpacked")


def _json_format(path: Path, line: str) -> Format:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(path, f"{excerpt(line)} ({error})", "one JSON object a line", line=1) from error
    if "target_ind" in record:
        return "xc-json"
    if "labels" in record:
        return "jsonl"
    raise DataError(path, f"JSON with the fields {', '.join(record)}", "labels, or target_ind", line=1)


def words_of(path: Path) -> list[str]:
    """Return the words of a file's name in lower case.

    >>> words_of(Path("trn_X_Xf.txt.gz"))
    ['trn', 'x', 'xf', 'txt']
    """
    return [word for word in re.split(r"[^a-z0-9]+", base_name(path)) if word]


def part_of(path: Path) -> Part | None:
    """Return which part of a data set a file's name says it is.

    >>> part_of(Path("X.trn.npz")), part_of(Path("eurlex_test.txt")), part_of(Path("data.csv"))
    ('train', 'test', None)
    """
    found = {_PARTS[word] for word in words_of(path) if word in _PARTS}
    return found.pop() if len(found) == 1 else None


def side_of(path: Path) -> Side | None:
    """Return whether a file's name says features or labels; `trn_X_Y` is labels, `trn_X_Xf` features.

    >>> side_of(Path("trn_X_Y.txt")), side_of(Path("X.trn.npz"))
    ('Y', 'X')
    """
    found = {_SIDES[word] for word in words_of(path) if word in _SIDES}
    return "Y" if "Y" in found else "X" if found else None
