"""Labels by name: from names to columns of Y, and the files that hold the names."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import base_name, text_lines, writing_text


class LabelIndex:
    """Gives each label name a number, in the order in which names are first seen.

    Parameters
    ----------
    known
        Names that come first, whether seen or not.

    Examples
    --------
    >>> index = LabelIndex(["cat"])
    >>> index.numbers(["dog", "cat", "dog"])
    [1, 0, 1]
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


class LabelRows:
    """Collects documents' label numbers, and weights where there are any, in little memory.

    Examples
    --------
    >>> rows = LabelRows()
    >>> rows.add([1, 0])
    >>> rows.add([2, 2])
    >>> rows.matrix(3).toarray().tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(self) -> None:
        self._numbers = array("i")
        self._weights = array("f")
        self._ends = array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, numbers: Iterable[int], weights: Iterable[float] = ()) -> None:
        """Add a document; give weights for all documents or for none."""
        self._numbers.extend(numbers)
        self._weights.extend(weights)
        self._ends.append(len(self._numbers))

    def matrix(self, n_labels: int) -> csr_matrix:
        """Return the label matrix; a label that stands twice counts once, with its larger weight."""
        columns = np.frombuffer(self._numbers, dtype=np.int32).copy()
        weights = np.frombuffer(self._weights, dtype=np.float32).copy()
        ends = np.frombuffer(self._ends, dtype=np.int64)
        rows = np.repeat(np.arange(len(self)), ends[1:] - ends[:-1])
        if not len(weights):
            weights = np.ones(len(columns), dtype=np.float32)
        order = np.lexsort((-weights, columns, rows))
        rows, columns, weights = rows[order], columns[order], weights[order]
        first = np.ones(len(rows), dtype=np.bool_)
        first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
        kept = first & (weights > 0)
        Y = csr_matrix((weights[kept], (rows[kept], columns[kept])), shape=(len(self), n_labels))
        Y.sort_indices()
        return Y


def label_matrix(rows: Iterable[Iterable[int]], n_labels: int) -> csr_matrix:
    """Return the label matrix of these rows of label numbers; a label that stands twice counts once.

    >>> label_matrix([[1, 0], [2, 2]], 3).toarray().tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    collected = LabelRows()
    for row in rows:
        collected.add(row)
    return collected.matrix(n_labels)


def widen(matrix: csr_matrix, width: int) -> csr_matrix:
    """Return the matrix with this many columns, the new ones empty, without a copy of what it holds."""
    if matrix.shape[1] == width:
        return matrix
    return csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))


def read_names(path: Path, encoding: str = "utf-8") -> list[str] | dict[str, str]:
    """Read a file of names: one a line, a JSON list, a JSON object of id → name, or JSON Lines with titles."""
    lines = [line.rstrip("\r\n") for _, line in text_lines(path, encoding)]
    while lines and not lines[-1].strip():
        lines.pop()
    looks_like_json = bool(lines) and lines[0].lstrip()[:1] in ("[", "{")
    if not looks_like_json:
        return lines
    try:
        content = _json_content(lines)
    except (ValueError, RecursionError) as error:
        if base_name(path).endswith(".txt"):
            return lines  # a first name such as [PAD]
        raise DataError(path, f"text that is not JSON ({error})", "a JSON list or object of names") from error
    return _names(path, content)


def _json_content(lines: list[str]) -> object:
    """Return one JSON document, or a list of (line number, object) of JSON Lines."""
    if lines[0].rstrip().endswith("}"):
        records = [(number, json.loads(line)) for number, line in enumerate(lines, 1) if line.strip()]
        if len(records) > 1 or "title" in records[0][1]:
            return records
    return json.loads("\n".join(lines))


def _names(path: Path, content: object) -> list[str] | dict[str, str]:
    if isinstance(content, list) and content and isinstance(content[0], tuple):
        return [_title(path, number, record) for number, record in content]
    if isinstance(content, list) and all(isinstance(name, str) for name in content):
        return content
    if isinstance(content, Mapping) and all(isinstance(name, str) for name in content.values()):
        return dict(content)
    raise DataError(path, f"JSON of another form ({type(content).__name__})", "a list or object of strings")


def in_order(names: list[str] | dict[str, str]) -> list[str]:
    """Return names by number: of an object whose keys are 0 … n - 1, by key, else as they stand.

    >>> in_order({"0": "a", "10": "c", "1": "b"}), in_order({"1": "b", "0": "a"})
    (['a', 'c', 'b'], ['a', 'b'])
    """
    if not isinstance(names, dict):
        return names
    keys = [str(i) for i in range(len(names))]
    return [names[key] for key in keys] if set(keys) == set(names) else list(names.values())


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
