"""From a path or a name to a `Dataset`: the way into this package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lightdxml.data import jsonl, npz, pairs, table, xc_json, xc_text
from lightdxml.data.dataset import Dataset, Split, believable_width
from lightdxml.data.errors import DataError
from lightdxml.data.files import base_name
from lightdxml.data.folder import Files, entries, format_or_none, innermost
from lightdxml.data.labels import LabelIndex, in_order, read_names, widen
from lightdxml.data.recognise import Format, Part, part_of, recognise, side_of

_MATRICES = ("xc-matrix", "npz")
# What states its numbers of features and labels, and what names its labels.
_SIZED = ("xc-text", "xc-matrix", "npz")
_NAMED = ("jsonl", "table")


@dataclass(frozen=True)
class ReadOptions:
    """What a file cannot say itself: how labels are separated in a cell, its encoding, which old split."""

    label_separator: str = "|"
    encoding: str = "utf-8"
    split: int = 0

    def __post_init__(self) -> None:
        if not self.label_separator:
            raise ValueError("label_separator is empty: give at least one character")
        if self.split < 0:
            raise ValueError(f"split is {self.split}: splits are counted from 0")
        try:
            b"a".decode(self.encoding)
        except UnicodeDecodeError:
            pass  # known, and wider than a byte
        except LookupError as error:
            message = f"encoding {self.encoding!r} is not known: utf-8, latin-1 and cp1252 are common ones"
            raise ValueError(message) from error


def load_path(path: Path, options: ReadOptions = ReadOptions()) -> Dataset:  # noqa: B008 - frozen
    """Read a file (all of it is `train`) or a folder of files named for its parts."""
    if path.is_dir():
        return _load_folder(path, options)
    if not path.exists():
        raise DataError(path, "nothing there", "a file or a folder")
    return _load_file(path, options)


@dataclass
class _Loading:
    """What the files of one data set have told so far."""

    place: Path
    options: ReadOptions
    index: LabelIndex = field(default_factory=LabelIndex)
    splits: dict[Part, Split] = field(default_factory=dict)
    files: dict[Part, Path] = field(default_factory=dict)
    formats: dict[Part, Format] = field(default_factory=dict)
    filters: dict[Part, Path] = field(default_factory=dict)


def _load_file(path: Path, options: ReadOptions) -> Dataset:
    loading = _Loading(path, options)
    files = [path]
    kind = recognise(path, options.encoding)
    if kind in _MATRICES:
        around = Files(path.parent, options.encoding)
        near = {*around.others, *(file for files in around.parts.values() for file in files)}
        alike = [file for file in near if part_of(file) == part_of(path) and side_of(file) != side_of(path)]
        files += sorted(file for file in alike if format_or_none(file, options.encoding) == kind)
    _read_part(loading, "train", files)
    return _finish(loading, base_name(path).partition(".")[0], None, None)


def _load_folder(folder: Path, options: ReadOptions) -> Dataset:
    folder = innermost(folder)
    files = Files(folder, options.encoding)
    loading = _Loading(folder, options, filters=files.filters)
    label_names = read_names(files.label_names, options.encoding) if files.label_names else None
    feature_names = read_names(files.feature_names, options.encoding) if files.feature_names else None
    loading.index = LabelIndex(label_names or ())
    if files.splits:
        _read_old_form(loading, files)
    else:
        for part in ("train", "dev", "test"):
            if part in files.parts:
                _read_part(loading, part, files.parts[part])
    if "train" not in loading.splits:
        seen = ", ".join(path.name for path in entries(folder)[:8]) or "nothing"
        raise DataError(folder, seen, "a file whose name says train or trn, or a single file of a known format")
    has_features = loading.splits["train"].X is not None
    return _finish(
        loading, folder.name, label_names, in_order(feature_names) if feature_names and has_features else None
    )


def _read_part(loading: _Loading, part: Part, files: Sequence[Path]) -> None:
    """Read the file, or the pair of feature and label matrices, that holds one part."""
    kinds = {path: recognise(path, loading.options.encoding) for path in files}
    wholes = [path for path in files if kinds[path] not in _MATRICES]
    if len(wholes) > 1 or (wholes and len(files) > 1):
        names = " and ".join(path.name for path in files)
        raise DataError(loading.place, f"several files for {part}: {names}", "one file, or one X and one Y")
    loading.files[part] = files[0]
    loading.formats[part] = kinds[files[0]]
    loading.splits[part] = _read_whole(loading, wholes[0], kinds[wholes[0]]) if wholes else _read_pair(loading, files)


def _read_whole(loading: _Loading, path: Path, kind: Format) -> Split:
    options = loading.options
    if kind == "jsonl":
        return jsonl.read(path, loading.index, options.encoding)
    if kind == "table":
        return table.read(path, loading.index, options.label_separator, options.encoding)
    if kind == "xc-json":
        return xc_json.read(path, options.encoding)
    lines = xc_text.read_labelled(path)
    return Split(Y=lines.labels, X=lines.features)


def _read_pair(loading: _Loading, files: Sequence[Path]) -> Split:
    sides = {side: [path for path in files if side_of(path) == side] for side in ("X", "Y")}
    for side, what in (("X", "features"), ("Y", "labels")):
        if len(sides[side]) != 1:
            names = ", ".join(path.name for path in files)
            raise DataError(loading.place, names, f"one file of {what}, with {side} in its name, beside the other")
    (x_path,), (y_path,) = sides["X"], sides["Y"]
    X, Y = (npz.read(p) if recognise(p) == "npz" else xc_text.read_matrix(p) for p in (x_path, y_path))
    if X.shape[0] != Y.shape[0]:
        raise DataError(y_path, f"{Y.shape[0]} rows", f"{X.shape[0]}, as in {x_path.name}")
    if (Y.data < 0).any():
        raise DataError(y_path, "a negative relevance", "labels with values from 0")
    Y.eliminate_zeros()
    return Split(Y=Y, X=X)


def _read_old_form(loading: _Loading, files: Files) -> None:
    """Read one file of all documents and the files that say which are train and test."""
    candidates = [path for path in files.others if format_or_none(path, loading.options.encoding) == "xc-text"]
    if len(candidates) != 1:
        names = ", ".join(path.name for path in candidates) or "none"
        raise DataError(files.folder, f"split files and as data {names}", "one file with a header of three numbers")
    whole = _read_whole(loading, candidates[0], "xc-text")
    rows = {part: pairs.read_split(path, loading.options.split, len(whole)) for part, path in files.splits.items()}
    if "train" in rows and "test" in rows and set(rows["train"].tolist()) & set(rows["test"].tolist()):
        raise DataError(files.splits["test"], "documents that are in train too", "train and test apart")
    for part, chosen in rows.items():
        loading.files[part] = candidates[0]
        loading.formats[part] = "xc-text"
        loading.splits[part] = whole.take(chosen)


def _finish(
    loading: _Loading,
    name: str,
    label_names: list[str] | dict[str, str] | None,
    feature_names: list[str] | None,
) -> Dataset:
    """Bring the parts to one width and put the names on."""
    _check_alike(loading)
    names: list[str] | None
    if loading.formats["train"] in _NAMED:
        shown = label_names if isinstance(label_names, dict) else {}
        names = [shown.get(label, label) for label in loading.index.names]
    else:
        names = None if label_names is None else in_order(label_names)
    n_labels = _width(loading, "labels", len(names or ()))
    n_features = _width(loading, "features", len(feature_names or ()))
    for part, split in loading.splits.items():
        X = None if split.X is None else widen(split.X, n_features)
        filtered = loading.filters.get(part)
        ignore = pairs.read_filter(filtered, len(split), n_labels) if filtered else None
        loading.splits[part] = replace(split, Y=widen(split.Y, n_labels), X=X, ignore=ignore)
    if names is not None and len(names) != n_labels:
        raise DataError(loading.place, f"{len(names)} label names for {n_labels} labels", "one name a label")
    if feature_names is not None and len(feature_names) != n_features:
        found = f"{len(feature_names)} feature names for {n_features} features"
        raise DataError(loading.place, found, "one name a feature")
    parts = loading.splits
    return Dataset(name, parts["train"], parts.get("test"), parts.get("dev"), names, feature_names)


def _check_alike(loading: _Loading) -> None:
    """Raise where parts cannot belong together: names and numbers as labels, text and features."""
    train = loading.splits["train"]
    for part, split in loading.splits.items():
        if (loading.formats[part] in _NAMED) != (loading.formats["train"] in _NAMED):
            kinds = ("names", "numbers") if loading.formats[part] in _NAMED else ("numbers", "names")
            found, expected = f"labels as {kinds[0]}", f"{kinds[1]}, as in {loading.files['train'].name}"
            raise DataError(loading.files[part], found, expected)
        if (split.X is None) != (train.X is None):
            kinds = ("text", "features") if split.X is None else ("features", "text")
            raise DataError(loading.files[part], kinds[0], f"{kinds[1]}, as in {loading.files['train'].name}")


def _width(loading: _Loading, what: str, n_names: int) -> int:
    """Return the number of labels or features that all parts share; what files state must hold for all."""
    widths: dict[Part, int] = {}
    for part, split in loading.splits.items():
        matrix = split.Y if what == "labels" else split.X
        if matrix is not None:
            widths[part] = int(matrix.shape[1])
    _check_believable(loading, what, widths)
    sized = [part for part in widths if loading.formats[part] in _SIZED]
    if not sized:
        return max([*widths.values(), n_names])
    stated = widths[sized[0]]
    for part, width in widths.items():
        if width > stated or (part in sized and width != stated):
            found = f"{width} {what}"
            raise DataError(loading.files[part], found, f"{stated}, as in {loading.files[sized[0]].name}")
    return stated


def _check_believable(loading: _Loading, what: str, widths: dict[Part, int]) -> None:
    """Raise where a header, or a single mistyped number, claims a width that would only fill memory."""
    matrices = [split.Y if what == "labels" else split.X for split in loading.splits.values()]
    limit = believable_width(sum(matrix.nnz for matrix in matrices if matrix is not None))
    for part, width in widths.items():
        if width > limit:
            expected = f"at most {limit:,} for so little data: check its header and its largest number"
            raise DataError(loading.files[part], f"{width:,} {what}", expected)
