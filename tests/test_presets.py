"""Presets in files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lightdxml import LightDXML, presets
from lightdxml.presets import Preset
from tests.support.commands import run, run_process
from tests.support.data import NAMES, TEXTS

CONTENT = '{"base": "fast", "settings": {"ngrams": 2, "min_df": 1, "linear.costs": [0.3], "dim": 16}, "about": {}}'


def written(folder: Path, content: str = CONTENT) -> Path:
    path = folder / "mine.json"
    path.write_text(content, "utf-8")
    return path


def test_a_preset_comes_back_as_it_was_written(tmp_path: Path) -> None:
    preset = Preset("fast", {"linear.costs": (0.25, 1.0), "ngrams": 2}, {"metric": "P@5"})
    presets.write(tmp_path / "one.json", preset)
    assert presets.read(tmp_path / "one.json") == preset
    assert [one.name for one in tmp_path.iterdir()] == ["one.json"]


def test_the_estimator_takes_settings_of_a_file_and_its_own_win(tmp_path: Path) -> None:
    path = written(tmp_path)
    estimator = LightDXML(path, min_df=3, options={"linear.costs": (0.5,)})
    assert estimator.text_options().ngrams == 2
    assert estimator.text_options().min_df == 3
    config = estimator.config(100)
    assert config.linear.costs == (0.5,)
    # Whoever sets a setting of the dense views wants to see its effect.
    assert (config.dense.dim, config.dense.train, config.tree.max_trees) == (16, "always", 1)
    assert LightDXML("fast", dim=8).config().dense.dim == 8


def test_a_model_is_trained_with_a_file_as_with_the_same_options(tmp_path: Path) -> None:
    path = written(tmp_path, '{"settings": {"dense": "never", "linear.prior": 0.5, "ngrams": 2}}')
    one = LightDXML(path).fit(TEXTS, NAMES)
    other = LightDXML(dense="never", ngrams=2, options={"linear.prior": 0.5}).fit(TEXTS, NAMES)
    assert one.model_.config == other.model_.config
    assert one.model_.vectorizer is not None
    assert one.model_.vectorizer.settings.ngrams == 2
    assert (one.scores(TEXTS) != other.scores(TEXTS)).nnz == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"is not JSON \(.*line 1\): correct this line"),
        ("[]", 'is not a preset: write {"base"'),
        ('{"setings": {}}', "has an entry 'setings': a preset has only base, settings and about"),
        ('{"base": "mine"}', "base is 'mine': choose default"),
        ('{"base": "other.json"}', "base is 'other.json': choose default"),
        ('{"settings": [1]}', r"settings is \[1\]: write"),
        ('{"settings": {"epoch": 1}}', "there is no setting 'epoch': did you mean epochs"),
        ('{"settings": {"linear.prior": -1}}', "linear.prior is -1: it must be a number of at least 0"),
        ('{"settings": {"linear.prior": NaN}}', "linear.prior is nan"),
        ('{"settings": {"linear.costs": 3}}', "linear.costs is 3: it must be a list of numbers"),
        ('{"settings": {"ngrams": 3}}', "ngrams is 3"),
        ('{"settings": {"ngrams": "2"}}', "ngrams is '2'"),
        ('{"settings": {"dim": 8, "dense.dim": 9}}', "dense.dim is set twice: keep one of them"),
        ('{"settings": {"dim": 8, "dim": 9}}', "has 'dim' twice: keep one of them"),
        ('{"settings": {"tree.branching": 3}}', "tree.branching is 3: it must be a power of 2"),
        ("[" * 100_000, "its brackets are nested too deeply"),
    ],
)
def test_a_mistake_in_a_file_is_one_sentence(tmp_path: Path, content: str, message: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(ValueError, match=message) as caught:
        presets.find(path)
    assert "mine.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_preset_that_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="or give a preset file"):
        presets.find("mine")
    with pytest.raises(FileNotFoundError, match="there is no preset file"):
        presets.find(tmp_path / "mine.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        presets.find(tmp_path / "folder.json")
    (tmp_path / "latin.json").write_bytes(b'{"about": {"data": "caf\xe9"}}')
    with pytest.raises(ValueError, match="save it as UTF-8"):
        presets.find(tmp_path / "latin.json")


def test_train_takes_a_file(tmp_path: Path) -> None:
    rows = [{"text": text, "labels": labels} for text, labels in zip(TEXTS, NAMES, strict=True)]
    (tmp_path / "data.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    path = written(tmp_path, '{"settings": {"dense": "never", "linear.prior": 0.5}}')
    run("train", tmp_path / "data.jsonl", "--model", tmp_path / "model", "--preset", path)
    assert "linear.prior=0.5" in run("info", tmp_path / "model").replace("\n", " ")
    result = run_process(
        "train", tmp_path / "data.jsonl", "--model", tmp_path / "other", "--preset", tmp_path / "no.json"
    )
    assert result.returncode == 1
    assert result.stderr.startswith("error: there is no preset file")
