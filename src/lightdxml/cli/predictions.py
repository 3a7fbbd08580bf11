"""Predictions as text, JSON Lines, CSV or Parquet, on standard output or in a file."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from lightdxml.cli.output import distinct_names, json_line, label_as_json, printable

if TYPE_CHECKING:
    from lightdxml.model.model import Model

To = Literal["text", "jsonl", "csv", "parquet"]
# The labels of a document, best first: columns of the model, and scores.
Found = Sequence[tuple[int, float]]
# Takes the ids of documents, None where a document has none, their labels, and why some cannot be read, by place.
Write = Callable[[Sequence[Any], Sequence[Found], Mapping[int, str]], None]


def form_of(out: Path | None) -> To:
    """Return the form of predictions in a file of this name.

    >>> form_of(Path("found.parquet")), form_of(Path("found.jsonl.gz")), form_of(None)
    ('parquet', 'jsonl', 'text')
    """
    endings = [] if out is None else out.suffixes
    forms: dict[str, To] = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl"}
    return next((form for ending, form in forms.items() if ending in endings), "text")


def check_target(to: To, file: Path, out: Path | None) -> None:
    """Raise an error if predictions cannot be written there, or would replace the documents."""
    if out is not None and out.exists() and file.exists() and out.samefile(file):
        raise ValueError(f"{out} has the documents to predict, and would be replaced: give another file as --out")
    if to == "parquet" and out is None:
        raise ValueError("Parquet is not written to standard output: give --out FILE")
    if to == "parquet" and find_spec("pyarrow") is None:
        raise ImportError('writing Parquet needs pyarrow: pip install "lightdxml[parquet]"')
    if out is not None and out.is_dir():
        raise ValueError(f"{out} is a folder: give a file as --out")


@contextmanager
def writing(to: To, out: Path | None, model: Model, separator: str) -> Iterator[Write]:
    """Yield a function that writes predictions; a file appears when all of them are written."""
    from lightdxml.data import files

    if to == "parquet":
        assert out is not None
        with _parquet(out, model) as write:
            yield write
    elif out is None:
        yield _lines(to, sys.stdout, model, separator)
    else:
        with files.writing_text(out) as stream:
            yield _lines(to, stream, model, separator)


def _lines(to: To, stream: TextIO, model: Model, separator: str) -> Write:
    """Return a function that writes lines as soon as they are known."""
    if to == "csv":
        return _csv(stream, model, separator)
    show = _as_json if to == "jsonl" else _as_text

    def write(ids: Sequence[Any], rows: Sequence[Found], errors: Mapping[int, str]) -> None:
        lines = (show(model, one, found, errors.get(i)) for i, (one, found) in enumerate(zip(ids, rows, strict=True)))
        stream.writelines(f"{line}\n" for line in lines)
        stream.flush()

    return write


def _as_json(model: Model, document: Any, found: Found, error: str | None) -> str:
    content: dict[str, Any] = {} if document is None else {"id": document}
    content["labels"] = [{**label_as_json(model, j), "score": round(score, 6)} for j, score in found]
    return json_line(content if error is None else {**content, "error": error})


def _as_text(model: Model, document: Any, found: Found, error: str | None) -> str:
    """Return labels and scores separated by tabs; tabs and line ends within names become spaces."""
    if error is not None:
        return ""
    names = distinct_names([model.label(j) for j, _ in found])
    cells = [f"{_cell(name)} {score:.3f}" for name, (_, score) in zip(names, found, strict=True)]
    return "\t".join(cells if document is None else [_cell(document), *cells])


def _cell(name: Any) -> str:
    return printable(" ".join(str(name).split()))


def _csv(stream: TextIO, model: Model, separator: str) -> Write:
    """Return a function that writes columns `id`, `labels`, `scores` and, with a vocabulary, `uris`."""
    for j in range(model.n_labels):
        label = model.label(j)
        if separator in label.name or (model.vocabulary is not None and separator in label.id):
            raise ValueError(
                f"the label {label.name!r:.60} contains the separator {separator!r}: give another --separator, or"
                " --to jsonl"
            )
    # A file holds any character, a terminal only those that do not command it.
    shown = printable if stream.isatty() else str
    # All cells but numbers are quoted: before Python 3.13, a cell with a carriage return was not.
    writer = csv.writer(stream, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(["id", "labels", "scores", *([] if model.vocabulary is None else ["uris"])])

    def write(ids: Sequence[Any], rows: Sequence[Found], errors: Mapping[int, str]) -> None:
        for document, found in zip(ids, rows, strict=True):
            labels = [model.label(j) for j, _ in found]
            columns = [[one.name for one in labels], [f"{score:.6g}" for _, score in found]]
            columns += [] if model.vocabulary is None else [[one.id for one in labels]]
            cells = ["" if document is None else str(document), *(separator.join(one) for one in columns)]
            writer.writerow([shown(cell) for cell in cells])
        stream.flush()

    return write


@contextmanager
def _parquet(out: Path, model: Model) -> Iterator[Write]:
    """Yield a function that writes a column of ids, and columns of lists: labels, scores and perhaps URIs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from lightdxml.data import files

    kind = pa.string() if model.label_names is not None and not model.integer_labels else pa.int64()
    fields = [("id", pa.string()), ("labels", pa.list_(kind)), ("scores", pa.list_(pa.float32()))]
    fields += [] if model.vocabulary is None else [("uris", pa.list_(pa.string()))]
    schema = pa.schema(fields)
    with files.writing(out) as stream, pq.ParquetWriter(stream, schema) as writer:

        def write(ids: Sequence[Any], rows: Sequence[Found], errors: Mapping[int, str]) -> None:
            shown = model.given_label if model.vocabulary is None else lambda j: model.label(j).name
            columns: dict[str, list[Any]] = {
                "id": [None if one is None else str(one) for one in ids],
                "labels": [[shown(j) for j, _ in found] for found in rows],
                "scores": [[score for _, score in found] for found in rows],
            }
            if model.vocabulary is not None:
                columns["uris"] = [[model.label(j).id for j, _ in found] for found in rows]
            writer.write_table(pa.table(columns, schema=schema))

        yield write
