"""Unpack archives into a new folder, completely or not at all."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import platform
import shutil
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import too_large, unpacked_limit

_OPENERS = {b"\x1f\x8b": gzip.GzipFile, b"BZh": bz2.BZ2File, b"\xfd7zXZ\x00": lzma.LZMAFile}
_KINDS = "a zip or a tar of type gz, bz2 or xz"
_BLOCK = 1 << 20
_BROKEN = (
    *(OSError, zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError),
    # An encrypted member, an unknown compression, an invalid header (an empty name is an IndexError).
    *(RuntimeError, ValueError, LookupError, OverflowError, struct.error),
)
# An OSError without a number comes from a decompressor. One with a number comes from the file system, except these: a
# seek to an invalid position, and members whose names collide or are too long.
_BROKEN_NUMBERS = (None, errno.EINVAL, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG)


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a zip or a compressed tar into a new folder, and return the folder.

    The content of the archive tells its kind. Nothing is written outside the folder: absolute names are made relative
    to it. If anything fails, the folder is removed.

    Parameters
    ----------
    archive
        The archive.
    folder
        The folder to create. It must not exist.

    Raises
    ------
    DataError
        If the archive is broken, is a tar with links, devices or relative paths that lead out of the folder, or unpacks
        to more than 1 GB and 200 times its own size; or if it is a tar and Python is too old to unpack it safely.
    """
    folder.mkdir(parents=True)
    try:
        _extract(archive, folder)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        from_system = isinstance(error, OSError) and error.errno not in _BROKEN_NUMBERS
        if isinstance(error, DataError) or not isinstance(error, _BROKEN) or from_system:
            raise
        raise DataError(archive, f"a broken archive ({error})", "a complete archive: download it again") from error
    return folder


def _extract(archive: Path, folder: Path) -> None:
    limit = unpacked_limit(archive)
    with archive.open("rb") as file:
        head = file.read(20)
    if head.startswith(b"PK"):
        with zipfile.ZipFile(archive) as zipped:
            if sum(member.file_size for member in zipped.infolist()) > limit:
                raise too_large(archive, limit)
            zipped.extractall(folder)
        return
    magic = next((magic for magic in _OPENERS if head.startswith(magic)), None)
    if magic is None:
        raise DataError(archive, f"a file that starts with {excerpt(head)}", _KINDS)
    # Before anything is unpacked: tarfile trusts sizes in headers, and does not read the checksum at the end.
    size = 0
    with _OPENERS[magic](archive) as stream:
        while block := stream.read(_BLOCK):
            size += len(block)
            if size > limit:
                raise too_large(archive, limit)
    if not tarfile.is_tarfile(archive):
        raise DataError(archive, "a compressed file that is not a tar", _KINDS)
    if not hasattr(tarfile, "data_filter"):
        needed = "Python 3.10.12, 3.11.4 or later, which unpack tars safely"
        raise DataError(archive, f"a tar and Python {platform.python_version()}", needed)
    with tarfile.open(archive) as tar:
        for member in tar:
            # A negative size would lead back to the same header forever (CVE-2025-8194).
            if member.size < 0:
                raise DataError(archive, f"a negative size of {excerpt(member.name)}", "a size of 0 or more")
            # The holes of a sparse file could fill the disk.
            if member.issparse() or not (member.isreg() or member.isdir()):
                raise DataError(archive, f"a link or a device, {excerpt(member.name)}", "only files and folders")
            tar.extract(member, folder, filter="data")
