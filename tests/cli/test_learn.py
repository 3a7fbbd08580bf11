"""`lightdxml learn`, `forget`, `history` and `rollback`, and what other commands do with a model that learns."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lightdxml import LightDXML, ModelFolder, load
from tests.support.commands import run, run_process

TEXTS, LABELS = ["a purring cat", "a barking dog", "a cat and a dog"] * 12, [["cat"], ["dog"], ["cat", "dog"]] * 12
HORSES = [{"id": f"h{i}", "text": f"a neighing horse{i % 2}", "labels": ["horse"]} for i in range(4)]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [{"id": f"d{i}", "text": text, "labels": LABELS[i]} for i, text in enumerate(TEXTS)]
    return written(tmp_path_factory.mktemp("data") / "pets.jsonl", rows)


@pytest.fixture(scope="module")
def trained(documents: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "pets"
    run("train", documents, "--model", folder, "--preset", "fast", "--keep-training-data")
    return folder


@pytest.fixture
def pets(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(trained, tmp_path / "pets")


@pytest.fixture
def horses(tmp_path: Path) -> Path:
    return written(tmp_path / "horses.jsonl", HORSES)


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_train_says_how_large_the_training_data_are_without_a_terminal(documents: Path, tmp_path: Path) -> None:
    options = ("--preset", "fast", "--keep-training-data", "--json")
    result = run_process("train", documents, "--model", tmp_path / "model", *options)
    assert result.returncode == 0
    assert "training data kept beside the model: about 0.0 MB" in result.stderr
    assert json.loads(result.stdout)["model"] == str(tmp_path / "model")
    assert ModelFolder(tmp_path / "model").keeps_training_data


def test_learn_teaches_a_model_new_labels_and_shows_what_has_changed(pets: Path, horses: Path) -> None:
    shown = run("learn", pets, horses)
    rows = {line[:22].strip(): line[22:].split()[0] for line in shown.splitlines() if line[22:].split()}
    names = ("documents", "corrected", "labels trained again", "new labels", "new words")
    assert [rows[name] for name in names] == ["4", "0", "1", "1", "3"]
    assert "P@1, 3, 5" in shown
    assert "Drift: 10.0% of the documents and 33.3% of the labels came after training" in shown
    assert "is due" not in shown, "four documents tell nothing"
    assert f"The model is in {pets}. It has 3 labels." in shown
    assert load(pets).predict("my horse1", k=1) == ["horse"]


def test_a_document_of_the_same_id_is_corrected(pets: Path, tmp_path: Path) -> None:
    found = json.loads(run("learn", pets, written(tmp_path / "x.jsonl", [{**HORSES[0], "id": "d0"}]), "--json"))
    assert (found["step"], found["documents"], found["corrected"], found["new_labels"]) == (1, 1, 1, 1)
    assert found["keeps_training_data"] is True
    assert found["drift"]["is_due"] is False
    assert found["measured"]["metrics"]["P@1"] == 0
    assert found["version"] == ModelFolder(pets).journal.entries[-1].version


def test_the_training_part_of_a_folder_is_learned_as_the_model_reads_data(tmp_path: Path) -> None:
    (tmp_path / "first.csv").write_text(
        "title,body,tags\n" + "".join(f",a {one},{one}\n" for one in ["cat", "dog"] * 12)
    )
    options = ("--text-column", "body", "--label-column", "tags", "--preset", "fast")
    run("train", tmp_path / "first.csv", "--model", tmp_path / "pets", *options)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "train.csv").write_text("body,tags\na horse,horse\na horse,horse\n")
    (tmp_path / "more" / "test.csv").write_text("body,tags\na cow,cow\n")
    result = run_process("learn", tmp_path / "pets", tmp_path / "more", "--n-jobs", 1)
    assert result.returncode == 0
    lost = "the model does not keep its training data: earlier documents are known only by its weights;"
    assert [line for line in result.stderr.splitlines() if line.startswith(lost)]
    assert load(tmp_path / "pets").classes_.tolist() == ["cat", "dog", "horse"]


def test_a_model_of_integer_ids_learns_them_from_a_file(tmp_path: Path) -> None:
    LightDXML("fast").fit(["a cat", "a dog"] * 12, [[7], [999]] * 12).save(tmp_path / "pets")
    run("learn", tmp_path / "pets", written(tmp_path / "x.jsonl", [{"text": "a horse", "labels": ["8"]}] * 3))
    assert load(tmp_path / "pets").predict("a horse", k=1) == [8]
    with pytest.raises(ValueError, match="labels are names here, and were ids in training: give ids"):
        run("learn", tmp_path / "pets", written(tmp_path / "y.jsonl", HORSES))


def test_out_leaves_the_original_as_it_is(pets: Path, horses: Path, tmp_path: Path) -> None:
    before = content_of(pets)
    new = tmp_path / "new"
    run("learn", pets, horses, "--out", new)
    run("forget", "retire", pets, "cat", "--out", tmp_path / "retired")
    run("forget", "merge", pets, "dog", "cat", "--out", tmp_path / "merged")
    run("forget", "document", pets, "d0", "d1", "--out", tmp_path / "forgotten")
    run("rollback", new, "--out", tmp_path / "back")
    assert content_of(pets) == before
    assert [ModelFolder(tmp_path / name).journal.step for name in ("new", "retired", "merged", "back")] == [1, 1, 1, 0]
    assert load(tmp_path / "forgotten").model_.n_documents == 34
    with pytest.raises(ValueError, match="new holds a model already: choose another folder, or replace the model"):
        run("learn", pets, horses, "--out", new)
    run("learn", pets, horses, "--out", new, "--force")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "notes.txt").write_text("years of work")
    with pytest.raises(ValueError, match="something other than a model"):
        run("forget", "retire", pets, "cat", "--out", tmp_path / "notes", "--force")


def test_labels_are_retired_and_merged_and_documents_forgotten(pets: Path, horses: Path) -> None:
    run("learn", pets, horses)
    assert "Step 2: merged horse into dog" in run("forget", "merge", pets, "horse", "dog")
    assert load(pets).predict("a neighing horse1", k=1) == ["dog"]
    assert "Step 3: retired cat" in run("forget", "retire", pets, "cat")
    assert "cat" not in load(pets).predict("a purring cat", k=3)
    found = json.loads(run("forget", "document", pets, "h0", "--json"))
    assert (found["step"], found["kind"], found["figures"]["forgotten"]) == (4, "forget", 1)
    shown = " ".join(run("history", pets).split())
    for line in ("trained on 36 documents", "learned 4 documents, 1 new label, 3 new words", "forgot 1 document"):
        assert line in shown


def test_history_is_shown_as_json_too(pets: Path, horses: Path) -> None:
    assert "trained on 36 documents" in run("history", pets)
    run("learn", pets, horses)
    found = json.loads(run("history", pets, "--json"))
    assert (found["trained_documents"], found["undoable_to"]) == (36, 0)
    assert [(entry["step"], entry["kind"]) for entry in found["entries"]] == [(1, "learn")]
    assert found["drift"]["learned"] == pytest.approx(0.1)


def test_rollback_goes_one_step_back_or_to_a_step(pets: Path, horses: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="has learned nothing since training: there is nothing to undo"):
        run("rollback", pets)
    run("learn", pets, horses)
    run("forget", "retire", pets, "cat")
    run("forget", "retire", pets, "dog")
    assert f"The model in {pets} is that after step 2, with the same bits." in run("rollback", pets)
    with pytest.raises(ValueError, match=r"cannot go back to step 5 \(possible: 0 to 1\)"):
        run("rollback", pets, "--to", 5)
    monkeypatch.setattr("lightdxml.learning.folder.__version__", "0.0.9")
    found = json.loads(run("rollback", pets, "--to", 1, "--json"))
    assert (found["step"], found["same_bits"]) == (1, False)
    assert [entry["kind"] for entry in found["undone"]] == ["retire"]


def test_a_full_training_that_is_due_is_said_with_its_command(pets: Path, tmp_path: Path) -> None:
    rows = [{"text": f"one owl{i % 9} of many", "labels": ["owl", f"owl{i % 9}"]} for i in range(100)]
    shown = run("learn", pets, written(tmp_path / "owls.jsonl", rows))
    due = next(
        line for line in shown.splitlines() if line.startswith("A full training on all documents is due, because")
    )
    assert "74% of the documents were learned after training" in due
    assert due.endswith(f"lightdxml train DATA --model {pets} --force --keep-training-data --preset fast")
    assert "training is due" in run("info", pets)


def test_info_says_what_a_model_keeps_and_has_learned(pets: Path, horses: Path) -> None:
    assert json.loads(run("info", pets, "--json"))["lessons"] == 0
    run("learn", pets, horses)
    run("forget", "retire", pets, "cat")
    found = json.loads(run("info", pets, "--json"))
    kept = sum((pets / "learning" / name).stat().st_size for name in ("kept.safetensors", "kept.json"))
    assert (found["training_data_bytes"], found["lessons"], found["steps_since_training"]) == (kept, 1, 2)
    assert found["drift"]["new_labels"] == pytest.approx(1 / 3)
    assert "2 steps since training" in " ".join(run("info", pets).split())


def test_the_size_of_training_data_is_about_what_was_said(tmp_path: Path) -> None:
    from lightdxml.learning.keep import expected_bytes
    from lightdxml.learning.stored import overview
    from tests.support.data import topics

    X, Y = topics(3000, labels=60)
    LightDXML("fast").fit(X, Y, keep_training_data=True).save(tmp_path / "model")
    assert overview(tmp_path / "model").kept_bytes == pytest.approx(expected_bytes(X, Y), rel=0.5)


ERRORS = {
    "no model": (("learn", "nothing", "{horses}"), "nothing is not a model: there is no such folder"),
    "no data": (("learn", "{pets}", "nothing"), "nothing: found no file or data set with this name"),
    "no label": (("forget", "retire", "{pets}", "cow"), "the model has no label 'cow': check its name or URI"),
    "itself": (("forget", "merge", "{pets}", "cat", "cat"), "a label cannot be merged with itself: give two labels"),
    "no document": (("forget", "document", "{pets}", "x"), "no document that the model has learned has the id 'x'"),
    "every label": (("forget", "retire", "{pets}", "cat", "dog"), "no label would be left to suggest: retire fewer"),
    "damaged": (("history", "{damaged}"), "journal.json was changed after it was written"),
}


@pytest.mark.parametrize("what", ERRORS)
def test_errors_are_one_sentence_and_change_nothing(trained: Path, horses: Path, tmp_path: Path, what: str) -> None:
    damaged = shutil.copytree(trained, tmp_path / "damaged")
    journal = damaged / "learning" / "journal.json"
    journal.write_text(journal.read_text().replace('"base_step": 0', '"base_step": 1'))
    arguments, message = ERRORS[what]
    before = content_of(trained)
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        run(*(one.format(pets=trained, horses=horses, damaged=damaged) for one in arguments))
    assert message in str(caught.value)
    assert content_of(trained) == before


def test_an_error_is_a_line_and_an_exit_code(trained: Path) -> None:
    result = run_process("forget", "retire", trained, "cow")
    assert result.returncode == 1
    assert result.stderr.splitlines() == ["error: the model has no label 'cow': check its name or URI"]


def test_a_smaller_model_learns_too_and_is_the_new_base(horses: Path, tmp_path: Path) -> None:
    big = tmp_path / "big"
    LightDXML("fast", precision="float32").fit(TEXTS, LABELS, keep_training_data=True).save(big)
    run("learn", big, horses)
    run("compress", big, tmp_path / "small", "--precision", "float16")
    small = ModelFolder(tmp_path / "small")
    assert small.keeps_training_data
    assert (small.journal.step, small.journal.base_step) == (1, 1)
    assert "Steps up to 1 cannot be undone" in run("history", tmp_path / "small")
    with pytest.raises(ValueError, match=r"cannot go back to step 0 \(nothing can be undone\)"):
        run("rollback", tmp_path / "small")
    small.learn(["a big cow"] * 3, [["cow"]] * 3)
    assert small.rollback(1)[1]
