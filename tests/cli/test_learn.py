"""`lightdxml learn`, `forget`, `history` and `rollback`, and what other commands do with a model that learns."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
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
    names = ("documents", "labels trained again", "new labels", "new words")
    assert [rows[name] for name in names] == ["4", "1", "1", "4"]
    assert "corrected" not in shown
    assert "P@1, 3, 5" in shown
    assert "Drift: 10.0% of the documents and 33.3% of the labels came after training" in shown
    assert "is due" not in shown, "four documents tell nothing"
    assert f"The model is in {pets}. It has 3 labels." in shown
    assert load(pets).predict("my horse1", k=1) == ["horse"]


def test_a_document_of_the_same_id_is_corrected(pets: Path, tmp_path: Path) -> None:
    again = written(tmp_path / "x.jsonl", [{**HORSES[0], "id": "d0"}])
    shown = run("learn", pets, again, "--out", tmp_path / "new")
    assert "they replace documents with the same id" in shown
    assert "P@1" not in shown, "what the model was taught says nothing about new documents"
    found = json.loads(run("learn", pets, again, "--json"))
    assert (found["step"], found["documents"], found["corrected"], found["new_labels"]) == (1, 1, 1, 1)
    assert found["keeps_training_data"] is True
    assert found["drift"]["is_due"] is False
    assert found["measured"] == {"documents": 0, "metrics": {}}
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
    lost = "the model does not keep its training data: it knows earlier documents only through its weights, so known"
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
    for line in ("trained on 36 documents", "learned 4 documents, 1 new label, 4 new words", "forgot 1 document"):
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
    assert f"The model in {pets} is back at step 2, bit for bit." in run("rollback", pets)
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
    command = f"lightdxml train DATA --model {pets} --discard-lessons --keep-training-data --preset fast"
    assert f"Add these documents to DATA, and train: {command}" in shown.splitlines()
    assert f"  lightdxml history {pets} --export learned.jsonl" in shown.splitlines()
    assert "training is due" in run("info", pets)


def test_info_says_what_a_model_keeps_and_has_learned(pets: Path, horses: Path) -> None:
    assert json.loads(run("info", pets, "--json"))["lessons"] == 0
    run("learn", pets, horses)
    run("forget", "retire", pets, "cat")
    found = json.loads(run("info", pets, "--json"))
    kept = sum((pets / "learning" / name).stat().st_size for name in ("kept.safetensors", "kept.json"))
    assert (found["training_data_bytes"], found["lessons"], found["steps_since_training"]) == (kept, 1, 2)
    assert found["drift"]["new_labels"] == pytest.approx(1 / 3)
    shown = " ".join(run("info", pets).split())
    assert "lessons 1 of 2 steps since training: see lightdxml history" in shown
    size = sum({path.stat().st_ino: path.stat().st_size for path in pets.rglob("*") if path.is_file()}.values())
    assert found["folder_bytes"] == size > sum(found["bytes"].values())
    assert f"size on disk {size / 1e6:,.1f} MB" in shown
    run("rollback", pets)
    assert "lessons 1 see lightdxml history" in " ".join(run("info", pets).split())


@pytest.mark.parametrize("options", [{}, {"linear.work": 0, "linear.min_clusters": 16}], ids=["", "hard negatives"])
def test_training_says_how_large_the_training_data_will_be(
    options: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from lightdxml.learning.stored import overview
    from tests.support.data import topics

    X, Y = topics(3000, labels=60)
    model = LightDXML("fast", options={**options, "tree.max_leaf": 1}, verbose=True)
    model.fit(X, Y, ids=[f"document {i}" for i in range(3000)], keep_training_data=True).save(tmp_path / "model")
    said = re.search(r"training data kept beside the model: about (.*) MB", capsys.readouterr().err)
    assert said is not None
    assert overview(tmp_path / "model").kept_bytes / 1e6 == pytest.approx(float(said[1]), rel=0.2)


ERRORS = {
    "no model": (("learn", "nothing", "{horses}"), "nothing is not a model: there is no such folder"),
    "no model to forget": (("forget", "retire", "nothing", "cat"), "nothing is not a model: there is no such folder"),
    "no model to go back": (("rollback", "nothing"), "nothing is not a model: there is no such folder"),
    "a file": (("learn", "{horses}", "{horses}"), "is not a model: it is a file"),
    "a folder": (("rollback", "{folder}"), "is not a model: it has no manifest.json"),
    "within itself": (("learn", "{pets}", "{horses}", "--out", "{pets}/sub"), "sub is inside the folder of the model"),
    "features": (("learn", "{pets}", "{features}"), " has 5 features, but {pets} takes texts: give documents like"),
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
    features = tmp_path / "features.txt"
    features.write_text("1 5 2\n0 1:1\n")
    places = {"pets": trained, "horses": horses, "damaged": damaged, "features": features, "folder": tmp_path}
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        run(*(one.format(**places) for one in arguments))
    assert message.format(**places) in str(caught.value)
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
    with pytest.raises(ValueError, match=r"step 0 \(nothing can be undone\): steps up to 1 stay, because the whole"):
        run("rollback", tmp_path / "small")
    small.learn(["a big cow"] * 3, [["cow"]] * 3)
    assert small.rollback(1)[1]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"labels": [""]}, "expected a name that is not empty$"),
        ({"id": "x" * 5000}, "has 5,000 characters, and may have 1,000: give a shorter one$"),
    ],
)
def test_labels_without_a_name_and_long_ids_are_refused(
    pets: Path, tmp_path: Path, wrong: dict[str, Any], reason: str
) -> None:
    before = content_of(pets)
    with pytest.raises(ValueError, match=reason):
        run("learn", pets, written(tmp_path / "x.jsonl", [HORSES[0] | wrong]))
    assert content_of(pets) == before


def test_a_lesson_that_is_given_twice_by_mistake_is_noticed(
    pets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = written(tmp_path / "data.jsonl", [{key: row[key] for key in ("text", "labels")} for row in HORSES])
    lines: list[str] = []
    monkeypatch.setattr("lightdxml.cli.learn.note", lines.append)
    run("learn", pets, data)
    assert lines == []
    run("learn", pets, data)
    assert [line.startswith("most of these documents were learned before and now count twice") for line in lines] == [
        True
    ]


def test_rejected_labels_are_trained_again(pets: Path, tmp_path: Path) -> None:
    rows = written(tmp_path / "rows.jsonl", [{"text": "a purring cat", "labels": ["cat"]}])
    plain = json.loads(run("learn", pets, rows, "--out", tmp_path / "plain", "--json"))
    rejecting = json.loads(run("learn", pets, rows, "--reject", "dog", "--out", tmp_path / "rejecting", "--json"))
    assert rejecting["labels"] == plain["labels"] + 1


def test_retired_labels_of_new_documents_are_named(pets: Path, tmp_path: Path) -> None:
    run("forget", "retire", pets, "cat")
    result = run_process("learn", pets, written(tmp_path / "x.jsonl", [{"text": "a cat", "labels": ["cat"]}]))
    assert "retired labels of these documents are learned, but never suggested: cat" in result.stderr


def test_documents_that_were_learned_are_exported_as_train_and_learn_read_them(pets: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has learned no documents since training: there is nothing to export"):
        run("history", pets, "--export", tmp_path / "none.jsonl")
    folder = ModelFolder(pets)
    folder.learn(["a neighing horse"] * 3, [["horse"]] * 3, ids=["h0", "h1", "h2"])
    folder.learn(["a pony", "a mule"], [["pony"], ["mule", "horse"]], ids=["h1", ""])
    folder.forget(["h0", "d0"])
    folder.merge("pony", "horse")
    run(
        "learn",
        pets,
        written(tmp_path / "more.jsonl", [{"id": "h0", "title": "Cow", "text": "large", "labels": ["cow"]}]),
    )
    target = tmp_path / "learned.jsonl"
    assert f"4 documents that {pets} has learned since training: {target}" in run("history", pets, "--export", target)
    assert [json.loads(line) for line in target.read_text().splitlines()] == [
        {"id": "h2", "title": "", "text": "a neighing horse", "labels": ["horse"]},
        {"id": "h1", "title": "", "text": "a pony", "labels": ["horse"]},
        {"id": "", "title": "", "text": "a mule", "labels": ["horse", "mule"]},
        {"id": "h0", "title": "Cow", "text": "large", "labels": ["cow"]},
    ]
    learned = ModelFolder(pets).learned()
    assert learned.labels == [["horse"], ["horse"], ["horse", "mule"], ["cow"]]
    assert (learned.ids, len(learned), repr(learned)) == (["h2", "h1", "", "h0"], 4, "<Lessons: 4 documents, 6 labels>")
    assert json.loads(run("learn", pets, target, "--json"))["corrected"] == 3
    with pytest.raises(ValueError, match=r"learned\.jsonl already exists: choose another name"):
        run("history", pets, "--export", target)


def test_features_that_were_learned_are_exported_as_train_and_learn_read_them(tmp_path: Path) -> None:
    from lightdxml.data import load as load_data
    from lightdxml.validation import check_features
    from tests.support.data import topics

    X, Y = topics(300)
    names = [f"label {j}" for j in range(Y.shape[1])]
    LightDXML("fast").fit(X, Y, label_names=names).save(tmp_path / "model")
    ModelFolder(tmp_path / "model").learn(X[:20], Y[:20], label_names=names)
    run("history", tmp_path / "model", "--export", tmp_path / "learned")
    found = load_data(tmp_path / "learned")
    assert found.label_names == names
    assert found.train.X is not None
    assert abs(found.train.X - check_features(X[:20])).max() < 1e-6, "as the model has them: of length 1"
    assert abs(found.train.Y - Y[:20]).max() == 0
    assert json.loads(run("learn", tmp_path / "model", tmp_path / "learned", "--json"))["new_labels"] == 0
    other = tmp_path / "other.txt"
    other.write_text("1 5 2\n0 1:1\n")
    wrong = f"has 5 features, but .*model takes {X.shape[1]:,} features: give documents like those of its training"
    with pytest.raises(ValueError, match=wrong):
        run("learn", tmp_path / "model", other)


def test_columns_without_names_are_exported_as_learn_reads_them(tmp_path: Path) -> None:
    from scipy.sparse import csr_matrix

    Y = csr_matrix([[1, 0], [0, 1]] * 12)
    LightDXML("fast").fit(["a cat", "a dog"] * 12, Y).save(tmp_path / "pets")
    ModelFolder(tmp_path / "pets").learn(["a horse"] * 3, csr_matrix([[0, 0, 0, 1]] * 3))
    run("history", tmp_path / "pets", "--export", tmp_path / "learned.jsonl")
    assert json.loads((tmp_path / "learned.jsonl").read_text().splitlines()[0]) == {"text": "a horse", "labels": ["3"]}
    run("learn", tmp_path / "pets", tmp_path / "learned.jsonl")
    assert load(tmp_path / "pets").model_.label_frequency.tolist() == [12, 12, 0, 6]


def test_documents_of_steps_before_the_whole_model_was_changed_are_said_to_be_lost(
    pets: Path, horses: Path, tmp_path: Path
) -> None:
    run("learn", pets, horses)
    load(pets).learn(["a cow"], [["cow"]]).save(tmp_path / "saved")
    ModelFolder(tmp_path / "saved").learn(["a hen"], [["hen"]])
    assert ModelFolder(tmp_path / "saved").learned().lost == [1, 2]
    result = run_process("history", tmp_path / "saved", "--export", tmp_path / "learned.jsonl", "--json")
    assert json.loads(result.stdout) == {"file": str(tmp_path / "learned.jsonl"), "documents": 1, "lost_steps": [1, 2]}
    assert (
        "the journal no longer has the documents of steps 1, 2: the whole model was changed or saved again"
        in result.stderr
    )


def test_a_training_does_not_replace_a_model_that_has_learned_unless_it_is_told_so(
    pets: Path, documents: Path, horses: Path
) -> None:
    train = ("train", documents, "--model", pets, "--preset", "fast")
    run("learn", pets, horses)
    before = content_of(pets)
    refused = (
        r"has learned in 1 step since training, .*`lightdxml history .*pets --export learned.jsonl`.* --discard-lessons"
    )
    with pytest.raises(ValueError, match=refused):
        run("train", "no-such-data", "--model", pets, "--force")
    assert content_of(pets) == before
    run(*train, "--discard-lessons")
    assert ModelFolder(pets).journal.step == 0


def test_a_model_that_learns_during_a_training_stays(
    pets: Path, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lightdxml.cli import train

    fit = train._fit

    def fit_and_learn(*arguments: Any, **options: Any) -> None:
        fit(*arguments, **options)
        ModelFolder(pets).learn(["a hen"], [["hen"]])

    monkeypatch.setattr(train, "_fit", fit_and_learn)
    with pytest.raises(
        ValueError, match=r"pets has learned during this training and was kept: the new model is in .*pets-1$"
    ):
        run("train", documents, "--model", pets, "--preset", "fast", "--force")
    assert ModelFolder(pets).journal.step == 1
    assert load(f"{pets}-1").model_.n_documents == 36


def test_settings_that_follow_from_the_data_are_not_shown_as_given(tmp_path: Path) -> None:
    rows = [{"text": f"a {LABELS[i % 36][0]} {i % 7}", "labels": LABELS[i % 36]} for i in range(600)]
    options = ("--dense", "never", "--max-features", 500)
    run("train", written(tmp_path / "a.jsonl", rows), "--model", tmp_path / "pets", *options)
    owls = [{"text": f"one owl{i % 9} of many", "labels": ["owl", f"owl{i % 9}"]} for i in range(300)]
    shown = run("learn", tmp_path / "pets", written(tmp_path / "owls.jsonl", owls))
    assert "is due" in shown
    assert "batch_size" not in shown
    assert "--max-features 500" in shown
    assert "batch_size" not in run("info", tmp_path / "pets")


def test_history_says_where_documents_came_from_and_names_new_labels(pets: Path, tmp_path: Path) -> None:
    rows = [{"text": f"one owl{i % 5}", "labels": [f"owl{i % 5}"]} for i in range(20)]
    run("learn", pets, written(tmp_path / "owls.jsonl", rows))
    run("learn", pets, written(tmp_path / "hen.jsonl", [{"text": "a hen", "labels": ["hen"]}]))
    run("forget", "retire", pets, "cat")
    shown = " ".join(run("history", pets).split())
    assert "from owls.jsonl; new: owl0, owl1, owl2 and 2 more" in shown
    assert "from hen.jsonl; new: hen" in shown
    entries = json.loads(run("history", pets, "--json"))["entries"]
    assert [entry["new_label_names"] for entry in entries] == [[f"owl{i}" for i in range(5)], ["hen"], []]
    assert [entry["figures"].get("source") for entry in entries] == ["owls.jsonl", "hen.jsonl", None]


def test_history_shows_p1_of_lessons_with_enough_documents(pets: Path, tmp_path: Path) -> None:
    for n in (19, 20):
        run("learn", pets, written(tmp_path / f"{n}.jsonl", [{"text": "a purring cat", "labels": ["cat"]}] * n))
    steps = [line.split() for line in run("history", pets).splitlines() if line[:1] in "12" and " learned " in line]
    assert [line[3] == "100.0" for line in steps] == [False, True]


def test_gaps_are_said_after_the_input_was_checked_and_documents_are_named(pets: Path, tmp_path: Path) -> None:
    rows = [{"id": f"e{i}", "text": "", "labels": ["cat"]} for i in range(5)]
    result = run_process("learn", pets, written(tmp_path / "x.jsonl", [*HORSES, *rows]))
    said = "5 of 9 documents are empty (e0, e1, e2, …): they were learned anyway"
    assert result.stderr.splitlines() == [said]
    features = tmp_path / "features.txt"
    features.write_text("2 5 2\n0 1:1\n0 \n")
    result = run_process("learn", pets, features)
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", ["learn", "forget", "rollback"])
def test_a_command_that_is_stopped_says_that_the_model_is_unchanged(
    pets: Path, horses: Path, monkeypatch: pytest.MonkeyPatch, command: str, number: int
) -> None:
    run("learn", pets, horses)
    before = content_of(pets)
    stop_in(monkeypatch, "lightdxml.learning.stored.write_data", number)
    arguments = {
        "learn": ("learn", pets, horses),
        "forget": ("forget", "retire", pets, "cat"),
        "rollback": ("rollback", pets),
    }
    assert stopped(monkeypatch, *arguments[command], code=128 + number) == [f"stopped: {pets} is unchanged"]
    assert content_of(pets) == before
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
def test_a_command_that_is_stopped_too_late_says_that_the_step_was_done(
    pets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_in(monkeypatch, "lightdxml.cli.forget.print_change", signal.SIGTERM)
    for more, where in (((), pets), (("--out", tmp_path / "new"), tmp_path / "new")):
        lines = stopped(monkeypatch, "forget", "retire", pets, "cat", *more, code=128 + signal.SIGTERM)
        assert lines == [f"stopped, but the step was done: it is in {where}"]
        assert ModelFolder(where).journal.step >= 1


def stop_in(monkeypatch: pytest.MonkeyPatch, place: str, number: int) -> None:
    """Send a signal to this process when a function is called."""
    # Tests that a shell runs in the background ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def stop(*_: object, **__: object) -> None:
        os.kill(os.getpid(), number)
        time.sleep(5)

    monkeypatch.setattr(place, stop)


def stopped(monkeypatch: pytest.MonkeyPatch, *arguments: Any, code: int) -> list[str]:
    """Run a command that is stopped, and return what it notes."""
    lines: list[str] = []
    monkeypatch.setattr("lightdxml.cli.changes.note", lines.append)
    run(*arguments, code=code)
    return lines
