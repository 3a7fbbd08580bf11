"""Mistakes that are easy to make: measuring on training documents, replacing a model, commands that do not paste."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from lightdxml import load
from lightdxml.cli.output import print_table
from tests.support.commands import run, run_process
from tests.support.data import topics

ROWS = [f"the {animal} number {i} sleeps;{animal}/pet" for i, animal in enumerate(("cat", "dog", "cow") * 20)]


def write(path: Path, rows: list[str]) -> Path:
    path.write_text("text;labels\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, `my data.csv`, and a model of all of them."""
    folder = tmp_path_factory.mktemp("traps")
    write(folder / "my data.csv", ROWS)
    run("train", folder / "my data.csv", "--model", folder / "model", "--separator", "/")
    return folder


def commands(text: str) -> list[list[str]]:
    """Return the commands of the package in a text, each from its name to the end of the line."""
    found = [line[line.index("lightdxml ") :] for line in text.splitlines() if "lightdxml " in line]
    return [shlex.split(one)[1:] for one in found]


def test_measuring_on_training_documents_is_said_loudly(folder: Path) -> None:
    shown = run_process("evaluate", folder / "model", folder / "my data.csv", "--separator", "/", "--json")
    assert "warning: the model was trained on 100% of these 60 documents, so the metrics are too high" in shown.stderr
    assert json.loads(shown.stdout)["trained_on_share"] == 1


def test_the_report_says_it_too(folder: Path, tmp_path: Path) -> None:
    data, out = folder / "my data.csv", tmp_path / "report.html"
    shown = run_process("report", folder / "model", "--data", data, "--separator", "/", "--out", out)
    assert "warning: the model was trained on 100% of these 60 documents" in shown.stderr
    assert out.resolve().as_uri() in shown.stdout


def test_the_advice_to_hold_documents_out_works_when_pasted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = run_process("evaluate", folder / "model", folder / "my data.csv", "--separator", "/")
    (advice,) = commands(shown.stderr)
    monkeypatch.chdir(tmp_path)
    run(*advice)
    run("train", "my data-split", "--model", "held-out")
    again = run_process("evaluate", "held-out", "my data-split")
    assert "warning" not in again.stderr
    assert "12 documents" in again.stdout


def test_documents_that_are_new_are_not_warned_of(folder: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "new.csv", [row.replace("number", "Nr") for row in ROWS])
    shown = run_process("evaluate", folder / "model", data, "--separator", "/", "--json")
    assert "warning" not in shown.stderr
    assert json.loads(shown.stdout)["trained_on_share"] == 0


def test_a_few_training_documents_among_others_are_counted(folder: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "some.csv", [*ROWS[:3], *(row.replace("number", "Nr") for row in ROWS[3:])])
    shown = run_process("evaluate", folder / "model", data, "--separator", "/")
    assert "trained on 5% of these 60 documents" in shown.stderr
    assert "data split" not in shown.stderr


def test_a_model_of_features_knows_its_documents(tmp_path: Path) -> None:
    from scipy.sparse import save_npz

    X, Y = topics(60)
    (tmp_path / "data").mkdir()
    save_npz(tmp_path / "data" / "X.trn.npz", X)
    save_npz(tmp_path / "data" / "Y.trn.npz", Y)
    run("train", tmp_path / "data", "--model", tmp_path / "model", "--dense", "never")
    shown = run_process("evaluate", tmp_path / "model", tmp_path / "data")
    assert "trained on 100% of these 60 documents" in shown.stderr


def test_training_shows_an_interval_and_never_suggests_its_own_file(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run("train", folder / "my data.csv", "--model", "my model", "--separator", "/")
    assert "On 12 held-out training documents: P@1 " in shown
    assert "(95% confidence interval: " in shown
    assert "They also decided how much each part of the model counts" in shown
    assert "evaluate" not in shown
    split, predict = commands(shown)
    run(*split)
    assert Path("my data-split").is_dir()
    words = shlex.split(shown.splitlines()[-1].partition("Next: echo ")[2])[0]
    assert "cat 0.9" in run(*predict, text=f"{words}\n")


def test_training_with_a_test_part_suggests_to_measure_on_it(folder: Path, tmp_path: Path) -> None:
    run("data", "split", folder / "my data.csv", tmp_path / "my parts", "--dev", "0.2", "--separator", "/")
    shown = run("train", tmp_path / "my parts", "--model", tmp_path / "model")
    assert "On 12 dev documents: P@1 " in shown
    (evaluate,) = commands(shown)
    assert "12 documents" in run(*evaluate)


def test_too_few_documents_to_hold_some_out_are_called_training_documents(tmp_path: Path) -> None:
    data = write(tmp_path / "few.csv", ROWS[:12])
    shown = run("train", data, "--model", tmp_path / "model", "--separator", "/")
    assert "On 12 training documents: P@1 " in shown
    assert "No documents were held out: expect much less on other documents." in shown


def test_a_model_is_replaced_only_by_force(folder: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "other.csv", [row.replace("cat", "ant") for row in ROWS])
    train = ["train", data, "--model", tmp_path / "model", "--separator", "/"]
    run(*train)
    before = (tmp_path / "model" / "manifest.json").read_bytes()
    refused = "holds a model already: choose another folder, or replace the model with --force"
    for command in (train, ["compress", folder / "model", tmp_path / "model"]):
        with pytest.raises(ValueError, match=refused):
            run(*command)
        assert (tmp_path / "model" / "manifest.json").read_bytes() == before
    run(*train, "--force", "--random-state", "1")
    assert load(tmp_path / "model").random_state == 1


def test_a_refused_folder_is_reported_before_any_work(folder: Path) -> None:
    with pytest.raises(ValueError, match="holds a model already"):
        run("train", "no-such-data", "--model", folder / "model")


def test_a_vocabulary_update_into_another_model_needs_force(folder: Path, tmp_path: Path) -> None:
    run("train", write(tmp_path / "d.csv", ROWS), "--model", tmp_path / "other", "--separator", "/")
    (tmp_path / "v.tsv").write_text("<urn:cat>\tcat\n", encoding="utf-8")
    with pytest.raises(ValueError, match="holds a model already"):
        run("vocabulary", "update", folder / "model", tmp_path / "v.tsv", "--out", tmp_path / "other")


def test_a_finished_training_whose_checkpoint_is_left_can_be_resumed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process may be killed after the model was saved and before the checkpoint is removed."""
    train = ["train", folder / "my data.csv", "--model", tmp_path / "model", "--separator", "/"]
    train += ["--checkpoint", tmp_path / "kept"]
    with monkeypatch.context() as patched:
        patched.setattr("lightdxml.persistence.checkpoint.remove", lambda _: None)
        run(*train)
    assert (tmp_path / "kept").exists()
    run(*train, "--resume")
    assert not (tmp_path / "kept").exists()


def test_empty_documents_and_those_without_labels_are_counted_in_one_line(folder: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "gaps.csv", [*ROWS, ";cat", "the cat;", "the dog;"])
    counted = "1 of 63 documents is empty (document 61), 2 have no labels (documents 62, 63): "
    for command in (
        ["train", data, "--model", tmp_path / "model", "--separator", "/"],
        ["evaluate", folder / "model", data, "--separator", "/"],
    ):
        shown = run_process(*command)
        assert shown.stderr.count(counted) == 1, shown.stderr
    assert " empty" not in run_process("evaluate", folder / "model", folder / "my data.csv").stderr


def test_progress_is_printed_as_lines_without_a_terminal(folder: Path, tmp_path: Path) -> None:
    shown = run_process("train", folder / "my data.csv", "--model", tmp_path / "model", "--json", "--separator", "/")
    assert "texts to features: started\ntexts to features: done in " in shown.stderr
    assert json.loads(shown.stdout)["model"] == str(tmp_path / "model")


def test_a_text_in_place_of_a_file_is_told_where_it_belongs(folder: Path) -> None:
    shown = run_process("predict", folder / "model", "it's a cat")
    assert shown.returncode == 1
    assert "there is no file it's a cat; if it is a text: echo " in shown.stderr
    assert shlex.split(shown.stderr.partition("echo ")[2])[0] == "it's a cat"
    assert "cat 0." in run(*commands(shown.stderr)[0], text="it's a cat\n")


@pytest.mark.parametrize("text", ["a cat, asleep", "Title, text\na cat, asleep", "text, title", "text,title\na cat"])
def test_a_text_with_a_comma_is_a_document(folder: Path, text: str) -> None:
    shown = run("predict", folder / "model", "-", "--json", text=f"{text}\n")
    assert len(shown.splitlines()) == len(text.splitlines())


def test_wide_tables_fit_80_columns_and_cut_no_numbers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers were once shown as `59.…`."""
    monkeypatch.setattr("lightdxml.cli.output.console.width", 80)
    numbers = [f"{value:.2f}" for value in np.linspace(10, 99, 8)]
    print_table(
        "results", ("", *(f"long title{i}" for i in range(8)), ""), [["a method with a long name", *numbers, ""]]
    )
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert all(number in shown for number in numbers)


def test_evaluate_shows_the_most_confident_documents_first_and_what_is_missed(folder: Path, tmp_path: Path) -> None:
    rows = ["the animal;cat/unheard of", *(f"cat cat cat {i};cat" for i in range(3)), *(["nothing here;dog"] * 5)]
    shown = run("evaluate", folder / "model", write(tmp_path / "d.csv", rows), "--separator", "/")
    examples = shown.partition("The 3 most confident of 9 documents:\n")[2]
    assert examples.startswith("- cat cat cat")
    first, _, others = examples.partition("more documents, evenly spaced:\n")
    assert first.count("1 of 1 found: ✓ cat ") == 3
    assert others.startswith("- the animal\n")
    assert "missed: " in others
    assert "unheard of" in others
