"""Get data sets of the registry: download, unpack and check them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from lightdxml.data.errors import DataError
from lightdxml.data.fetch import ProgressCallback, fetch
from lightdxml.data.folder import innermost
from lightdxml.data.registry import PAGE, Entry, cache_folder, find
from lightdxml.data.unpack import archive_suffix, unpack

Sizes = tuple[int, int, int, int]


def get(
    name: str,
    *,
    raw: bool = False,
    folder: Path | None = None,
    url: str | None = None,
    force: bool = False,
    progress: ProgressCallback | None = None,
    verify: Callable[[Path], Sizes] | None = None,
) -> Path:
    """Return the folder of a data set of the registry; download and check it if it does not exist yet.

    Parameters
    ----------
    name
        The name of the data set; case is ignored.
    raw
        Get the raw text instead of the bag of words. Its folder ends in ``-raw``.
    folder
        The parent folder, instead of `cache_folder()`.
    url
        The address of the archive, instead of the registry's.
    force
        Download again. The old folder stays until the new one is checked.
    progress
        See `fetch`.
    verify
        A function of the unpacked folder that returns the numbers of training documents, test documents, features and
        labels. They must be those of the registry, except the number of features of raw text.

    Raises
    ------
    DownloadError
        If the download fails.
    DataError
        If there is no such data set, or if the archive is not that data set. It is kept with the suffix ``.suspect``.
    """
    entry = find(name)
    root = cache_folder() if folder is None else folder
    home = root / (f"{entry.name}-raw" if raw else entry.name)
    if not force and home.is_dir() and any(home.iterdir()):
        return home
    source = entry.url(raw) if url is None else url
    # Addresses of Google Drive have no suffix; its archives are zips.
    archive = root / (home.name + (archive_suffix(source.partition("?")[0]) or ".zip"))
    downloaded = force or url is not None or not archive.exists()
    if downloaded:
        fetch(source, archive, progress=progress, page=PAGE)
    unpacked = home.with_name(home.name + ".fresh")
    shutil.rmtree(unpacked, ignore_errors=True)
    try:
        content = innermost(unpack(archive, unpacked))
        if verify is not None:
            _check_sizes(entry, raw, content, verify(content))
    except ValueError as error:
        raise _set_aside(error, archive, unpacked, home) from error
    _replace_folder(content, home)
    shutil.rmtree(unpacked, ignore_errors=True)
    if downloaded:  # an archive from a manual download stays
        archive.unlink()
    return home


def _check_sizes(entry: Entry, raw: bool, folder: Path, found: Sizes) -> None:
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


def _set_aside(error: ValueError, archive: Path, unpacked: Path, home: Path) -> DataError:
    """Rename archive and folder, so that nothing is lost and nobody uses them; return the error with the new paths."""
    fault = error if isinstance(error, DataError) else DataError(unpacked, str(error), home.name)
    path, names = fault.path, []
    for old, name in ((archive, archive.name), (unpacked, home.name)):
        if old.exists():
            new = home.with_name(f"{name}.suspect")
            shutil.rmtree(new, ignore_errors=True)
            old.replace(new)
            names.append(new.name)
            path = new / path.relative_to(old) if path.is_relative_to(old) else path
    expected = f"{fault.expected}; the download is kept as {' and '.join(names)} in {home.parent}"
    return DataError(path, fault.found, expected, line=fault.line)


def _replace_folder(content: Path, home: Path) -> None:
    """Rename a folder to `home`; an older folder is removed only afterwards."""
    old = home.with_name(home.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if home.exists():
        home.replace(old)
    content.replace(home)
    shutil.rmtree(old, ignore_errors=True)
