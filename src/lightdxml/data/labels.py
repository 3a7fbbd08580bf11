"""Label ids and label names: from names to columns of Y, and the files that hold the names."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import base_name, text_lines, writing_text

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class LabelIndex:
    """Assigns an id to each label name, in order of first appearance.

    Parameters
    ----------
    known
        Names that get the first ids, whether they appear or not.

    Examples
    --------
    >>> index = LabelIndex(["cat"])
    >>> index.ids(["dog", "cat", "dog"])
    [1, 0, 1]
    >>> index.names
    ['cat', 'dog']
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._ids: dict[str, int] = {}
        self.ids(known)

    @property
    def names(self) -> list[str]:
        """The names so far, in order of their ids."""
        return list(self._ids)

    def ids(self, names: Iterable[str]) -> list[int]:
        """Return the ids of these names; a new name gets the next free id."""
        ids = self._ids
        return [ids.setdefault(name, len(ids)) for name in names]


class LabelRows:
    """Collects the label ids of documents, optionally with weights, in compact arrays."""

    def __init__(self) -> None:
        self._ids = array("i")
        self._weights = array("f")
        self._ends = array("q", [0])

    def add(self, ids: Iterable[int], weights: Iterable[float] = ()) -> None:
        """Add a document. Give weights for all documents or for none."""
        self._ids.extend(ids)
        self._weights.extend(weights)
        self._ends.append(len(self._ids))

    def matrix(self, n_labels: int) -> csr_matrix:
        """Return the label matrix. A repeated label counts once, with its largest weight; zero weights are dropped."""
        from scipy.sparse import csr_matrix

        columns = np.frombuffer(self._ids, dtype=np.int32).copy()
        weights = np.frombuffer(self._weights, dtype=np.float32).copy()
        ends = np.frombuffer(self._ends, dtype=np.int64)
        lengths = ends[1:] - ends[:-1]
        rows = np.repeat(np.arange(len(lengths)), lengths)
        if not len(weights):
            weights = np.ones(len(columns), dtype=np.float32)
        order = np.lexsort((-weights, columns, rows))
        rows, columns, weights = rows[order], columns[order], weights[order]
        first = np.ones(len(rows), dtype=np.bool_)
        first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
        kept = first & (weights > 0)
        Y = csr_matrix((weights[kept], (rows[kept], columns[kept])), shape=(len(lengths), n_labels))
        Y.sort_indices()
        return Y


def label_matrix(rows: Iterable[Iterable[int]], n_labels: int) -> csr_matrix:
    """Return the label matrix of documents given as lists of label ids; a repeated label counts once.

    >>> label_matrix([[1, 0], [2, 2]], 3).toarray().tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    collected = LabelRows()
    for row in rows:
        collected.add(row)
    return collected.matrix(n_labels)


def names_of_rows(Y: csr_matrix, names: Sequence[str]) -> Iterator[list[str]]:
    """Yield the names of the labels of each document, in the order of their ids."""
    for start, end in pairwise(Y.indptr.tolist()):
        yield [names[j] for j in np.sort(Y.indices[start:end]).tolist()]


def widen(matrix: csr_matrix, width: int) -> csr_matrix:
    """Return the matrix with this many columns, without copying its entries; the new columns are empty."""
    from scipy.sparse import csr_matrix

    if matrix.shape[1] == width:
        return matrix
    return csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))


def read_names(path: Path, encoding: str = "utf-8") -> list[str] | dict[str, str]:
    """Read names: one per line, a JSON list, a JSON object of id → name, or JSON Lines with titles."""
    lines = [line.rstrip("\r\n") for _, line in text_lines(path, encoding)]
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines or lines[0].lstrip()[:1] not in ("[", "{"):
        return lines
    try:
        return _json_names(path, lines)
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        if base_name(path).endswith(".txt"):
            return lines  # plain lines; the first name is something like [PAD]
        raise DataError(path, f"text that is not JSON ({error})", "a JSON list or object of names") from error


def _json_names(path: Path, lines: list[str]) -> list[str] | dict[str, str]:
    if lines[0].rstrip().endswith("}"):
        records = [(number, json.loads(line)) for number, line in enumerate(lines, 1) if line.strip()]
        if len(records) > 1 or "title" in records[0][1]:
            return [_title(path, number, record) for number, record in records]
    content = json.loads("\n".join(lines))
    if isinstance(content, list) and all(isinstance(name, str) for name in content):
        return content
    if isinstance(content, Mapping) and all(isinstance(name, str) for name in content.values()):
        return dict(content)
    raise DataError(path, f"a JSON {type(content).__name__} that is not names", "a list or object of strings")


def _title(path: Path, number: int, record: object) -> str:
    title = record.get("title") if isinstance(record, Mapping) else None
    if not isinstance(title, str):
        raise DataError(path, excerpt(str(record)), "an object with a title", line=number)
    return title


def ordered_names(names: list[str] | dict[str, str]) -> list[str]:
    """Return the names by id: if the keys are 0 … n - 1, in the order of the keys, else in the order of the file.

    >>> ordered_names({"0": "a", "10": "c", "1": "b"}), ordered_names({"1": "b", "0": "a"})
    (['a', 'c', 'b'], ['a', 'b'])
    """
    if not isinstance(names, dict):
        return names
    keys = [str(i) for i in range(len(names))]
    return [names[key] for key in keys] if set(keys) == set(names) else list(names.values())


def write_names(path: Path, names: Sequence[str]) -> None:
    """Write names as a JSON list, one per line. Any name reads back the same."""
    with writing_text(path) as stream:
        json.dump(list(names), stream, ensure_ascii=False, indent=0)
        stream.write("\n")
