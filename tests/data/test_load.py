"""Loading data: every format is detected by its content, as a file or in a folder, plain or compressed."""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csr_matrix, save_npz

from lightdxml.data import DataError, Dataset, load
from tests.data.samples import (
    COMPRESSORS,
    CSV,
    JSONL,
    XC_JSON,
    XC_MATRIX_X,
    XC_MATRIX_Y,
    XC_TEXT,
    X,
    Y,
    json_lines,
    write_files,
)


@pytest.mark.parametrize("suffix", COMPRESSORS)
@pytest.mark.parametrize("name", ["train.txt", "nothing-telling.dat"])
def test_xc_text_is_detected_by_its_header(tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / f"{name}{suffix}"
    path.write_bytes(COMPRESSORS[suffix](XC_TEXT.encode()))
    data = load(path)
    assert data.train.X is not None
    assert data.train.X.toarray().tolist() == X
    assert data.train.Y.toarray().tolist() == Y
    assert (data.test, data.dev, data.label_names) == (None, None, None)


def test_compression_is_detected_by_content_not_by_name(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_bytes(gzip.compress(XC_TEXT.encode()))
    assert load(path).n_labels == 4


@pytest.mark.parametrize("pack", COMPRESSORS.values(), ids=["plain", "gz", "zst"])
@pytest.mark.parametrize(
    "content", [XC_TEXT, JSONL, XC_JSON, CSV, CSV.replace(",", "\t").replace('"purrs\t', '"purrs,')]
)
def test_every_text_format_may_be_compressed(tmp_path: Path, content: str, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(pack(content.encode()))
    assert len(load(path).train) == 2


def test_a_folder_that_is_given_as_a_dot_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pets").mkdir()
    (tmp_path / "pets" / "train.csv").write_text("text,labels\na cat,cat\n")
    monkeypatch.chdir(tmp_path / "pets")
    assert load(".").name == "pets"


def test_matrices_of_features_and_labels_are_read_as_a_pair(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        trn_X_Xf__txt=XC_MATRIX_X,
        trn_X_Y__txt=XC_MATRIX_Y,
        tst_X_Xf__txt=XC_MATRIX_X,
        tst_X_Y__txt=XC_MATRIX_Y,
    )
    write_files(
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


@pytest.mark.parametrize(("which", "missing"), [("trn_X_Xf.txt", "labels"), ("trn_X_Y.txt", "features")])
def test_one_matrix_of_a_pair_is_rejected(tmp_path: Path, which: str, missing: str) -> None:
    write_files(tmp_path, trn_X_Xf__txt=XC_MATRIX_X, trn_X_Y__txt=XC_MATRIX_Y)
    with pytest.raises(DataError, match=f"{which}, expected a folder with one file of {missing}, with . in its name"):
        load(tmp_path / which)


def test_pair_of_different_lengths_is_rejected(tmp_path: Path) -> None:
    write_files(tmp_path, trn_X_Xf__txt=XC_MATRIX_X, trn_X_Y__txt="1 4\n0:1\n")
    with pytest.raises(DataError, match=r"trn_X_Y.txt: found 1 rows, expected 2, as in trn_X_Xf.txt"):
        load(tmp_path)


def test_relevances_are_kept_zeros_dropped_and_negative_ones_rejected(tmp_path: Path) -> None:
    write_files(tmp_path, trn_X_Xf__txt=XC_MATRIX_X, trn_X_Y__txt="2 4\n0:0.5 1:0\n1:1\n")
    data = load(tmp_path)
    assert data.train.Y.toarray().tolist() == [[0.5, 0, 0, 0], [0, 1, 0, 0]]
    assert data.train.Y.nnz == 2
    write_files(tmp_path, trn_X_Y__txt="2 4\n0:-0.5\n1:1\n")
    with pytest.raises(DataError, match="negative relevance"):
        load(tmp_path)


def test_old_form_uses_one_column_of_its_split_files(tmp_path: Path) -> None:
    write_files(tmp_path, Bibtex_data__txt="4 2 2\n0 0:1\n1 0:2\n0 0:3\n1 0:4\n")
    write_files(tmp_path, bibtex_trSplit__txt="4 1\n2 2\n1 3\n", bibtex_tstSplit__txt="3 4\n")
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
        ("0\n1\n", "2\n", "found 0, expected integers from 1 to 4"),
        ("1\n5\n", "2\n", "found 5, expected integers from 1 to 4"),
        ("1\n1\n", "2\n", "a document twice"),
        ("1\n2\n", "2\n", "documents that are also in train"),
        ("1\nx\n", "2\n", "bibtex_trSplit.txt, line 2: found 'x'"),
        ("1\n2 3\n", "2\n", "line 2: found '2 3', expected 1 non-negative integers"),
    ],
)
def test_invalid_split_files_are_rejected(tmp_path: Path, train: str, test: str, message: str) -> None:
    write_files(tmp_path, Bibtex_data__txt="4 2 2\n0 0:1\n1 0:2\n0 0:3\n1 0:4\n")
    write_files(tmp_path, bibtex_trSplit__txt=train, bibtex_tstSplit__txt=test)
    with pytest.raises(DataError, match=message):
        load(tmp_path)


def test_svmlight_splits_get_the_same_width(tmp_path: Path) -> None:
    write_files(tmp_path, train__svm="0 1:1\n", test__svm="4,2 7:0.5\n")
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


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.zeros(3)}, "an invalid sparse matrix"),
        ({"data": np.array([{}], dtype=object)}, "an invalid sparse matrix"),
        (
            {"format": b"csr", "shape": [1, 2], "data": [np.nan], "indices": [0], "indptr": [0, 1]},
            "NaN, infinite or too large",
        ),
        ({"format": b"csr", "shape": [1, 2], "data": [1e300], "indices": [0], "indptr": [0, 1]}, "too large"),
        (
            {"format": b"csr", "shape": [1, 2], "data": [1.0], "indices": [5], "indptr": [0, 1]},
            "an invalid sparse matrix",
        ),
        (
            {"format": b"csr", "shape": [1, 2], "data": [1.0], "indices": [-1], "indptr": [0, 1]},
            "an invalid sparse matrix",
        ),
        ({"format": b"csr", "shape": [1, 2], "data": [1j], "indices": [0], "indptr": [0, 1]}, "real numbers"),
        ({"format": b"csr", "shape": [2, 2], "data": [1.0], "indices": [0], "indptr": [0, 9, 1]}, "matrix"),
        # Converting this one before checking it crashed the interpreter.
        (
            {
                "format": b"csc",
                "shape": [2, 2],
                "data": np.ones(4),
                "indices": np.array([0, 10**8, 5, 2 * 10**9], dtype=np.int32),
                "indptr": np.array([0, 2, 4], dtype=np.int32),
            },
            "an invalid sparse matrix",
        ),
        ({"format": b"csr", "shape": [1, 10**12], "data": [1.0], "indices": [0], "indptr": [0, 1]}, "at most"),
    ],
)
def test_invalid_npz_is_rejected(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    save_npz(tmp_path / "y.npz", csr_matrix(Y))
    with pytest.raises(DataError, match=message) as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)


def test_truncated_npz_is_rejected(tmp_path: Path) -> None:
    save_npz(tmp_path / "x.npz", csr_matrix(X))
    save_npz(tmp_path / "y.npz", csr_matrix(Y))
    whole = (tmp_path / "x.npz").read_bytes()
    for cut in (len(whole) - 1, len(whole) // 2, 30):
        (tmp_path / "x.npz").write_bytes(whole[:cut])
        with pytest.raises(DataError):
            load(tmp_path)


def test_jsonl_keeps_ids_titles_texts_and_label_names(tmp_path: Path) -> None:
    write_files(
        tmp_path, train__jsonl=JSONL, test__jsonl=json_lines({"text": "flies", "labels": ["bird", "pet", "pet"]})
    )
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


def test_label_names_file_sets_order_names_and_unseen_labels(tmp_path: Path) -> None:
    names = json.dumps({"unseen": "Never there", "feline": "Katze", "pet": "Haustier"})
    write_files(tmp_path, train__jsonl=JSONL, label_names__json=names)
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
        ('{"text": "a", "labels": []', "one JSON object per line"),
        ("[1]", "one JSON object per line"),
        ('{"text": "a\\ud800", "labels": []}', "surrogates not allowed"),
        ('{"id": {}, "text": "a", "labels": []}', "integer as id"),
        ("[" * 100_000, "one JSON object per line"),
    ],
)
def test_invalid_jsonl_line_is_rejected_with_its_number(tmp_path: Path, line: str, message: str) -> None:
    write_files(tmp_path, train__jsonl=JSONL + "\n" + line + "\n")
    with pytest.raises(DataError, match=r"train.jsonl, line 4: ") as caught:
        load(tmp_path / "train.jsonl")
    assert message in str(caught.value)


def test_wrong_encoding_is_rejected_and_the_right_one_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "umlauts.csv"
    path.write_bytes("text,labels\nplain,a\nKätzchen,b\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"umlauts.csv, line 3: found bytes that are not utf-8: 'K\\xe4tzchen"):
        load(path)
    assert load(path, encoding="latin-1").train.texts == ["plain", "Kätzchen"]
    with pytest.raises(ValueError, match="encoding 'klingon' is unknown"):
        load(path, encoding="klingon")


def test_xc_json_keeps_relevances(tmp_path: Path) -> None:
    write_files(
        tmp_path, trn__json=XC_JSON, tst__json=XC_JSON, lbl__json=json_lines(*({"uid": n, "title": n} for n in "abcd"))
    )
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
        ({"target_ind": "1"}, "a list of label ids"),
        ({"target_ind": [1], "target_rel": [1, 2]}, "a list of 1 numbers"),
        ({"target_ind": [1], "target_rel": [float("nan")]}, "relevance 'NaN'"),
        ({"target_ind": [1], "target_rel": [1e300]}, "relevance '1e+300'"),
    ],
)
def test_invalid_xc_json_line_is_rejected_with_its_number(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    write_files(tmp_path, trn__json=XC_JSON + json_lines({"title": "x", **fields}))
    with pytest.raises(DataError, match=r"trn.json, line 3: ") as caught:
        load(tmp_path)
    assert message in str(caught.value)


def test_csv_labels_are_split_by_the_separator(tmp_path: Path) -> None:
    write_files(tmp_path, a__csv=CSV, b__csv="labels;text\n x , y z,x ;hello\n;nothing\n")
    data = load(tmp_path / "a.csv")
    assert data.label_names == ["pet", "feline"]
    assert data.train.texts == ["Cat\npurrs, and\nsleeps", "Dog\nbarks"]
    other = load(tmp_path / "b.csv", label_separator=",")
    assert other.label_names == ["x", "y z"]
    assert other.train.Y.toarray().tolist() == [[1, 1], [0, 0]]


def test_csv_cells_beyond_the_default_limit_are_read(tmp_path: Path) -> None:
    write_files(tmp_path, a__csv=f"text,labels\n{'x' * 300_000},a\n")
    texts = load(tmp_path / "a.csv").train.texts
    assert texts is not None
    assert len(texts[0]) == 300_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,labels\na,b\nc\n", "line 3: found 1 cells"),
        ("text,labels\na,b\nc,d,e\n", "line 3: found 3 cells"),
        ('text,labels\n"a\n\nb",c\nd\n', "line 5: found 1 cells"),
        ('text,labels\na,"b\n', "line 2: found a malformed line"),
        ("text,labels,text\na,b,c\n", "two columns named text"),
        ("text,labels\n  \n", "found no documents"),
        (
            "words,tags\na,b\n",
            "line 1: found the columns words, tags, expected columns named text (or title) and labels",
        ),
        (
            "text;label\na;b\n",
            "line 1: found the columns text, label, expected columns named text (or title) and labels",
        ),
        ("", "an empty file"),
        ("\n\n", "an empty file"),
        ("[1, 2]", "a JSON array, expected one JSON object per line"),
        ('{"words": 1}', "JSON with the fields words"),
        ("{broken", "one JSON object per line"),
        ("<html>", "an unknown format"),
    ],
)
def test_unreadable_file_is_rejected_with_the_reason(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "file.csv"
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        load(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"train__txt": XC_TEXT, "test__txt": "1 9 4\n0 0:1\n"},
            "test.txt: found 9 features, expected 3, as in train.txt",
        ),
        ({"train__txt": XC_TEXT, "test__txt": "1 3 5\n0 0:1\n"}, "found 5 labels, expected 4"),
        ({"train__txt": XC_TEXT, "labels__txt": "a\nb\n"}, "2 label names for 4 labels"),
        ({"train__txt": XC_TEXT, "vocabulary__txt": "a\n"}, "1 feature names for 3 features"),
        ({"train__txt": XC_TEXT, "train__jsonl": JSONL}, "several files for train"),
        ({"test__txt": XC_TEXT}, "a file with train or trn in its name"),
        ({}, "found nothing, expected a file with train"),
        ({"train__txt": XC_TEXT, "filter_train__txt": "0 4\n"}, "integers from 0 to 3"),
        ({"train__txt": XC_TEXT, "filter_train__txt": "2 0\n"}, "integers from 0 to 1"),
        ({"train__txt": XC_TEXT, "filter_train__txt": "2\n"}, "2 non-negative integers"),
        ({"train__txt": XC_TEXT, "test__txt": "0 9:1\n"}, "test.txt: found 10 features, expected 3, as in train.txt"),
        ({"train__txt": "0 9:1\n", "test__txt": XC_TEXT}, "train.txt: found 10 features, expected 3, as in test.txt"),
        ({"train__jsonl": JSONL, "test__json": XC_JSON}, "test.json: found label ids, expected label names"),
        ({"train__csv": CSV, "test__txt": XC_TEXT}, "test.txt: found label ids, expected label names"),
        ({"trn__json": XC_JSON, "test__txt": XC_TEXT}, "test.txt: found features, expected text, as in trn.json"),
        ({"train__txt": XC_TEXT, "filter_train__txt": "0 1\n\n0 9\n"}, "filter_train.txt, line 3: found 9"),
        ({"my__csv": "words,tags\na,b\n"}, "my.csv, line 1: found the columns words, tags"),
        ({"trn__json": XC_JSON, "lbl__json": '{"title": "a"}\n{"uid": 1}\n'}, "lbl.json, line 2: found"),
        ({"train__txt": XC_TEXT, "label_names__json": "{"}, "text that is not JSON"),
        ({"train__txt": XC_TEXT, "label_names__json": "[1]"}, "a list or object of strings"),
    ],
)
def test_inconsistent_folder_is_rejected(tmp_path: Path, files: dict[str, str], message: str) -> None:
    write_files(tmp_path, **files)
    with pytest.raises(DataError) as caught:
        load(tmp_path)
    assert message in str(caught.value)


def test_folder_around_the_files_is_entered(tmp_path: Path) -> None:
    write_files(tmp_path / "wrapped", train__txt=XC_TEXT)
    assert load(tmp_path).name == "wrapped"


def test_single_file_in_a_folder_is_the_training_split(tmp_path: Path) -> None:
    write_files(tmp_path, my_documents__csv=CSV, README__md="about")
    assert len(load(tmp_path).train) == 2


def test_names_with_integer_keys_are_sorted_by_key(tmp_path: Path) -> None:
    names = json.dumps({str(i): f"n{i}" for i in range(11)}, sort_keys=True)
    write_files(tmp_path, train__txt="1 1 11\n0 0:1\n", label_names__json=names + "\n\n")
    assert load(tmp_path).label_names == [f"n{i}" for i in range(11)]


def test_single_titled_label_is_one_name(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        trn__json=json_lines({"title": "t", "target_ind": [0]}),
        lbl__json=json_lines({"uid": "9", "title": "L"}),
    )
    assert load(tmp_path).label_names == ["L"]


def test_names_that_look_like_json_are_read_as_lines(tmp_path: Path) -> None:
    write_files(tmp_path, train__txt=XC_TEXT, labels__txt="[PAD]\nb\nc\nd\n")
    assert load(tmp_path).label_names == ["[PAD]", "b", "c", "d"]


def test_readme_and_license_files_are_ignored(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        Bibtex_data__txt=XC_TEXT,
        bibtex_trSplit__txt="1\n",
        bibtex_tstSplit__txt="2\n",
        README__txt="hello, you",
    )
    assert len(load(tmp_path).train) == 1
    write_files(
        tmp_path / "wrapped", documents__csv=CSV, README__txt="hello", LICENSE__txt="MIT", notes__txt="remember"
    )
    assert len(load(tmp_path / "wrapped").train) == 2


def test_vocabulary_next_to_text_is_ignored(tmp_path: Path) -> None:
    write_files(tmp_path, train__jsonl=JSONL, vocab__txt="a\nb\n")
    assert load(tmp_path).feature_names is None


def test_encoding_applies_to_detection(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"text": "Kätzchen", "labels": ["ü"]}\n'.encode("latin-1"))
    assert load(path, encoding="latin-1").label_names == ["ü"]


def test_broken_link_is_rejected(tmp_path: Path) -> None:
    write_files(tmp_path, train__txt=XC_TEXT)
    (tmp_path / "test.txt").symlink_to(tmp_path / "gone.txt")
    with pytest.raises(DataError, match="a broken symbolic link"):
        load(tmp_path)


def test_pipe_is_rejected_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="a pipe"):
        load(tmp_path / "pipe.csv")


def test_several_threads_read_tables_with_large_cells(tmp_path: Path) -> None:
    write_files(tmp_path, big__csv=f"text,labels\n{'x' * 200_000},a\n", small__csv=CSV)
    with ThreadPoolExecutor(4) as pool:
        sets = list(pool.map(load, [tmp_path / name for name in ("big.csv", "small.csv") * 20]))
    assert len(sets) == 40


def test_missing_path_or_unknown_name_is_rejected_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIGHTDXML_DATA", str(tmp_path))
    with pytest.raises(DataError, match="no such file or folder"):
        load(tmp_path / "missing.txt")
    with pytest.raises(DataError, match="no such file or folder"):
        load("missing.txt")
    with pytest.raises(DataError, match="lightdxml data get EURLex-4K"):
        load("eurlex-4k")
    with pytest.raises(DataError, match="perhaps see-also"):
        load("sea-also")
    write_files(tmp_path / "Mine", train__txt=XC_TEXT)
    assert load("mine").n_labels == 4


def test_see_also_is_loaded_by_name(see_also: Dataset) -> None:
    data = load("see-also")
    assert data.label_names == see_also.label_names
    assert data.train.texts == see_also.train.texts


@pytest.mark.parametrize(
    ("member", "message"),
    [("[Content_Types].xml", "an Excel workbook"), ("train.txt", "a zip archive, expected its content")],
)
def test_archives_and_workbooks_are_rejected_by_name(tmp_path: Path, member: str, message: str) -> None:
    with zipfile.ZipFile(tmp_path / "mine.xlsx", "w") as archive:
        archive.writestr(member, "x")
    with pytest.raises(DataError, match=message):
        load(tmp_path / "mine.xlsx")


def test_single_npz_without_a_side_in_its_name_is_rejected(tmp_path: Path) -> None:
    save_npz(tmp_path / "mine.npz", csr_matrix(X))
    with pytest.raises(DataError, match="one file of features, with X in its name"):
        load(tmp_path / "mine.npz")


def test_empty_name_is_rejected() -> None:
    with pytest.raises(DataError, match="an empty name"):
        load("")


def test_repr_is_short(see_also: Dataset) -> None:
    assert len(repr(see_also)) < 200
    assert len(repr(see_also.train)) < 100


def test_development_sets_have_their_known_sizes(shared_data: Path) -> None:
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


def test_names_with_line_ends_leave_an_error_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(json.dumps({"text": "a", "lab\nels": ["b"]}) + "\n")
    with pytest.raises(DataError, match=r"lab\\nels") as caught:
        load(tmp_path / "train.jsonl")
    assert "\n" not in str(caught.value)
