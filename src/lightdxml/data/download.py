"""The registry's data sets: fetched, unpacked, checked and put in their place."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from lightdxml.data.errors import DataError
from lightdxml.data.fetch import Progress, fetch
from lightdxml.data.folder import innermost
from lightdxml.data.registry import Entry, cache_folder, find
from lightdxml.data.unpack import archive_suffix, unpack


def get(
    name: str,
    *,
    raw: bool = False,
    folder: Path | None = None,
    url: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
    verify: Callable[[Path], tuple[int, int, int, int]] | None = None,
) -> Path:
    """Return the folder of a data set of the registry, fetched and checked if it is not there yet.

    Parameters
    ----------
    name
        The set's name, upper or lower case.
    raw
        The raw text instead of the bag of words; it is kept in a folder of its own, with ``-raw`` at its end.
    folder
        Where the sets' folders stand, instead of `cache_folder()`.
    url
        Where to fetch the archive from, instead of the registry's address.
    force
        Fetch anew even what is there; the old folder stays until the new one is checked.
    progress
        See `fetch`.
    verify
        Given the unpacked folder, returns its numbers of training and test documents, features and labels, to
        be compared with the registry's (the features not for raw text); None to go without.

    Returns
    -------
    Path
        The folder that holds the set's files.

    Raises
    ------
    DownloadError
        The archive cannot be had.
    DataError
        There is no such set, or what was fetched is not it: then it is kept under a name that ends in
        ``.suspect``.

    Examples
    --------
    >>> import tempfile, zipfile
    >>> with tempfile.TemporaryDirectory() as place:  # an archive fetched by hand is taken as it is
    ...     with zipfile.ZipFile(Path(place, "Bibtex.zip"), "w") as file:
    ...         file.writestr("Bibtex_data.txt", "")
    ...     found = get("bibtex", folder=Path(place))
    ...     found.name, [path.name for path in found.iterdir()]
    ('Bibtex', ['Bibtex_data.txt'])
    """
    entry = find(name)
    root = cache_folder() if folder is None else folder
    home = root / (f"{entry.name}-raw" if raw else entry.name)
    if not force and home.is_dir() and any(home.iterdir()):
        return home
    source = entry.url(raw) if url is None else url
    # Drive's addresses have no suffix, and its archives are zips.
    archive = root / (home.name + (archive_suffix(source.partition("?")[0]) or ".zip"))
    fetched = force or url is not None or not archive.exists()
    if fetched:
        fetch(source, archive, progress=progress, page=entry.page)
    fresh = home.with_name(home.name + ".fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        content = innermost(unpack(archive, fresh))
        if verify is not None:
            _compare(entry, raw, content, verify(content))
    except ValueError as error:
        raise _suspect(error, archive, fresh, home) from error
    _put_in_place(content, home)
    shutil.rmtree(fresh, ignore_errors=True)
    if fetched:  # an archive that somebody put there stays theirs
        archive.unlink()
    return home


def _compare(entry: Entry, raw: bool, folder: Path, found: tuple[int, int, int, int]) -> None:
    names = ("training documents", "test documents", "features", "labels")
    wanted = (entry.n_train, entry.n_test, entry.n_features, entry.n_labels)
    wrong = [
        (f"{have} {what}", f"{want} {what}")
        for what, have, want in zip(names, found, wanted, strict=True)
        if have != want and not (raw and what == "features")
    ]
    if wrong:
        have, want = (", ".join(side) for side in zip(*wrong, strict=True))
        raise DataError(folder, have, f"{want} in {entry.name}")


def _suspect(error: ValueError, archive: Path, fresh: Path, home: Path) -> DataError:
    """Put what is not the set aside, so that nothing is lost and nobody takes it for the set."""
    fault = error if isinstance(error, DataError) else DataError(fresh, str(error), home.name)
    moved = {archive: _set_aside(archive, archive.name)}
    if fresh.exists():
        moved[fresh] = _set_aside(fresh, home.name)
    path = fault.path
    for old, new in moved.items():
        path = new / path.relative_to(old) if path.is_relative_to(old) else path
    names = " and ".join(aside.name for aside in moved.values())
    kept = f"what was fetched is kept as {names} in {home.parent}"
    return DataError(path, fault.found, f"{fault.expected}; {kept}", line=fault.line)


def _set_aside(path: Path, name: str) -> Path:
    """Rename a file or folder to a free name ending in .suspect, and return that."""
    number, aside = 1, path.with_name(f"{name}.suspect")
    while aside.exists():
        number += 1
        aside = path.with_name(f"{name}.{number}.suspect")
    return path.replace(aside)


def _put_in_place(content: Path, home: Path) -> None:
    """Rename a folder to its place; an older one there goes only after that."""
    old = home.with_name(home.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if home.exists():
        home.replace(old)
    content.replace(home)
    shutil.rmtree(old, ignore_errors=True)
