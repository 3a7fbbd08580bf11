"""A split in several files, such as `train-00000-of-00004.jsonl` to `train-00003-of-00004.jsonl`.

The result is that of one file with all documents, in the order of the names of the files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightdxml.data import arrow
from lightdxml.data.data_file import FEATURES, NAMED, SIZED, DataFile
from lightdxml.data.dataset import Split, Texts
from lightdxml.data.errors import DataError, EmptyFileError
from lightdxml.data.files import base_name
from lightdxml.data.labels import LabelIndex, widen
from lightdxml.data.text_files import FilePart, TextFiles

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from lightdxml.executor import Executor

_NUMBER = re.compile(r"\d+")
_OF = re.compile(r"\d+-of-(\d+)")
# Files that a message names.
_NAMED_FILES = 3


def may_belong_together(folder: Path, paths: Sequence[Path]) -> bool:
    """Return whether files of a folder are parts of one split: in a sub-folder of their own, or by numbers in names.

    The same file twice, compressed and not, is a mistake.
    """
    once = len({base_name(path) for path in paths}) == len(paths)
    return once and (paths[0].parent != folder or are_numbered(paths))


def are_numbered(paths: Sequence[Path]) -> bool:
    """Return whether the names of files differ only in their numbers.

    >>> are_numbered([Path("train-1.csv"), Path("train-2.csv.gz")]), are_numbered([Path("a.csv"), Path("a-2.csv")])
    (True, False)
    """
    return len({_NUMBER.sub("#", base_name(path)) for path in paths}) == 1


def check_complete(folder: Path, paths: Sequence[Path]) -> None:
    """Raise a `DataError` if names of files say that there are more of them."""
    stated = {int(found[1]) for path in paths if (found := _OF.search(base_name(path)))}
    if stated and stated != {len(paths)}:
        names = [path.name for path in paths[:_NAMED_FILES]]
        listed = ", ".join([*names, "…"] if len(paths) > _NAMED_FILES else names)
        raise DataError(folder, f"{len(paths)} files ({listed})", f"{max(stated)}, as their names say")


def read(files: Sequence[DataFile], index: LabelIndex) -> Split:
    """Read all files, one after the other."""
    if len(files) == 1:
        return files[0].read(index)
    if files[0].format == "parquet":
        return arrow.read([file.path for file in files], index, files[0].options)
    found = [(file, split) for file in files if (split := _or_none(file, index)) is not None]
    return _joined(files, found)


def read_apart(files: Sequence[DataFile], index: LabelIndex, executor: Executor) -> Split:
    """Read each file where the executor has it read; texts stay in their files."""
    files = [file._replace(path=file.path.absolute()) for file in files]
    found = [(file, one) for file, one in zip(files, executor.map(_contents, None, files), strict=True) if one.n]
    splits = []
    for file, one in found:
        columns = np.array(index.ids(one.names), dtype=np.int32)
        Y = one.Y if files[0].format not in NAMED else _renumbered(one.Y, columns, len(index.names))
        splits.append((file, Split(Y=Y, X=one.X, ids=one.ids)))
    split = _joined(files, splits)
    if files[0].format in FEATURES:
        return split
    starts = np.cumsum([0, *(one.n for _, one in found)]).tolist()
    empty = np.concatenate([one.empty + start for (_, one), start in zip(found, starts, strict=False)])
    parts, characters = [FilePart(file, one.n) for file, one in found], sum(one.characters for _, one in found)
    has_titles = any(one.has_titles for _, one in found)
    return replace(split, texts=TextFiles(parts, empty, characters, has_titles=has_titles))


class _Contents(NamedTuple):
    """What a file has apart from texts: labels, the names of their columns if they have names, ids, features."""

    Y: csr_matrix
    names: list[str]
    X: csr_matrix | None = None
    ids: Sequence[str] | None = None
    has_titles: bool = False
    empty: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    characters: int = 0

    @property
    def n(self) -> int:
        return int(self.Y.shape[0])


def _contents(_: None, file: DataFile) -> _Contents:
    """Read a file, and return what it has apart from texts."""
    from scipy.sparse import csr_matrix

    file.check_there()
    file.check_memory()
    index = LabelIndex()
    split = _or_none(file, index)
    if split is None:
        return _Contents(csr_matrix((0, 0), dtype=np.float32), [])
    texts = split.texts or Texts([])
    empty = np.flatnonzero([not text.strip() for text in texts])
    characters = sum(map(len, texts))
    return _Contents(split.Y, index.names, split.X, split.ids, texts.titles is not None, empty, characters)


def _or_none(file: DataFile, index: LabelIndex) -> Split | None:
    """Return the documents of a file, None if it is empty."""
    try:
        return file.read(index)
    except EmptyFileError:
        return None


def _renumbered(Y: csr_matrix, columns: NDArray[np.int32], n_columns: int) -> csr_matrix:
    """Return labels with other numbers: column j becomes columns[j]."""
    from scipy.sparse import csr_matrix

    moved = csr_matrix((Y.data.copy(), columns[Y.indices], Y.indptr), shape=(Y.shape[0], n_columns))
    moved.sort_indices()
    return moved


def _joined(files: Sequence[DataFile], found: Sequence[tuple[DataFile, Split]]) -> Split:
    """Return the documents of those files that have some, one after the other."""
    if not found:
        raise EmptyFileError(files[0].path.parent, f"{len(files)} files without documents", "one document per line")
    _check_widths(found)
    splits = [split for _, split in found]
    features, texts = [split.X for split in splits], [split.texts for split in splits if split.texts is not None]
    ids: list[str] | None = None
    if any(split.ids is not None for split in splits):
        ids = [one for split in splits for one in (split.ids or [""] * len(split))]
    X = None if features[0] is None else _stacked(features)
    return Split(_stacked([split.Y for split in splits]), X, _joined_texts(texts) if texts else None, ids)


def _joined_texts(texts: Sequence[Texts]) -> Texts:
    titles: list[str] | None = None
    if any(one.titles is not None for one in texts):
        titles = [title for one in texts for title in (one.titles or [""] * len(one))]
    return Texts([body for one in texts for body in one.bodies], titles)


def _check_widths(found: Sequence[tuple[DataFile, Split]]) -> None:
    """Raise a `DataError` if headers do not agree in the number of features or labels."""
    first, there = found[0]
    if first.format not in SIZED:
        return
    for file, split in found:
        for stated, given, what in ((there.X, split.X, "features"), (there.Y, split.Y, "labels")):
            if stated is not None and given is not None and stated.shape[1] != given.shape[1]:
                expected = f"{stated.shape[1]:,}, as in {first.path.name}"
                raise DataError(file.path, f"a header with {given.shape[1]:,} {what}", expected)


def _stacked(matrices: Sequence[Any]) -> csr_matrix:
    """Return the rows of all matrices, as wide as the widest."""
    from scipy.sparse import csr_matrix, vstack

    width = max(matrix.shape[1] for matrix in matrices)
    stacked = csr_matrix(vstack([widen(matrix, width) for matrix in matrices], format="csr"))
    stacked.has_canonical_format = True
    return stacked
