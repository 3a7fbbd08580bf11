"""Get data sets of the registry: download, unpack and check them."""

from __future__ import annotations

import shutil
from pathlib import Path

import requests

from lightdxml.data.errors import DataError
from lightdxml.data.fetch import ProgressCallback, fetch
from lightdxml.data.folder import innermost
from lightdxml.data.load import load_path
from lightdxml.data.registry import PAGE, Entry, cache_folder
from lightdxml.data.unpack import archive_suffix, unpack


def get(
    entry: Entry,
    *,
    raw: bool = False,
    folder: Path | None = None,
    url: str | None = None,
    force: bool = False,
    progress: ProgressCallback | None = None,
    session: requests.Session | None = None,
) -> Path:
    """Return the folder of a data set; download and check it if it does not exist yet.

    Parameters
    ----------
    entry
        The data set. Its sizes must be those of the registry, except the number of features of raw text.
    raw
        Get the raw text instead of the bag of words. Its folder ends in ``-raw``.
    folder
        The parent folder, instead of `cache_folder()`.
    url
        The address of the archive, instead of the registry's.
    force
        Download again. The old folder stays until the new one is checked.
    progress, session
        See `fetch`.

    Raises
    ------
    DownloadError
        If the download fails.
    DataError
        If the archive is not that data set. It is kept with the suffix ``.suspect``.
    """
    root = cache_folder() if folder is None else folder
    home = root / (f"{entry.name}-raw" if raw else entry.name)
    if not force and home.is_dir() and any(home.iterdir()):
        return home
    source = entry.url(raw) if url is None else url
    # Addresses of Google Drive have no suffix; its archives are zips.
    archive = root / (home.name + (archive_suffix(source.partition("?")[0]) or ".zip"))
    downloaded = force or url is not None or not archive.exists()
    if downloaded:
        fetch(source, archive, progress=progress, page=PAGE, session=session)
    fresh = home.with_name(home.name + ".fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        content = innermost(unpack(archive, fresh))
        _check_sizes(entry, raw, content)
    except ValueError as error:
        raise _set_aside(error, archive, fresh, home) from error
    # The old folder is removed only after the new one is in its place.
    old = home.with_name(home.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if home.exists():
        home.replace(old)
    content.replace(home)
    for path in (fresh, old):
        shutil.rmtree(path, ignore_errors=True)
    if downloaded:  # an archive from a manual download stays
        archive.unlink()
    return home


def _check_sizes(entry: Entry, raw: bool, folder: Path) -> None:
    data = load_path(folder)
    sizes = {
        "training documents": (len(data.train), entry.n_train),
        "test documents": (0 if data.test is None else len(data.test), entry.n_test),
        "features": (data.n_features, data.n_features if raw else entry.n_features),
        "labels": (data.n_labels, entry.n_labels),
    }
    wrong = {what: pair for what, pair in sizes.items() if pair[0] != pair[1]}
    if wrong:
        found, wanted = (", ".join(f"{pair[i]} {what}" for what, pair in wrong.items()) for i in (0, 1))
        raise DataError(folder, found, f"{wanted} in {entry.name}")


def _set_aside(error: ValueError, archive: Path, fresh: Path, home: Path) -> DataError:
    """Rename archive and folder, so that nothing is lost and nobody uses them; return the error with the new paths."""
    fault = error if isinstance(error, DataError) else DataError(fresh, str(error), home.name)
    path, names = fault.path, []
    for old, name in ((archive, archive.name), (fresh, home.name)):
        if old.exists():
            new = home.with_name(f"{name}.suspect")
            shutil.rmtree(new, ignore_errors=True)
            old.replace(new)
            names.append(new.name)
            path = new / path.relative_to(old) if path.is_relative_to(old) else path
    expected = f"{fault.expected}; the download is kept as {' and '.join(names)} in {home.parent}"
    return DataError(path, fault.found, expected, line=fault.line)
