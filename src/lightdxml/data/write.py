"""Write a `Dataset` to a folder that `load` reads back the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from lightdxml.data import annif, annif_txt, id_files, jsonl, npz, xc_text
from lightdxml.data.dataset import Dataset, Split
from lightdxml.data.detect import detect_or_none
from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import base_name
from lightdxml.data.labels import write_names

SaveFormat = Literal["xc", "npz", "jsonl", "annif-tsv", "annif-csv", "annif-jsonl", "annif-txt"]
Compression = Literal["", "gz", "zst"]

# How texts are written, in one file per split.
_TEXT_WRITERS: dict[SaveFormat, tuple[str, Callable[[Path, Split, Sequence[str]], None]]] = {
    "jsonl": (".jsonl", jsonl.write),
    "annif-tsv": (".tsv", annif.write_tsv),
    "annif-csv": (".csv", annif.write_csv),
    "annif-jsonl": (".jsonl", annif.write_jsonl),
}
_TEXT_FORMATS = (*_TEXT_WRITERS, "annif-txt")
# Every file that `save` may write: files of an earlier data set would be read as a part of the new one.
_SAVED_FILES = re.compile(
    r"((train|dev|test)(\.txt|_[XY]\.npz|\.jsonl|\.tsv|\.csv)|(label|feature)_names\.json"
    r"|filter_labels_(train|dev|test)\.txt)(\.gz|\.zst)?"
)
# Which labels a format can hold, if not all.
_LABEL_CHECKS: dict[SaveFormat, Callable[[str], bool]] = {
    "annif-tsv": annif.is_word,
    "annif-csv": annif.is_word,
    "annif-txt": annif_txt.is_line,
}
_PARTS = ("train", "dev", "test")


def save(
    data: Dataset,
    folder: str | Path,
    format: SaveFormat,
    compression: Compression = "",
    *,
    overwrite: bool = False,
) -> Path:
    """Write a data set to a folder, one file per split (two for npz), and return the folder.

    Parameters
    ----------
    data
        The data set. `xc` and `npz` hold features, all others hold texts.
    folder
        The folder, created if it does not exist; it must be empty.
    format
        `xc` for text with a header `N V L`, `npz` for SciPy's matrices, `jsonl` for texts with label names, and four
        corpora of Annif, in which the title of a document becomes the first line of its text:

        - `annif-tsv`: a text, a tab and URIs per line. Tabs and line ends in a text become spaces. There are no ids.
        - `annif-csv`: columns `text`, `subject_uris` and, if there are ids, `document_id`.
        - `annif-jsonl`: `{"document_id", "text", "subjects": [{"uri"}]}` per line; a label that is no URI is a `label`.
        - `annif-txt`: a folder per split with a `.txt` and a `.tsv` per document, or a `.key` if not all labels are
          URIs. Files have the ids of documents as names, or numbers if not all ids can be file names. Documents are
          read back in the order of these names.

        Labels with spaces or angle brackets cannot be in `annif-tsv` and `annif-csv`, labels of several lines not in
        `annif-txt`.
    compression
        `gz` or `zst` compresses the text files, but not those of `annif-txt`.
    overwrite
        Write to a folder that is not empty. Files of an earlier `save` are removed, all others stay.

    Examples
    --------
    >>> import tempfile
    >>> from lightdxml.data import Dataset, Split, Texts, load
    >>> from scipy.sparse import csr_matrix
    >>> train = Split(Y=csr_matrix([[0, 1], [1, 1]], dtype="float32"), texts=Texts(["one", "two"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save(Dataset("tiny", train, label_names=["odd", "number"]), folder, "jsonl")
    ...     load(folder).label_names
    ['odd', 'number']
    """
    folder = Path(folder)
    if format not in get_args(SaveFormat):
        raise ValueError(f"format is {format!r}: it must be one of {', '.join(get_args(SaveFormat))}")
    if compression not in get_args(Compression):
        raise ValueError(f"compression is {compression!r}: it must be gz, zst or empty")
    if compression and format == "annif-txt":
        raise ValueError("annif-txt has a file per document, which is not compressed: leave out the compression")
    old_files = _saved_files(folder, overwrite)
    if format == "annif-txt":
        # Documents of an earlier data set would be read as a part of the new one; other formats do not read them.
        old_files += [path for part in _PARTS for path in annif_txt.saved_files(folder / part)]
    suffix = f".{compression}" if compression else ""
    names = data.label_names
    if format in _TEXT_FORMATS:
        names = [str(i) for i in range(data.n_labels)] if names is None else names
        _check_names(folder, names, format)
    _check_format(data, folder, format)
    written = []
    for part, split in data.splits.items():
        if format == "annif-txt":
            split = annif_txt.in_file_order(split)
        written += _save_split(split, folder, part, format, suffix, names or ())
        if split.ignore is not None:
            written.append(folder / f"filter_labels_{part}.txt{suffix}")
            id_files.write_filter(written[-1], split.ignore)
    for kind, known in (("label", names), ("feature", data.feature_names if format not in _TEXT_FORMATS else None)):
        if known is not None:
            written.append(folder / f"{kind}_names.json{suffix}")
            write_names(written[-1], known)
    for path in set(old_files).difference(written):
        path.unlink()
    return folder


def _saved_files(folder: Path, overwrite: bool) -> list[Path]:
    """Return the data files in the folder; raise a `DataError` if it is not empty and must not be overwritten."""
    if folder.exists() and not folder.is_dir():
        raise DataError(folder, "a file", "a folder to write to")
    inside = sorted(folder.iterdir()) if folder.exists() else []
    if inside and not overwrite:
        raise DataError(folder, "a folder that is not empty", "an empty one, or --force (overwrite=True) to replace it")
    return [path for path in inside if _SAVED_FILES.fullmatch(path.name) and not _is_foreign_table(path)]


def _is_foreign_table(path: Path) -> bool:
    """Return whether a file is a table of the user, with any columns: `save` writes only those of Annif."""
    return base_name(path).endswith((".csv", ".tsv")) and detect_or_none(path) not in ("annif-csv", "annif-tsv")


def _check_format(data: Dataset, folder: Path, format: SaveFormat) -> None:
    """Raise a `DataError` if the format cannot hold the data; nothing is written yet."""
    for split in data.splits.values():
        if format in _TEXT_FORMATS and split.texts is None:
            raise DataError(folder, "documents without text", "text: write features as xc or npz")
        if format not in _TEXT_FORMATS and split.X is None:
            raise DataError(folder, "texts without features", "features: write texts as jsonl")
        if format != "npz" and not np.all(split.Y.data == 1):
            raise DataError(folder, "labels with weights other than 1", "plain labels: the npz format keeps weights")


def _save_split(
    split: Split, folder: Path, part: str, format: SaveFormat, suffix: str, names: Sequence[str]
) -> list[Path]:
    """Write one split and return its files."""
    if format == "annif-txt":
        return annif_txt.write(folder / part, split, names)
    if format in _TEXT_WRITERS:
        ending, write = _TEXT_WRITERS[format]
        path = folder / f"{part}{ending}{suffix}"
        write(path, split, names)
        return [path]
    assert split.X is not None
    if format == "xc":
        path = folder / f"{part}.txt{suffix}"
        xc_text.write_labeled(path, split.X, split.Y)
        return [path]
    paths = [folder / f"{part}_{side}.npz" for side in "XY"]
    npz.write(paths[0], split.X)
    npz.write(paths[1], split.Y)
    return paths


def _check_names(folder: Path, names: Sequence[str], format: SaveFormat) -> None:
    """Raise a `DataError` if names cannot identify the labels, or the format cannot hold them."""
    can_hold = _LABEL_CHECKS.get(format, bool)
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        if name == "":
            raise DataError(folder, f"label {i} with an empty name", "a name for each label")
        if seen.setdefault(name, i) != i:
            raise DataError(folder, f"the name {name!r} for labels {seen[name]} and {i}", "unique names")
        if not can_hold(name):
            expected = f"labels that {format} can hold: write them as annif-jsonl or jsonl"
            raise DataError(folder, f"the label {excerpt(name)}", expected)
