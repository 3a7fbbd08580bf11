"""Splits in several files: read into memory, or with texts that stay in their files."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lightdxml.data import DataError, Dataset, load, save
from lightdxml.data.statistics import empty_documents
from lightdxml.data.text_files import TextFiles
from lightdxml.executor import Threads
from tests.data.samples import ANNIF_CSV, ANNIF_JSONL, ANNIF_TSV, CSV, JSONL, XC_JSON, XC_TEXT, json_lines, write_files

MORE: dict[str, tuple[str, str]] = {
    "jsonl": (JSONL, json_lines({"text": "tweets", "labels": ["bird", "pet"]}, {"text": " ", "labels": []})),
    "csv": (CSV, "text,labels\ntweets,bird|pet\nmeows,feline\n"),
    "json": (XC_JSON, json_lines({"title": "Owl", "content": "tweets", "target_ind": [5]})),
    "tsv": (ANNIF_TSV, "A bird tweets\t<urn:bird>\n"),
    "annif.csv": (ANNIF_CSV, "text,subject_uris\nA bird tweets,<urn:bird>\n"),
    "annif.jsonl": (ANNIF_JSONL, json_lines({"text": "A bird tweets", "subjects": [{"uri": "urn:bird"}]})),
    "svm": ("1,2 0:1 3:2\n", "4 1:1 7:0.25\n"),
    "txt": (XC_TEXT, "1 3 4\n3 2:0.25\n"),
}


def joined(kind: str) -> str:
    """Return one file with the documents of both."""
    first, second = MORE[kind]
    if kind == "txt":
        return "3 3 4\n" + first.split("\n", 1)[1] + second.split("\n", 1)[1]
    if kind == "csv":
        return CSV + ",tweets,bird|pet\n,meows,feline\n"
    if kind == "annif.csv":
        return ANNIF_CSV + "A bird tweets,<urn:bird>,\n"
    return first + second


def same(one: Dataset, other: Dataset) -> None:
    assert (one.label_names, one.feature_names, set(one.splits)) == (
        other.label_names, other.feature_names, set(other.splits),
    )  # fmt: skip
    for part, split in one.splits.items():
        twin = other.splits[part]
        assert (split.ids, split.texts) == (twin.ids, twin.texts)
        if split.texts is not None and twin.texts is not None:
            assert (split.texts.titles is None) == (twin.texts.titles is None)
            assert list(split.texts.titles or ()) == list(twin.texts.titles or ())
        np.testing.assert_array_equal(empty_documents(split), empty_documents(twin))
        for matrix, wanted in ((split.Y, twin.Y), (split.X, twin.X)):
            assert (matrix is None) == (wanted is None)
            if matrix is not None and wanted is not None:
                assert matrix.shape == wanted.shape
                assert matrix.has_sorted_indices
                for name in ("indptr", "indices", "data"):
                    found, expected = getattr(matrix, name), getattr(wanted, name)
                    assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())


@pytest.mark.parametrize("kind", MORE)
@pytest.mark.parametrize("executor", [None, Threads()], ids=["in memory", "in files"])
def test_several_files_are_read_as_one(tmp_path: Path, kind: str, executor: Threads | None) -> None:
    parts = {f"train-{i}__{kind}": content for i, content in enumerate(MORE[kind])}
    other = {f"test__{kind}": MORE[kind][1]}
    one = write_files(tmp_path / "data", **{f"train__{kind}": joined(kind)}, **other)
    whole = load(one)
    one.rename(tmp_path / "one")
    data = load(write_files(tmp_path / "data", **parts, **other), executor=executor)
    same(data, whole)
    assert isinstance(data.train.texts, TextFiles) == (executor is not None and data.train.texts is not None)


@pytest.mark.parametrize("executor", [None, Threads()], ids=["in memory", "in files"])
def test_sub_folders_are_splits(tmp_path: Path, executor: Threads | None) -> None:
    for part, n in (("train", 3), ("validation", 2), ("test", 1)):
        (tmp_path / part).mkdir()
        for i in range(n):
            rows: dict[str, Any] = {"text": [f"{part} {i}", "x"], "labels": [[f"{part}-{i}"], ["x"]]}
            pq.write_table(pa.table(rows), tmp_path / part / f"part-{i}.parquet")
    (tmp_path / "README.md").write_text("about")
    data = load(tmp_path, executor=executor)
    assert data.train.texts == ["train 0", "x", "train 1", "x", "train 2", "x"]
    assert data.dev is not None
    assert data.dev.texts == ["validation 0", "x", "validation 1", "x"]
    assert data.label_names == ["train-0", "x", "train-1", "train-2", "validation-0", "validation-1", "test-0"]


def test_a_sub_folder_joins_files_only_where_training_documents_are_missing(tmp_path: Path) -> None:
    write_files(tmp_path, test__jsonl=JSONL)
    write_files(tmp_path / "train", a__csv=CSV, b__csv=CSV)
    write_files(tmp_path / "dev", a__csv=CSV)
    assert {part: len(split) for part, split in load(tmp_path).splits.items()} == {"train": 4, "dev": 2, "test": 2}
    write_files(tmp_path, train__jsonl=JSONL)
    assert {part: len(split) for part, split in load(tmp_path).splits.items()} == {"train": 2, "test": 2}


@pytest.mark.parametrize("executor", [None, Threads()], ids=["in memory", "in files"])
def test_files_without_documents_are_left_out_unless_all_are(tmp_path: Path, executor: Threads | None) -> None:
    write_files(
        tmp_path, **{"train-0__csv": "text,labels\n", "train-1__csv": CSV, "train-2__csv": "", "train-3__csv": CSV}
    )
    data = load(tmp_path, executor=executor)
    assert data.train.texts == ["Cat\npurrs, and\nsleeps", "Dog\nbarks"] * 2
    write_files(tmp_path, **{"train-1__csv": "", "train-3__csv": "text,labels\n"})
    with pytest.raises(DataError, match="files without documents, expected"):
        load(tmp_path, executor=executor)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"train-0__csv": CSV, "train-1__jsonl": JSONL}, "several files for train: train-0.csv and train-1.jsonl"),
        ({"train__csv": CSV, "train-1__csv": CSV}, "files of one format whose names differ in a number"),
        ({"train-1__csv": CSV, "train-1__csv__gz": CSV}, "several files for train"),
        ({"train-0-of-3__csv": CSV, "train-1-of-3__csv": CSV}, "(train-0-of-3.csv, train-1-of-3.csv), expected 3"),
        ({"train-0__txt": XC_TEXT, "train-1__txt": "1 4 4\n3 2:1\n"}, "train-1.txt: found a header with 4 features"),
        ({"train-0__txt": XC_TEXT, "train-1__txt": "1 3 9\n3 2:1\n"}, "9 labels, expected 4, as in train-0.txt"),
        ({"train-0__jsonl": JSONL, "train-1__jsonl": JSONL + "{"}, "train-1.jsonl, line 3: found"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("executor", [None, Threads()], ids=["in memory", "in files"])
def test_files_that_do_not_belong_together_are_refused(
    tmp_path: Path, files: dict[str, str], message: str, executor: Threads | None
) -> None:
    with pytest.raises(DataError) as caught:
        load(write_files(tmp_path / "data", **files), executor=executor)
    assert message in str(caught.value)


def test_texts_in_files_are_a_sequence_and_can_be_taken(tmp_path: Path) -> None:
    records = [{"title": f"t{i}" if i < 3 else None, "text": f"text {i}", "labels": ["a"]} for i in range(10)]
    for i in range(0, 10, 3):
        (tmp_path / f"train-{i}.jsonl.gz").write_bytes(gzip.compress(json_lines(*records[i : i + 3]).encode()))
    texts = load(tmp_path, executor=Threads()).train.texts
    assert isinstance(texts, TextFiles)
    assert (texts[0], texts[9], texts[-1], list(texts[1:4])) == (
        "t0\ntext 0", "text 9", "text 9", ["t1\ntext 1", "t2\ntext 2", "text 3"],
    )  # fmt: skip
    some = texts.take(np.array([1, 2, 9]))
    assert isinstance(some, TextFiles)
    assert len(some.parts) == 2
    assert list(some) == list(some.take(np.arange(3))) == ["t1\ntext 1", "t2\ntext 2", "text 9"]
    assert list(texts.take(np.array([9, 0]))) == ["text 9", "t0\ntext 0"]
    with pytest.raises(IndexError):
        texts[10]


def test_files_that_change_or_vanish_are_refused(tmp_path: Path) -> None:
    write_files(tmp_path, **{"train-0__jsonl": JSONL, "train-1__jsonl": JSONL})
    texts = load(tmp_path, executor=Threads()).train.texts
    assert texts is not None
    write_files(tmp_path, **{"train-1__jsonl": JSONL * 2})
    with pytest.raises(DataError, match="4 documents, expected 2, as before: files must not change"):
        texts[3]
    (tmp_path / "train-1.jsonl").unlink()
    with pytest.raises(DataError, match="expected files on a disk that all machines of the cluster share"):
        texts[3]


def test_a_saved_data_set_is_read_file_by_file(tmp_path: Path) -> None:
    from tests.data.test_arrow import save_to_disk, table

    save_to_disk(tmp_path / "data", table(), n_files=2)
    texts = load(tmp_path / "data", executor=Threads()).train.texts
    assert isinstance(texts, TextFiles)
    assert texts == ["Cat\npurrs", "barks"]


def test_separators_are_checked_across_files(tmp_path: Path) -> None:
    rows = "".join(f"a text {i},a;b{i}\n" for i in range(30))
    write_files(tmp_path, **{"train-0__csv": "text,labels\n" + rows, "train-1__csv": "text,labels\n" + rows})
    for executor in (None, Threads()):
        with pytest.raises(DataError, match="--separator"):
            load(tmp_path, executor=executor)


def test_texts_in_files_can_be_saved(tmp_path: Path) -> None:
    write_files(tmp_path / "data", **{"train-0__jsonl": JSONL, "train-1__jsonl": JSONL})
    data = load(tmp_path / "data", executor=Threads())
    save(data, tmp_path / "one", "jsonl")
    same(load(tmp_path / "one"), data)


def test_errors_of_data_survive_the_way_from_another_process() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(DataError("a\nb.txt", "x", "y", line=3)))
    assert (str(error), error.line, error.path) == ("a\\nb.txt, line 3: found x, expected y", 3, Path("a\nb.txt"))
