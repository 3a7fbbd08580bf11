"""Tables of Apache Arrow: Parquet files, and data sets that Hugging Face's `datasets` saved to disk."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from lightdxml.data.cells import labels_of_cell
from lightdxml.data.dataset import Split
from lightdxml.data.documents import SplitBuilder
from lightdxml.data.errors import DataError, excerpt, shortened
from lightdxml.data.files import memory_budget, too_large
from lightdxml.data.jsonl import title_and_body
from lightdxml.data.labels import LabelIndex
from lightdxml.data.options import Columns, ReadOptions, expected_columns

MAGIC = b"PAR1"
_STATE, _INFO, _SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
_BATCH_ROWS = 1024
_LARGEST_JSON = 1 << 26


class _Table(NamedTuple):
    """A file: its schema, its rows in batches, and how many they are, if the file states it."""

    schema: Any
    batches: Iterator[Any]
    n_rows: int | None = None


def is_parquet(path: Path) -> bool:
    """Return whether a path is that of a Parquet file."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def is_saved(folder: Path) -> bool:
    """Return whether a folder is a data set of one split that `save_to_disk` wrote."""
    return (folder / _STATE).is_file() and (folder / _INFO).is_file()


def saved_parts(folder: Path) -> dict[str, Path]:
    """Return the folders of the splits that `save_to_disk` wrote, by name; none if it did not write this folder."""
    if is_saved(folder):
        return {"train": folder}
    if not (folder / _SPLITS).is_file():
        return {}
    names = _json(folder / _SPLITS).get("splits")
    if not isinstance(names, list) or not all(_is_name(name) and is_saved(folder / name) for name in names):
        raise DataError(folder / _SPLITS, "splits that are not there", "the folder as save_to_disk wrote it")
    return {name: folder / name for name in names}


def files(folder: Path) -> list[Path]:
    """Return the data files of a split that `save_to_disk` wrote, in order."""
    path = folder / _STATE
    state = _json(path)
    if any(state.get(key) for key in ("_indices_files", "_indices_data_files")):
        raise DataError(path, "a selection of rows", "a plain data set: call flatten_indices() before save_to_disk")
    found = state.get("_data_files")
    listed = found if isinstance(found, list) else []
    names = [str(one.get("filename")) if isinstance(one, Mapping) else "" for one in listed]
    # A name with a path in it could point anywhere.
    if not names or not all(_is_name(name) and (folder / name).is_file() for name in names):
        raise DataError(path, "data files that are not there", "the folder as save_to_disk wrote it")
    return [folder / name for name in names]


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name not in ("", ".", "..") and Path(name).name == name


def _json(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            content = json.loads(stream.read(_LARGEST_JSON))
    except (ValueError, RecursionError, OSError) as error:
        raise DataError(path, f"no valid JSON ({error})", "the file as save_to_disk wrote it") from error
    if not isinstance(content, dict):
        raise DataError(path, "no JSON object", "the file as save_to_disk wrote it")
    return content


def read(paths: Sequence[Path], index: LabelIndex, options: ReadOptions) -> Split:
    """Read the documents of one or several files, one after the other."""
    documents = SplitBuilder(paths[0].parent if len(paths) > 1 else paths[0])
    columns = options.columns
    for path in paths:
        names = _class_names(path, columns.labels)
        for number, row in _rows(path, columns, with_labels=True):
            labels = _labels(path, number, row[columns.labels], names, options.label_separator)
            texts = title_and_body(path, number, row, columns.text, columns.title)
            document_id = None if columns.id is None else row.get(columns.id)
            documents.add(number, document_id, texts, index.ids(labels))
    return documents.split(len(index.names))


def documents(path: Path, columns: Columns) -> Iterator[tuple[Any, tuple[str | None, str | None] | DataError]]:
    """Yield the ids of documents, with their titles and texts, or with what is wrong; labels are not read."""
    for number, row in _rows(path, columns, with_labels=False):
        document_id = None if columns.id is None else row.get(columns.id)
        try:
            yield document_id, title_and_body(path, number, row, columns.text, columns.title)
        except DataError as error:
            yield document_id, error


def predictions(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a Parquet file that `lightdxml predict` wrote, with their numbers."""
    with _opened(path) as table:
        kinds = {field.name: str(field.type) for field in table.schema}
        lists = [kinds.get(name, "") for name in ("labels", "scores")]
        if "id" not in kinds or not all(kind.startswith("list<") for kind in lists):
            found = f"the columns {shortened(', '.join(kinds))}"
            raise DataError(path, found, "`id` and the lists `labels` and `scores`, as `lightdxml predict` writes them")
        number = 0
        for batch in table.batches:
            for row in batch.to_pylist():
                number += 1
                yield number, row


def n_rows(path: Path) -> int:
    """Return the number of rows of a Parquet file, which it states: they are not read."""
    with _opened(path) as table:
        assert table.n_rows is not None
        return table.n_rows


def has_cells(path: Path, columns: Columns) -> bool:
    """Return whether the labels of a document are one string, and not a list."""
    with _opened(path) as table:
        kind = str(table.schema.field(columns.labels).type)
    return kind in ("string", "large_string", "string_view") or kind.startswith("dictionary<values=string")


def _rows(path: Path, columns: Columns, *, with_labels: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the columns that exist, as Python objects, with the number of each row."""
    needed = columns if with_labels else columns.to_predict()
    number, spent, limit = 0, 0, memory_budget(path.stat().st_size)
    with _opened(path) as table:
        names = table.schema.names
        if not needed.are_in(names) or (with_labels and columns.labels not in names):
            found = f"the columns {shortened(', '.join(names))}"
            raise DataError(path, found, expected_columns(needed, names, with_labels))
        used = [name for name in columns if name in names and (with_labels or name != columns.labels)]
        for batch in table.batches:
            some = batch.select(used)
            # A small file can claim to hold the same long text a million times.
            spent += some.nbytes
            if spent > limit:
                raise too_large(path, limit)
            for row in some.to_pylist():
                number += 1
                yield number, row


@contextmanager
def _opened(path: Path) -> Iterator[_Table]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(f'reading {path} needs pyarrow: pip install "lightdxml[parquet]"') from error
    try:
        if is_parquet(path):
            with pq.ParquetFile(path) as file:
                yield _Table(file.schema_arrow, file.iter_batches(_BATCH_ROWS), file.metadata.num_rows)
        else:
            with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as reader:
                yield _Table(reader.schema, iter(reader))
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(path, f"an invalid table ({excerpt(reason, 100)})", "an intact file: write it again") from error


def _class_names(path: Path, column: str) -> list[str] | None:
    """Return the names of labels that are numbers, as `datasets` writes them into the schema; None without any."""
    with _opened(path) as table:
        written = (table.schema.metadata or {}).get(b"huggingface", b"{}")
    try:
        feature = json.loads(written)["info"]["features"][column]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    while isinstance(feature, list | dict) and "names" not in feature:
        feature = feature[0] if isinstance(feature, list) and feature else dict(feature or {}).get("feature")
    names = feature.get("names") if isinstance(feature, dict) else None
    return names if isinstance(names, list) and all(isinstance(name, str) and name for name in names) else None


def _labels(path: Path, number: int, cell: Any, names: list[str] | None, separator: str | None) -> list[str]:
    if isinstance(cell, str):
        return labels_of_cell(cell, separator)
    labels = [cell] if isinstance(cell, int) else cell
    if not isinstance(labels, list):
        raise DataError(path, f"labels {cell!r:.60}", "a list of names, [] for none", line=number)
    for label in labels:
        if isinstance(label, bool) or not isinstance(label, str | int) or label == "":
            raise DataError(path, f"label {label!r:.60}", "a name that is not empty", line=number)
        if names is not None and isinstance(label, int) and not 0 <= label < len(names):
            raise DataError(path, f"label {label}", f"numbers from 0 to {len(names) - 1}", line=number)
    return [str(label) if names is None or isinstance(label, str) else names[label] for label in labels]
