"""Read documents to predict, in batches of texts or features, from a file or standard input."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, cast

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


class Line(NamedTuple):
    """A line of a stream with its number; the error if its bytes are no text."""

    number: int
    text: str
    error: DataError | None = None


@dataclass(frozen=True)
class Batch:
    """Documents, as texts or features, and their ids; an id is None if the document has none.

    `errors` has the places of documents that cannot be read, which are empty.
    """

    documents: Texts | csr_matrix
    ids: list[Any]
    errors: Mapping[int, DataError] = field(default_factory=dict)


class Pending(NamedTuple):
    """A batch of so many documents that are parsed when they are needed, if that can wait."""

    n_documents: int
    read: Callable[[], Batch]


def _at_once(batches: Iterable[Batch]) -> Iterator[Pending]:
    return (Pending(len(batch.ids), partial(_same, batch)) for batch in batches)


def _same(batch: Batch) -> Batch:
    return batch


def until_error(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield the documents before the first one that cannot be read, and raise its error."""
    for batch in batches:
        if not batch.errors:
            yield batch
            continue
        place, error = min(batch.errors.items())
        if place:
            yield Batch(batch.documents[:place], batch.ids[:place])
        raise error


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
    return (one.read() for one in pending_texts(path, stream, options, form))


def pending_texts(
    path: Path, stream: BinaryIO, options: ReadOptions = _DEFAULT, form: TextForm = "auto"
) -> Iterator[Pending]:
    """Yield the batches of `text_batches`: those of JSON Lines can be counted and left out without parsing them."""
    columns = options.columns
    if form == "auto" and (arrow.is_parquet(path) or arrow.is_saved(path)):
        yield from _at_once(_arrow_batches(path, columns))
        return
    chunks = _decoded_chunks(path, stream, options.encoding)
    seen: list[list[Line]] = []
    first: list[str] = []
    # After that many blank lines the form is decided without them: they might never end. Only what may be the header
    # of a table waits for the next line.
    while (not first or (form == "auto" and len(first) == 1 and _may_be_header(first[0], columns))) and (
        len(seen) < _BLANK_CHUNKS and (chunk := next(chunks, None))
    ):
        seen.append(chunk)
        first += [line.text for line in chunk if line.text.strip()]
    chunks = chain(seen, chunks)
    form = _detect_form(path, first, columns) if form == "auto" else form
    if form == "jsonl":
        yield from _json_batches(path, chunks, columns)
    elif form == "csv":
        yield from _at_once(_table_batches(path, chunks, first[0] if first else "", columns))
    else:
        yield from _at_once(map(_plain_batch, chunks))


def _plain_batch(lines: list[Line]) -> Batch:
    errors = {i: line.error for i, line in enumerate(lines) if line.error is not None}
    return Batch(Texts([line.text.rstrip("\r\n") for line in lines]), [None] * len(lines), errors)


def _may_be_header(line: str, columns: Columns) -> bool:
    return table.text_delimiter(line, columns.to_predict()) is not None


def _detect_form(path: Path, first: list[str], columns: Columns) -> TextForm:
    """Return the form of lines from the first ones that are not blank."""
    if first and first[0].lstrip().startswith("{"):
        return "jsonl"
    is_table = files.base_name(path).endswith((".csv", ".tsv")) or table.is_table(first, columns.to_predict())
    return "csv" if is_table else "lines"


def _json_batches(path: Path, chunks: Iterable[list[Line]], columns: Columns) -> Iterator[Pending]:
    for lines in chunks:
        kept = [line for line in lines if line.text.strip()]
        if kept:
            yield Pending(len(kept), partial(_json_batch, path, kept, columns))


def _json_batch(path: Path, lines: list[Line], columns: Columns) -> Batch:
    return _batch([_json_document(path, line, columns) for line in lines])


def _json_document(path: Path, line: Line, columns: Columns) -> _Document:
    """Return the document of a line, or an empty one with what is wrong with it."""
    document_id = None
    try:
        if line.error is not None:
            raise line.error
        record = parse_record(path, line.number, line.text)
        document_id = _document_id(record, columns)
        title, body = title_and_body(path, line.number, record, columns.text, columns.title)
    except DataError as error:
        return _Document(document_id, error=error)
    return _Document(document_id, title or "", body or "")


def _table_batches(path: Path, chunks: Iterable[list[Line]], header: str, columns: Columns) -> Iterator[Batch]:
    delimiter = table.text_delimiter(header, columns.to_predict())
    if delimiter is None and annif.is_tsv(header):
        yield from _annif_batches(chunks)
        return
    if delimiter is None:
        raise table.missing_columns(path, header, columns.to_predict(), with_labels=False)
    lines = dropwhile(lambda line: not line.text.strip(), chain.from_iterable(chunks))
    # Cells may contain line ends, so only the table reader knows where a document ends.
    yield from _batched(_table_documents(path, lines, delimiter, columns))


def _batched(documents: Iterable[_Document]) -> Iterator[Batch]:
    part: list[_Document] = []
    try:
        for document in documents:
            part.append(document)
            if len(part) == _BATCH_DOCUMENTS:
                yield _batch(part)
                part = []
    except Exception:
        # What was read before the error is not lost. Each decompressor has errors of its own.
        if part:
            yield _batch(part)
        raise
    if part:
        yield _batch(part)


def _arrow_batches(path: Path, columns: Columns) -> Iterator[Batch]:
    files = arrow.files(path) if path.is_dir() else [path]
    found = chain.from_iterable(arrow.documents(file, columns) for file in files)
    yield from _batched(_arrow_document(document_id, one) for document_id, one in found)


def _arrow_document(document_id: Any, found: tuple[str | None, str | None] | DataError) -> _Document:
    if isinstance(found, DataError):
        return _Document(document_id, error=found)
    title, body = found
    return _Document(document_id, title or "", body or "")


def _table_documents(path: Path, lines: Iterator[Line], delimiter: str, columns: Columns) -> Iterator[_Document]:
    """Yield the documents of a table."""
    header, names = next(lines), columns.lowered()
    if header.error is not None:
        raise header.error
    undecoded: list[DataError] = []

    def numbered() -> Iterator[tuple[int, str]]:
        for line in lines:
            if line.error is not None:
                undecoded.append(line.error)
            yield line.number, line.text

    for _, row in table.rows_and_errors(path, chain([(header.number, header.text)], numbered()), delimiter, columns):
        # The reader has taken the lines of this row, and no others.
        error = undecoded[0] if undecoded else None
        undecoded.clear()
        if isinstance(row, DataError):
            yield _Document(None, error=error or row)
        elif error is not None:
            yield _Document(_document_id(row, names), error=error)
        else:
            title, body = table.id_and_texts(row, names)[1]
            yield _Document(_document_id(row, names), title or "", body or "")


def _annif_batches(chunks: Iterable[list[Line]]) -> Iterator[Batch]:
    """Yield the texts of a corpus without a header: what stands before the first tab of a line."""
    for chunk in chunks:
        lines = [line for line in chunk if "\t" in line.text or line.text.strip()]
        if lines:
            yield _plain_batch([line._replace(text=line.text.partition("\t")[0]) for line in lines])


def _document_id(record: Mapping[str, Any], columns: Columns) -> Any:
    """Return the id of a document; Annif's corpora call it otherwise."""
    return None if columns.id is None else record.get(columns.id, record.get("document_id"))


class _Document(NamedTuple):
    """A document, or the error that stands in its place."""

    id: Any
    title: str = ""
    body: str = ""
    error: DataError | None = None


def _batch(documents: list[_Document]) -> Batch:
    texts = Texts([one.body for one in documents], [one.title for one in documents])
    errors = {i: one.error for i, one in enumerate(documents) if one.error is not None}
    return Batch(texts, [one.id for one in documents], errors)


def pending_features(path: Path, stream: BinaryIO, n_features: int) -> Iterator[Pending]:
    """Yield the batches of `feature_batches`."""
    return _at_once(feature_batches(path, stream, n_features))


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
            X, errors = _parsed(path, lines, n_features, number)
            if header is not None:
                # Blank lines after the last document do not count.
                last = max([*X.getnnz(axis=1).nonzero()[0].tolist(), *errors, -1])
                X = X[: max(header.n_rows - found, last + 1)]
            found += X.shape[0]
            yield Batch(X, [None] * X.shape[0], errors)
        number += len(lines)
    if header is not None and found != header.n_rows:
        raise DataError(path, f"{found:,} documents", f"{header.n_rows:,}, as the header says: is it complete?", line=1)


def _parsed(path: Path, lines: list[bytes], n_features: int, number: int) -> tuple[csr_matrix, dict[int, DataError]]:
    """Return the features of lines from a number on, and errors by place; a line with an error is an empty document."""
    try:
        return xc_text.parse_documents(path, lines, n_features, number), {}
    except DataError:
        errors: dict[int, DataError] = {}
    for i, line in enumerate(lines):
        if (error := _error_in(path, line, n_features, number + i)) is not None:
            errors[i] = error
    kept = [b"\n" if i in errors else line for i, line in enumerate(lines)]
    return xc_text.parse_documents(path, kept, n_features, number), errors


def _error_in(path: Path, line: bytes, n_features: int, number: int) -> DataError | None:
    try:
        xc_text.parse_documents(path, [line], n_features, number)
    except DataError as error:
        return error
    return None


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


def _decoded_chunks(path: Path, stream: BinaryIO, encoding: str) -> Iterator[list[Line]]:
    number = 1
    for lines in _chunks(path, stream):
        yield [_decoded(path, number + i, line, encoding) for i, line in enumerate(lines)]
        number += len(lines)


def _decoded(path: Path, number: int, line: bytes, encoding: str) -> Line:
    try:
        return Line(number, files.decode(path, number, line, encoding))
    except DataError as error:
        return Line(number, line.decode(encoding, errors="replace"), error)
