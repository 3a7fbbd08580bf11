"""Parquet files, and data sets as `save_to_disk` of Hugging Face's `datasets` writes them."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lightdxml.data import DataError, load
from lightdxml.data.options import ReadOptions
from lightdxml.data.stream import opened, text_batches

ROWS: dict[str, Any] = {
    "id": ["d1", "d2"],
    "title": ["Cat", None],
    "text": ["purrs", "barks"],
    "labels": [["pet", "feline"], ["pet"]],
}


def table(**columns: Any) -> pa.Table:
    return pa.table(ROWS | columns)


def with_class_names(data: pa.Table, names: list[str]) -> pa.Table:
    feature = {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "List"}
    info = {"info": {"features": {"labels": feature}}}
    return data.replace_schema_metadata({"huggingface": json.dumps(info)})


def save_to_disk(folder: Path, data: pa.Table, n_files: int = 1) -> Path:
    """Write a data set as `datasets` 5.2 does."""
    folder.mkdir(parents=True)
    names = [f"data-{i:05}-of-{n_files:05}.arrow" for i in range(n_files)]
    rows = -(-len(data) // n_files)
    for i, name in enumerate(names):
        with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_stream(sink, data.schema) as writer:
            writer.write_table(data.slice(i * rows, rows))
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def check(data: Any) -> None:
    assert data.train.texts == ["Cat\npurrs", "barks"]
    assert data.train.ids == ["d1", "d2"]
    assert data.label_names == ["pet", "feline"]
    assert data.train.Y.toarray().tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize(
    "labels",
    [
        ROWS["labels"],
        pa.array(ROWS["labels"], pa.large_list(pa.large_string())),
        ["pet|feline", "pet"],
        ["['pet', 'feline']", '["pet"]'],
        pa.array(["pet|feline", "pet"]).dictionary_encode(),
    ],
    ids=["lists", "large lists", "cells", "lists in cells", "dictionary"],
)
def test_a_parquet_file_is_read(tmp_path: Path, labels: Any) -> None:
    pq.write_table(table(labels=labels), tmp_path / "data.parquet")
    check(load(tmp_path / "data.parquet"))


def test_parquet_files_of_a_folder_are_its_parts_and_may_be_several(tmp_path: Path) -> None:
    for i in range(2):
        pq.write_table(table().slice(i, 1), tmp_path / f"train-{i:05}-of-00002.parquet")
    pq.write_table(table(labels=[["pet"], ["new"]]), tmp_path / "test.parquet")
    data = load(tmp_path)
    assert data.train.texts == ["Cat\npurrs", "barks"]
    assert data.test is not None
    assert data.label_names == ["pet", "feline", "new"]


@pytest.mark.parametrize("n_files", [1, 2])
def test_a_data_set_that_was_saved_to_disk_is_read(tmp_path: Path, n_files: int) -> None:
    check(load(save_to_disk(tmp_path / "saved", table(), n_files)))


def test_saved_splits_are_train_dev_and_test(tmp_path: Path) -> None:
    for name in ("train", "validation", "test"):
        save_to_disk(tmp_path / "saved" / name, table())
    (tmp_path / "saved" / "dataset_dict.json").write_text('{"splits": ["train", "validation", "test"]}')
    data = load(tmp_path / "saved")
    check(data)
    assert sorted(data.splits) == ["dev", "test", "train"]


def test_labels_with_names_in_the_schema_have_these_names(tmp_path: Path) -> None:
    numbered = with_class_names(table(labels=[[1, 0], [1]]), ["feline", "pet"])
    pq.write_table(numbered, tmp_path / "data.parquet")
    check(load(tmp_path / "data.parquet"))
    check(load(save_to_disk(tmp_path / "saved", numbered)))
    pq.write_table(with_class_names(table(labels=[[1, 2], [1]]), ["feline", "pet"]), tmp_path / "bad.parquet")
    with pytest.raises(DataError, match="label 2, expected numbers from 0 to 1"):
        load(tmp_path / "bad.parquet")


def test_integers_without_names_are_ids(tmp_path: Path) -> None:
    pq.write_table(table(labels=[[7, 999_999], [7]]), tmp_path / "data.parquet")
    assert load(tmp_path / "data.parquet").label_names == ["7", "999999"]
    pq.write_table(table(labels=[7, 8]), tmp_path / "data.parquet")
    assert load(tmp_path / "data.parquet").label_names == ["7", "8"]


def test_single_labels_in_lists_may_contain_commas(tmp_path: Path) -> None:
    pq.write_table(table(labels=[["a, b"], ["c, d"]]), tmp_path / "data.parquet")
    assert load(tmp_path / "data.parquet").n_labels == 2
    pq.write_table(table(labels=["a, b", "c, d"]), tmp_path / "data.parquet")
    with pytest.raises(DataError, match='--separator ","'):
        load(tmp_path / "data.parquet")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": [1, 2]}, "text '1', expected a string as text"),
        ({"text": [b"1", b"2"]}, "expected a string as text"),
        ({"text": [None, None]}, "a document without title and text"),
        ({"labels": [["a"], None]}, "labels None.*expected a list of names, \\[\\] for none"),
        ({"labels": [["a"], [None]]}, "label None"),
        ({"labels": [[1.5], []]}, "label 1.5"),
        ({"labels": [{"a": 1}, {"a": 2}]}, "expected a list of names"),
    ],
)
def test_bad_cells_are_refused(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    pq.write_table(table(**columns), tmp_path / "data.parquet")
    with pytest.raises(DataError, match=message):
        load(tmp_path / "data.parquet")


def test_missing_columns_are_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"body": ["a"], "tags": [["x"]]}), tmp_path / "data.parquet")
    with pytest.raises(DataError, match=r"the columns body, tags, .* --text-column NAME --label-column NAME"):
        load(tmp_path / "data.parquet")
    assert load(tmp_path / "data.parquet", text_column="body", label_column="tags").label_names == ["x"]


@pytest.mark.parametrize("keep", [4, 50, 200, -1])
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, keep: int) -> None:
    pq.write_table(table(), tmp_path / "data.parquet")
    (tmp_path / "data.parquet").write_bytes((tmp_path / "data.parquet").read_bytes()[:keep])
    with pytest.raises(DataError, match="an invalid table") as error:
        load(tmp_path / "data.parquet")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "state",
    [
        "{",
        "[]",
        "{}",
        '{"_data_files": [{"filename": "../data.arrow"}]}',
        '{"_data_files": [{"filename": "other.arrow"}]}',
        '{"_data_files": 7}',
        '{"_data_files": [7]}',
        '{"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_indices_data_files": [{"filename": "i"}]}',
    ],
)
def test_a_saved_data_set_with_a_forged_state_is_refused(tmp_path: Path, state: str) -> None:
    save_to_disk(tmp_path / "saved", table())
    (tmp_path / "data.arrow").write_bytes((tmp_path / "saved" / "data-00000-of-00001.arrow").read_bytes())
    (tmp_path / "saved" / "state.json").write_text(state)
    with pytest.raises(DataError, match=r"save_to_disk"):
        load(tmp_path / "saved")


def test_a_file_that_repeats_a_long_text_does_not_fill_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lightdxml.data.files._FREE_MEMORY", 1 << 20)
    pq.write_table(pa.table({"text": ["x" * 10_000] * 5000, "labels": [["a"]] * 5000}), tmp_path / "data.parquet")
    with pytest.raises(DataError, match="when unpacked"):
        load(tmp_path / "data.parquet")


def test_without_pyarrow_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(table(), tmp_path / "data.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "lightdxml\[parquet\]"'):
        load(tmp_path / "data.parquet")


@pytest.mark.parametrize("kind", ["parquet", "saved"])
def test_documents_to_predict_need_no_labels(tmp_path: Path, kind: str) -> None:
    data = pa.table({"nr": ["d1", "d2"], "body": ["a cat", "a dog"]})
    path = tmp_path / "documents"
    if kind == "parquet":
        pq.write_table(data, path)
    else:
        save_to_disk(path, data)
    for column in ("nr", "none"):
        with opened(path) as stream:
            options = ReadOptions(text_column="body", label_column="tags", id_column=column)
            (batch,) = text_batches(path, stream, options)
        assert list(batch.documents) == ["a cat", "a dog"]
        assert batch.ids == (["d1", "d2"] if column == "nr" else [None, None])


def test_a_table_to_predict_is_found_by_its_columns() -> None:
    options = ReadOptions(text_column="Body", label_column="tags")
    for content in (b"nr,BODY\n1,a cat\n", b"body\na cat\n", b'{"Body": "a cat"}\n'):
        (batch,) = text_batches(Path("-"), io.BytesIO(content), options)
        assert list(batch.documents) == ["a cat"]
    with pytest.raises(DataError, match="a column named body: check --text-column"):
        list(text_batches(Path("-"), io.BytesIO(b"a,b\n1,2\n"), options, "csv"))


def test_a_bad_row_loses_no_others(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a", None, "b"]}), tmp_path / "d.parquet")
    with (tmp_path / "d.parquet").open("rb") as stream:
        (batch,) = text_batches(tmp_path / "d.parquet", stream)
    assert list(batch.documents) == ["a", "", "b"]
    assert list(batch.errors) == [1]
