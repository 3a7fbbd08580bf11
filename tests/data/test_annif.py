"""Annif's corpora: detected by content, read with their parts, ids and labels, and written so that they read back."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from lightdxml.data import DataError, Dataset, Split, Texts, load, save
from tests.data.samples import (
    ANNIF_CSV,
    ANNIF_JSONL,
    ANNIF_TSV,
    ANNIF_TXT,
    COMPRESSORS,
    CSV,
    JSONL,
    XC_TEXT,
    json_lines,
    write_files,
)

FORMATS: list[Any] = ["annif-tsv", "annif-csv", "annif-jsonl", "annif-txt"]


def write_all(folder: Path, files: Mapping[str, str]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode())
    return folder


def check_pets(data: Dataset, ids: list[str] | None) -> None:
    assert data.label_names == ["urn:pet", "urn:feline"]
    assert data.train.texts == ["A cat purrs", "A dog barks"]
    assert data.train.Y.toarray().tolist() == [[1, 1], [1, 0]]
    assert data.train.ids == ids


@pytest.mark.parametrize("suffix", COMPRESSORS)
@pytest.mark.parametrize(
    ("content", "ids"), [(ANNIF_TSV, None), (ANNIF_CSV, ["d1", "d2"]), (ANNIF_JSONL, ["d1", "d2"])]
)
def test_corpus_of_one_file_is_detected_by_its_content(
    tmp_path: Path, content: str, ids: list[str] | None, suffix: str
) -> None:
    path = tmp_path / f"corpus.dat{suffix}"
    path.write_bytes(COMPRESSORS[suffix](content.encode()))
    check_pets(load(path), ids)


@pytest.mark.parametrize("content", [ANNIF_TSV, ANNIF_CSV, ANNIF_JSONL])
def test_names_of_files_tell_the_parts_apart(tmp_path: Path, content: str) -> None:
    data = load(write_all(tmp_path, {"pets-train.tsv": content, "pets-test.tsv": content, "vocab.tsv": "<a>\tb\n"}))
    assert data.test is not None
    assert len(data.train) == len(data.test) == 2


def test_folder_of_documents_is_one_part(tmp_path: Path) -> None:
    check_pets(load(write_all(tmp_path, {**ANNIF_TXT, "README.txt": "About", "d1.url": "x"})), ["d1", "d2"])


def test_sub_folders_of_documents_are_parts(tmp_path: Path) -> None:
    parts = {f"{part}/{name}": text for part in ("train", "test", "validate") for name, text in ANNIF_TXT.items()}
    data = load(write_all(tmp_path, {**parts, "vocabulary.tsv": "<urn:pet>\tpet\n", "figures/a.png": "x"}))
    check_pets(data, ["d1", "d2"])
    assert data.test is not None
    assert data.dev is not None
    assert data.dev.ids == data.test.ids == ["d1", "d2"]


def test_documents_are_sorted_by_file_name_and_their_texts_are_exact(tmp_path: Path) -> None:
    texts = {"b.txt": "\ufefftwo\r\nlines\n", "a.txt": "", "a-1.txt": " x "}
    data = load(write_all(tmp_path, {**texts, "b.key": "\n solar energy \n", "a.key": "", "a-1.tsv": ""}))
    assert data.train.ids == ["a-1", "a", "b"]
    assert data.train.texts == [" x ", "", "two\r\nlines\n"]
    assert data.label_names == ["solar energy"]


def test_uris_come_before_names_of_the_same_document(tmp_path: Path) -> None:
    data = load(write_all(tmp_path, {"a.txt": "x", "a.key": "pet\n", "a.tsv": "<urn:pet>\tpet\tmore\nhome\n"}))
    assert data.label_names == ["urn:pet", "home"]


def test_documents_that_look_like_other_data_are_documents(tmp_path: Path) -> None:
    """Names with `train` in them, and texts that start as svmlight does."""
    files = {"train-accident.txt": "1999 was", "train-accident.tsv": "<urn:a>\n", "b.txt": "1984", "b.tsv": "<urn:b>\n"}
    data = load(write_all(tmp_path, files))
    assert data.train.ids == ["b", "train-accident"]
    assert data.train.texts == ["1984", "1999 was"]


@pytest.mark.parametrize(
    "lines",
    [
        "1984\t<urn:a>\nx\t<urn:a>\n",
        "#MeToo\t<urn:a>\nx\t<urn:a>\n",
        "{braces}\t<urn:a>\nx\t\n",
        "[brackets]\turn:a\nx\t\n",
        "\t\n\na, b\t\nx\t<urn:a>\n",
        "text\thttp://x/a\n\t<urn:a>\n",
    ],
)
def test_texts_of_a_tsv_may_start_with_anything(tmp_path: Path, lines: str) -> None:
    data = load(write_all(tmp_path, {"a.tsv": lines}) / "a.tsv")
    expected = [line.partition("\t")[0] for line in lines.splitlines() if line]
    assert data.train.texts == expected


@pytest.mark.parametrize(
    ("files", "n_features", "texts"),
    [
        ({"data.txt": XC_TEXT, "data.key": "secret"}, 3, None),
        ({"data.txt": "0 1:1\n1 0:1\n", "data.key": "secret"}, 2, None),
        ({"train.txt": "# from\thttp://x/y\n0 1:1\n"}, 2, None),
        ({"train.txt": "# x\t<a>\n0 1:1 # y\t<b>\n"}, 2, None),
        ({"my.csv": CSV, "my.txt": "about it", "other.tsv": ANNIF_TSV}, None, 2),
        ({"my.tsv": CSV.replace(",", "\t").replace('"purrs\t', '"purrs,'), "my.txt": "about it"}, None, 2),
        ({"train.jsonl": JSONL, "a.txt": "text", "a.tsv": "<urn:a>\n"}, None, 2),
        ({"my.jsonl": JSONL.replace("}\n", "}\t\n"), "train/a.txt": "text", "train/a.key": "a\n"}, None, 2),
        ({"my.csv": "text,labels,subject_uris\na,b,<urn:c>\n"}, None, 1),
        ({"train.jsonl": json_lines({"text": "a", "labels": ["b"], "subjects": [], "document_id": "x"})}, None, 1),
    ],
)
def test_other_formats_are_read_as_before(
    tmp_path: Path, files: dict[str, str], n_features: int | None, texts: int | None
) -> None:
    data = load(write_all(tmp_path, files))
    assert data.n_features == n_features
    assert (None if data.train.texts is None else len(data.train.texts)) == texts
    assert not any(name.startswith("urn:") for name in data.label_names or ())


def test_documents_without_labels_are_read_where_the_format_says_so(tmp_path: Path) -> None:
    lines = json_lines({"document_id": "x", "text": "a"}, {"text": "b", "subjects": [{"label": "<i>", "uri": None}]})
    for content in (lines, "text;subject_uris\na;\nb;<i>\n", "a\t\nb\t<i>\n"):
        data = load(write_all(tmp_path, {"a.dat": content}) / "a.dat")
        assert data.train.Y.toarray().tolist() == [[0], [1]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "x\t<urn:a>\n\ny <urn:b>\n", "a.tsv, line 3: found no tab in 'y <urn:b>', expected a text, a tab"),
        ("a.tsv", "x\t<urn:a>\ny\t<urn:b\n", "a.tsv, line 2: found '<urn:b', expected a URI in one pair of angle"),
        ("a.tsv", "x\t<urn:a>\ny\turn:b>\n", "line 2: found 'urn:b>', expected a URI in one pair"),
        ("a.tsv", "x\t<urn:a>\ny\t<>\n", "line 2: found '<>', expected a URI in one pair"),
        ("a.tsv", "x\t<urn:a>\ny\t<urn:b><urn:c>\n", "line 2: found '<urn:b><urn:c>', expected a URI in one pair"),
        ("a.tsv", "x\t<urn:a>\ny\tand\t<urn:b>\n", "line 2: found 'and', expected URIs with spaces between them"),
        ("a.csv", "text,subject_uris\nx,<urn:a>\ny,solar energy\n", "a.csv, line 3: found 'solar', expected URIs"),
        ("a.csv", 'text,subject_uris\nx,<urn:a>\n"\n\ny",<urn:b\n', "a.csv, line 3: found '<urn:b', expected"),
        ("a.csv", "text,subject_uris,subject_uris\nx,<a>,<b>\n", "two columns named subject_uris"),
        ("a.csv", "text,subject_uris\n", "a.csv: found no documents"),
        ("a.jsonl", '{"text": "x", "subjects": {}}', "line 1: found subjects '{}', expected a list of objects"),
        ("a.jsonl", '{"text": "x", "subjects": ["a"]}', "line 1: found subject '\"a\"', expected an object with a uri"),
        ("a.jsonl", '{"text": "x", "subjects": [{"uri": 5, "label": "a"}]}', "expected an object with a uri or a"),
        ("a.jsonl", '{"text": "x", "subjects": [{"uri": "", "label": ""}]}', "that is not empty"),
        ("a.jsonl", '{"text": "x", "subjects": [{"uri": "<urn:a"}]}', "line 1: found '<urn:a', expected a URI"),
        ("a.jsonl", '{"metadata": {"title": "x"}, "subjects": []}', "a document without title and text"),
        ("a.jsonl", '{"document_id": [], "text": "x"}', "a string or an integer as id"),
    ],
)
def test_invalid_line_is_rejected_with_its_number(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        load(write_all(tmp_path, {name: content}) / name)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"c.txt": "x"}, "c.txt: found a document without labels, expected its labels in c.tsv or c.key beside it"),
        ({"c.key": "x"}, "c.key: found labels without a document, expected its text in c.txt beside it"),
        ({"c.tsv": "<urn:c>\n"}, "c.tsv: found labels without a document"),
        ({"c.txt": "x", "c.tsv": "<urn:a>\n<urn:b\tb\n"}, "c.tsv, line 2: found '<urn:b', expected a URI in one pair"),
        ({"c.txt": "x", "c.key": "a\nurn:b>\n"}, "c.key, line 2: found 'urn:b>', expected a URI in one pair"),
    ],
)
def test_incomplete_document_is_rejected_with_its_file(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for folder in (tmp_path, tmp_path / "parts" / "train"):
        write_all(folder, {**ANNIF_TXT, **files})
    write_all(tmp_path / "parts" / "test", ANNIF_TXT)
    for folder in (tmp_path, tmp_path / "parts"):
        with pytest.raises(DataError) as caught:
            load(folder)
        assert message in str(caught.value)


def test_part_without_any_labels_is_not_left_out(tmp_path: Path) -> None:
    write_all(tmp_path / "train", ANNIF_TXT)
    write_all(tmp_path / "test", {"a.txt": "x"})
    with pytest.raises(DataError, match=r"a.txt: found a document without labels"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["c.txt", "c.key"])
def test_wrong_encoding_of_a_document_is_rejected_and_the_right_one_can_be_given(tmp_path: Path, name: str) -> None:
    write_all(tmp_path, {**ANNIF_TXT, "c.txt": "x", "c.key": "x"})
    (tmp_path / name).write_bytes("a\nKätzchen".encode("latin-1"))
    with pytest.raises(DataError, match=rf"{name}, line 2: found bytes that are not utf-8"):
        load(tmp_path)
    assert len(load(tmp_path, encoding="latin-1").train) == 3


@pytest.mark.parametrize("name", ["c.txt", "c.key"])
@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_document_is_rejected(tmp_path: Path, name: str, suffix: str) -> None:
    """Many small files could unpack to more than memory holds."""
    write_all(tmp_path, {**ANNIF_TXT, "c.txt": "x", "c.key": "x"})
    (tmp_path / name).write_bytes(COMPRESSORS[suffix](b"text"))
    with pytest.raises(DataError, match=f"{name}: found compressed data, expected plain text"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["c.txt", "c.key"])
def test_links_to_nothing_and_pipes_among_documents_are_rejected(tmp_path: Path, name: str) -> None:
    write_all(tmp_path, {**ANNIF_TXT, "c.txt": "x", "c.key": "x"})
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(name)
    with pytest.raises(DataError, match=f"{name}: found a broken symbolic link"):
        load(tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match=f"{name}: found a pipe"):
        load(tmp_path)


def test_file_name_that_is_not_utf8_is_rejected(tmp_path: Path) -> None:
    write_all(tmp_path, ANNIF_TXT)
    for suffix in (b".txt", b".key"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff" + suffix)).write_bytes(b"x")
    with pytest.raises(DataError, match="expected file names in UTF-8") as caught:
        load(tmp_path)
    assert str(caught.value).encode()


def test_memory_limit_holds_for_a_folder_of_documents(tmp_path: Path) -> None:
    write_all(tmp_path, {**ANNIF_TXT, "d1.txt": "x" * 10**6})
    with pytest.raises(ValueError, match="of the limit"):
        load(tmp_path, memory_limit=1)


def test_memory_is_asked_for_texts_and_labels_only(tmp_path: Path) -> None:
    write_all(tmp_path, ANNIF_TXT)
    with (tmp_path / "d1.pdf").open("wb") as stream:
        stream.truncate(1 << 36)
    assert len(load(tmp_path, memory_limit=1 << 33).train) == 2


characters = st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff\0")
uris = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8).map("urn:{}".format)
rows = st.lists(st.tuples(st.text(characters, max_size=20), st.sets(st.integers(0, 4))), min_size=1, max_size=12)


@given(st.lists(uris, min_size=1, max_size=5, unique=True), rows, st.sampled_from(FORMATS))
def test_any_texts_read_back_as_far_as_the_format_holds_them(
    tmp_path_factory: pytest.TempPathFactory, labels: list[str], rows: list[tuple[str, set[int]]], format: Any
) -> None:
    Y = np.zeros((len(rows) + 1, len(labels)), dtype=np.float32)
    Y[0, 0] = 1
    for i, (_, row) in enumerate(rows, start=1):
        Y[i, [label for label in row if label < len(labels)]] = 1
    texts = ["first", *(text for text, _ in rows)]
    ids = [f"id {i:02}" for i in range(len(texts))]
    train = Split(Y=csr_matrix(Y), texts=Texts(texts), ids=ids, ignore=np.array([[1, 0]]))
    data = load(save(Dataset("any", train, test=train, label_names=labels), tmp_path_factory.mktemp("any"), format))
    assert data.label_names == labels
    expected = [re.sub("\r\n|[\t\r\n]", " ", text) for text in texts] if format == "annif-tsv" else texts
    for split in (data.train, data.test):
        assert split is not None
        assert split.texts == expected
        assert split.ids == (None if format == "annif-tsv" else ids)
        assert split.Y.toarray().tolist() == Y.tolist()
        assert split.ignore is not None
        assert split.ignore.tolist() == [[1, 0]]


def pets(ids: list[str] | None, labels: list[str]) -> Dataset:
    texts = Texts(["purrs", "barks"], titles=["Cat", ""])
    train = Split(Y=csr_matrix([[1, 1], [0, 1]], dtype=np.float32), texts=texts, ids=ids, ignore=np.array([[0, 1]]))
    return Dataset("pets", train, label_names=labels)


@pytest.mark.parametrize("format", FORMATS)
def test_title_becomes_the_first_line_of_the_text(tmp_path: Path, format: Any) -> None:
    data = load(save(pets(["1", "2"], ["urn:a", "urn:b"]), tmp_path, format))
    assert data.train.texts == ["Cat purrs" if format == "annif-tsv" else "Cat\npurrs", "barks"]


@pytest.mark.parametrize("format", ["annif-jsonl", "annif-txt"])
def test_names_with_spaces_read_back(tmp_path: Path, format: Any) -> None:
    labels = ["solar energy", "urn:b"]
    data = load(save(pets(["1", "2"], labels), tmp_path, format))
    assert data.label_names == labels
    assert data.train.Y.toarray().tolist() == [[1, 1], [0, 1]]


@pytest.mark.parametrize(
    ("format", "label"),
    [
        ("annif-tsv", "solar energy"),
        ("annif-csv", "solar energy"),
        ("annif-csv", "a>b"),
        ("annif-txt", "a\nb"),
        ("annif-txt", " a"),
        ("annif-txt", "<a>"),
    ],
)
def test_label_that_a_format_cannot_hold_is_rejected_before_anything_is_written(
    tmp_path: Path, format: Any, label: str
) -> None:
    with pytest.raises(DataError, match=f"found the label .*, expected labels that {format} can hold: write them as"):
        save(pets(None, ["urn:a", label]), tmp_path / "out", format)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("ids", [None, ["a/b", "c"], ["a", "A"], ["..", "a"], ["a", "x" * 300], ["", "a"]])
def test_ids_that_cannot_be_file_names_become_numbers(tmp_path: Path, ids: list[str] | None) -> None:
    data = load(save(pets(ids, ["urn:a", "urn:b"]), tmp_path, "annif-txt"))
    assert data.train.ids == ["1", "2"]
    assert data.train.texts == ["Cat\npurrs", "barks"]


def test_documents_in_files_are_in_the_order_of_their_names_with_labels_and_pairs_to_ignore(tmp_path: Path) -> None:
    data = load(save(pets(["b", "a"], ["urn:a", "urn:b"]), tmp_path, "annif-txt"))
    assert data.train.ids == ["a", "b"]
    assert data.train.texts == ["barks", "Cat\npurrs"]
    assert data.train.Y.toarray().tolist() == [[0, 1], [1, 1]]
    assert data.train.ignore is not None
    assert data.train.ignore.tolist() == [[1, 1]]


def test_documents_of_an_earlier_data_set_are_replaced_and_other_files_stay(tmp_path: Path) -> None:
    earlier = pets(["old", "older"], ["urn:a", "two words"])
    save(replace(earlier, dev=earlier.train), tmp_path, "annif-txt")
    (tmp_path / "train" / "notes.md").write_text("mine")
    save(pets(["new", "old"], ["urn:a", "urn:b"]), tmp_path, "annif-txt", overwrite=True)
    assert sorted(path.name for path in (tmp_path / "train").iterdir()) == [
        "new.tsv",
        "new.txt",
        "notes.md",
        "old.tsv",
        "old.txt",
    ]
    assert load(tmp_path).dev is None


def test_table_of_the_user_is_not_replaced(tmp_path: Path) -> None:
    write_files(tmp_path, train__csv=CSV, test__csv=ANNIF_CSV)
    save(pets(None, ["urn:a", "urn:b"]), tmp_path, "annif-jsonl", overwrite=True)
    assert (tmp_path / "train.csv").read_text() == CSV
    assert not (tmp_path / "test.csv").exists()


def test_files_per_document_are_not_compressed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="leave out the compression"):
        save(pets(None, ["urn:a", "urn:b"]), tmp_path, "annif-txt", "gz")
