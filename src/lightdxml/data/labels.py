"""Labels by name: from names to columns of Y, and the files that hold the names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import reading, text_lines, writing_text


class LabelIndex:
    """Gives each label name a number, in the order in which names are first seen.

    Parameters
    ----------
    known
        Names that come first, whether seen or not.

    Examples
    --------
    >>> index = LabelIndex(["cat"])
    >>> index.matrix([["dog", "cat"], [], ["dog", "dog"]]).toarray().tolist()
    [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    >>> index.names
    ['cat', 'dog']
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._ids: dict[str, int] = {}
        for name in known:
            self._ids.setdefault(name, len(self._ids))

    @property
    def names(self) -> list[str]:
        """The names so far, by number."""
        return list(self._ids)

    def numbers(self, names: Iterable[str]) -> list[int]:
        """Return the numbers of these names; new names get new numbers."""
        ids = self._ids
        return [ids.setdefault(name, len(ids)) for name in names]

    def matrix(self, rows: Iterable[Iterable[str]]) -> csr_matrix:
        """Return the label matrix of these rows of names, as wide as the names seen so far."""
        numbered = [self.numbers(row) for row in rows]
        return label_matrix(numbered, len(self._ids))


def label_matrix(rows: Sequence[Sequence[int]], n_labels: int) -> csr_matrix:
    """Return the label matrix of these rows of label numbers; a label that stands twice counts once.

    >>> label_matrix([[1, 0], [2, 2]], 3).toarray().tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    pointers = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=pointers[1:])
    columns = np.fromiter((number for row in rows for number in row), dtype=np.int32, count=int(pointers[-1]))
    Y = csr_matrix((np.ones(len(columns), dtype=np.float32), columns, pointers), shape=(len(rows), n_labels))
    Y.sum_duplicates()
    Y.data[:] = 1
    return Y


def widen(matrix: csr_matrix, width: int) -> csr_matrix:
    """Return the matrix with this many columns, the new ones empty, without a copy of what it holds."""
    if matrix.shape[1] == width:
        return matrix
    return csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))


def read_names(path: Path, encoding: str = "utf-8") -> list[str] | dict[str, str]:
    """Read a file of names: one a line, a JSON list, a JSON object of id → name, or JSON Lines with titles."""
    with reading(path) as stream:
        start = stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start in (b"[", b"{"):
        return _json_names(path, encoding)
    names = [line.rstrip("\r\n") for _, line in text_lines(path, encoding)]
    while names and not names[-1]:
        names.pop()
    return names


def _json_names(path: Path, encoding: str) -> list[str] | dict[str, str]:
    lines = [line for _, line in text_lines(path, encoding)]
    try:
        if len(lines) > 1 and lines[0].strip().endswith("}"):
            return [_title(path, number, json.loads(line)) for number, line in enumerate(lines, 1) if line.strip()]
        content = json.loads("".join(lines))
    except (ValueError, RecursionError) as error:
        raise DataError(path, f"text that is not JSON ({error})", "a JSON list or object of names") from error
    if isinstance(content, list) and all(isinstance(name, str) for name in content):
        return content
    if isinstance(content, Mapping) and all(isinstance(name, str) for name in content.values()):
        return dict(content)
    raise DataError(path, f"JSON of another form ({type(content).__name__})", "a list or object of strings")


def _title(path: Path, number: int, record: object) -> str:
    title = record.get("title") if isinstance(record, Mapping) else None
    if not isinstance(title, str):
        raise DataError(path, excerpt(str(record)), "an object with a title", line=number)
    return title


def write_names(path: Path, names: Sequence[str]) -> None:
    """Write names as a JSON list, one a line, so that any name reads back the same."""
    with writing_text(path) as stream:
        stream.write("[")
        stream.write(",".join(f"\n{json.dumps(name, ensure_ascii=False)}" for name in names))
        stream.write("\n]\n")
