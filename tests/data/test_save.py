"""Saving data: a saved data set loads the same, and formats reject what they cannot hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from lightdxml.data import DataError, Dataset, Split, Texts, load, save

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(
    st.lists(names, min_size=1, max_size=5, unique=True),
    st.lists(st.tuples(texts, texts, st.sets(st.integers(0, 4))), min_size=1, max_size=5),
    st.sampled_from(["", "gz", "zst"]),
)
def test_any_texts_saved_as_jsonl_load_the_same(
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
def test_saved_features_load_the_same(tmp_path: Path, format: Any, compression: Any) -> None:
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


def test_same_data_gives_the_same_bytes(tmp_path: Path, see_also: Dataset) -> None:
    for folder in ("a", "b"):
        save(see_also, tmp_path / folder, "jsonl", "gz")
    for path in sorted((tmp_path / "a").iterdir()):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_data_that_a_format_cannot_hold_is_rejected(tmp_path: Path) -> None:
    text = Dataset("t", Split(Y=csr_matrix([[1, 1]]), texts=Texts(["a"])), label_names=["same", "same"])
    with pytest.raises(DataError, match="the name 'same' for labels 0 and 1"):
        save(text, tmp_path, "jsonl")
    with pytest.raises(DataError, match="texts without features"):
        save(text, tmp_path, "xc")
    features = Dataset("f", Split(Y=csr_matrix([[1, 1]]), X=csr_matrix([[1.0]])))
    with pytest.raises(DataError, match="documents without text"):
        save(features, tmp_path, "jsonl")


@pytest.mark.parametrize("format", ["xc", "jsonl"])
def test_label_weights_are_kept_or_rejected(tmp_path: Path, format: Any) -> None:
    split = Split(Y=csr_matrix([[0.5]]), X=csr_matrix([[1.0]]), texts=Texts(["a"]))
    with pytest.raises(DataError, match="npz format keeps weights"):
        save(Dataset("w", split), tmp_path / "out", format)
    assert not (tmp_path / "out").exists()
    assert load(save(Dataset("w", split), tmp_path / "out", "npz")).train.Y[0, 0] == 0.5


def test_folder_that_is_not_empty_needs_overwrite_and_old_splits_are_removed(tmp_path: Path, see_also: Dataset) -> None:
    """A dev split of an earlier data set would contain documents of the new training split."""
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
    with pytest.raises(DataError, match="found a file, expected a folder to write to"):
        save(see_also, folder / "notes.md", "jsonl")
