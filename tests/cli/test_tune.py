"""`lightdxml tune`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import COMMAND, run

TEXTS = ["a purring cat", "a barking dog", "a cat and a dog", "some other pet"]
LABELS = [["cat"], ["dog"], ["cat", "dog"], ["pet"]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data, in which commands run."""
    rows = [{"text": f"{TEXTS[i % 4]} {i}", "labels": LABELS[i % 4]} for i in range(120)]
    (tmp_path / "pets.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "space.json").write_text(
        '{"linear.prior": {"low": 0.5, "high": 4}, "ngrams": [1, 2], "dense": ["never"]}'
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tune(*options: object) -> str:
    return run("tune", "pets.jsonl", "--metric", "PSP@1", "--space", "space.json", *options)


def test_trials_go_on_in_the_same_storage_and_the_best_settings_train_a_model(folder: Path) -> None:
    shown = tune("--trials", 2)
    assert "pets: 24 documents, in percent" in shown
    assert "2 trials finished, 0 stopped early, 0 failed (2 trials)" in shown
    assert "No trial is better than the defaults." in shown
    assert "Next:" not in shown, "the defaults need no preset"
    found = json.loads(tune("--trials", 3, "--json", "--out", "new/preset.json"))
    (folder / "new" / "preset.json").replace("preset.json")
    assert [one["outcome"] for one in found["all_trials"]] == ["done"] * 3
    assert found["all_trials"][0]["settings"] == {}
    assert {"linear.prior", "ngrams", "dense.train"} == set(found["all_trials"][1]["settings"])
    assert found["tuned"] >= found["default"]
    preset = json.loads((folder / "preset.json").read_text())
    assert preset["settings"] == found["settings"]
    assert preset["about"]["metric"] == "PSP@1"
    run("train", "pets.jsonl", "--preset", "preset.json", "--model", "tuned-model")


def test_mistakes_are_reported_in_one_sentence(folder: Path) -> None:
    with pytest.raises(ValueError, match="there is no metric PSP"):
        run("tune", "pets.jsonl", "--metric", "PSP")
    with pytest.raises(ValueError, match="--time soon is not a time"):
        tune("--time", "soon")
    with pytest.raises(ValueError, match="there is no preset 'quick'"):
        tune("--preset", "quick")
    (folder / "taken").mkdir()
    with pytest.raises(ValueError, match=r"taken is a folder: give a file, such as taken/preset.json"):
        tune("--out", "taken", "--force")
    (folder / "preset.json").write_text("{}")
    with pytest.raises(ValueError, match=r"preset.json is not a preset of this study: choose another --out"):
        tune("--trials", 1)
    tune("--trials", 1, "--force")
    with pytest.raises(ValueError, match=r"tune.db has trials of another study \(its metric is PSP@1, not P@1\)"):
        run("tune", "pets.jsonl", "--metric", "P@1", "--space", "space.json", "--force")


def test_optuna_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lightdxml.cli.tune.find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r'tuning needs optuna: pip install "lightdxml\[tune\]"'):
        run("tune", "see-also")


@pytest.mark.skipif(sys.platform == "win32", reason="there, a process cannot be interrupted alone")
def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(folder: Path) -> None:
    command = [*COMMAND, "tune", "pets.jsonl", "--metric", "PSP@1", "--space", "space.json", "--trials", "100000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        shown = ""
        while "trial 2 of" not in shown:
            line = process.stderr.readline()
            assert line, shown
            shown += line
        process.send_signal(signal.SIGINT)
        shown = process.stderr.read()
    assert process.returncode == 130
    assert "trials are in tune.db; continue with: lightdxml" in shown
    assert "Traceback" not in shown
    done = int(shown.split("stopped; ")[1].split()[0])
    assert json.loads((folder / "preset.json").read_text())["about"]["trials"]["done"] >= 2
    found = json.loads(tune("--trials", done + 1, "--no-prune", "--json"))
    assert len(found["all_trials"]) == done + 1
