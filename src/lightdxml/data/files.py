"""Files as bytes and lines: plain, gzip and Zstandard alike, and writes that are whole or not there."""

from __future__ import annotations

import gzip
import io
import os
import secrets
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
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
COMPRESSED_SUFFIXES = (".gz", ".zst")
_OTHER_BOMS = (b"\xff\xfe", b"\xfe\xff")
_BLOCK_BYTES = 1 << 23
LONGEST_LINE = 1 << 28
# No text that people write packs 200 times smaller; what claims more was made to fill memory or disk.
_FREE_BYTES = 1 << 30
_RATIO = 200


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read its bytes; what compresses it is seen from its first bytes, not from its name.

    Whatever goes wrong with the file inside the `with` becomes a `DataError`.
    """
    with faults_of(path):
        # Before it is opened: opening a pipe waits for its writer.
        if not path.is_dir() and not path.is_file() and path.exists():
            raise DataError(path, "a pipe or a device", "a file: save the data to one first")
        with path.open("rb") as raw, uncompressed(raw) as stream:
            yield stream


@contextmanager
def faults_of(path: Path) -> Iterator[None]:
    """Turn what goes wrong with a file inside the `with` into a `DataError`."""
    try:
        yield
    except EOFError as error:
        raise DataError(path, "compressed data that breaks off", "a complete file: fetch or copy it again") from error
    except (gzip.BadGzipFile, zlib.error, zstd.ZstdError) as error:
        raise DataError(path, f"damaged compressed data ({error})", "an intact file: fetch or copy it again") from error
    except FileNotFoundError as error:
        raise DataError(path, "nothing there", "an existing file") from error
    except PermissionError as error:
        raise DataError(path, "no permission to read it", "a file that you may read") from error
    except IsADirectoryError as error:
        raise DataError(path, "a folder", "a file") from error


@contextmanager
def uncompressed(raw: io.BufferedReader) -> Iterator[BinaryIO]:
    """Give the content of a stream; what compresses it is seen from its first bytes."""
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
    """Return the first line of a file that is not blank, without a byte-order mark; empty if there is none."""
    with reading(path) as stream:
        line = stream.readline(limit)
        check_encoding(path, line)
        line = line.removeprefix(UTF8_BOM)
        while line and not line.strip():
            line = stream.readline(limit)
    return line


def check_encoding(path: Path, start: bytes) -> None:
    """Raise where the first bytes of a file are those of UTF-16 text."""
    if start.startswith(_OTHER_BOMS):
        raise DataError(path, "text in UTF-16", "UTF-8: convert the file (in Excel, save as CSV UTF-8)", line=1)


def unpacked_limit(path: Path) -> int:
    """Return how many bytes a file of this size may hold when unpacked."""
    return max(_FREE_BYTES, _RATIO * path.stat().st_size)


class _Budget:
    """What may still be read of a file's content."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._limit = unpacked_limit(path)
        self._used = 0

    def spend(self, size: int) -> None:
        self._used += size
        if self._used > self._limit:
            found = f"more than {self._limit >> 20:,} MB when unpacked, from {self._path.stat().st_size:,} bytes"
            raise DataError(self._path, found, "data that was not made to fill memory: if it is real, unpack it first")


def too_long(path: Path, number: int | None = None) -> DataError:
    """Return the error of a line that no document has."""
    return DataError(path, f"a line of over {LONGEST_LINE >> 20} MB", "one document a line", line=number)


def line_blocks(path: Path, stream: BinaryIO, block_bytes: int = _BLOCK_BYTES) -> Iterator[NDArray[np.uint8]]:
    """Yield the bytes of a file's stream in blocks of whole lines, without a byte-order mark.

    The blocks share one buffer: each is gone when the next one is asked for.
    """
    budget = _Budget(path)
    buffer = bytearray(block_bytes)
    filled = 0
    first = True
    while True:
        with memoryview(buffer) as view:
            while filled < len(buffer) and (n := stream.readinto(view[filled:])):  # type: ignore[attr-defined]
                filled += n
                budget.spend(n)
        if first and buffer.startswith(UTF8_BOM):
            del buffer[: len(UTF8_BOM)]
            filled -= len(UTF8_BOM)
        first = False
        at_end = filled < len(buffer)
        cut = filled if at_end else buffer.rfind(b"\n", 0, filled) + 1
        if cut:
            yield np.frombuffer(memoryview(buffer)[:cut], dtype=np.uint8)
        if at_end:
            return
        # A line longer than the buffer gets a larger one; a new one, as the caller may hold a view of the old.
        rest = buffer[cut:filled]
        if not cut and len(buffer) >= LONGEST_LINE:
            raise too_long(path)
        buffer = buffer if cut else bytearray(2 * len(buffer))
        buffer[: len(rest)] = rest
        filled = len(rest)


def text_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yield a text file's lines with their numbers from 1, line ends included."""
    with reading(path) as stream:
        budget = _Budget(path)
        # Lines of a compressed stream cost less when a buffer in C cuts them.
        plain = isinstance(stream, io.BufferedReader)
        buffered = stream if plain else io.BufferedReader(cast("io.RawIOBase", stream), 1 << 20)
        for number, line in enumerate(iter(partial(buffered.readline, LONGEST_LINE), b""), start=1):
            budget.spend(len(line))
            if len(line) == LONGEST_LINE:
                raise too_long(path, number)
            if number == 1:
                check_encoding(path, line)
                line = line.removeprefix(UTF8_BOM)
            yield number, decode(path, number, line, encoding)


def decode(path: Path, number: int, line: bytes, encoding: str) -> str:
    """Decode one line of a file, or say where it cannot be."""
    try:
        return line.decode(encoding)
    except UnicodeDecodeError as error:
        place = excerpt(line[max(0, error.start - 20) : error.start + 20])
        raise DataError(
            path,
            f"bytes that are not {encoding}: {place}",
            f"text in {encoding}: convert the file, or give its encoding (--encoding, often latin-1 or cp1252)",
            line=number,
        ) from error


def base_name(path: Path) -> str:
    """Return a file's name in lower case without what compresses it.

    >>> base_name(Path("a/Train.JSONL.gz"))
    'train.jsonl'
    """
    name = path.name.lower()
    for suffix in COMPRESSED_SUFFIXES:
        name = name.removesuffix(suffix)
    return name


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write; it appears under its name only when complete. `.gz` and `.zst` compress."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as raw:
            if path.suffix == ".gz":
                # No name and no time in the gzip header: the same data gives the same bytes.
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
    """Open a UTF-8 text file to write, as `writing` does."""
    with writing(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
        yield text
        # Handed back open: `writing` has yet to finish the compressed stream.
        text.detach()
