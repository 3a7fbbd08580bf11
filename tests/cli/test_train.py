"""`lightdxml train` and `lightdxml evaluate`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lightdxml import load as load_model
from lightdxml import storage
from lightdxml.cli import app
from lightdxml.data import Dataset, Split, Texts, save
from lightdxml.training import classifier
from tests.cli.test_data import ended, run

FAST = ["--set", "D=16", "--set", "e_model=3", "--set", "k=20", "--set", "sparse_work=1000000"]


@pytest.fixture
def folder(tmp_path: Path, see_also: Dataset) -> Path:
    return save(see_also, tmp_path / "data", "jsonl")


def test_a_model_is_trained_and_measured(tmp_path: Path, folder: Path, see_also: Dataset) -> None:
    model = tmp_path / "model"
    trained = json.loads(run("train", folder, "--model", model, *FAST, "--seed", "3", "--threads", "1", "--json"))
    assert trained["config"]["D"] == 16
    assert trained["config"]["seed"] == 3
    assert trained["validation"]["P@1"] > 0
    figures = json.loads(run("evaluate", model, folder, "--json"))
    assert see_also.test is not None
    assert figures["documents"] == len(see_also.test)
    assert {"P@1", "nDCG@3", "PSP@5", "PSnDCG@5", "R@5", "coverage@1", "macro-F1@5"} <= set(figures)
    shown = run("evaluate", model, folder)
    assert "PSnDCG" in shown
    assert "A few documents" in shown
    assert load_model(model).model_.label_names == see_also.label_names


def test_propensities_of_a_file_of_test_documents_are_those_of_training(tmp_path: Path, folder: Path) -> None:
    """They were once taken from the file's own labels, as if it were the training data."""
    run("train", folder, "--model", tmp_path / "model", *FAST)
    whole = json.loads(run("evaluate", tmp_path / "model", folder, "--json"))
    alone = json.loads(run("evaluate", tmp_path / "model", folder / "test.jsonl", "--json"))
    assert alone["P@5"] == pytest.approx(whole["P@5"])
    assert alone["PSP@5"] == pytest.approx(whole["PSP@5"])


def test_the_same_command_writes_the_same_model(tmp_path: Path, folder: Path) -> None:
    for name, threads in (("a", "1"), ("b", "2")):
        run("train", folder, "--model", tmp_path / name, *FAST, "--threads", threads)
    arrays = [(tmp_path / name / "arrays.safetensors").read_bytes() for name in "ab"]
    assert arrays[0] == arrays[1]


def test_the_test_part_plays_no_part_in_training(tmp_path: Path, see_also: Dataset) -> None:
    assert see_also.test is not None
    other = Split(Y=see_also.test.Y[:5], texts=Texts(["something else"] * 5))
    for name, test in (("a", see_also.test), ("b", other)):
        data = Dataset("d", see_also.train, test, label_names=see_also.label_names)
        run("train", save(data, tmp_path / f"data-{name}", "jsonl"), "--model", tmp_path / name, *FAST)
    arrays = [(tmp_path / name / "arrays.safetensors").read_bytes() for name in "ab"]
    assert arrays[0] == arrays[1]


def test_a_file_in_another_order_of_labels_is_measured_by_name(tmp_path: Path, folder: Path, see_also: Dataset) -> None:
    run("train", folder, "--model", tmp_path / "model", *FAST)
    assert see_also.test is not None
    assert see_also.label_names is not None
    reordered = list(reversed(see_also.label_names))
    data = Dataset("d", see_also.train, see_also.test, label_names=see_also.label_names)
    (save(data, tmp_path / "other", "jsonl") / "label_names.json").write_text(json.dumps(reordered))
    first, second = (
        json.loads(run("evaluate", tmp_path / "model", place, "--json")) for place in (folder, tmp_path / "other")
    )
    assert first["P@5"] == pytest.approx(second["P@5"])
    assert first["PSP@5"] == pytest.approx(second["PSP@5"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "DATA", "--model", "OUT", "--set", "colour=red"], "there is no setting 'colour'"),
        (["train", "DATA", "--model", "OUT", "--set", "k"], "write --set name=value"),
        (["train", "DATA", "--model", "OUT", "--preset", "mine"], "there is no preset 'mine'"),
        (["train", "DATA", "--model", "OUT", "--threads", "0"], "threads is 0"),
        (["train", "nothing-here", "--model", "OUT"], "lightdxml data list shows all"),
        (["evaluate", "OUT", "DATA"], "is no model"),
        (["train", "DATA", "--model", "OUT", "--checkpoint", "OUT"], "where the model goes: choose another folder"),
        (["train", "DATA", "--model", "OUT", "--scratch", "OUT/room"], "where the model goes: choose another folder"),
        (["train", "DATA", "--model", "OUT", "--every", "1m"], "--every needs a folder for checkpoints"),
        (["train", "DATA", "--model", "OUT", "--memory-limit", "4"], "write the unit as well, such as 4GB"),
        (["train", "DATA", "--model", "OUT", "--checkpoint", "DATA/train.jsonl"], "choose another folder"),
        (["train", "DATA", "--model", "OUT", "--scratch", "DATA/train.jsonl"], "choose another folder"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path: Path, folder: Path, arguments: list[str], said: str) -> None:
    out = str(tmp_path / "out")
    result = ended(*(argument.replace("DATA", str(folder)).replace("OUT", out) for argument in arguments))
    assert result.returncode == 1
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def interrupted(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Let Ctrl-C come twice, the second time at once, in the training's n-th batch."""
    batches: list[int] = []
    usual: Any = classifier.train_batch

    def stop(*arguments: Any) -> Any:
        batches.append(1)
        # The toy that compiles the kernels has one batch.
        if len(batches) == at + 1:
            raise KeyboardInterrupt
        return usual(*arguments)

    monkeypatch.setattr(classifier, "train_batch", stop)


@pytest.mark.parametrize(
    ("at", "kept", "said"),
    [
        (5, True, "stopped; go on with: lightdxml train somewhere --resume"),
        (1, True, "stopped before the first checkpoint"),
        (5, False, "stopped: nothing was written; with --checkpoint DIR"),
    ],
)
def test_a_second_ctrl_c_says_how_to_go_on_if_that_is_possible(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    at: int, kept: bool, said: str,
) -> None:  # fmt: skip
    """It said that nothing was written, with checkpoints on the disk."""
    interrupted(monkeypatch, at)
    monkeypatch.setattr(sys, "argv", ["lightdxml", "train", "somewhere"])
    options = ["--checkpoint", tmp_path / "kept", "--every", "0s" if at > 1 else "1h"] if kept else []
    result = CliRunner().invoke(app, ["train", *map(str, (folder, "--model", tmp_path / "model", *FAST, *options))])
    assert result.exit_code == 130
    assert said in result.output + capfd.readouterr().err
    assert not (tmp_path / "model").exists()


def test_a_model_that_cannot_be_saved_costs_no_training(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments: list[Any] = ["train", folder, "--model", tmp_path / "model", *FAST, "--checkpoint", tmp_path / "kept"]

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(storage, "save", full)
        with pytest.raises(ValueError, match=r"No space left on device; the training is safe in .*kept, go on with:"):
            run(*arguments)

    def trained(*_: Any) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("lightdxml.training.fit._compile", lambda *_: 0.0)
    monkeypatch.setattr(classifier, "train_batch", trained)
    run(*arguments, "--resume")
    assert load_model(tmp_path / "model").model_.metrics["P@1"] > 0
    assert not (tmp_path / "kept").exists()
