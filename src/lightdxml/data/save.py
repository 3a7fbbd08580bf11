"""From a `Dataset` to a folder that `load` reads back the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from lightdxml.data import jsonl, npz, pairs, xc_text
from lightdxml.data.dataset import Dataset, Split
from lightdxml.data.errors import DataError
from lightdxml.data.labels import write_names

SaveFormat = Literal["xc", "npz", "jsonl"]
Compression = Literal["", "gz", "zst"]


def save(data: Dataset, folder: str | Path, format: SaveFormat, compression: Compression = "") -> Path:
    """Write a data set into a folder, one file (npz: two) for each of its parts.

    Parameters
    ----------
    data
        What to write. `xc` and `npz` hold features, `jsonl` holds texts.
    folder
        Made if it is not there; files of the same name are replaced, each only when its successor is complete.
    format
        `xc` for text with a header `N V L`, `npz` for SciPy's matrices, `jsonl` for texts with label names.
    compression
        `gz` or `zst` compresses the text files.

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
    suffix = f".{compression}" if compression else ""
    names = data.label_names
    if format == "jsonl":
        names = _unique(folder, names) if names is not None else [str(i) for i in range(data.n_labels)]
    for part, split in data.splits.items():
        _save_split(split, folder, part, format, suffix, names or ())
        if split.ignore is not None:
            pairs.write_filter(folder / f"filter_labels_{part}.txt{suffix}", split.ignore)
    if names is not None:
        write_names(folder / f"label_names.json{suffix}", names)
    if data.feature_names is not None and format != "jsonl":
        write_names(folder / f"feature_names.json{suffix}", data.feature_names)
    return folder


def _save_split(split: Split, folder: Path, part: str, format: SaveFormat, suffix: str, names: Sequence[str]) -> None:
    if format == "jsonl":
        jsonl.write(folder / f"{part}.jsonl{suffix}", split, names)
        return
    if split.X is None:
        raise DataError(folder, "texts without features", "features for this format: write texts as jsonl")
    if format == "xc":
        xc_text.write_labelled(folder / f"{part}.txt{suffix}", split.X, split.Y)
    else:
        npz.write(folder / f"{part}_X.npz", split.X)
        npz.write(folder / f"{part}_Y.npz", split.Y)


def _unique(folder: Path, names: Sequence[str]) -> Sequence[str]:
    """Return the names if they can stand for the labels."""
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        if name == "":
            raise DataError(folder, f"label {i} with an empty name", "a name for each label")
        if seen.setdefault(name, i) != i:
            raise DataError(folder, f"the name {name!r} for labels {seen[name]} and {i}", "a name of its own for each")
    return names
