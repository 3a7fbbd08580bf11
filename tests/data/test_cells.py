"""Labels in cells: lists as programs write them, separators that are given, and separators that are forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lightdxml.data import DataError, load
from lightdxml.data.cells import labels_of_cell, likely_separator, listed
from tests.data.samples import json_lines, write_files


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ("['x', 'y']", ["x", "y"]),
        ('["x", "y"]', ["x", "y"]),
        ("['x' 'y'\n 'z']", ["x", "y", "z"]),
        ('["it\'s", \'"so"\']', ["it's", '"so"']),
        ("['a, b', 'c|d']", ["a, b", "c|d"]),
        (r"['\d', 'é']", ["\\d", "é"]),
        (" [] ", []),
        ("[7, 12]", [7, 12]),
        ("[7 12]", [7, 12]),
    ],
)
def test_lists_are_read_as_json_python_and_numpy_write_them(cell: str, labels: list[Any]) -> None:
    assert listed(cell) == labels


@pytest.mark.parametrize(
    "cell",
    ["x", "[PAD]", "[x, y]", "['x', 7]", "[True]", "[1.5]", "[['x']]", "[__import__('os')]", "['x'", "['x'] + []"],
)
def test_other_cells_are_no_lists(cell: str) -> None:
    assert listed(cell) is None
    assert labels_of_cell(cell) == [cell]


def test_deep_and_long_cells_are_no_lists() -> None:
    assert listed("[" * 100_000 + "]" * 100_000) is None
    assert listed("['" + "x" * 1_000_000 + "'") is None
    assert listed("[" + "'x' " * 100_000 + "y]") is None


@pytest.mark.parametrize(
    ("labels", "mark"),
    [
        (["a,b", "c,d", "e"], ","),
        (["a;b, c", "c;d", "e;f"], ";"),
        (["cat", "dog", "cow", "horse", "cat, dog"], ","),
        (["cat", "dog", "cow", "horse", "Smith, John"], None),
        (["Paris, France", "France", "Italy", "Spain"], None),
        ([], None),
    ],
)
def test_a_separator_is_likely_if_most_labels_contain_it_or_are_made_of_others(
    labels: list[str], mark: str | None
) -> None:
    assert likely_separator(labels) == mark


UNSPLIT = 'text,labels\na cat,"cat,pet"\na dog,"dog,pet"\na cow,cow\n'


def test_labels_that_were_not_split_are_asked_about(tmp_path: Path) -> None:
    write_files(tmp_path, a__csv=UNSPLIT)
    with pytest.raises(DataError, match=r"',' in labels such as 'cat,pet', expected the .*: --separator \",\", or"):
        load(tmp_path / "a.csv")
    assert load(tmp_path / "a.csv", label_separator=",").label_names == ["cat", "pet", "dog", "cow"]
    assert load(tmp_path / "a.csv", label_separator="|").label_names == ["cat,pet", "dog,pet", "cow"]


def test_a_test_part_of_single_labels_is_not_asked_about(tmp_path: Path) -> None:
    """Labels with commas are normal where other documents have several labels."""
    train, test = 'text,labels\na,"x, y|z, w"\nb,"x, y"\n', 'text,labels\na,"x, y"\n'
    assert load(write_files(tmp_path, train__csv=train, test__csv=test)).n_labels == 2


def test_lists_in_cells_need_no_separator(tmp_path: Path) -> None:
    write_files(tmp_path, a__csv='text,labels\na cat,"[\'cat\', \'a|b\']"\na dog,"[""dog""]"\nnone,[]\n')
    for separator in (None, "|"):
        data = load(tmp_path / "a.csv", label_separator=separator)
        assert data.label_names == ["cat", "a|b", "dog"]
        assert data.train.Y.sum(axis=1).A1.tolist() == [2, 1, 0]


def test_strings_of_labels_in_json_need_a_separator_or_are_lists(tmp_path: Path) -> None:
    first, second = {"text": "a", "labels": "x;y"}, {"text": "b", "labels": ["z"]}
    write_files(
        tmp_path, a__jsonl=json_lines(first, second), b__jsonl=json_lines({"text": "a", "labels": "['x', 'y']"})
    )
    assert load(tmp_path / "a.jsonl", label_separator=";").label_names == ["x", "y", "z"]
    assert load(tmp_path / "b.jsonl").label_names == ["x", "y"]
    with pytest.raises(DataError, match=r"labels '\"x;y\"', expected .*--separator"):
        load(tmp_path / "a.jsonl")
