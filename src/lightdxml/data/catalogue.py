"""Data sets by name: those that are built here, those in the cache folder, those of the registry."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from pathlib import Path

from lightdxml.data import debian_relations, registry, see_also
from lightdxml.data.dataset import Dataset
from lightdxml.data.errors import DataError
from lightdxml.data.load import ReadOptions, load_path

BUILDERS: dict[str, Callable[[], Dataset]] = {
    "see-also": see_also.build,
    "debian-relations": debian_relations.build,
}


def load(source: str | Path, *, label_separator: str = "|", encoding: str = "utf-8", split: int = 0) -> Dataset:
    r"""Read a data set from a file, a folder, or by name.

    What a file is, is seen from its content: XC text with or without a header, the split form with one matrix a
    file, the old form with split files, SciPy's npz, JSON Lines, XC raw-text JSON, CSV and TSV; plain, `.gz` or `.zst`.

    Parameters
    ----------
    source
        A path, or a name: `see-also` and `debian-relations` are built on this machine; others are looked for in the
        cache folder, into which `lightdxml data get NAME` puts them. A single file is all `train`.
    label_separator
        What stands between the labels in a cell of a CSV or TSV.
    encoding
        The encoding of text files.
    split
        Which column of the old form's split files to use, from 0.

    Raises
    ------
    DataError
        With the file, the line, what was found and what was expected.

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
    options = ReadOptions(label_separator, encoding, split)
    if not str(source):
        raise DataError("''", "an empty name", "a path or the name of a data set")
    path = Path(os.path.expanduser(source))  # noqa: PTH111 - unlike Path.expanduser it never raises
    if path.exists():
        return load_path(path, options)
    name = str(source)
    if isinstance(source, Path) or path.parent != Path() or path.suffix in (".gz", ".zst", ".txt", ".csv", ".jsonl"):
        raise DataError(source, "nothing there", "a file, a folder or the name of a data set")
    cached = find_cached(name)
    if cached is not None:
        return load_path(cached, options)
    if name.lower() in BUILDERS:
        return BUILDERS[name.lower()]()
    raise _not_here(name)


def find_cached(name: str) -> Path | None:
    """Return the folder of this name in the cache folder, upper and lower case being the same."""
    folder = registry.cache_folder()
    if not folder.is_dir():
        return None
    matches = [entry for entry in sorted(folder.iterdir()) if entry.is_dir() and entry.name.lower() == name.lower()]
    return matches[0] if matches else None


def _not_here(name: str) -> DataError:
    known = {entry.name.lower(): entry.name for entry in registry.entries()}
    if name.lower() in known:
        proper = known[name.lower()]
        return DataError(
            name, "a known data set that is not here yet", f"it to be fetched: lightdxml data get {proper}"
        )
    near = difflib.get_close_matches(name.lower(), [*known, *BUILDERS], n=3, cutoff=0.5)
    hint = f"perhaps {' or '.join(known.get(key, key) for key in near)}" if near else "a path or a known name"
    return DataError(name, "neither a file nor a data set of this name", f"{hint} (lightdxml data list shows all)")
