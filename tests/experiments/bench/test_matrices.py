"""Matrices that all methods share."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml.data import Dataset, Split, Texts, save
from lightdxml.experiments.bench import matrices
from lightdxml.text.tfidf import TextOptions
from tests.support.bench import documents


def test_tfidf_is_fitted_on_the_training_part(tmp_path: Path) -> None:
    Y = csr_matrix(np.ones((4, 1), dtype=np.float32))
    train, test = Split(Y=Y, texts=Texts(["red rose"] * 4)), Split(Y=Y, texts=Texts(["blue rose"] * 4))
    folder = save(Dataset("words", train, test, label_names=["a"]), tmp_path / "words", "jsonl")
    built = matrices.read(matrices.prepare(str(folder), tmp_path / "built", TextOptions(ngrams=1)))
    assert built.X.shape[1] == built.X_test.shape[1] == 2
    assert built.X_test.getnnz(axis=1).tolist() == [1] * 4


def test_a_fifth_is_held_out_if_there_is_no_test_part(tmp_path: Path) -> None:
    X, Y = documents(np.random.default_rng(0), 50)
    folder = save(Dataset("alone", Split(Y=Y, X=X)), tmp_path / "alone", "npz")
    built = matrices.read(matrices.prepare(str(folder), tmp_path / "built", TextOptions()))
    assert (built.X.shape[0], built.X_test.shape[0]) == (40, 10)


def test_pairs_to_ignore_are_kept(tmp_path: Path) -> None:
    (X, Y), pairs = documents(np.random.default_rng(0), 50), np.array([[3, 7], [4, 8]])
    part = Split(Y=Y, X=X, ignore=pairs)
    folder = save(Dataset("pairs", part, part), tmp_path / "pairs", "npz")
    ignore = matrices.read(matrices.prepare(str(folder), tmp_path / "built", TextOptions())).ignore
    assert ignore is not None
    assert np.column_stack(ignore.nonzero()).tolist() == pairs.tolist()


@pytest.mark.parametrize("changed", ["data", "text settings"])
def test_other_data_or_text_settings_are_not_mixed(tmp_path: Path, changed: str) -> None:
    Y = csr_matrix(np.ones((10, 1), dtype=np.float32))
    for word in ("red", "blue") if changed == "data" else ("red", "red"):
        shutil.rmtree(tmp_path / "data", ignore_errors=True)
        data = Dataset("data", Split(Y=Y, texts=Texts([word] * 10)), label_names=["a"])
        folder = save(data, tmp_path / "data", "jsonl")
        if not (tmp_path / "built").exists():
            matrices.prepare(str(folder), tmp_path / "built", TextOptions(ngrams=1))
    with pytest.raises(ValueError, match="built from other data, text settings or seed: use another --out"):
        matrices.prepare(str(folder), tmp_path / "built", TextOptions(ngrams=1 if changed == "data" else 2))


def test_the_same_data_by_another_path_is_the_same(out: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(source.parent)
    for written in ("tiny", "./tiny", f"../{source.parent.name}/tiny", str(source)):
        assert matrices.prepare(written, out / "matrices", TextOptions()).name == "tiny"
    monkeypatch.chdir(source)
    assert matrices.prepare(".", out / "matrices", TextOptions()).name == "tiny"


def test_incomplete_matrices_are_built_again(tmp_path: Path, source: Path) -> None:
    incomplete = tmp_path / "built" / "tiny"
    incomplete.mkdir(parents=True)
    (incomplete / "ignore.npz").write_bytes(b"of an interrupted run")
    matrices.prepare(str(source), tmp_path / "built", TextOptions())
    assert matrices.read(incomplete).ignore is None


def test_names_of_data_sets_are_safe_file_names(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = Path(shutil.copytree(source, tmp_path / "..hidden"))
    (tmp_path / ".csv").write_text("text,labels\na,b\n")
    inner = Path(shutil.copytree(source, tmp_path / "tiny")) / "inner"
    inner.mkdir()
    assert matrices.prepare(str(hidden), tmp_path / "built", TextOptions()).name == "hidden"
    monkeypatch.chdir(inner)
    assert matrices.prepare("..", tmp_path / "built", TextOptions()).name == "tiny"
    with pytest.raises(ValueError, match="a file or folder with a plain name"):
        matrices.prepare(str(tmp_path / ".csv"), tmp_path / "built", TextOptions())
