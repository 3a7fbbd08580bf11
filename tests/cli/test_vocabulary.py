"""`lightdxml vocabulary info` and `lightdxml vocabulary update`."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from lightdxml import LightDXML, ModelFolder, load
from lightdxml.data.vocabulary import Concept, Vocabulary
from lightdxml.persistence.lock import writing
from tests.support.commands import run, run_process

OLD = "urn:cat\tcat\nurn:dog\tdog\nurn:cow\tcow\n"
NEW = "urn:cat\tcat\nurn:dog\thound\nurn:bee\thoney bee\n"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model of three concepts; no training document has the label cow."""
    concepts = [Concept(f"urn:{name}", {"": (name,)}) for name in ("cat", "dog", "cow")]
    texts, labels = ["a cat purrs", "a dog barks"] * 20, [["urn:cat"], ["urn:dog"]] * 20
    LightDXML("fast").fit(texts, labels, vocabulary=Vocabulary(concepts)).save(tmp_path / "model")
    return tmp_path / "model"


def written(folder: Path, content: str) -> Path:
    (folder / "vocabulary.tsv").write_text(content, encoding="utf-8")
    return folder / "vocabulary.tsv"


def content_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_an_update_replaces_the_model_and_says_what_changed(model: Path, tmp_path: Path) -> None:
    shown = run("vocabulary", "update", model, written(tmp_path, NEW))
    counts = {line.split()[0]: line.split()[1] for line in shown.splitlines() if line.split()[1:]}
    assert [counts[what] for what in ("added", "renamed", "retired", "unchanged")] == ["1", "1", "1", "1"]
    assert "honey bee <urn:bee>" in shown
    assert "cow <urn:cow>" in shown
    updated = load(model)
    assert updated.classes_.tolist() == ["urn:cat", "urn:dog", "urn:cow", "urn:bee"]
    assert updated.predict("a honey bee", k=1) == ["urn:bee"]
    assert "urn:cow" not in updated.predict("a cow", k=4)
    assert updated.history_[-1]["phase"] == "vocabulary"


def test_an_update_can_go_to_another_folder_and_be_printed_as_json(model: Path, tmp_path: Path) -> None:
    before = content_of(model)
    out = json.loads(run("vocabulary", "update", model, written(tmp_path, NEW), "--out", tmp_path / "new", "--json"))
    assert (out["model"], out["labels"]) == (str(tmp_path / "new"), 4)
    assert (out["added"], out["renamed"], out["retired"]) == (["urn:bee"], ["urn:dog"], ["urn:cow"])
    assert (out["unchanged"], out["new_words"]) == (1, 1)
    assert content_of(model) == before
    assert load(tmp_path / "new").model_.retired.tolist() == [2]


def test_an_update_is_the_new_base_of_what_a_model_has_learned(tmp_path: Path) -> None:
    concepts = [Concept(f"urn:{name}", {"": (name,)}) for name in ("cat", "dog", "cow")]
    texts, labels = ["a cat purrs", "a dog barks"] * 20, [["urn:cat"], ["urn:dog"]] * 20
    trained = LightDXML("fast").fit(texts, labels, vocabulary=Vocabulary(concepts), keep_training_data=True)
    trained.save(tmp_path / "model")
    pets = ModelFolder(tmp_path / "model")
    pets.learn(["a cow moos"] * 3, [["urn:cow"]] * 3)
    with writing(tmp_path / "model"):
        command = ("vocabulary", "update", tmp_path / "model", written(tmp_path, NEW), "--retire")
        updating = threading.Thread(target=run, args=command)
        updating.start()
        updating.join(0.3)
        assert updating.is_alive(), "it waits for whoever changes the model"
    updating.join()
    assert (pets.journal.step, pets.journal.base_step, pets.keeps_training_data) == (1, 1, True)
    assert "Steps up to 1 cannot be undone" in run("history", tmp_path / "model")
    pets.learn(["a honey bee hums"] * 3, [["honey bee"]] * 3)
    assert pets.model.label_names == ["urn:cat", "urn:dog", "urn:cow", "urn:bee"]
    assert pets.model.label_frequency.tolist() == [20, 20, 3, 3]
    assert load(tmp_path / "model").predict("it hums", k=1) == ["urn:bee"]
    assert pets.rollback(1)[1]


def test_labels_with_documents_are_kept_unless_they_may_be_retired(model: Path, tmp_path: Path) -> None:
    before, fewer = content_of(model), written(tmp_path, "urn:cat\tcat\n")
    result = run_process("vocabulary", "update", model, fewer)
    assert result.returncode == 1
    message = "1 label with training documents would be retired, such as urn:dog (dog): allow it with --retire"
    assert result.stderr.splitlines() == [f"error: {message}"]
    assert content_of(model) == before
    run("vocabulary", "update", model, fewer, "--retire")
    assert load(model).model_.retired.tolist() == [1, 2]


def test_an_update_goes_into_no_folder_with_something_else(model: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "notes.txt").write_text("years of work")
    with pytest.raises(ValueError, match="something other than a model"):
        run("vocabulary", "update", model, written(tmp_path, NEW), "--out", tmp_path / "notes")


def test_info_of_a_model_says_where_names_come_from_and_what_is_retired(model: Path, tmp_path: Path) -> None:
    assert "2 with training documents, 1 without" in " ".join(run("info", model).split())
    run("vocabulary", "update", model, written(tmp_path, OLD.replace("urn:cow\tcow\n", "")))
    shown = " ".join(run("info", model).split())
    assert "1 retired: never suggested" in shown
    assert "3 concepts names in all languages; they are looked for in texts" in shown
    content = json.loads(run("info", model, "--json"))
    assert (content["labels_without_documents"], content["retired_labels"], content["concepts"]) == (1, 1, 3)
    assert content["language"] is None


def test_info_of_a_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_bytes("uri,label_en,label_fi,notation\nurn:a,cat,kissa,1\nurn:b,hand,käsi,\n".encode("latin-1"))
    content = json.loads(run("vocabulary", "info", path, "--json", "--encoding", "latin-1"))
    assert (content["concepts"], content["names"], content["notations"]) == (2, 4, 1)
    assert content["languages"] == {"en": 2, "fi": 2}
    assert "urn:a cat" in run("vocabulary", "info", path, "--encoding", "latin-1")
    with pytest.raises(ValueError, match="--encoding"):
        run("vocabulary", "info", path)
