"""Unpack archives into a new folder, completely or not at all."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import re
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import unpacked_limit

_SUFFIXES = (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tbz2", ".txz", ".zip", ".gz", ".bz2", ".xz")
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_COMPRESSED: dict[bytes, Callable[[Path], object]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_ERRORS = (
    *(OSError, zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError),
    # An encrypted member, an unknown compression, an invalid header (an empty name is an IndexError).
    *(RuntimeError, ValueError, LookupError, OverflowError, struct.error),
)
# Name, content (None for a folder), and whether it is a regular file or a folder.
_Member = tuple[str, "IO[bytes] | None", bool]


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a zip, a compressed tar or a single compressed file into a new folder, and return the folder.

    The content of the archive tells its kind. Nothing is written outside the folder. If anything fails, the folder is
    removed.

    Parameters
    ----------
    archive
        The archive.
    folder
        The folder to create. It must not exist.

    Raises
    ------
    DataError
        If the archive is broken, contains links, devices or paths that lead out of the folder, or unpacks to more
        than 1 GB and 200 times its own size.
    """
    folder.mkdir(parents=True)
    try:
        for name, content, regular in _members(archive):
            if not regular:
                raise DataError(archive, f"a link or a device, {excerpt(name)}", "an archive of files and folders only")
            _write(archive, _path_inside(archive, folder, name), content)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        # Decompressors raise an OSError without a number; one with a number comes from the file system, except
        # EINVAL: a seek to an invalid position in a broken archive.
        from_system = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
        if isinstance(error, DataError) or not isinstance(error, _ERRORS) or from_system:
            raise
        raise DataError(archive, f"a broken archive ({error})", "a complete archive: download it again") from error
    return folder


def archive_suffix(name: str) -> str:
    """Return the archive suffix of a name, or an empty string. `Path.suffix` fails for dots within names.

    >>> archive_suffix("Data.tar.gz"), archive_suffix("EURLex-4.3K")
    ('.tar.gz', '')
    """
    return next((suffix for suffix in _SUFFIXES if name.lower().endswith(suffix)), "")


def stem(name: str) -> str:
    """Return a name without its archive suffix."""
    return name[: len(name) - len(archive_suffix(name))]


def _write(archive: Path, path: Path, content: IO[bytes] | None) -> None:
    try:
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as sink:
            shutil.copyfileobj(content, sink)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise DataError(archive, f"two members named {excerpt(path.name)}", "unique names") from error


def _path_inside(archive: Path, folder: Path, name: str) -> Path:
    """Return the path of a member; reject names that lead out of the folder on any operating system."""
    plain = name.replace("\\", "/")
    parts = PurePosixPath(plain).parts
    # Windows strips dots and spaces from the end of a name, so ".. " is the parent folder.
    upwards = any(not part.strip(". ") for part in parts)
    if plain.startswith("/") or re.match("[A-Za-z]:", plain) or "\0" in plain or upwards:
        raise DataError(archive, f"a member named {excerpt(name)}", "only names that stay inside the folder")
    return folder.joinpath(*parts)


def _members(archive: Path) -> Iterator[_Member]:
    """Yield the members of a zip or a tar, or the one file of a compressed file."""
    with archive.open("rb") as file:
        head = file.read(20)
    opener = next((opener for magic, opener in _COMPRESSED.items() if head.startswith(magic)), None)
    if head.startswith(_ZIP):
        yield from _zip_members(archive)
    elif opener is None:
        raise DataError(archive, f"a file that starts with {excerpt(head)}", "a zip, gz, bz2 or xz archive")
    else:
        with cast("IO[bytes]", opener(archive)) as stream:
            is_tar = _is_tar(stream.read(tarfile.BLOCKSIZE))
        with cast("IO[bytes]", opener(archive)) as stream:
            content = cast("IO[bytes]", _Limited(stream, archive))
            yield from _tar_members(content) if is_tar else [(stem(archive.name), content, True)]
            while content.read(1 << 16):  # the checksum is at the end
                pass


def _is_tar(head: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


def _zip_members(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as file:
        _check_size(archive, sum(info.file_size for info in file.infolist()))
        for info in file.infolist():
            regular = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG, stat.S_IFDIR)
            if info.is_dir():
                yield info.filename, None, regular
            else:
                with file.open(info) as content:
                    yield info.filename, content, regular


def _tar_members(stream: IO[bytes]) -> Iterator[_Member]:
    with tarfile.open(fileobj=stream, mode="r|") as file:
        for info in file:
            # The holes of a sparse file could fill the disk.
            is_file = info.isreg() and not info.issparse()
            yield info.name, file.extractfile(info) if is_file else None, is_file or info.isdir()


class _Limited:
    """A decompressed stream with a size limit."""

    def __init__(self, stream: IO[bytes], archive: Path) -> None:
        self._stream = stream
        self._archive = archive
        self._position = 0

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._position += len(data)
        _check_size(self._archive, self._position)
        return data


def _check_size(archive: Path, size: int) -> None:
    """Raise a `DataError` for archives that would fill the disk."""
    if size > (limit := unpacked_limit(archive)):
        raise DataError(archive, f"more than {limit:,} bytes when unpacked", "an archive that does not fill the disk")
