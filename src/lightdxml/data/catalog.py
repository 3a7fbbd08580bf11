"""Load data sets by path or by name: built on this machine, cached, or in the registry."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lightdxml.data import registry, see_also
from lightdxml.data.dataset import Dataset
from lightdxml.data.errors import DataError
from lightdxml.data.options import ReadOptions
from lightdxml.data.read import load_path

if TYPE_CHECKING:
    from lightdxml.executor import Executor

_SUFFIXES = (".gz", ".zst", ".txt", ".csv", ".tsv", ".jsonl", ".parquet")
BUILDERS: dict[str, Callable[[], Dataset]] = {"see-also": see_also.build}


def load(
    source: str | Path,
    *,
    label_separator: str | None = None,
    encoding: str = "utf-8",
    text_column: str | None = None,
    title_column: str | None = None,
    label_column: str | None = None,
    id_column: str | None = None,
    split: int = 0,
    memory_limit: int | None = None,
    executor: Executor | None = None,
) -> Dataset:
    r"""Load a data set from a file, a folder, or by name.

    The content of a file tells its format: XC text with or without a header, XC matrices (features and labels in two
    files), the old XC form with split files, SciPy's npz, JSON Lines, XC raw-text JSON, CSV or TSV, Parquet, a Hugging
    Face data set that was saved to disk, or one of Annif's corpora (TSV, CSV, JSON Lines, or a folder of `.txt` with
    `.key` or `.tsv`). Text files may be plain, `.gz` or `.zst`.

    Parameters
    ----------
    source
        A path or a name. `see-also` is built on this machine; other names are folders in the cache, where
        `lightdxml data get NAME` puts them. A single file is the training split.
    label_separator
        The separator between the labels in a cell. None is `|`, and an error if another one seems to separate them.
        Cells that are lists, as JSON or Python writes them, need none.
    encoding
        The encoding of text files.
    text_column, title_column, label_column, id_column
        The names of the columns of tables, or of the fields of JSON; None for `text`, `title`, `labels` and `id`.
    split
        The column of the old form's split files, counted from 0.
    memory_limit
        The most memory that this process may take, in bytes; None for what the machine has. It is checked before a file
        is read.
    executor
        What reads the files of a folder, if its training documents are in several files: `lightdxml.executor.Threads()`
        or that of a cluster, whose machines must have the same files at the same path. Texts stay in their files then,
        and are read again when they are needed. Without it, all documents are read into memory.

    Raises
    ------
    DataError
        If the data cannot be read. The message names the file, the line, what was found and what was expected.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "pets.csv")
    ...     _ = path.write_text("text,labels\na purring cat,cat|pet\na barking dog,dog|pet\n")
    ...     data = load(path)
    >>> data.label_names
    ['cat', 'pet', 'dog']
    >>> data.train.Y.toarray().tolist()
    [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
    """
    columns = (text_column, title_column, label_column, id_column)
    options = ReadOptions(label_separator, encoding, *columns, split, memory_limit)
    if not str(source):
        raise DataError("''", "an empty name", "a path or the name of a data set")
    path = Path(os.path.expanduser(source))  # noqa: PTH111 - unlike Path.expanduser it never raises
    if path.exists():
        return load_path(path, options, executor)
    name = str(source)
    if isinstance(source, Path) or path.parent != Path() or path.suffix in _SUFFIXES:
        raise DataError(source, "no such file or folder", "an existing one, or the name of a data set")
    if (cached := find_cached(name)) is not None:
        return load_path(cached, options, executor)
    if name.lower() in BUILDERS:
        return BUILDERS[name.lower()]()
    entry = registry.find(name, BUILDERS)
    raise DataError(name, "a data set that is not downloaded yet", f"it in the cache: lightdxml data get {entry.name}")


def find_cached(name: str) -> Path | None:
    """Return the folder with this name in the cache, ignoring case."""
    folder = registry.cache_folder()
    if not folder.is_dir():
        return None
    matches = [entry for entry in sorted(folder.iterdir()) if entry.is_dir() and entry.name.lower() == name.lower()]
    return matches[0] if matches else None
