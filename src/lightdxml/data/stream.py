"""Read documents to predict, in batches of texts or features, from a file or standard input."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

from lightdxml.data import annif, arrow, files, table, xc_text
from lightdxml.data.dataset import Texts
from lightdxml.data.errors import DataError
from lightdxml.data.jsonl import parse_record, title_and_body
from lightdxml.data.options import Columns, ReadOptions

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

TextForm = Literal["auto", "lines", "jsonl", "csv"]
_READ_BYTES = 1 << 20
_BATCH_DOCUMENTS = 4096
_BLANK_CHUNKS = 100
_DEFAULT = ReadOptions()


@dataclass(frozen=True)
class Batch:
    """Documents, as texts or features, and their ids; an id is None if the document has none."""

    documents: Texts | csr_matrix
    ids: list[Any]


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file, plain or compressed; `-` is standard input. The files of a saved data set are opened later."""
    if arrow.is_saved(path):
        yield io.BytesIO()
        return
    if str(path) != "-":
        with files.reading(path) as stream:
            yield stream
        return
    if sys.stdin is None:
        raise ValueError("standard input is closed: give a file, or pipe documents into the command")
    raw = sys.stdin.buffer
    # Detecting the compression requires a buffer that can peek.
    buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", raw))
    with files.as_data_errors(path), files.decompressed(buffered) as stream:
        yield stream


def text_batches(
    path: Path, stream: BinaryIO, options: ReadOptions = _DEFAULT, form: TextForm = "auto"
) -> Iterator[Batch]:
    r"""Yield texts from JSON Lines, a table, Parquet, or plain lines; "auto" decides by the content and the file name.

    A blank line among plain lines is an empty document: there is one prediction per line. Labels are not read.

    Examples
    --------
    >>> (batch,) = text_batches(Path("-"), io.BytesIO(b"a cat\n\na dog\n"))
    >>> list(batch.documents)
    ['a cat', '', 'a dog']
    """
    columns = options.columns
    if form == "auto" and (arrow.is_parquet(path) or arrow.is_saved(path)):
        yield from _arrow_batches(path, columns)
        return
    chunks = _decoded_chunks(path, stream, options.encoding)
    seen: list[list[tuple[int, str]]] = []
    first = ""
    # After that many blank lines the form is decided without them: they might never end.
    while not first and len(seen) < _BLANK_CHUNKS and (chunk := next(chunks, None)):
        seen.append(chunk)
        first = next((line for _, line in chunk if line.strip()), "")
    chunks = chain(seen, chunks)
    form = _detect_form(path, first, columns) if form == "auto" else form
    if form == "jsonl":
        yield from _json_batches(path, chunks, columns)
    elif form == "csv":
        yield from _table_batches(path, chunks, first, columns)
    else:
        for lines in chunks:
            yield Batch(Texts([line.rstrip("\r\n") for _, line in lines]), [None] * len(lines))


def _detect_form(path: Path, first: str, columns: Columns) -> TextForm:
    if first.lstrip().startswith("{"):
        return "jsonl"
    is_table = (
        files.base_name(path).endswith((".csv", ".tsv"))
        or table.text_delimiter(first, columns.to_predict()) is not None
    )
    return "csv" if is_table else "lines"


def _json_batches(path: Path, chunks: Iterable[list[tuple[int, str]]], columns: Columns) -> Iterator[Batch]:
    for lines in chunks:
        records = [(number, parse_record(path, number, line)) for number, line in lines if line.strip()]
        texts = [title_and_body(path, number, record, columns.text, columns.title) for number, record in records]
        if records:
            yield _batch([_document_id(record, columns) for _, record in records], texts)


def _table_batches(
    path: Path, chunks: Iterable[list[tuple[int, str]]], header: str, columns: Columns
) -> Iterator[Batch]:
    delimiter = table.text_delimiter(header, columns.to_predict())
    if delimiter is None and annif.is_tsv(header):
        yield from _annif_batches(chunks)
        return
    if delimiter is None:
        raise table.missing_columns(path, header, columns.to_predict(), with_labels=False)
    lines = dropwhile(lambda numbered: not numbered[1].strip(), chain.from_iterable(chunks))
    rows, names = table.rows(path, lines, delimiter, columns), columns.lowered()
    # Cells may contain line ends, so only the table reader knows where a document ends.
    while part := [row for _, row in islice(rows, _BATCH_DOCUMENTS)]:
        yield _batch([_document_id(row, names) for row in part], [table.id_and_texts(row, names)[1] for row in part])


def _arrow_batches(path: Path, columns: Columns) -> Iterator[Batch]:
    files = arrow.files(path) if path.is_dir() else [path]
    documents = chain.from_iterable(arrow.documents(file, columns) for file in files)
    while part := list(islice(documents, _BATCH_DOCUMENTS)):
        yield _batch([document_id for document_id, _ in part], [texts for _, texts in part])


def _annif_batches(chunks: Iterable[list[tuple[int, str]]]) -> Iterator[Batch]:
    """Yield the texts of a corpus without a header: what stands before the first tab of a line."""
    for lines in chunks:
        texts = [line.rstrip("\r\n").partition("\t")[0] for _, line in lines if "\t" in line or line.strip()]
        if texts:
            yield Batch(Texts(texts), [None] * len(texts))


def _document_id(record: Mapping[str, Any], columns: Columns) -> Any:
    """Return the id of a document; Annif's corpora call it otherwise."""
    return None if columns.id is None else record.get(columns.id, record.get("document_id"))


def _batch(ids: list[Any], texts: list[tuple[str | None, str | None]]) -> Batch:
    return Batch(Texts([body or "" for _, body in texts], [title or "" for title, _ in texts]), ids)


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
        if number == 1 and (header := xc_text.parse_header(path, lines[0])) is not None:
            if header.n_columns != n_features:
                claimed = f"a header with {header.n_columns:,} features"
                raise DataError(path, claimed, f"the model's {n_features:,}", line=1)
            number, lines = 2, lines[1:]
        if lines:
            X = xc_text.parse_documents(path, lines, n_features, number)
            if header is not None:
                # Blank lines after the last document do not count.
                X = X[: max(header.n_rows - found, X.getnnz(axis=1).nonzero()[0].max(initial=-1) + 1)]
            found += X.shape[0]
            yield Batch(X, [None] * X.shape[0])
        number += len(lines)
    if header is not None and found != header.n_rows:
        raise DataError(path, f"{found:,} documents", f"{header.n_rows:,}, as the header says: is it complete?", line=1)


def _chunks(path: Path, stream: BinaryIO) -> Iterator[list[bytes]]:
    """Yield complete lines as they arrive, without waiting for more."""
    read = getattr(stream, "read1", stream.read)
    rest = bytearray()
    first = True
    while block := read(_READ_BYTES):
        if first:
            files.check_encoding(path, block)
            block = block.removeprefix(files.UTF8_BOM)
            first = False
        rest += block
        if len(rest) > files.LONGEST_LINE:
            raise files.too_long(path)
        end = rest.rfind(b"\n") + 1
        if end:
            lines = [line + b"\n" for line in bytes(rest[: end - 1]).split(b"\n")]
            for start in range(0, len(lines), _BATCH_DOCUMENTS):
                yield lines[start : start + _BATCH_DOCUMENTS]
            del rest[:end]
    if rest:
        yield [bytes(rest)]


def _decoded_chunks(path: Path, stream: BinaryIO, encoding: str) -> Iterator[list[tuple[int, str]]]:
    number = 1
    for lines in _chunks(path, stream):
        yield [(number + i, files.decode(path, number + i, line, encoding)) for i, line in enumerate(lines)]
        number += len(lines)
