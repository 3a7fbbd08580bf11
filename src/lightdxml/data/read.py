"""Read a data set from a file or a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightdxml.data import id_files, npz, several, xc_text
from lightdxml.data.cells import SEPARATOR, likely_separator
from lightdxml.data.data_file import MATRICES, NAMED, SEVERAL, SIZED, DataFile
from lightdxml.data.dataset import Dataset, Split, largest_plausible_size
from lightdxml.data.detect import Format, Part, detect, detect_or_none, side_of
from lightdxml.data.errors import DataError, EmptyFileError, excerpt
from lightdxml.data.files import base_name, entries, reading_bytes
from lightdxml.data.folder import FolderFiles, innermost, scan
from lightdxml.data.labels import LabelIndex, ordered_names, read_names, widen
from lightdxml.data.options import ReadOptions
from lightdxml.resources.system import check_memory

if TYPE_CHECKING:
    from lightdxml.executor import Executor


@dataclass(frozen=True)
class _Part:
    """One split as it was read. Labels in cells are strings, which may have been split wrongly."""

    split: Split
    file: Path
    format: Format
    has_cells: bool = False


_Parts = dict[Part, _Part]
_DEFAULT = ReadOptions()


def load_path(path: Path, options: ReadOptions = _DEFAULT, executor: Executor | None = None) -> Dataset:
    """Read a folder, or a single file as the training split.

    With an executor, and several files of training documents, it reads all files of the folder, and texts stay in them.
    """
    if path.is_dir():
        return _load_folder(innermost(path), options, executor)
    if not path.exists():
        raise DataError(path, "no such file or folder", "an existing one")
    return _load_file(path, options)


def _load_file(path: Path, options: ReadOptions) -> Dataset:
    index = LabelIndex()
    part = _read_part(_files_of(path, "train", [path], options), index)
    names = index.names if part.format in NAMED else None
    _check_separator(path, {"train": part}, index.names, options)
    return _combine(path, base_name(path).partition(".")[0], {"train": part}, names, None)


def _check_separator(path: Path, parts: _Parts, names: Sequence[str], options: ReadOptions) -> None:
    """Raise a `DataError` if labels look as if they were several that were not split."""
    if options.label_separator is not None or not all(one.has_cells for one in parts.values()):
        return
    if any(one.split.Y.getnnz(axis=1).max(initial=0) > 1 for one in parts.values()):
        return
    if (mark := likely_separator(names)) is not None:
        example = next(name for name in names if mark in name)
        found = f"one label per document, and {mark!r} in labels such as {excerpt(example)}"
        remedy = f'--separator "{mark}", or --separator "{SEPARATOR}" if these are single labels'
        raise DataError(path, found, f"the separator of labels (label_separator in Python): {remedy}")


def _load_folder(folder: Path, options: ReadOptions, executor: Executor | None) -> Dataset:
    files = scan(folder, options)
    label_names = read_names(files.label_names, options.encoding) if files.label_names else None
    feature_names = ordered_names(read_names(files.feature_names, options.encoding)) if files.feature_names else None
    index = LabelIndex(label_names or ())
    if files.splits:
        parts = _read_old_form(folder, files, options)
    else:
        order: tuple[Part, ...] = ("train", "dev", "test")
        found = {part: _files_of(folder, part, files.parts[part], options) for part in order if part in files.parts}
        apart = executor if _is_several(found.get("train", [])) else None
        parts = {part: _read_part(some, index, apart) for part, some in found.items()}
    if "train" not in parts:
        seen = ", ".join(path.name for path in entries(folder)[:8]) or "nothing"
        raise DataError(folder, seen, "a file with train or trn in its name, or a single file of a known format")
    _check_separator(folder, parts, index.names, options)
    train = parts["train"]
    if train.format in NAMED:
        shown = label_names if isinstance(label_names, dict) else {}
        names: list[str] | None = [shown.get(label, label) for label in index.names]
    else:
        names = None if label_names is None else ordered_names(label_names)
    # A folder may be given as `.`, which has no name.
    data = _combine(folder, folder.resolve().name, parts, names, feature_names if train.split.X is not None else None)
    return _with_filters(data, files.filters)


def _files_of(folder: Path, part: Part, paths: Sequence[Path], options: ReadOptions) -> list[DataFile]:
    """Return the files of one split: one, several with parts of it, or a pair of feature and label matrices."""
    kinds = {path: kind for path in paths if (kind := _kind(path, options, alone=len(paths) == 1)) is not None}
    files = [DataFile(path, kind, options) for path, kind in kinds.items()]
    if not files:
        raise EmptyFileError(folder, f"{len(paths)} empty files for {part}", "documents")
    if len(files) > 1 and not all(kind in MATRICES for kind in kinds.values()):
        alike = len(set(kinds.values())) == 1 and files[0].format in SEVERAL
        # Parquet files may have any names: tools call them as they like.
        if not alike or not (files[0].format == "parquet" or several.may_belong_together(folder, paths)):
            names = " and ".join(path.name for path in paths)
            expected = "one file, one X and one Y, or files of one format whose names differ in a number"
            raise DataError(folder, f"several files for {part}: {names}", expected)
        if files[0].format != "parquet":
            several.check_complete(folder, paths)
    return files


def _kind(path: Path, options: ReadOptions, *, alone: bool) -> Format | None:
    """Return the format of a file; None for an empty one that is not alone."""
    try:
        return detect(path, options)
    except EmptyFileError:
        if alone:
            raise
        return None


def _is_several(files: Sequence[DataFile]) -> bool:
    return sum(len(file.contents) for file in files if file.format in (*SEVERAL, "arrow")) > 1


def _read_part(files: Sequence[DataFile], index: LabelIndex, executor: Executor | None = None) -> _Part:
    """Read one split; with an executor, wherever it works."""
    first = files[0]
    if first.format in MATRICES:
        for file in files:
            file.check_memory()
        return _Part(_read_pair({file.path: file.format for file in files}), first.path, first.format)
    if executor is not None and first.format in (*SEVERAL, "arrow"):
        each = [file._replace(path=path) for file in files for path in file.contents]
        return _Part(several.read_apart(each, index, executor), first.path, first.format, first.has_cells)
    for file in files:
        file.check_memory()
    return _Part(several.read(files, index), first.path, first.format, first.has_cells)


def _read_pair(files: dict[Path, Format]) -> Split:
    folder = next(iter(files)).parent
    sides = {side: [path for path in files if side_of(path) == side] for side in ("X", "Y")}
    for side, what in (("X", "features"), ("Y", "labels")):
        if len(sides[side]) != 1:
            names = ", ".join(path.name for path in files)
            raise DataError(folder, names, f"a folder with one file of {what}, with {side} in its name")
    (x_path,), (y_path,) = sides["X"], sides["Y"]
    X, Y = (npz.read(p) if files[p] == "npz" else xc_text.read_matrix(p) for p in (x_path, y_path))
    if X.shape[0] != Y.shape[0]:
        raise DataError(y_path, f"{Y.shape[0]} rows", f"{X.shape[0]}, as in {x_path.name}")
    if (Y.data < 0).any():
        raise DataError(y_path, "a negative relevance", "non-negative values as labels")
    Y.eliminate_zeros()
    return Split(Y=Y, X=X)


def _read_old_form(folder: Path, files: FolderFiles, options: ReadOptions) -> _Parts:
    """Read one file of all documents, and split files that list the documents of train and test."""
    candidates = [path for path in files.others if detect_or_none(path, options) == "xc-text"]
    if len(candidates) != 1:
        names = ", ".join(path.name for path in candidates) or "no data file"
        raise DataError(folder, f"split files with {names}", "one data file with a header of three numbers")
    check_memory(f"reading {candidates[0]}", reading_bytes(candidates[0]), options.memory_limit)
    X, Y = xc_text.read_labeled(candidates[0])
    all_documents = Split(Y=Y, X=X)
    rows = {part: id_files.read_split(path, options.split, len(all_documents)) for part, path in files.splits.items()}
    if "train" in rows and "test" in rows and set(rows["train"].tolist()) & set(rows["test"].tolist()):
        raise DataError(files.splits["test"], "documents that are also in train", "disjoint splits")
    return {part: _Part(all_documents.take(chosen), candidates[0], "xc-text") for part, chosen in rows.items()}


def _combine(
    path: Path, name: str, parts: _Parts, label_names: list[str] | None, feature_names: list[str] | None
) -> Dataset:
    """Give all splits the same width and check the number of names."""
    _check_consistent(parts)
    n_labels = _width(parts, "labels", len(label_names or ()))
    n_features = _width(parts, "features", len(feature_names or ()))
    for names, n, what in ((label_names, n_labels, "label"), (feature_names, n_features, "feature")):
        if names is not None and len(names) != n:
            raise DataError(path, f"{len(names)} {what} names for {n} {what}s", f"one name per {what}")
    splits: dict[str, Split] = {}
    for part, one in parts.items():
        X = None if one.split.X is None else widen(one.split.X, n_features)
        splits[part] = replace(one.split, Y=widen(one.split.Y, n_labels), X=X)
    return Dataset(name, splits["train"], splits.get("test"), splits.get("dev"), label_names, feature_names)


def _with_filters(data: Dataset, filters: dict[Part, Path]) -> Dataset:
    """Add the pairs that evaluation ignores to the splits that have a filter file."""
    splits: dict[str, Any] = {}
    for part, path in filters.items():
        if (split := data.splits.get(part)) is not None:
            splits[part] = replace(split, ignore=id_files.read_filter(path, len(split), data.n_labels))
    return replace(data, **splits)


def _check_consistent(parts: _Parts) -> None:
    """Raise a `DataError` if one split has label names and another label ids, or one text and another features."""
    train = parts["train"]
    for one in parts.values():
        for there, here, kinds in (
            (train.format in NAMED, one.format in NAMED, ("label ids", "label names")),
            (train.split.X is None, one.split.X is None, ("features", "text")),
        ):
            if there != here:
                raise DataError(one.file, kinds[here], f"{kinds[there]}, as in {train.file.name}")


def _width(parts: _Parts, what: str, n_names: int) -> int:
    """Return the number of labels or features that all splits share. A number that a file states holds for all."""
    matrices = {part: one.split.Y if what == "labels" else one.split.X for part, one in parts.items()}
    widths = {part: int(matrix.shape[1]) for part, matrix in matrices.items() if matrix is not None}
    limit = largest_plausible_size(sum(matrix.nnz for matrix in matrices.values() if matrix is not None))
    for part, width in widths.items():
        if width > limit:
            expected = f"at most {limit:,} for so little data: check the header and the largest id"
            raise DataError(parts[part].file, f"{width:,} {what}", expected)
    sized = [part for part in widths if parts[part].format in SIZED]
    if not sized:
        return max([*widths.values(), n_names])
    stated = widths[sized[0]]
    for part, width in widths.items():
        if width > stated or (part in sized and width != stated):
            expected = f"{stated}, as in {parts[sized[0]].file.name}"
            raise DataError(parts[part].file, f"{width} {what}", expected)
    return stated
