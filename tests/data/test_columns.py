"""Columns and fields of other names than ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from lightdxml.data import DataError, load
from tests.data.samples import json_lines, write_files

CSV = "Nr,Headline,Body Text,Tags\n7,Cat,purrs,pet|feline\n8,Dog,barks,pet\n"
JSONL = json_lines(
    {"nr": 7, "headline": "Cat", "body text": "purrs", "tags": ["pet", "feline"]},
    {"nr": 8, "body text": "barks", "tags": ["pet"]},
)
NAMES = {"id_column": "nr", "title_column": "headline", "text_column": "body text", "label_column": "tags"}


@pytest.mark.parametrize("content", [CSV, CSV.replace(",", "\t"), JSONL], ids=["csv", "tsv", "jsonl"])
def test_columns_are_found_by_the_names_that_are_given(tmp_path: Path, content: str) -> None:
    (tmp_path / "data").write_text(content)
    data = load(tmp_path / "data", **NAMES)  # type: ignore[arg-type]
    assert data.train.texts is not None
    assert data.train.texts[0] == "Cat\npurrs"
    assert data.train.ids == ["7", "8"]
    assert data.label_names == ["pet", "feline"]


def test_columns_of_our_names_are_found_beside_those_that_are_given(tmp_path: Path) -> None:
    write_files(tmp_path, a__csv="id,title,summary,labels\n1,Cat,purrs,pet\n")
    data = load(tmp_path / "a.csv", text_column="summary")
    assert data.train.texts == ["Cat\npurrs"]
    assert data.train.ids == ["1"]


def test_a_title_that_is_the_text_is_not_read_twice(tmp_path: Path) -> None:
    write_files(tmp_path, a__csv="title,labels\nCat,pet\n", b__jsonl=json_lines({"title": "Cat", "labels": ["pet"]}))
    for name in ("a.csv", "b.jsonl"):
        assert load(tmp_path / name, text_column="title").train.texts == ["Cat"]


@pytest.mark.parametrize("content", [CSV, JSONL])
@pytest.mark.parametrize("column", NAMES)
def test_a_column_that_is_not_there_is_named(tmp_path: Path, content: str, column: str) -> None:
    """It would be lost without a word if another one is enough."""
    (tmp_path / "data").write_text(content)
    option = column.replace("_", "-")
    with pytest.raises(DataError, match=f"found .*(named|field) nothing: check --{option}|without .*nothing.*{option}"):
        load(tmp_path / "data", **NAMES | {column: "nothing"})  # type: ignore[arg-type]


def test_a_table_without_our_columns_says_how_to_name_them(tmp_path: Path) -> None:
    write_files(tmp_path, a__csv=CSV, b__jsonl=JSONL)
    with pytest.raises(DataError, match=r"nr, headline, body text, tags.* --text-column NAME --label-column NAME"):
        load(tmp_path / "a.csv")
    with pytest.raises(DataError, match=r"the fields nr, .*tags, .* --text-column NAME --label-column NAME"):
        load(tmp_path / "b.jsonl")


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(ValueError, match="text_column is empty"):
        load("see-also", text_column="")
