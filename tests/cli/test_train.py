"""`lightdxml train` and `lightdxml evaluate`."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lightdxml import load as load_model
from lightdxml.cli import application
from lightdxml.data import Dataset, Split, Texts, save
from lightdxml.model import store
from lightdxml.training import fit
from lightdxml.views.dense import train_classifier
from tests.support.commands import run

FAST = ["--dim", "16", "--epochs", "3", "--shortlist-size", "20", "--dense", "always"]


@pytest.fixture(scope="module")
def data(see_also: Dataset) -> Dataset:
    """Some of the built-in documents."""
    assert see_also.test is not None
    train, test = see_also.train.take(np.arange(0, 1600, 5)), see_also.test.take(np.arange(0, 400, 4))
    return Dataset("see-also", train, test, label_names=see_also.label_names)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, data: Dataset) -> Path:
    return save(data, tmp_path_factory.mktemp("data") / "data", "jsonl")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Path:
    model = tmp_path_factory.mktemp("models") / "model"
    shown = run("train", folder, "--model", model, *FAST, "--n-jobs", "1")
    assert f"The model is in {model}. Next: lightdxml evaluate" in shown
    return model


def test_options_reach_the_training(tmp_path: Path, folder: Path) -> None:
    options = ["--random-state", "3", "--no-linear", "--ngrams", "1", "--set", "dense.dropout=0.5", "--json"]
    trained = json.loads(run("train", folder, "--model", tmp_path / "model", *FAST, *options))
    config = trained["config"]
    assert (config["dense"]["dim"], config["dense"]["dropout"], config["random_state"]) == (16, 0.5, 3)
    assert config["linear"]["enabled"] is False
    assert trained["blend"] == "paper"
    assert set(trained["views"]) <= {"nearness", "classifier"}
    assert "P@5" in trained["metrics"]
    vectorizer = load_model(tmp_path / "model").model_.vectorizer
    assert vectorizer is not None
    assert vectorizer.settings.ngrams == 1


def test_a_model_is_measured_on_test_documents(model: Path, folder: Path, data: Dataset) -> None:
    metrics = json.loads(run("evaluate", model, folder, "--json"))
    assert data.test is not None
    assert metrics["documents"] == len(data.test)
    assert {"P@1", "nDCG@3", "PSP@5", "PSnDCG@5", "R@5", "coverage@1", "macro-F1@5"} <= set(metrics)
    shown = run("evaluate", model, folder)
    assert "PSnDCG" in shown
    assert "Examples (✓ marks correct labels). The 3 most confident of" in shown
    assert load_model(model).model_.label_names == data.label_names


def test_propensities_of_a_file_of_test_documents_are_those_of_training(model: Path, folder: Path) -> None:
    """They were once computed from the labels of the file, as if it were the training data."""
    whole = json.loads(run("evaluate", model, folder, "--json"))
    alone = json.loads(run("evaluate", model, folder / "test.jsonl", "--json"))
    assert alone["P@5"] == pytest.approx(whole["P@5"])
    assert alone["PSP@5"] == pytest.approx(whole["PSP@5"])


def test_the_model_depends_on_neither_threads_nor_test_documents(tmp_path: Path, model: Path, data: Dataset) -> None:
    other = Split(Y=data.train.Y[:5], texts=Texts(["something else"] * 5))
    changed = Dataset("d", data.train, other, label_names=data.label_names)
    run("train", save(changed, tmp_path / "data", "jsonl"), "--model", tmp_path / "model", *FAST, "--n-jobs", "2")
    arrays = [(place / "arrays.safetensors").read_bytes() for place in (model, tmp_path / "model")]
    assert arrays[0] == arrays[1]


def test_a_file_in_another_order_of_labels_is_measured_by_name(
    tmp_path: Path, model: Path, folder: Path, data: Dataset
) -> None:
    assert data.label_names is not None
    (save(data, tmp_path / "other", "jsonl") / "label_names.json").write_text(json.dumps(data.label_names[::-1]))
    first, second = (json.loads(run("evaluate", model, place, "--json")) for place in (folder, tmp_path / "other"))
    assert first["P@5"] == pytest.approx(second["P@5"])
    assert first["PSP@5"] == pytest.approx(second["PSP@5"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "DATA", "--model", "OUT", "--set", "color=red"], "there is no setting 'color'"),
        (["train", "DATA", "--model", "OUT", "--set", "dense.dropuot=0"], "did you mean dense.dropout?"),
        (["train", "DATA", "--model", "OUT", "--set", "epochs"], "write --set NAME=VALUE"),
        (["train", "DATA", "--model", "OUT", "--dim", "0"], "dim is 0: it must be an integer of at least 1"),
        (["train", "DATA", "--model", "OUT", "--ngrams", "3"], "ngrams is 3"),
        (["train", "DATA", "--model", "OUT", "--random-state", str(2**64)], "random_state is 18446744073709551616"),
        (["train", "DATA", "--model", "OUT", "--word-vectors", "none.vec"], "there is no file none.vec"),
        (["train", "DATA", "--model", "OUT", "--preset", "mine"], "there is no preset 'mine'"),
        (["train", "DATA", "--model", "OUT", "--n-jobs", "0"], "n_jobs is 0"),
        (["train", "nothing-here", "--model", "OUT"], "lightdxml data list shows all"),
        (["evaluate", "OUT", "DATA"], "is not a model"),
        (["train", "DATA", "--model", "OUT", "--checkpoint", "OUT"], "where the model goes: choose another folder"),
        (["train", "DATA", "--model", "OUT", "--spill", "OUT/files"], "where the model goes: choose another folder"),
        (["train", "DATA", "--model", "OUT", "--every", "1m"], "--every needs a folder for checkpoints"),
        (["train", "DATA", "--model", "OUT", "--memory-limit", "4"], "'4' has no unit: write 4MB or 4GB"),
        (["train", "DATA", "--model", "OUT", "--checkpoint", "DATA/train.jsonl"], "choose another folder"),
        (["train", "DATA", "--model", "OUT", "--spill", "DATA/train.jsonl"], "choose another folder"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(tmp_path: Path, folder: Path, arguments: list[str], said: str) -> None:
    out = str(tmp_path / "out")
    with pytest.raises((ValueError, OSError)) as error:
        run(*(argument.replace("DATA", str(folder)).replace("OUT", out) for argument in arguments))
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def raise_in_batch(monkeypatch: pytest.MonkeyPatch, at: int, error: type[BaseException]) -> None:
    """Raise an error in the n-th batch of a training."""
    batches = itertools.count(1)
    train_batch: Any = train_classifier.train_batch

    def counting(*arguments: Any) -> Any:
        if next(batches) == at:
            raise error
        return train_batch(*arguments)

    monkeypatch.setattr(fit, "compile_kernels", lambda *_: None)  # its batches do not count
    monkeypatch.setattr(train_classifier, "train_batch", counting)


@pytest.mark.parametrize(
    ("at", "kept", "said"),
    [
        (5, True, "stopped; resume with: lightdxml train somewhere --resume"),
        (1, True, "stopped before the first checkpoint"),
        (5, False, "stopped: nothing was saved; with --checkpoint DIR"),
    ],
)
def test_a_second_ctrl_c_says_how_to_resume_if_possible(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    at: int, kept: bool, said: str,
) -> None:  # fmt: skip
    """It once said that nothing was saved although there were checkpoints."""
    raise_in_batch(monkeypatch, at, KeyboardInterrupt)
    monkeypatch.setattr(sys, "argv", ["lightdxml", "train", "somewhere"])
    options = ["--checkpoint", tmp_path / "kept", "--every", "0s" if at > 1 else "1h"] if kept else []
    result = CliRunner().invoke(
        application(), ["train", *map(str, (folder, "--model", tmp_path / "model", *FAST, *options))]
    )
    assert result.exit_code == 130
    assert said in result.output + capfd.readouterr().err
    assert not (tmp_path / "model").exists()


def test_a_model_that_cannot_be_saved_is_saved_later_without_training(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments: list[Any] = ["train", folder, "--model", tmp_path / "model", *FAST, "--checkpoint", tmp_path / "kept"]

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(store, "save", full)
        with pytest.raises(
            ValueError, match=r"No space left on device; .*kept holds the finished training, save it with:"
        ):
            run(*arguments)
    raise_in_batch(monkeypatch, 1, AssertionError)
    run(*arguments, "--resume")
    assert "P@5" in load_model(tmp_path / "model").model_.metrics
    assert not (tmp_path / "kept").exists()


@pytest.fixture
def unsplit(tmp_path: Path) -> Path:
    """A table with a separator that is not the usual one, and columns of other names than ours."""
    rows = [f"a {word} text,{word};{other}" for word in ("red", "blue") for other in ("x", "y")] * 10
    (tmp_path / "data.csv").write_text("body,tags\n" + "\n".join(rows) + "\n")
    return tmp_path / "data.csv"


COLUMNS = ["--text-column", "body", "--label-column", "tags"]


def test_labels_that_were_not_split_are_refused_unless_the_separator_is_given(tmp_path: Path, unsplit: Path) -> None:
    arguments = ["train", unsplit, "--model", tmp_path / "model", *COLUMNS, *FAST]
    with pytest.raises(ValueError, match=r"';' in labels such as 'red;x', expected .*--separator \";\""):
        run(*arguments)
    run(*arguments, "--separator", "|")
    assert load_model(tmp_path / "model").classes_.tolist() == ["red;x", "red;y", "blue;x", "blue;y"]


def test_a_model_remembers_how_its_data_was_read(tmp_path: Path, unsplit: Path) -> None:
    run("train", unsplit, "--model", tmp_path / "model", *COLUMNS, "--separator", ";", *FAST)
    assert load_model(tmp_path / "model").model_.reading == {
        "label_separator": ";",
        "text_column": "body",
        "label_column": "tags",
    }
    assert json.loads(run("evaluate", tmp_path / "model", unsplit, "--json"))["P@1"] > 50
    assert len(run("predict", tmp_path / "model", unsplit).splitlines()) == 40
    with pytest.raises(ValueError, match="expected a column named other: check --text-column"):
        run("evaluate", tmp_path / "model", unsplit, "--text-column", "other")
    (tmp_path / "other.csv").write_text("words,tags\na red text,red;x\n")
    other = ["evaluate", tmp_path / "model", tmp_path / "other.csv", "--text-column", "words", "--json"]
    assert json.loads(run(*other))["documents"] == 1


def test_options_of_reading_survive_compression(tmp_path: Path, unsplit: Path) -> None:
    run("train", unsplit, "--model", tmp_path / "model", *COLUMNS, "--separator", ";", *FAST)
    run("compress", tmp_path / "model", tmp_path / "small", "--data", unsplit)
    assert load_model(tmp_path / "small").model_.reading["label_separator"] == ";"
