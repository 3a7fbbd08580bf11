"""Documents to predict, as they come: batches of texts or features from a file or from standard input."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from scipy.sparse import csr_matrix

from lightdxml.data import table, xc_text
from lightdxml.data.dataset import Texts
from lightdxml.data.errors import DataError
from lightdxml.data.files import (
    LONGEST_LINE,
    UTF8_BOM,
    base_name,
    check_encoding,
    decode,
    faults_of,
    reading,
    too_long,
    uncompressed,
)
from lightdxml.data.jsonl import parse_record, text_field

TextForm = Literal["auto", "lines", "jsonl", "csv"]
# What is read at once: many documents where they are at hand, no waiting for more where they are typed.
_BYTES = 1 << 20
_DOCUMENTS = 4096


@dataclass(frozen=True)
class Batch:
    """Some documents: texts, or features; with the ids that they came with, None for none."""

    documents: Texts | csr_matrix
    ids: list[Any]


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file, plain or compressed; `-` is standard input."""
    if str(path) != "-":
        with reading(path) as stream:
            yield stream
        return
    raw = sys.stdin.buffer
    # Its first bytes must be looked at without being taken away.
    buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", raw))
    with faults_of(path), uncompressed(buffered) as stream:
        yield stream


def text_batches(path: Path, stream: BinaryIO, encoding: str = "utf-8", form: TextForm = "auto") -> Iterator[Batch]:
    r"""Yield texts: JSON Lines or a table where the first line is such, else one text a line; or what `form` says.

    A blank line among plain texts is a document without words, so that answers stay in line with questions.

    Examples
    --------
    >>> (batch,) = text_batches(Path("-"), io.BytesIO(b"a cat\n\na dog\n"))
    >>> list(batch.documents)
    ['a cat', '', 'a dog']
    """
    chunks = _decoded(path, stream, encoding)
    blank, start = [], ""
    for chunk in chunks:
        blank.append(chunk)
        start = next((line for _, line in chunk if line.strip()), "")
        if start:
            break
    chunks = chain(blank, chunks)
    form = _form(path, start) if form == "auto" else form
    if form == "jsonl":
        yield from _records(path, chunks)
    elif form == "csv":
        yield from _table(path, chunks, _delimiter(path, start))
    else:
        for lines in chunks:
            yield Batch(Texts([line.rstrip("\r\n") for _, line in lines]), [None] * len(lines))


def _form(path: Path, start: str) -> TextForm:
    """Return what a first line, and the file's name, say of the form."""
    if start.lstrip().startswith("{"):
        return "jsonl"
    named_so = base_name(path).endswith((".csv", ".tsv"))
    return "csv" if named_so or table.delimiter_of_texts(start) is not None else "lines"


def _delimiter(path: Path, start: str) -> str:
    delimiter = table.delimiter_of_texts(start)
    if delimiter is None:
        columns = ", ".join(table.guess_columns(start))
        raise DataError(path, f"the columns {columns}", "one named text (or title): rename it", line=1)
    return delimiter


def feature_batches(path: Path, stream: BinaryIO, n_features: int) -> Iterator[Batch]:
    r"""Yield features from lines of XC text, with or without a header, with or without labels.

    Examples
    --------
    >>> (batch,) = feature_batches(Path("-"), io.BytesIO(b"3 0:1.0 2:0.5\n"), 3)
    >>> batch.documents.toarray().tolist()
    [[1.0, 0.0, 0.5]]
    """
    number, found = 1, 0
    header: xc_text.Header | None = None
    for lines in _chunks(path, stream):
        if number == 1:
            header = xc_text.parse_header(path, lines[0])
            if header is not None:
                _check_header(path, header, n_features)
                number, lines = 2, lines[1:]
        if lines:
            X = xc_text.parse_documents(path, lines, n_features, number)
            if header is not None:
                # Blank lines behind the last document are none.
                X = X[: max(header.n_rows - found, X.getnnz(axis=1).nonzero()[0].max(initial=-1) + 1)]
            found += X.shape[0]
            yield Batch(X, [None] * X.shape[0])
        number += len(lines)
    if header is not None and found != header.n_rows:
        raise DataError(path, f"{found:,} documents", f"{header.n_rows:,}, as the header says: is it complete?", line=1)


def _check_header(path: Path, header: xc_text.Header, n_features: int) -> None:
    if header.n_columns != n_features:
        found = f"a header that says {header.n_columns:,} features"
        raise DataError(path, found, f"the model's {n_features:,}", line=1)


def _chunks(path: Path, stream: BinaryIO) -> Iterator[list[bytes]]:
    """Yield whole lines as they arrive, some at a time."""
    read = getattr(stream, "read1", stream.read)
    rest = bytearray()
    fresh = True
    while block := read(_BYTES):
        if fresh:
            check_encoding(path, block)
            block = block.removeprefix(UTF8_BOM)
            fresh = False
        rest += block
        if len(rest) > LONGEST_LINE:
            raise too_long(path)
        end = rest.rfind(b"\n") + 1
        if end:
            yield from _parted([line + b"\n" for line in bytes(rest[: end - 1]).split(b"\n")])
            del rest[:end]
    if rest:
        yield [bytes(rest)]


def _parted(lines: list[bytes]) -> Iterator[list[bytes]]:
    for start in range(0, len(lines), _DOCUMENTS):
        yield lines[start : start + _DOCUMENTS]


def _decoded(path: Path, stream: BinaryIO, encoding: str) -> Iterator[list[tuple[int, str]]]:
    number = 1
    for lines in _chunks(path, stream):
        yield [(number + i, decode(path, number + i, line, encoding)) for i, line in enumerate(lines)]
        number += len(lines)


def _records(path: Path, chunks: Iterable[list[tuple[int, str]]]) -> Iterator[Batch]:
    for lines in chunks:
        records = [(number, parse_record(path, number, line)) for number, line in lines if line.strip()]
        titles, bodies = ([text_field(path, n, r, name) for n, r in records] for name in ("title", "text"))
        for (number, _), title, body in zip(records, titles, bodies, strict=True):
            if title is None and body is None:
                raise DataError(path, "a document without title and text", "at least one of them", line=number)
        if records:
            yield _batch([record.get("id") for _, record in records], titles, bodies)


def _table(path: Path, chunks: Iterable[list[tuple[int, str]]], delimiter: str) -> Iterator[Batch]:
    lines = chain.from_iterable(chunks)
    rows = table.rows(path, dropwhile(lambda numbered: not numbered[1].strip(), lines), delimiter)
    # Cells may hold line ends: where a document ends, only the table's own reader knows.
    while part := _next_rows(rows):
        yield _batch(*([row.get(name) for row in part] for name in ("id", "title", "text")))


def _next_rows(rows: Iterator[tuple[int, dict[str, str]]]) -> list[dict[str, str]]:
    with table.any_cell_size():
        return [row for _, row in islice(rows, _DOCUMENTS)]


def _batch(ids: list[Any], titles: list[str | None], bodies: list[str | None]) -> Batch:
    return Batch(Texts([body or "" for body in bodies], [title or "" for title in titles]), ids)
