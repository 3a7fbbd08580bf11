"""Every format by its content, alone or in a folder, plain or compressed."""

from __future__ import annotations

import csv
import gzip
import json
import os
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_matrix, csr_matrix, save_npz

from lightdxml.data import DataError, Dataset, Split, Texts, load, save

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

X = [[0, 0.5, 0], [1, 0, 2]]
Y = [[1, 0, 1, 0], [0, 1, 0, 0]]

PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstd.compress}


def put(folder: Path, **contents: str) -> Path:
    """Write files; in names, `__` stands for a dot."""
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        (folder / name.replace("__", ".")).write_text(content, encoding="utf-8")
    return folder


def jsonl(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


XC = "2 3 4\n0,2 1:0.5\n1 0:1 2:2\n"
MATRIX_X, MATRIX_Y = "2 3\n1:0.5\n0:1 2:2\n", "2 4\n0:1 2:1\n1:1\n"
JSONL = jsonl(
    {"id": "d1", "title": "Cat", "text": "purrs", "labels": ["pet", "feline"]},
    {"id": "d2", "title": "Dog", "text": "barks", "labels": ["pet"]},
)
RAW = jsonl(
    {"uid": "u1", "title": "Cat", "content": "purrs", "target_ind": [2, 0], "target_rel": [1.0, 0.5]},
    {"uid": "u2", "title": "Dog", "content": "", "target_ind": [], "target_rel": []},
)
CSV = 'title,text,labels\nCat,"purrs, and\nsleeps",pet|feline\nDog,barks,pet\n'


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("name", ["train.txt", "nothing-telling.dat"])
def test_xc_text_is_known_by_its_header(tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / f"{name}{suffix}"
    path.write_bytes(PACKERS[suffix](XC.encode()))
    data = load(path)
    assert data.train.X is not None
    assert data.train.X.toarray().tolist() == X
    assert data.train.Y.toarray().tolist() == Y
    assert (data.test, data.dev, data.label_names) == (None, None, None)


def test_compression_is_known_by_content_not_by_name(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_bytes(gzip.compress(XC.encode()))
    assert load(path).n_labels == 4


@pytest.mark.parametrize("pack", PACKERS.values(), ids=["plain", "gz", "zst"])
@pytest.mark.parametrize("content", [XC, JSONL, RAW, CSV, CSV.replace(",", "\t").replace('"purrs\t', '"purrs,')])
def test_every_text_format_may_be_compressed(tmp_path: Path, content: str, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(pack(content.encode()))
    assert len(load(path).train) == 2


def test_split_form_is_read_as_a_pair(tmp_path: Path) -> None:
    put(tmp_path, trn_X_Xf__txt=MATRIX_X, trn_X_Y__txt=MATRIX_Y, tst_X_Xf__txt=MATRIX_X, tst_X_Y__txt=MATRIX_Y)
    put(
        tmp_path,
        filter_labels_test__txt="0 2\n1 1\n",
        lbl_X_Xf__txt="4 3\n0:1\n0:1\n0:1\n0:1\n",
        Yf__txt="a\nb\nc\nd\n",
    )
    data = load(tmp_path)
    assert data.train.X is not None
    assert data.train.X.toarray().tolist() == X
    assert data.train.Y.toarray().tolist() == Y
    assert data.test is not None
    assert data.test.ignore is not None
    assert data.test.ignore.tolist() == [[0, 2], [1, 1]]
    assert data.train.ignore is None
    assert data.label_names == ["a", "b", "c", "d"]


@pytest.mark.parametrize("which", ["trn_X_Xf.txt", "trn_X_Y.txt"])
def test_one_half_of_a_pair_finds_the_other(tmp_path: Path, which: str) -> None:
    put(tmp_path, trn_X_Xf__txt=MATRIX_X, trn_X_Y__txt=MATRIX_Y)
    assert load(tmp_path / which).train.Y.toarray().tolist() == Y


def test_half_a_pair_alone_is_refused(tmp_path: Path) -> None:
    put(tmp_path, trn_X_Xf__txt=MATRIX_X)
    with pytest.raises(DataError, match="one file of labels, with Y in its name"):
        load(tmp_path / "trn_X_Xf.txt")


def test_a_pair_of_different_lengths_is_refused(tmp_path: Path) -> None:
    put(tmp_path, trn_X_Xf__txt=MATRIX_X, trn_X_Y__txt="1 4\n0:1\n")
    with pytest.raises(DataError, match=r"trn_X_Y.txt: found 1 rows, expected 2, as in trn_X_Xf.txt"):
        load(tmp_path)


def test_relevances_are_kept_and_zeros_are_no_labels(tmp_path: Path) -> None:
    put(tmp_path, trn_X_Xf__txt=MATRIX_X, trn_X_Y__txt="2 4\n0:0.5 1:0\n1:1\n")
    data = load(tmp_path)
    assert data.train.Y.toarray().tolist() == [[0.5, 0, 0, 0], [0, 1, 0, 0]]
    assert data.train.Y.nnz == 2
    put(tmp_path, trn_X_Y__txt="2 4\n0:-0.5\n1:1\n")
    with pytest.raises(DataError, match="negative relevance"):
        load(tmp_path)


def test_old_form_takes_one_column_of_its_split_files(tmp_path: Path) -> None:
    put(tmp_path, Bibtex_data__txt="4 2 2\n0 0:1\n1 0:2\n0 0:3\n1 0:4\n")
    put(tmp_path, bibtex_trSplit__txt="4 1\n2 2\n1 3\n", bibtex_tstSplit__txt="3 4\n")
    data = load(tmp_path)
    assert data.train.X is not None
    assert data.test is not None
    assert data.test.X is not None
    assert data.train.X.toarray()[:, 0].tolist() == [4, 2, 1]
    assert data.test.X.toarray()[:, 0].tolist() == [3]
    second = load(tmp_path, split=1)
    assert second.train.Y.toarray().tolist() == [[1, 0], [0, 1], [1, 0]]
    with pytest.raises(DataError, match="found 2 splits"):
        load(tmp_path, split=2)


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ("0\n1\n", "2\n", "found document 0, expected numbers from 1 to 4"),
        ("1\n5\n", "2\n", "found document 5"),
        ("1\n1\n", "2\n", "a document twice"),
        ("1\n2\n", "2\n", "documents that are in train too"),
        ("1\nx\n", "2\n", "bibtex_trSplit.txt, line 2: found 'x'"),
        ("1\n2 3\n", "2\n", "line 2: found '2 3', expected 1 whole numbers"),
    ],
)
def test_bad_split_files_are_refused(tmp_path: Path, train: str, test: str, message: str) -> None:
    put(tmp_path, Bibtex_data__txt="4 2 2\n0 0:1\n1 0:2\n0 0:3\n1 0:4\n")
    put(tmp_path, bibtex_trSplit__txt=train, bibtex_tstSplit__txt=test)
    with pytest.raises(DataError, match=message):
        load(tmp_path)


def test_headerless_svmlight_parts_get_one_width(tmp_path: Path) -> None:
    put(tmp_path, train__svm="0 1:1\n", test__svm="4,2 7:0.5\n")
    data = load(tmp_path)
    assert data.n_features == 8
    assert data.n_labels == 5


@pytest.mark.parametrize("matrix", [csr_matrix, coo_matrix], ids=["csr", "coo"])
@pytest.mark.parametrize("names", [("X.trn.npz", "Y.trn.npz"), ("train_X.npz", "train_Y.npz"), ("x.npz", "y.npz")])
def test_npz_pairs_are_read(tmp_path: Path, names: tuple[str, str], matrix: Any) -> None:
    save_npz(tmp_path / names[0], matrix(np.array(X, dtype=np.float64)))
    save_npz(tmp_path / names[1], matrix(np.array(Y, dtype=np.int8)))
    data = load(tmp_path)
    assert data.train.X is not None
    assert data.train.X.toarray().tolist() == X
    assert data.train.Y.toarray().tolist() == Y
    assert data.train.X.dtype == data.train.Y.dtype == np.float32


def _npz(path: Path, **arrays: Any) -> None:
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.zeros(3)}, "no as_bits sparse matrix"),
        ({"data": np.array([{}], dtype=object)}, "no as_bits sparse matrix"),
        (
            {"format": b"csr", "shape": [1, 2], "data": [np.nan], "indices": [0], "indptr": [0, 1]},
            "NaN or infinite",
        ),
        ({"format": b"csr", "shape": [1, 2], "data": [1e300], "indices": [0], "indptr": [0, 1]}, "overflows"),
        (
            {"format": b"csr", "shape": [1, 2], "data": [1.0], "indices": [5], "indptr": [0, 1]},
            "contradicts itself",
        ),
        (
            {"format": b"csr", "shape": [1, 2], "data": [1.0], "indices": [-1], "indptr": [0, 1]},
            "contradicts itself",
        ),
        ({"format": b"csr", "shape": [1, 2], "data": [1j], "indices": [0], "indptr": [0, 1]}, "real numbers"),
        ({"format": b"csr", "shape": [2, 2], "data": [1.0], "indices": [0], "indptr": [0, 9, 1]}, "matrix"),
        # Converted before it was checked, this one crashed the interpreter.
        (
            {
                "format": b"csc",
                "shape": [2, 2],
                "data": np.ones(4),
                "indices": np.array([0, 10**8, 5, 2 * 10**9], dtype=np.int32),
                "indptr": np.array([0, 2, 4], dtype=np.int32),
            },
            "contradicts itself",
        ),
        ({"format": b"csr", "shape": [1, 10**12], "data": [1.0], "indices": [0], "indptr": [0, 1]}, "at most"),
    ],
)
def test_bad_npz_is_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    _npz(tmp_path / "x.npz", **arrays)
    save_npz(tmp_path / "y.npz", csr_matrix(Y))
    with pytest.raises(DataError, match=message) as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_truncated_npz_is_refused(tmp_path: Path) -> None:
    save_npz(tmp_path / "x.npz", csr_matrix(X))
    save_npz(tmp_path / "y.npz", csr_matrix(Y))
    whole = (tmp_path / "x.npz").read_bytes()
    for cut in (len(whole) - 1, len(whole) // 2, 30):
        (tmp_path / "x.npz").write_bytes(whole[:cut])
        with pytest.raises(DataError):
            load(tmp_path)


def test_jsonl_keeps_ids_titles_texts_and_names(tmp_path: Path) -> None:
    put(tmp_path, train__jsonl=JSONL, test__jsonl=jsonl({"text": "flies", "labels": ["bird", "pet", "pet"]}))
    data = load(tmp_path)
    assert data.label_names == ["pet", "feline", "bird"]
    assert data.train.ids == ["d1", "d2"]
    assert data.train.texts == ["Cat\npurrs", "Dog\nbarks"]
    assert data.train.texts is not None
    assert data.train.texts.titles == ["Cat", "Dog"]
    assert data.train.X is None
    assert data.train.Y.toarray().tolist() == [[1, 1, 0], [1, 0, 0]]
    assert data.test is not None
    assert data.test.Y.toarray().tolist() == [[1, 0, 1]]
    assert data.test.texts == ["flies"]


def test_label_names_file_gives_order_names_and_unseen_labels(tmp_path: Path) -> None:
    names = json.dumps({"unseen": "Never there", "feline": "Katze", "pet": "Haustier"})
    put(tmp_path, train__jsonl=JSONL, label_names__json=names)
    data = load(tmp_path)
    assert data.label_names == ["Never there", "Katze", "Haustier"]
    assert data.train.Y.toarray().tolist() == [[0, 1, 1], [0, 0, 1]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a"}', "found no labels, expected labels as a list"),
        ('{"text": "a", "labels": "pet"}', "found labels '\"pet\"'"),
        ('{"text": "a", "labels": [null]}', "found label 'null'"),
        ('{"text": "a", "labels": [""]}', "a name that is not empty"),
        ('{"text": 5, "labels": []}', "a string as text"),
        ('{"labels": []}', "without title and text"),
        ('{"text": "a", "labels": []', "one JSON object a line"),
        ("[1]", "one JSON object a line"),
        ('{"text": "a\\ud800", "labels": []}', "half a character"),
        ('{"id": {}, "text": "a", "labels": []}', "whole number as id"),
        ("[" * 100_000, "one JSON object a line"),
    ],
)
def test_a_bad_jsonl_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    put(tmp_path, train__jsonl=JSONL + "\n" + line + "\n")
    with pytest.raises(DataError, match=r"train.jsonl, line 4: ") as caught:
        load(tmp_path / "train.jsonl")
    assert message in str(caught.value)


def test_wrong_encoding_is_named_and_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "umlauts.csv"
    path.write_bytes("text,labels\nplain,a\nKätzchen,b\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"umlauts.csv, line 3: found bytes that are not utf-8: 'K\\xe4tzchen"):
        load(path)
    assert load(path, encoding="latin-1").train.texts == ["plain", "Kätzchen"]
    with pytest.raises(ValueError, match="encoding 'klingon' is not known"):
        load(path, encoding="klingon")


def test_xc_raw_text_keeps_relevances(tmp_path: Path) -> None:
    put(tmp_path, trn__json=RAW, tst__json=RAW, lbl__json=jsonl(*({"uid": n, "title": n} for n in "abcd")))
    data = load(tmp_path)
    assert data.train.Y.toarray().tolist() == [[0.5, 0, 1, 0], [0, 0, 0, 0]]
    assert data.label_names == ["a", "b", "c", "d"]
    assert data.train.ids == ["u1", "u2"]
    assert data.train.texts == ["Cat\npurrs", "Dog"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"target_ind": [-1]}, "label '-1' in target_ind"),
        ({"target_ind": [1.5]}, "label '1.5'"),
        ({"target_ind": [10**12]}, "label '1000000000000'"),
        ({"target_ind": "1"}, "a list of label numbers"),
        ({"target_ind": [1], "target_rel": [1, 2]}, "a list of 1 numbers"),
        ({"target_ind": [1], "target_rel": [float("nan")]}, "relevance 'NaN'"),
        ({"target_ind": [1], "target_rel": [1e300]}, "relevance '1e+300'"),
    ],
)
def test_bad_raw_text_is_named(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    put(tmp_path, trn__json=RAW + jsonl({"title": "x", **fields}))
    with pytest.raises(DataError, match=r"trn.json, line 3: ") as caught:
        load(tmp_path)
    assert message in str(caught.value)


def test_csv_labels_are_separated_as_told(tmp_path: Path) -> None:
    put(tmp_path, a__csv=CSV, b__csv="labels;text\n x , y z,x ;hello\n;nothing\n")
    data = load(tmp_path / "a.csv")
    assert data.label_names == ["pet", "feline"]
    assert data.train.texts == ["Cat\npurrs, and\nsleeps", "Dog\nbarks"]
    other = load(tmp_path / "b.csv", label_separator=",")
    assert other.label_names == ["x", "y z"]
    assert other.train.Y.toarray().tolist() == [[1, 1], [0, 0]]


def test_cells_beyond_the_csv_modules_limit_are_read(tmp_path: Path) -> None:
    put(tmp_path, a__csv=f"text,labels\n{'x' * 300_000},a\n")
    texts = load(tmp_path / "a.csv").train.texts
    assert texts is not None
    assert len(texts[0]) == 300_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,labels\na,b\nc\n", "line 3: found 1 cells"),
        ("text,labels\na,b\nc,d,e\n", "line 3: found 3 cells"),
        ('text,labels\n"a\n\nb",c\nd\n', "line 5: found 1 cells"),
        ('text,labels\na,"b\n', "line 2: found a broken line"),
        ("text,labels,text\na,b,c\n", "two columns named text"),
        ("text,labels\n  \n", "no documents below"),
        ("words,tags\na,b\n", "line 1: found the columns words, tags, expected text (or title) and labels"),
        ("text;label\na;b\n", "line 1: found the columns text, label, expected text (or title) and labels"),
        ("", "an empty file"),
        ("\n\n", "an empty file"),
        ("[1, 2]", "a JSON array, expected one JSON object a line"),
        ('{"words": 1}', "JSON with the fields words"),
        ("{broken", "one JSON object a line"),
        ("<html>", "no known format"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "file.csv"
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        load(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"train__txt": XC, "test__txt": "1 9 4\n0 0:1\n"},
            "test.txt: found 9 features, expected 3, as in train.txt",
        ),
        ({"train__txt": XC, "test__txt": "1 3 5\n0 0:1\n"}, "found 5 labels, expected 4"),
        ({"train__txt": XC, "labels__txt": "a\nb\n"}, "2 label names for 4 labels"),
        ({"train__txt": XC, "vocabulary__txt": "a\n"}, "1 feature names for 3 features"),
        ({"train__txt": XC, "train__jsonl": JSONL}, "several files for train"),
        ({"test__txt": XC}, "a file whose name says train"),
        ({}, "found nothing, expected a file whose name says train"),
        ({"train__txt": XC, "filter_train__txt": "0 4\n"}, "numbers from 0 to 3"),
        ({"train__txt": XC, "filter_train__txt": "2 0\n"}, "numbers from 0 to 1"),
        ({"train__txt": XC, "filter_train__txt": "2\n"}, "2 whole numbers"),
        ({"train__txt": XC, "test__txt": "0 9:1\n"}, "test.txt: found 10 features, expected 3, as in train.txt"),
        ({"train__txt": "0 9:1\n", "test__txt": XC}, "train.txt: found 10 features, expected 3, as in test.txt"),
        ({"train__jsonl": JSONL, "test__json": RAW}, "test.json: found labels as numbers, expected names"),
        ({"train__csv": CSV, "test__txt": XC}, "test.txt: found labels as numbers, expected names"),
        ({"trn__json": RAW, "test__txt": XC}, "test.txt: found features, expected text, as in trn.json"),
        ({"train__txt": XC, "filter_train__txt": "0 1\n\n0 9\n"}, "filter_train.txt, line 3: found 9"),
        ({"my__csv": "words,tags\na,b\n"}, "my.csv, line 1: found the columns words, tags"),
        ({"trn__json": RAW, "lbl__json": '{"title": "a"}\n{"uid": 1}\n'}, "lbl.json, line 2: found"),
        ({"train__txt": XC, "label_names__json": "{"}, "text that is not JSON"),
        ({"train__txt": XC, "label_names__json": "[1]"}, "a list or object of strings"),
    ],
)
def test_a_folder_that_contradicts_itself_is_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    put(tmp_path, **files)
    with pytest.raises(DataError) as caught:
        load(tmp_path)
    assert message in str(caught.value)


def test_a_wrapping_folder_is_entered(tmp_path: Path) -> None:
    put(tmp_path / "wrapped", train__txt=XC)
    assert load(tmp_path).name == "wrapped"


def test_a_single_file_in_a_folder_is_train(tmp_path: Path) -> None:
    put(tmp_path, my_documents__csv=CSV, README__md="about")
    assert len(load(tmp_path).train) == 2


def test_names_by_number_are_put_in_order(tmp_path: Path) -> None:
    names = json.dumps({str(i): f"n{i}" for i in range(11)}, sort_keys=True)
    put(tmp_path, train__txt="1 1 11\n0 0:1\n", label_names__json=names + "\n\n")
    assert load(tmp_path).label_names == [f"n{i}" for i in range(11)]


def test_a_single_label_with_a_title_is_one_label(tmp_path: Path) -> None:
    put(tmp_path, trn__json=jsonl({"title": "t", "target_ind": [0]}), lbl__json=jsonl({"uid": "9", "title": "L"}))
    assert load(tmp_path).label_names == ["L"]


def test_a_first_name_in_brackets_is_a_name(tmp_path: Path) -> None:
    put(tmp_path, train__txt=XC, labels__txt="[PAD]\nb\nc\nd\n")
    assert load(tmp_path).label_names == ["[PAD]", "b", "c", "d"]


def test_papers_beside_the_data_do_no_harm(tmp_path: Path) -> None:
    put(tmp_path, Bibtex_data__txt=XC, bibtex_trSplit__txt="1\n", bibtex_tstSplit__txt="2\n", README__txt="hello, you")
    assert len(load(tmp_path).train) == 1
    put(tmp_path / "wrapped", documents__csv=CSV, README__txt="hello", LICENSE__txt="MIT", notes__txt="remember")
    assert len(load(tmp_path / "wrapped").train) == 2


def test_a_pair_is_found_beside_filters_and_names(tmp_path: Path) -> None:
    put(tmp_path, trn_X_Xf__txt=MATRIX_X, trn_X_Y__txt=MATRIX_Y, filter_labels_train__txt="1 1\n", labels__txt="1 2\n")
    assert load(tmp_path / "trn_X_Xf.txt").train.Y.toarray().tolist() == Y


def test_a_vocabulary_beside_text_is_left_alone(tmp_path: Path) -> None:
    put(tmp_path, train__jsonl=JSONL, vocab__txt="a\nb\n")
    assert load(tmp_path).feature_names is None


def test_the_encoding_holds_for_recognition_too(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"text": "Kätzchen", "labels": ["ü"]}\n'.encode("latin-1"))
    assert load(path, encoding="latin-1").label_names == ["ü"]


def test_a_link_to_nothing_is_not_passed_over(tmp_path: Path) -> None:
    put(tmp_path, train__txt=XC)
    (tmp_path / "test.txt").symlink_to(tmp_path / "gone.txt")
    with pytest.raises(DataError, match="a link to nothing"):
        load(tmp_path)


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="a pipe"):
        load(tmp_path / "pipe.csv")


def test_tables_of_any_cell_size_are_read_by_several_threads(tmp_path: Path) -> None:
    put(tmp_path, big__csv=f"text,labels\n{'x' * 200_000},a\n", small__csv=CSV)
    before = csv.field_size_limit()
    with ThreadPoolExecutor(4) as pool:
        sets = list(pool.map(load, [tmp_path / name for name in ("big.csv", "small.csv") * 20]))
    assert len(sets) == 40
    assert csv.field_size_limit() == before


def test_what_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIGHTDXML_DATA", str(tmp_path))
    with pytest.raises(DataError, match="nothing there"):
        load(tmp_path / "missing.txt")
    with pytest.raises(DataError, match="nothing there"):
        load("missing.txt")
    with pytest.raises(DataError, match="lightdxml data get EURLex-4K"):
        load("eurlex-4k")
    with pytest.raises(DataError, match="perhaps see-also"):
        load("sea-also")
    put(tmp_path / "Mine", train__txt=XC)
    assert load("mine").n_labels == 4


def test_see_also_is_loaded_by_name(see_also: Dataset) -> None:
    data = load("see-also")
    assert data.label_names == see_also.label_names
    assert data.train.texts == see_also.train.texts


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(
    st.lists(names, min_size=1, max_size=5, unique=True),
    st.lists(st.tuples(texts, texts, st.sets(st.integers(0, 4))), min_size=1, max_size=5),
    st.sampled_from(["", "gz", "zst"]),
)
def test_any_text_data_written_as_jsonl_reads_back_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    labels: list[str],
    rows: list[tuple[str, str, set[int]]],
    packed: Any,
) -> None:
    Y = np.zeros((len(rows), len(labels)), dtype=np.float32)
    for i, (_, _, row) in enumerate(rows):
        Y[i, [label for label in row if label < len(labels)]] = 1
    train = Split(
        Y=csr_matrix(Y),
        texts=Texts([body for _, body, _ in rows], [title for title, _, _ in rows]),
        ids=[str(i) for i in range(len(rows))],
        ignore=np.array([[0, 0]]),
    )
    folder = save(
        Dataset("any", train, test=train, label_names=labels), tmp_path_factory.mktemp("any"), "jsonl", packed
    )
    data = load(folder)
    assert data.label_names == labels
    for split in (data.train, data.test):
        assert split is not None
        assert split.texts is not None
        assert train.texts is not None
        assert (split.texts.titles, split.texts.bodies) == (train.texts.titles, train.texts.bodies)
        assert split.ids == train.ids
        assert split.Y.toarray().tolist() == Y.tolist()
        assert split.ignore is not None
        assert split.ignore.tolist() == [[0, 0]]


@pytest.mark.parametrize("format", ["xc", "npz"])
@pytest.mark.parametrize("compression", ["", "gz", "zst"])
def test_features_written_read_back_the_same(tmp_path: Path, format: Any, compression: Any) -> None:
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((6, 5)) < 0.5, rng.normal(size=(6, 5)), 0).astype(np.float32)
    split = Split(Y=csr_matrix((rng.random((6, 3)) < 0.5).astype(np.float32)), X=csr_matrix(dense))
    names = ['comma, quote"', "line\nbreak", "emoji 🐈"]
    data = Dataset("d", split, dev=split, label_names=names, feature_names=list("abcde"))
    read = load(save(data, tmp_path / "out", format, compression))
    assert read.label_names == names
    assert read.feature_names == list("abcde")
    for part in (read.train, read.dev):
        assert part is not None
        assert part.X is not None
        np.testing.assert_array_equal(part.X.toarray(), dense)
        np.testing.assert_array_equal(part.Y.toarray(), split.Y.toarray())


def test_the_same_data_gives_the_same_bytes(tmp_path: Path, see_also: Dataset) -> None:
    for folder in ("a", "b"):
        save(see_also, tmp_path / folder, "jsonl", "gz")
    for path in sorted((tmp_path / "a").iterdir()):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_what_a_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    text = Dataset("t", Split(Y=csr_matrix([[1, 1]]), texts=Texts(["a"])), label_names=["same", "same"])
    with pytest.raises(DataError, match="the name 'same' for labels 0 and 1"):
        save(text, tmp_path, "jsonl")
    with pytest.raises(DataError, match="texts without features"):
        save(text, tmp_path, "xc")
    features = Dataset("f", Split(Y=csr_matrix([[1, 1]]), X=csr_matrix([[1.0]])))
    with pytest.raises(DataError, match="documents without text"):
        save(features, tmp_path, "jsonl")


@pytest.mark.parametrize("format", ["xc", "jsonl"])
def test_weights_of_labels_are_not_lost_silently(tmp_path: Path, format: Any) -> None:
    split = Split(Y=csr_matrix([[0.5]]), X=csr_matrix([[1.0]]), texts=Texts(["a"]))
    with pytest.raises(DataError, match="npz format keeps weights"):
        save(Dataset("w", split), tmp_path / "out", format)
    assert not (tmp_path / "out").exists()
    assert load(save(Dataset("w", split), tmp_path / "out", "npz")).train.Y[0, 0] == 0.5


def test_a_folder_that_holds_something_is_not_mixed_with_new_data(tmp_path: Path, see_also: Dataset) -> None:
    """A second split into one folder once left the first one's dev part behind, with documents of the new train."""
    folder = tmp_path / "out"
    save(replace(see_also, dev=see_also.test), folder, "jsonl", "gz")
    (folder / "notes.md").write_text("mine")
    with pytest.raises(DataError, match="a folder that is not empty"):
        save(see_also, folder, "jsonl")
    save(see_also, folder, "jsonl", overwrite=True)
    assert sorted(path.name for path in folder.iterdir()) == [
        "label_names.json",
        "notes.md",
        "test.jsonl",
        "train.jsonl",
    ]
    assert load(folder).dev is None
    with pytest.raises(DataError, match="found a file, expected a folder to write into"):
        save(see_also, folder / "notes.md", "jsonl")


@pytest.mark.parametrize(
    ("member", "message"),
    [("[Content_Types].xml", "an Excel workbook"), ("train.txt", "a zip archive, expected it unpacked")],
)
def test_archives_and_workbooks_are_named(tmp_path: Path, member: str, message: str) -> None:
    with zipfile.ZipFile(tmp_path / "mine.xlsx", "w") as archive:
        archive.writestr(member, "x")
    with pytest.raises(DataError, match=message):
        load(tmp_path / "mine.xlsx")


def test_a_matrix_alone_says_what_is_missing(tmp_path: Path) -> None:
    save_npz(tmp_path / "mine.npz", csr_matrix(X))
    with pytest.raises(DataError, match="one file of features, with X in its name"):
        load(tmp_path / "mine.npz")


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(DataError, match="an empty name"):
        load("")


def test_a_data_set_is_shown_in_a_few_words(see_also: Dataset) -> None:
    assert len(repr(see_also)) < 200
    assert len(repr(see_also.train)) < 100


def test_all_development_sets_are_read(shared_data: Path) -> None:
    sizes = {
        "bibtex": (4880, 2515, 1836, 159),
        "delicious": (12920, 3185, 500, 983),
        "citeulike-t": (20750, 5195, 20000, 46488),
        "wordnet": (93311, 23339, None, 113595),
        "debian-relations": (52710, 13180, None, 48708),
        "eurlex57k": (45000, 6000, None, 4271),
    }
    for name, (n_train, n_test, n_features, n_labels) in sizes.items():
        data = load(shared_data / name)
        assert data.test is not None
        assert (len(data.train), len(data.test), data.n_features, data.n_labels) == (
            n_train,
            n_test,
            n_features,
            n_labels,
        )
