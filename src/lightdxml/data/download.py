"""Get data sets of the registry: download, unpack and check them."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

import requests

from lightdxml.data.errors import DataError
from lightdxml.data.fetch import DownloadError, ProgressCallback, fetch
from lightdxml.data.folder import innermost
from lightdxml.data.read import load_path
from lightdxml.data.registry import PAGE, Entry, cache_folder
from lightdxml.data.unpack import unpack

_BLOCK = 1 << 20


def get(
    entry: Entry,
    *,
    raw: bool = False,
    url: str | None = None,
    sha256: str | None = None,
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
    url
        The address of the archive, instead of the registry's.
    sha256
        The checksum that the archive must have, in hexadecimal; None if it is not known.
    force
        Download again. The old folder stays until the new one is checked.
    progress, session
        See `fetch`.

    Raises
    ------
    DownloadError
        If the download fails. The message explains a manual download.
    DataError
        If the archive is not that data set. The archive, and what was unpacked, are kept.
    """
    if sha256 is not None and not re.fullmatch("[0-9a-fA-F]{64}", sha256):
        raise ValueError(f"{sha256!r:.80} is not a SHA-256: it has 64 hexadecimal digits")
    home = cache_folder() / (f"{entry.name}-raw" if raw else entry.name)
    if not force and home.is_dir() and any(home.iterdir()):
        if sha256 is not None:
            raise DataError(home, "a data set that is unpacked already", "--force, to download and check its archive")
        return home
    source = entry.url(raw) if url is None else url
    archive, fresh = (home.with_name(f"{home.name}{suffix}") for suffix in (".zip", ".unpacked"))
    downloaded = force or url is not None or not archive.exists()
    if downloaded:
        try:
            fetch(source, archive, progress=progress, session=session)
        except DownloadError as error:
            manual = f"download it from {PAGE} and save it as {archive} or unpack it into {home}"
            raise DownloadError(f"{error}; or {manual}") from error
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        if sha256 is not None and (found := _sha256(archive)) != sha256.lower():
            raise DataError(archive, f"the SHA-256 {found}", sha256)
        content = innermost(unpack(archive, fresh))
        _check_sizes(entry, raw, content)
    except DataError as error:
        kept = f"{archive}, unpacked in {fresh}" if fresh.exists() else f"{archive}"
        expected = f"{error.expected} (the archive is kept as {kept}; --force downloads it again)"
        raise DataError(error.path, error.found, expected, line=error.line) from error
    # If the process is killed here, the archive is still there.
    if home.is_symlink():
        home.unlink()  # rmtree does not remove links
    shutil.rmtree(home, ignore_errors=True)
    content.replace(home)
    shutil.rmtree(fresh, ignore_errors=True)
    if downloaded:  # an archive from a manual download stays
        archive.unlink()
    return home


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


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
