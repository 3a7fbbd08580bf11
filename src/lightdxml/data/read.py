"""Read a data set from a file or a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lightdxml.data import annif, annif_txt, arrow, id_files, jsonl, npz, table, xc_text
from lightdxml.data.cells import SEPARATOR, likely_separator
from lightdxml.data.dataset import Dataset, Split, largest_plausible_size
from lightdxml.data.detect import Format, Part, detect, detect_or_none, side_of
from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import base_name, entries, reading_bytes
from lightdxml.data.folder import FolderFiles, innermost, scan
from lightdxml.data.labels import LabelIndex, ordered_names, read_names, widen
from lightdxml.data.options import ReadOptions
from lightdxml.resources.system import check_memory

_MATRICES = ("xc-matrix", "npz")
# Formats that state the number of features and labels, and formats that give labels by name.
_SIZED = ("xc-text", "xc-matrix", "npz")
_NAMED = ("jsonl", "table", "parquet", "arrow", "annif-tsv", "annif-csv", "annif-jsonl", "annif-txt")
# A part may be several files of these formats.
_SHARDS = ("parquet",)


@dataclass(frozen=True)
class _Part:
    """One split as it was read. Labels in cells are strings, which may have been split wrongly."""

    split: Split
    file: Path
    format: Format
    has_cells: bool = False


_Parts = dict[Part, _Part]
_DEFAULT = ReadOptions()


def load_path(path: Path, options: ReadOptions = _DEFAULT) -> Dataset:
    """Read a folder, or a single file as the training split."""
    if path.is_dir():
        return _load_folder(innermost(path), options)
    if not path.exists():
        raise DataError(path, "no such file or folder", "an existing one")
    return _load_file(path, options)


def _load_file(path: Path, options: ReadOptions) -> Dataset:
    index = LabelIndex()
    part = _read_part(path, "train", [path], index, options)
    names = index.names if part.format in _NAMED else None
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


def _load_folder(folder: Path, options: ReadOptions) -> Dataset:
    files = scan(folder, options)
    label_names = read_names(files.label_names, options.encoding) if files.label_names else None
    feature_names = ordered_names(read_names(files.feature_names, options.encoding)) if files.feature_names else None
    index = LabelIndex(label_names or ())
    if files.splits:
        parts = _read_old_form(folder, files, options)
    else:
        order: tuple[Part, ...] = ("train", "dev", "test")
        found = [part for part in order if part in files.parts]
        parts = {part: _read_part(folder, part, files.parts[part], index, options) for part in found}
    if "train" not in parts:
        seen = ", ".join(path.name for path in entries(folder)[:8]) or "nothing"
        raise DataError(folder, seen, "a file with train or trn in its name, or a single file of a known format")
    _check_separator(folder, parts, index.names, options)
    train = parts["train"]
    if train.format in _NAMED:
        shown = label_names if isinstance(label_names, dict) else {}
        names: list[str] | None = [shown.get(label, label) for label in index.names]
    else:
        names = None if label_names is None else ordered_names(label_names)
    data = _combine(folder, folder.name, parts, names, feature_names if train.split.X is not None else None)
    return _with_filters(data, files.filters)


def _read_part(folder: Path, part: Part, files: Sequence[Path], index: LabelIndex, options: ReadOptions) -> _Part:
    """Read the file, or the pair of feature and label matrices, of one split."""
    kinds = [detect(path, options) for path in files]
    for path, kind in zip(files, kinds, strict=True):
        read = arrow.files(path) if kind == "arrow" else annif_txt.files(path) if path.is_dir() else [path]
        check_memory(f"reading {path}", reading_bytes(*read), options.memory_limit)
    if all(kind in _MATRICES for kind in kinds):
        return _Part(_read_pair(folder, dict(zip(files, kinds, strict=True))), files[0], kinds[0])
    if all(kind in _SHARDS for kind in kinds):
        return _arrow_part(files, files[0], kinds[0], index, options)
    if len(files) > 1:
        names = " and ".join(path.name for path in files)
        raise DataError(folder, f"several files for {part}: {names}", "one file, or one X and one Y")
    if kinds[0] == "arrow":
        return _arrow_part(arrow.files(files[0]), files[0], kinds[0], index, options)
    return _Part(_read_file(files[0], kinds[0], index, options), files[0], kinds[0], kinds[0] == "table")


def _arrow_part(files: Sequence[Path], file: Path, kind: Format, index: LabelIndex, options: ReadOptions) -> _Part:
    split = arrow.read(files, index, options)
    return _Part(split, file, kind, arrow.has_cells(files[0], options.columns))


_NAMED_READERS: dict[Format, Callable[[Path, LabelIndex, str], Split]] = {
    "annif-tsv": annif.read_tsv,
    "annif-csv": annif.read_csv,
    "annif-jsonl": annif.read_jsonl,
    "annif-txt": annif_txt.read,
}


def _read_file(path: Path, kind: Format, index: LabelIndex, options: ReadOptions) -> Split:
    if kind in _NAMED_READERS:
        return _NAMED_READERS[kind](path, index, options.encoding)
    if kind == "jsonl":
        return jsonl.read(path, index, options)
    if kind == "table":
        return table.read(path, index, options)
    if kind == "xc-json":
        return jsonl.read_xc(path, options.encoding)
    X, Y = xc_text.read_labeled(path)
    return Split(Y=Y, X=X)


def _read_pair(folder: Path, files: dict[Path, Format]) -> Split:
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
            (train.format in _NAMED, one.format in _NAMED, ("label ids", "label names")),
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
    sized = [part for part in widths if parts[part].format in _SIZED]
    if not sized:
        return max([*widths.values(), n_names])
    stated = widths[sized[0]]
    for part, width in widths.items():
        if width > stated or (part in sized and width != stated):
            expected = f"{stated}, as in {parts[sized[0]].file.name}"
            raise DataError(parts[part].file, f"{width} {what}", expected)
    return stated
