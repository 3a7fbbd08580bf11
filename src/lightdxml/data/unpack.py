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
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import unpacked_limit

HEAD = tarfile.BLOCKSIZE  # the number of bytes that identify an archive

_CHUNK = 1 << 16
_SUFFIXES = (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tbz2", ".txz", ".tar", ".zip", ".gz", ".bz2", ".xz")
_ERRORS = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError),
    # An encrypted member, an unknown compression, an invalid header (an empty name is an IndexError).
    *(RuntimeError, ValueError, LookupError, OverflowError, struct.error),
)
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_COMPRESSED: dict[bytes, Callable[[Path], object]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a zip, a tar (plain or compressed) or a single compressed file into a new folder, and return it.

    The content of the archive tells its kind. Nothing is written outside the folder, and the folder appears only when
    it is complete.

    Parameters
    ----------
    archive
        The archive.
    folder
        The folder to create; an existing folder must be empty.

    Raises
    ------
    DataError
        If the archive is broken, contains links, devices or paths that lead out of the folder, or unpacks to more
        than 1 GB and 200 times its own size.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(folder, "an existing file or folder", "a new or empty folder to unpack into")
    staging = folder.with_name(folder.name + ".unpacking")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        with _as_data_errors(archive):
            _extract(archive, staging)
        if folder.exists():
            folder.rmdir()
        staging.replace(folder)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return folder


def check(archive: Path, *, thorough: bool) -> None:
    """Raise a `DataError` if an archive is incomplete or damaged.

    Checksums of compressed tars and single files are always compared, those of zip members only if `thorough`.
    """
    with _as_data_errors(archive):
        if not _head(archive).startswith(_ZIP):
            for _ in _members(archive):
                pass
            return
        with zipfile.ZipFile(archive) as file:  # requires the directory, which is the end of the file
            if thorough and (name := file.testzip()) is not None:
                raise zipfile.BadZipFile(f"wrong checksum of {excerpt(name)}")


def is_archive(head: bytes) -> bool:
    """Return whether a file is an archive, from its first `HEAD` bytes."""
    return head.startswith((*_ZIP, *_COMPRESSED)) or _is_tar(head)


def archive_suffix(name: str) -> str:
    """Return the archive suffix of a name, or an empty string. `Path.suffix` fails for dots within names.

    >>> archive_suffix("Data.tar.gz"), archive_suffix("EURLex-4.3K")
    ('.tar.gz', '')
    """
    return next((suffix for suffix in _SUFFIXES if name.lower().endswith(suffix)), "")


def stem(name: str) -> str:
    """Return a name without its archive suffix."""
    return name[: len(name) - len(archive_suffix(name))]


@contextmanager
def _as_data_errors(archive: Path) -> Iterator[None]:
    """Raise errors of broken archives as `DataError`."""
    try:
        yield
    except DataError:
        raise
    except (OSError, *_ERRORS) as error:
        # Decompressors raise an OSError without a number; one with a number comes from the file system, except
        # EINVAL: a seek to an invalid position in a broken archive.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise _broken(archive, str(error)) from error


def _broken(archive: Path, reason: str) -> DataError:
    return DataError(archive, f"a broken archive ({reason})", "a complete archive: download it again")


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD)


def _is_tar(head: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(head[:HEAD], "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


def _check_size(archive: Path, size: int) -> None:
    """Raise a `DataError` for archives that would fill the disk."""
    if size > (limit := unpacked_limit(archive)):
        raise DataError(archive, f"more than {limit:,} bytes when unpacked", "an archive that does not fill the disk")


class _Reader:
    """A decompressed stream with a size limit that records where its last nonzero byte is."""

    def __init__(self, stream: IO[bytes], archive: Path) -> None:
        self._stream = stream
        self._archive = archive
        self.position = 0
        self.last_nonzero = 0

    def read(self, size: int = _CHUNK) -> bytes:
        data = self._stream.read(size)
        if stripped := len(data.rstrip(b"\0")):
            self.last_nonzero = self.position + stripped
        self.position += len(data)
        _check_size(self._archive, self.position)
        return data

    def drain(self) -> None:
        while self.read():
            pass


@dataclass(frozen=True)
class _Member:
    name: str
    size: int  # as declared; 0 if it is unknown
    content: IO[bytes] | _Reader | None  # None for a folder
    regular: bool = True  # a file or a folder


def _extract(archive: Path, folder: Path) -> None:
    declared = 0
    with closing(_members(archive)) as members:
        for member in members:
            if not member.regular:
                found = f"a link or a device, {excerpt(member.name)}"
                raise DataError(archive, found, "an archive of files and folders only")
            # The content never exceeds the declared size, but holes in sparse files show only there.
            declared += member.size
            _check_size(archive, declared)
            _write_member(archive, folder, member)


def _write_member(archive: Path, folder: Path, member: _Member) -> None:
    path = _path_inside(archive, folder, member.name)
    try:
        if member.content is None:
            path.mkdir(parents=True, exist_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as sink:
            shutil.copyfileobj(member.content, sink)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise DataError(archive, f"two members named {excerpt(member.name)}", "unique names") from error


def _path_inside(archive: Path, folder: Path, name: str) -> Path:
    """Return the path of a member; reject names that lead out of the folder on any operating system."""
    plain = name.replace("\\", "/")
    parts = PurePosixPath(plain).parts
    # Windows strips dots and spaces from the end of a name, so ".. " is the parent folder.
    upwards = any(not part.strip(". ") for part in parts)
    if plain.startswith("/") or re.match("[A-Za-z]:", plain) or "\0" in plain or upwards:
        raise DataError(archive, f"a member named {excerpt(name)}", "only names that stay inside the folder")
    return folder.joinpath(*parts)


def _members(archive: Path) -> Generator[_Member]:
    """Yield the members of a zip or a tar, or the one file of a compressed file."""
    head = _head(archive)
    if not is_archive(head):
        found = f"a file that starts with {excerpt(head, 20)}"
        raise DataError(archive, found, "a zip, tar, gz, bz2 or xz archive")
    if head.startswith(_ZIP):
        yield from _zip_members(archive)
        return
    with _decompressed(archive, head) as stream:
        is_tar = _is_tar(stream.read(HEAD))
    with _decompressed(archive, head) as stream:
        reader = _Reader(stream, archive)
        if is_tar:
            yield from _tar_members(archive, reader)
        else:
            yield _Member(stem(archive.name), 0, reader)
            reader.drain()  # the checksum is at the end


def _decompressed(archive: Path, head: bytes) -> IO[bytes]:
    openers = (opener for magic, opener in _COMPRESSED.items() if head.startswith(magic))
    return cast("IO[bytes]", next(openers, lambda path: path.open("rb"))(archive))


def _zip_members(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as file:
        _check_size(archive, sum(info.file_size for info in file.infolist()))
        for info in file.infolist():
            regular = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG, stat.S_IFDIR)
            if info.is_dir():
                yield _Member(info.filename, 0, None, regular)
                continue
            with file.open(info) as stream:
                yield _Member(info.filename, info.file_size, stream, regular)


def _tar_members(archive: Path, reader: _Reader) -> Iterator[_Member]:
    with tarfile.open(fileobj=cast("IO[bytes]", reader), mode="r|") as file:
        for info in file:
            content = file.extractfile(info) if info.isfile() else None
            yield _Member(info.name, info.size, content, regular=info.isfile() or info.isdir())
        end = file.offset
    reader.drain()
    # tarfile takes an unreadable header for the end; at the real end only zeros follow.
    if reader.last_nonzero > end or reader.position < end + tarfile.BLOCKSIZE:
        raise _broken(archive, "its end is missing")
