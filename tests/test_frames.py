"""Columns and frames of pandas, polars and PyArrow as X and Y."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lightdxml.data.dataset import Texts
from lightdxml.label_columns import known_labels, label_rows, labels_of
from lightdxml.validation import matrix_of, texts_of

TEXTS = ["a purring cat", "a barking dog", "both"]
LABELS = [["cat"], ["dog"], ["cat", "dog"]]
FRAMES: list[Callable[[dict[str, Any]], Any]] = [pd.DataFrame, pl.DataFrame, pa.table]
COLUMNS: list[Callable[[Any], Any]] = [pd.Series, pl.Series, pa.array, lambda values: pa.chunked_array([values])]
frames = pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars", "pyarrow"])
columns = pytest.mark.parametrize("column", COLUMNS, ids=["pandas", "polars", "array", "chunked"])


@columns
def test_a_column_of_strings_is_texts(column: Callable[[Any], Any]) -> None:
    assert texts_of(column(TEXTS)) == TEXTS


def test_categories_and_strings_of_arrow_are_texts() -> None:
    assert texts_of(pd.Series(TEXTS, dtype="category")) == TEXTS
    assert texts_of(pd.Series(TEXTS, dtype="string[pyarrow]")) == TEXTS


@frames
def test_of_a_frame_the_columns_text_and_title_are_used(frame: Callable[[dict[str, Any]], Any]) -> None:
    found = texts_of(frame({"id": ["1", "2", "3"], "title": ["Cat", None, "Both"], "text": [*TEXTS[:2], None]}))
    assert isinstance(found, Texts)
    assert list(found) == ["Cat\na purring cat", "a barking dog", "Both"]


@frames
def test_of_a_frame_without_text_the_only_column_of_strings_is_used(frame: Callable[[dict[str, Any]], Any]) -> None:
    assert texts_of(frame({"n": [1, 2, 3], "words": TEXTS})) == TEXTS
    with pytest.raises(ValueError, match=r"several columns of texts \(a, b\): call one of them text, or give X\['a'\]"):
        texts_of(frame({"a": TEXTS, "b": TEXTS}))


@frames
def test_a_frame_of_numbers_is_a_matrix(frame: Callable[[dict[str, Any]], Any]) -> None:
    numbers = frame({"a": [1.0, 0.0], "b": [2.0, 3.0]})
    assert texts_of(numbers) is None
    np.testing.assert_array_equal(matrix_of(numbers), [[1, 2], [0, 3]])


@columns
def test_a_missing_text_is_named(column: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"document 1 is (None|nan) among texts: drop it, or give an empty text"):
        texts_of(column(["a", None, "b"]))


def test_the_missing_values_of_pandas_are_named() -> None:
    with pytest.raises(ValueError, match="document 1 is <NA> among texts: drop it"):
        texts_of(pd.Series(["a", pd.NA], dtype="string"))
    with pytest.raises(ValueError, match=r"document 0 is .* among texts: drop it"):
        texts_of(pd.DataFrame({"text": [None, "b"]}))
    with pytest.raises(ValueError, match=r"document 1 is .* among texts: drop it"):
        texts_of(pd.DataFrame({"title": ["A", None], "text": ["b", None]}))
    with pytest.raises(ValueError, match="document 1 has 5 in the column text"):
        texts_of(pd.DataFrame({"text": ["a", 5]}))


def test_lazy_frames_and_several_splits_are_refused() -> None:
    class Splits:
        column_names = {"train": ["text"], "test": ["text"]}  # noqa: RUF012

    with pytest.raises(ValueError, match=r"a lazy frame: call collect\(\) first"):
        texts_of(pl.DataFrame({"text": TEXTS}).lazy())
    with pytest.raises(ValueError, match=r"several splits \(train, test\): give one of them"):
        texts_of(Splits())


@columns
@pytest.mark.parametrize("rows", [LABELS, [str(row) for row in LABELS], ['["cat"]', "['dog']", "['cat' 'dog']"]])
def test_a_column_of_lists_or_of_lists_in_cells_is_labels(column: Callable[[Any], Any], rows: Any) -> None:
    found = labels_of(column(rows), None)
    assert found.names == ["cat", "dog"]
    assert found.matrix.toarray().tolist() == [[1, 0], [0, 1], [1, 1]]
    assert known_labels(column(rows), ["dog", "cat"], 2).toarray().tolist() == [[0, 1], [1, 0], [1, 1]]


def test_arrays_in_cells_are_labels() -> None:
    assert label_rows(pd.Series([np.array(row, dtype=object) for row in LABELS])) == LABELS


@frames
def test_a_column_of_labels_in_a_frame_is_found(frame: Callable[[dict[str, Any]], Any]) -> None:
    assert label_rows(frame({"text": TEXTS, "labels": LABELS})) == LABELS
    assert label_rows(frame({"tags": LABELS})) == LABELS


@frames
def test_a_frame_of_zeros_and_ones_has_labels_as_columns(frame: Callable[[dict[str, Any]], Any]) -> None:
    for values in ([1, 0, 1], [True, False, True]):
        found = labels_of(frame({"cat": values, "labels": [0, 1, 1]}), None)
        assert found.names == ["cat", "labels"]
        assert found.matrix.toarray().tolist() == [[1, 0], [0, 1], [1, 1]]
        assert known_labels(frame({"cat": values}), ["cat"], 1).tolist() == [[1], [0], [1]]


@columns
def test_integers_in_columns_are_ids(column: Callable[[Any], Any]) -> None:
    for rows in ([[7], [999_999, 7], []], ["[7]", "[999999, 7]", "[]"]):
        found = labels_of(column(rows), None)
        assert (found.names, found.are_integers) == (["7", "999999"], True)
        assert found.matrix.toarray().tolist() == [[1, 0], [1, 1], [0, 0]]
    assert labels_of(column([7, 999_999, 7]), None).matrix.toarray().tolist() == [[1, 0], [0, 1], [1, 0]]


@columns
@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            ["cat,pet", "dog,pet", "cow"],
            r"',' seems to separate them: .* \[\[one\.strip\(\) for one in cell\.split\(','\)\] for cell in Y\]",
        ),
        (["cat|pet", "dog", "pet"], "'|' seems to separate them"),
        (["['cat']", "dog", "cow"], "document 1 are 'dog'"),
    ],
)
def test_strings_that_are_no_lists_are_asked_about(
    column: Callable[[Any], Any], cells: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        labels_of(column(cells), None)


def test_strings_in_a_list_are_asked_about_and_in_a_column_are_classes() -> None:
    cells = ["cat", "dog", "cow"]
    with pytest.raises(ValueError, match=r"document 0 are 'cat': give a list of them, .* \[\[label\] for label in Y\]"):
        labels_of(cells, None)
    for column in (pd.Series(cells), np.array(cells)):
        found = labels_of(column, None)
        assert (found.names, found.output) == (["cat", "cow", "dog"], "classes")


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_missing_labels_are_refused(missing: Any) -> None:
    with pytest.raises(ValueError, match=r"the labels of document 1 are .*: give a list of them, \[\] for none"):
        labels_of(pd.Series([["a"], missing]), None)
