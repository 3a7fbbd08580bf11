"""Archives: unpacked into a folder of their own, wholly or not at all."""

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

HEAD = tarfile.BLOCKSIZE  # as many bytes as it takes to tell an archive

_CHUNK = 1 << 16
_WHOLE = "a whole archive: fetch it again"
_SUFFIXES = (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tbz2", ".txz", ".tar", ".zip", ".gz", ".bz2", ".xz")
_FAULTS = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError),
    # An encrypted member, an unknown compression, nonsense in a header (an empty name is an IndexError).
    *(RuntimeError, ValueError, LookupError, OverflowError, struct.error),
)
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_COMPRESSED: dict[bytes, Callable[[Path], object]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a zip, a tar (plain or compressed) or a single compressed file into a new folder.

    The kind is told by the content. Nothing is written outside the folder, and the folder appears only when
    everything is in it.

    Parameters
    ----------
    archive
        The file to unpack.
    folder
        The folder to make; one that is there must be empty.

    Returns
    -------
    Path
        `folder`.

    Raises
    ------
    DataError
        The archive is broken, or has members that no data set needs: links, devices, paths that lead out of
        the folder, more than 1 GB (and 200 times its own size) of content.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with zipfile.ZipFile(Path(place, "data.zip"), "w") as file:
    ...         file.writestr("train.txt", "1 2 3")
    ...     folder = unpack(Path(place, "data.zip"), Path(place, "data"))
    ...     (folder / "train.txt").read_text()
    '1 2 3'
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(folder, "something there already", "a new or an empty folder to unpack into")
    staging = folder.with_name(folder.name + ".unpacking")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        with _broken_archives(archive):
            _extract(archive, staging)
        if folder.exists():
            folder.rmdir()
        staging.replace(folder)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return folder


def check(archive: Path, *, thorough: bool) -> None:
    """Raise a DataError unless an archive is all there.

    Parameters
    ----------
    archive
        The file to check.
    thorough
        Whether to compare the checksums of a zip's members too; those of the other kinds always are.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = Path(place, "cut.gz").write_bytes(gzip.compress(b"1 2 3")[:-1])
    ...     try:
    ...         check(Path(place, "cut.gz"), thorough=False)
    ...     except DataError as error:
    ...         print(error.found)
    a broken archive (Compressed file ended before the end-of-stream marker was reached)
    """
    with _broken_archives(archive):
        if not _head(archive).startswith(_ZIP):
            for _ in _members(archive):
                pass
            return
        with zipfile.ZipFile(archive) as file:  # opens only if it is all there: its directory is its end
            if thorough and (name := file.testzip()) is not None:
                raise zipfile.BadZipFile(f"{excerpt(name)} does not have its checksum")


def gunzip(source: Path, target: Path) -> None:
    """Decompress one file into another; raise a DataError if it is broken or made to fill the disk.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = Path(place, "a.gz").write_bytes(gzip.compress(b"1 2 3"))
    ...     gunzip(Path(place, "a.gz"), Path(place, "a"))
    ...     Path(place, "a").read_text()
    '1 2 3'
    """
    with _broken_archives(source), gzip.open(source) as stream, target.open("wb") as sink:
        shutil.copyfileobj(_Reader(cast("IO[bytes]", stream), source), sink)


def is_archive(head: bytes) -> bool:
    """Say by a file's first `HEAD` bytes whether it is an archive.

    Examples
    --------
    >>> is_archive(gzip.compress(b"text")), is_archive(b"text")
    (True, False)
    """
    return head.startswith((*_ZIP, *_COMPRESSED)) or _is_tar(head)


def archive_suffix(name: str) -> str:
    """Return the end of a name by which it is an archive's, or nothing.

    `Path.suffix` would take the end of "EURLex-4.3K" for one, and half of ".tar.gz".

    Examples
    --------
    >>> archive_suffix("Data.tar.gz"), archive_suffix("EURLex-4.3K")
    ('.tar.gz', '')
    """
    return next((suffix for suffix in _SUFFIXES if name.lower().endswith(suffix)), "")


def stem(name: str) -> str:
    """Return a name without its archive suffix.

    Examples
    --------
    >>> stem("EURLex-4.3K.zip"), stem("EURLex-4.3K")
    ('EURLex-4.3K', 'EURLex-4.3K')
    """
    return name[: len(name) - len(archive_suffix(name))]


@contextmanager
def _broken_archives(archive: Path) -> Iterator[None]:
    """Turn what the archive modules raise for broken archives into a DataError."""
    try:
        yield
    except DataError:
        raise
    except OSError as error:
        # The decompressors raise bare OSErrors; one with a number is the file system's own (EINVAL: a seek
        # to where a broken directory points).
        if error.errno not in (None, errno.EINVAL):
            raise
        raise DataError(archive, f"a broken archive ({error})", _WHOLE) from error
    except _FAULTS as error:
        raise DataError(archive, f"a broken archive ({error})", _WHOLE) from error


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD)


def _is_tar(head: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(head[:HEAD], "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


def _require_room(archive: Path, size: int) -> None:
    """Refuse archives made to fill the disk."""
    if size > (limit := unpacked_limit(archive)):
        found = f"more than {limit} bytes when unpacked"
        raise DataError(archive, found, "an archive that does not fill the disk")


class _Reader:
    """The stream inside an archive, its length limited, its end watched for."""

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
        _require_room(self._archive, self.position)
        return data

    def drain(self) -> None:
        while self.read():
            pass


@dataclass(frozen=True)
class _Member:
    name: str
    size: int  # as declared; 0 where nothing is
    content: IO[bytes] | _Reader | None  # None for a folder
    plain: bool = True  # neither a link nor a device


def _extract(archive: Path, folder: Path) -> None:
    declared = 0
    with closing(_members(archive)) as members:
        for member in members:
            if not member.plain:
                found = f"a link or a device, {excerpt(member.name)}"
                raise DataError(archive, found, "an archive of files and folders only")
            # No content exceeds its declared size; the holes of sparse files show nowhere else.
            declared += member.size
            _require_room(archive, declared)
            _write_member(archive, folder, member)


def _write_member(archive: Path, folder: Path, member: _Member) -> None:
    path = _inside(archive, folder, member.name)
    try:
        if member.content is None:
            path.mkdir(parents=True, exist_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as sink:
            shutil.copyfileobj(member.content, sink)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise DataError(archive, f"two members named {excerpt(member.name)}", "every name once") from error


def _inside(archive: Path, folder: Path, name: str) -> Path:
    """Return where a member belongs; refuse names that lead out of the folder on any system."""
    plain = name.replace("\\", "/")
    parts = PurePosixPath(plain).parts
    # Windows drops the dots and spaces at a name's end, so that ".. " is a way up there.
    upwards = any(not part.strip(". ") for part in parts)
    if plain.startswith("/") or re.match("[A-Za-z]:", plain) or "\0" in plain or upwards:
        raise DataError(archive, f"a member {excerpt(name)}", "only names that stay inside the folder")
    return folder.joinpath(*parts)


def _members(archive: Path) -> Generator[_Member]:
    """Yield the members of a zip, of a tar, or the one file of which the archive is the compressed form."""
    head = _head(archive)
    if not is_archive(head):
        found = f"a file that begins with {excerpt(head, 20)}"
        raise DataError(archive, found, "a zip, tar, gz, bz2 or xz archive")
    if head.startswith(_ZIP):
        yield from _zip_members(archive)
        return
    with _decompressed(archive) as stream:
        tar = _is_tar(stream.read(HEAD))
    with _decompressed(archive) as stream:
        reader = _Reader(stream, archive)
        if tar:
            yield from _tar_members(archive, reader)
        else:
            yield _Member(stem(archive.name), 0, reader)
            reader.drain()  # its checksum stands at its end


def _zip_members(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as file:
        _require_room(archive, sum(info.file_size for info in file.infolist()))
        for info in file.infolist():
            plain = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG, stat.S_IFDIR)
            if info.is_dir():
                yield _Member(info.filename, 0, None, plain)
                continue
            with file.open(info) as stream:
                yield _Member(info.filename, info.file_size, stream, plain)


def _decompressed(archive: Path) -> IO[bytes]:
    head = _head(archive)
    openers = (opener for magic, opener in _COMPRESSED.items() if head.startswith(magic))
    return cast("IO[bytes]", next(openers, lambda path: path.open("rb"))(archive))


def _tar_members(archive: Path, reader: _Reader) -> Iterator[_Member]:
    with tarfile.open(fileobj=cast("IO[bytes]", reader), mode="r|") as file:
        for info in file:
            content = file.extractfile(info) if info.isfile() else None
            yield _Member(info.name, info.size, content, plain=info.isfile() or info.isdir())
        end = file.offset
    reader.drain()
    # tarfile takes a header that it cannot read for the end: the end is where only zeros follow.
    if reader.last_nonzero > end or reader.position < end + tarfile.BLOCKSIZE:
        raise DataError(archive, "a broken archive (its end is missing)", _WHOLE)
