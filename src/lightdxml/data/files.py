"""Read and write files, plain or compressed with gzip or Zstandard. Writes are atomic."""

from __future__ import annotations

import gzip
import io
import math
import os
import secrets
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.errors import DataError, excerpt

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
UTF8_BOM = b"\xef\xbb\xbf"
LONGEST_LINE = 1 << 28
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_BLOCK_BYTES = 1 << 23
# Real text does not compress by a factor of 200: an archive that claims more is a decompression bomb.
_FREE_BYTES = 1 << 30
_RATIO = 200
# Memory that the content of a compressed file may take: some bytes per byte of the file, more than real text needs.
_FREE_MEMORY, _MEMORY_RATIO = 1 << 29, 60
# Memory that reading takes per byte of content, on eurlex57k, and for buffers and compiled code.
_READING_FACTOR, _READING_BUFFERS = 1.5, 60_000_000
# How far text is compressed if the file does not say.
_USUAL_RATIO = 6
# Blank lines at the start of a file.
_MAX_BLANK = 1_000_000
# What a line takes in addition to twice its bytes: as entries of arrays, or as Python objects.
_ROW_BYTES, _OBJECT_BYTES = 16, 150


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """Open a file and decompress it if its first bytes are those of gzip or Zstandard.

    File errors inside the `with` block are raised as `DataError`.
    """
    with as_data_errors(path):
        # Checked before opening: opening a pipe blocks until it has a writer.
        if not path.is_dir() and not path.is_file() and path.exists():
            raise DataError(path, "a pipe or a device", "a file: save the data to one first")
        with path.open("rb") as raw, decompressed(raw) as stream:
            yield stream


@contextmanager
def as_data_errors(path: Path) -> Iterator[None]:
    """Raise file and decompression errors inside the `with` block as `DataError`."""
    try:
        yield
    except EOFError as error:
        raise DataError(path, "truncated compressed data", "a complete file: download or copy it again") from error
    except (gzip.BadGzipFile, zlib.error, zstd.ZstdError) as error:
        found = f"corrupt compressed data ({error})"
        raise DataError(path, found, "an intact file: download or copy it again") from error
    except FileNotFoundError as error:
        raise DataError(path, "no such file", "an existing file") from error
    except PermissionError as error:
        raise DataError(path, "no permission to read it", "a file that you may read") from error
    except IsADirectoryError as error:
        raise DataError(path, "a folder", "a file") from error


@contextmanager
def decompressed(raw: io.BufferedReader) -> Iterator[BinaryIO]:
    """Yield the decompressed content of a stream; its first bytes identify the compression."""
    magic = raw.peek(4)[:4]
    if magic.startswith(GZIP_MAGIC):
        with gzip.open(raw) as stream:
            yield cast("BinaryIO", stream)
    elif magic == ZSTD_MAGIC:
        with zstd.open(raw) as stream:
            yield cast("BinaryIO", stream)
    else:
        yield raw


def first_line(path: Path, limit: int = 1 << 26) -> bytes:
    """Return the first line that is not blank, without a byte-order mark; empty if there is none."""
    with reading(path) as stream:
        line = stream.readline(limit)
        check_encoding(path, line)
        line = line.removeprefix(UTF8_BOM)
        blank = 0
        while line and not line.strip():
            line = stream.readline(limit)
            blank += 1
            # A compressed file of a few megabytes can hold billions of them.
            if blank > _MAX_BLANK:
                raise DataError(path, f"{blank:,} blank lines at its start", "data")
    return line


def check_encoding(path: Path, start: bytes) -> None:
    """Raise a `DataError` if the first bytes of a file are those of UTF-16 text."""
    if start.startswith(_UTF16_BOMS):
        raise DataError(path, "UTF-16 text", "UTF-8: convert the file (in Excel, save as CSV UTF-8)", line=1)


def unpacked_limit(path: Path) -> int:
    """Return the largest number of bytes that an archive of this size may unpack to."""
    return max(_FREE_BYTES, _RATIO * path.stat().st_size)


def reading_bytes(*paths: Path) -> int:
    """Return about how much memory it takes to read files of documents, by their sizes."""
    return round(_READING_FACTOR * sum(map(_unpacked_size, paths))) + _READING_BUFFERS


def _unpacked_size(path: Path) -> int:
    """Return the size of the content of a file, as its header or its end states it, unless that is absurd."""
    size = path.stat().st_size
    most = _MEMORY_RATIO * size
    with path.open("rb") as stream:
        head = stream.read(64)
        if head.startswith(GZIP_MAGIC) and size > 4:
            stream.seek(-4, os.SEEK_END)
            # Modulo 4 GB: a larger file states too little.
            return min(most, max(size, int.from_bytes(stream.read(4), "little")))
    if head.startswith(ZSTD_MAGIC):
        with suppress(zstd.ZstdError):
            return min(most, zstd.get_frame_info(head).decompressed_size or _USUAL_RATIO * size)
    return size


def memory_budget(size: int) -> int:
    """Return how much memory the content of a compressed file of so many bytes may take."""
    return max(_FREE_MEMORY, _MEMORY_RATIO * size)


class MemoryBudget:
    """The memory that the lines of a file may take; a compressed file has a limit, as it may be a decompression bomb.

    Parameters
    ----------
    path
        The file.
    stream
        Its content: the file itself if it is not compressed.
    line_bytes
        What a line takes in addition to its bytes.
    """

    def __init__(self, path: Path, stream: BinaryIO, line_bytes: int) -> None:
        self.path, self.line_bytes = path, line_bytes
        is_plain = isinstance(stream, io.BufferedReader)
        self.limit = math.inf if is_plain else memory_budget(path.stat().st_size)
        self.used = 0

    def spend(self, size: int, lines: int) -> None:
        """Count lines of this size in total; raise a `DataError` if they are too many."""
        self.used += 2 * size + self.line_bytes * lines
        if self.used > self.limit:
            raise too_large(self.path, int(self.limit))


def too_large(path: Path, limit: int) -> DataError:
    """Return the error for a file that unpacks to more bytes than this."""
    found = f"more than {limit >> 20:,} MB when unpacked, from {path.stat().st_size:,} bytes"
    return DataError(path, found, "a smaller file: if the data is real, decompress the file first")


def too_long(path: Path, number: int | None = None, longest: int = LONGEST_LINE) -> DataError:
    """Return the error for a line that is too long."""
    return DataError(path, f"a line of more than {longest >> 20} MB", "shorter lines", line=number)


def line_blocks(path: Path, stream: BinaryIO) -> Iterator[NDArray[np.uint8]]:
    """Yield the bytes of a stream in blocks of complete lines, without a byte-order mark.

    All blocks share one buffer: the next block overwrites the last one.
    """
    budget = MemoryBudget(path, stream, _ROW_BYTES)
    buffer = bytearray(_BLOCK_BYTES)
    filled = 0
    first = True
    while True:
        with memoryview(buffer) as view:
            while filled < len(buffer) and (n := stream.readinto(view[filled:])):  # type: ignore[attr-defined]
                filled += n
        if first and buffer.startswith(UTF8_BOM):
            del buffer[: len(UTF8_BOM)]
            filled -= len(UTF8_BOM)
        first = False
        at_end = filled < len(buffer)
        cut = filled if at_end else buffer.rfind(b"\n", 0, filled) + 1
        budget.spend(cut, buffer.count(b"\n", 0, cut))
        if cut:
            yield np.frombuffer(memoryview(buffer)[:cut], dtype=np.uint8)
        if at_end:
            return
        rest = buffer[cut:filled]
        if not cut and len(buffer) >= LONGEST_LINE:
            raise too_long(path)
        # A line that is longer than the buffer needs a new one: the caller may hold a view of the old one.
        buffer = buffer if cut else bytearray(2 * len(buffer))
        buffer[: len(rest)] = rest
        filled = len(rest)


def byte_lines(path: Path, stream: BinaryIO, longest: int = LONGEST_LINE) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a stream with their numbers from 1, line ends included, without a byte-order mark."""
    budget = MemoryBudget(path, stream, _OBJECT_BYTES)
    # Splitting a compressed stream into lines is faster with a buffer in C.
    plain = isinstance(stream, io.BufferedReader)
    buffered = stream if plain else io.BufferedReader(cast("io.RawIOBase", stream), 1 << 20)
    for number, line in enumerate(iter(partial(buffered.readline, longest), b""), start=1):
        budget.spend(len(line), 1)
        if len(line) == longest:
            raise too_long(path, number, longest)
        if number == 1:
            check_encoding(path, line)
            line = line.removeprefix(UTF8_BOM)
        yield number, line


def text_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file with their numbers from 1, line ends included."""
    with reading(path) as stream:
        for number, line in byte_lines(path, stream):
            yield number, decode(path, number, line, encoding)


def decode(path: Path, number: int, line: bytes, encoding: str) -> str:
    """Decode one line of a file."""
    try:
        return line.decode(encoding)
    except UnicodeDecodeError as error:
        found = f"bytes that are not {encoding}: {excerpt(line[max(0, error.start - 20) : error.start + 20])}"
        expected = f"text in {encoding}: convert the file, or give its encoding (--encoding, often latin-1 or cp1252)"
        raise DataError(path, found, expected, line=number) from error


def entries(folder: Path) -> list[Path]:
    """Return the entries of a folder, sorted by name."""
    try:
        return sorted(folder.iterdir(), key=lambda entry: entry.name)
    except PermissionError as error:
        raise DataError(folder, "no permission to list it", "a folder that you may read") from error


def check_link(path: Path) -> None:
    """Raise a `DataError` for a symbolic link to nothing."""
    if path.is_symlink() and not path.exists():
        raise DataError(path, "a broken symbolic link", "a file: repair or remove the link")


def base_name(path: Path) -> str:
    """Return the name of a file in lower case, without a compression suffix.

    >>> base_name(Path("a/Train.JSONL.gz"))
    'train.jsonl'
    """
    return path.name.lower().removesuffix(".gz").removesuffix(".zst")


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing. It replaces `path` when it is complete; `.gz` and `.zst` files are compressed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as raw:
            if path.suffix == ".gz":
                # No name and no time in the header: the same data gives the same bytes.
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=6, mtime=0) as stream:
                    yield cast("BinaryIO", stream)
            elif path.suffix == ".zst":
                with zstd.open(raw, "wb") as stream:
                    yield cast("BinaryIO", stream)
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def writing_text(path: Path) -> Iterator[io.TextIOWrapper]:
    """Open a UTF-8 text file for writing, as `writing` does."""
    with writing(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
        yield text
        # Detached, not closed: `writing` has to finish the compressed stream.
        text.detach()


def check_replaceable(path: Path, beginning: bytes, what: str, example: str) -> None:
    """Raise a `ValueError` if a file cannot be written, or would replace something else.

    Parameters
    ----------
    path
        The file to write. It may be there if it is empty or begins like the new one.
    beginning, what
        How such a file begins, and what it is.
    example
        A name for a file, if the path is a folder.
    """
    nearest = next(folder for folder in path.absolute().parents if folder.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise ValueError(f"{path} cannot be written ({nearest} is read-only or not a folder): choose another file")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give a file, such as {path / example}")
    if path.is_file():
        with reading(path) as stream:
            if stream.read(len(beginning)) not in (beginning, b""):
                raise ValueError(f"{path} is not {what} and would be lost: choose another file")
