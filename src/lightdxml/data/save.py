"""From a `Dataset` to a folder that `load` reads back the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from lightdxml.data import jsonl, npz, pairs, xc_text
from lightdxml.data.dataset import Dataset, Split
from lightdxml.data.errors import DataError
from lightdxml.data.labels import write_names

SaveFormat = Literal["xc", "npz", "jsonl"]
Compression = Literal["", "gz", "zst"]


# Every file that `save` may write: what another save left of them would be read as a part of the new data set.
_OURS = re.compile(
    r"((train|dev|test)(\.txt|_[XY]\.npz|\.jsonl)|(label|feature)_names\.json|filter_labels_(train|dev|test)\.txt)"
    r"(\.gz|\.zst)?"
)


def save(
    data: Dataset,
    folder: str | Path,
    format: SaveFormat,
    compression: Compression = "",
    *,
    overwrite: bool = False,
) -> Path:
    """Write a data set into a folder, one file (npz: two) for each of its parts.

    Parameters
    ----------
    data
        What to write. `xc` and `npz` hold features, `jsonl` holds texts.
    folder
        Made if it is not there; it must be empty.
    format
        `xc` for text with a header `N V L`, `npz` for SciPy's matrices, `jsonl` for texts with label names.
    compression
        `gz` or `zst` compresses the text files.
    overwrite
        Write into a folder that is not empty, and remove what an earlier `save` left in it; other files stay.

    Returns
    -------
    Path
        The folder.

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
    left = stale(folder, overwrite)
    suffix = f".{compression}" if compression else ""
    names = data.label_names
    if format == "jsonl":
        names = _unique(folder, names) if names is not None else [str(i) for i in range(data.n_labels)]
    _check(data, folder, format)
    written = []
    for part, split in data.splits.items():
        written += _save_split(split, folder, part, format, suffix, names or ())
        if split.ignore is not None:
            written.append(folder / f"filter_labels_{part}.txt{suffix}")
            pairs.write_filter(written[-1], split.ignore)
    for kind, known in (("label", names), ("feature", data.feature_names if format != "jsonl" else None)):
        if known is not None:
            written.append(folder / f"{kind}_names.json{suffix}")
            write_names(written[-1], known)
    for path in set(left).difference(written):
        path.unlink()
    return folder


def stale(folder: Path, overwrite: bool) -> list[Path]:
    """Return the files of an earlier data set in the folder, or refuse a folder that holds anything."""
    if folder.exists() and not folder.is_dir():
        raise DataError(folder, "a file", "a folder to write into")
    inside = sorted(folder.iterdir()) if folder.exists() else []
    if inside and not overwrite:
        raise DataError(folder, "a folder that is not empty", "a new or empty one (overwriting must be asked for)")
    return [path for path in inside if _OURS.fullmatch(path.name)]


def _check(data: Dataset, folder: Path, format: SaveFormat) -> None:
    """Raise before anything is written where the format cannot hold the data."""
    for split in data.splits.values():
        if format == "jsonl" and split.texts is None:
            raise DataError(folder, "documents without text", "text: write features as xc or npz")
        if format != "jsonl" and split.X is None:
            raise DataError(folder, "texts without features", "features for this format: write texts as jsonl")
        if format != "npz":
            xc_text.check_binary(split.Y, folder)


def _save_split(
    split: Split, folder: Path, part: str, format: SaveFormat, suffix: str, names: Sequence[str]
) -> list[Path]:
    """Write one part and return its files."""
    if format == "jsonl":
        path = folder / f"{part}.jsonl{suffix}"
        jsonl.write(path, split, names)
        return [path]
    assert split.X is not None
    if format == "xc":
        path = folder / f"{part}.txt{suffix}"
        xc_text.write_labelled(path, split.X, split.Y)
        return [path]
    paths = [folder / f"{part}_{side}.npz" for side in "XY"]
    npz.write(paths[0], split.X)
    npz.write(paths[1], split.Y)
    return paths


def _unique(folder: Path, names: Sequence[str]) -> Sequence[str]:
    """Return the names if they can stand for the labels."""
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        if name == "":
            raise DataError(folder, f"label {i} with an empty name", "a name for each label")
        if seen.setdefault(name, i) != i:
            raise DataError(folder, f"the name {name!r} for labels {seen[name]} and {i}", "a name of its own for each")
    return names
