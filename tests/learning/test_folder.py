"""Model folders that learn: the journal, rollback, two writers, and files that were damaged or forged."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lightdxml import LightDXML, ModelFolder, load
from lightdxml.learning import folder as folders
from lightdxml.learning import stored
from lightdxml.learning.folder import writing
from lightdxml.persistence.arrays import checksum, write_json
from lightdxml.persistence.files import map_file, sha256

TEXTS, LABELS = ["a purring cat", "a barking dog", "a cat and a dog"] * 12, [["cat"], ["dog"], ["cat", "dog"]] * 12
IDS = [f"d{i}" for i in range(36)]


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that keeps its training data."""
    folder = tmp_path_factory.mktemp("origin") / "pets"
    LightDXML("fast").fit(TEXTS, LABELS, ids=IDS, keep_training_data=True).save(folder)
    return folder


@pytest.fixture(scope="module")
def learned(origin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That model after three steps, each by another reader of the folder."""
    folder = shutil.copytree(origin, tmp_path_factory.mktemp("learned") / "pets")
    ModelFolder(folder).learn(["a neighing horse"] * 3, [["horse"]] * 3, ids=["h0", "h1", "h2"])
    ModelFolder(folder).merge("dog", "cat")
    ModelFolder(folder).forget(["d0"])
    return folder


@pytest.fixture
def pets(learned: Path, tmp_path: Path) -> Path:
    return shutil.copytree(learned, tmp_path / "pets")


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def versions(folder: Path) -> list[str]:
    return [entry.version for entry in ModelFolder(folder).journal.entries]


def test_every_change_is_an_entry_of_the_journal(learned: Path) -> None:
    pets = ModelFolder(learned)
    assert [(one.step, one.kind) for one in pets.journal.entries] == [(1, "learn"), (2, "merge"), (3, "forget")]
    assert [one.time for one in pets.journal.entries] == sorted(one.time for one in pets.journal.entries)
    assert len(set(versions(learned))) == 3
    assert pets.journal.entries[0].figures["new_labels"] == 1
    assert pets.keeps_training_data
    assert (pets.model.label_names, pets.model.n_documents) == (["cat", "dog", "horse"], 38)
    assert [entry["phase"] for entry in load(learned).history_][-3:] == ["learn", "merge", "forget"]


def test_what_is_in_memory_and_what_is_on_disk_learn_the_same_bits(origin: Path, learned: Path, tmp_path: Path) -> None:
    pets = ModelFolder(shutil.copytree(origin, tmp_path / "pets"))
    pets.learn(["a neighing horse"] * 3, [["horse"]] * 3, ids=["h0", "h1", "h2"])
    pets.merge("dog", "cat")
    pets.forget(["d0"])
    assert versions(tmp_path / "pets") == versions(learned)


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_rollback_gives_the_same_bits_as_then(origin: Path, pets: Path, step: int) -> None:
    before = versions(pets)
    opened, is_same = ModelFolder(pets).rollback(step)
    assert is_same
    assert opened.journal.step == step
    assert versions(pets) == before[:step]
    assert len(opened.history) == len(load(origin).history_) + step
    if step == 0:
        assert (pets / "arrays.safetensors").read_bytes() == (origin / "arrays.safetensors").read_bytes()
        assert content_of(pets)["learning/kept.safetensors"] == content_of(origin)["learning/kept.safetensors"]
        ModelFolder(pets).learn(["a neighing horse"] * 3, [["horse"]] * 3, ids=["h0", "h1", "h2"])
        assert versions(pets) == before[:1]


def test_a_rollback_says_where_it_can_go(pets: Path, origin: Path) -> None:
    for step in (-1, 3, 7):
        with pytest.raises(
            ValueError, match=rf"cannot go back to step {step} \(possible: 0 to 2\): see lightdxml hist"
        ):
            ModelFolder(pets).rollback(step)
    with pytest.raises(ValueError, match=r"cannot go back to step 0 \(nothing can be undone\)"):
        ModelFolder(origin).rollback(0)


def test_other_bits_after_a_rollback_are_noticed(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "__version__", "0.0.9")
    assert not ModelFolder(pets).rollback(1)[1]


def test_a_model_without_its_training_data_learns_and_goes_back(tmp_path: Path) -> None:
    LightDXML("fast").fit(TEXTS, LABELS).save(tmp_path / "pets")
    assert not (tmp_path / "pets" / "learning").exists()
    pets = ModelFolder(tmp_path / "pets")
    pets.learn(["a neighing horse"] * 3, [["horse"]] * 3)
    pets.retire(["dog"])
    assert not pets.keeps_training_data
    assert pets.rollback(1)[1]
    assert pets.rollback(0)[1]
    with pytest.raises(ValueError, match="does not keep its training data: train it with --keep-training-data"):
        pets.forget(["d0"])


def test_the_original_stays_as_it_is_if_the_result_goes_elsewhere(pets: Path, tmp_path: Path) -> None:
    before = content_of(pets)
    ModelFolder(pets).learn(["a big cow"] * 3, [["cow"]] * 3, out=tmp_path / "new")
    ModelFolder(pets).rollback(1, out=tmp_path / "old")
    assert content_of(pets) == before
    assert (ModelFolder(tmp_path / "new").journal.step, ModelFolder(tmp_path / "old").journal.step) == (4, 1)
    assert ModelFolder(tmp_path / "new").rollback(2)[1]


def test_a_change_that_fails_changes_nothing(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content_of(pets)
    with pytest.raises(ValueError, match="no label 'horses'"):
        ModelFolder(pets).retire(["horses"])
    with pytest.raises(ValueError, match="merged with itself"):
        ModelFolder(pets).merge("cat", "cat")

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(stored, "write_data", fail)
    with pytest.raises(OSError, match="the disk is full"):
        ModelFolder(pets).retire(["horse"])
    assert content_of(pets) == before
    assert [path.name for path in pets.parent.iterdir()] == ["pets"], "no lock and no unfinished model is left"


def test_files_that_do_not_change_are_shared_with_the_version_before(pets: Path) -> None:
    entry, base = pets / "learning" / "000001.json.gz", pets / "learning" / "base" / "arrays.safetensors"
    before = [path.stat().st_ino for path in (entry, base)]
    ModelFolder(pets).retire(["horse"])
    assert [path.stat().st_ino for path in (entry, base)] == before


def test_where_files_cannot_be_linked_they_are_copied(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    ModelFolder(pets).retire(["horse"])
    assert ModelFolder(pets).rollback(1)[1]


def test_a_folder_is_read_again_when_another_process_has_changed_it(pets: Path) -> None:
    mine, other = ModelFolder(pets), ModelFolder(pets)
    assert mine.journal.step == other.journal.step == 3
    other.retire(["horse"])
    assert mine.journal.step == 4
    mine.learn(["a big cow"] * 3, [["cow"]] * 3)
    assert other.model.label_names == ["cat", "dog", "horse", "cow"]


def test_two_writers_wait_for_each_other(pets: Path) -> None:
    names = ["cow", "hen", "owl"]
    threads = [threading.Thread(target=ModelFolder(pets).learn, args=([f"a {one}"] * 3, [[one]] * 3)) for one in names]
    with writing(pets):
        for thread in threads:
            thread.start()
        threads[0].join(0.2)
        assert ModelFolder(pets).journal.step == 3
    for thread in threads:
        thread.join(30)
    assert sorted(ModelFolder(pets).model.label_names or []) == ["cat", "cow", "dog", "hen", "horse", "owl"]
    assert ModelFolder(pets).journal.step == 6
    assert not list(pets.parent.glob(".*"))


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing is not a model: there is no such folder"):
        ModelFolder(tmp_path / "nothing").retire(["cat"])
    with pytest.raises(ValueError, match=r"is not a model: it has no manifest\.json"):
        ModelFolder(tmp_path).rollback(0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["journal.json", "kept.safetensors", "kept.json", "recent.safetensors"])
@pytest.mark.parametrize("how", ["changed", "truncated", "missing"])
def test_damaged_files_are_refused_in_one_sentence(pets: Path, name: str, how: str) -> None:
    damage(pets / "learning" / name, how)
    with pytest.raises(ValueError, match=rf"{pets} is damaged \([^\n]+\): copy or train it again$") as caught:
        ModelFolder(pets).retire(["horse"])
    assert name in str(caught.value) or how != "missing"
    assert load(pets).predict("a cat", k=1) == ["cat"], "predictions need none of it"


@pytest.mark.parametrize(
    "name", ["000001.json.gz", "base/manifest.json", "base/arrays.safetensors", "base/kept.safetensors"]
)
@pytest.mark.parametrize("how", ["changed", "truncated", "missing"])
def test_damage_to_earlier_versions_is_noticed_by_a_rollback(pets: Path, name: str, how: str) -> None:
    damage(pets / "learning" / name, how)
    # A lesson in between must not hide it.
    ModelFolder(pets).retire(["horse"])
    before = content_of(pets)
    with pytest.raises(ValueError, match=r"is damaged \([^\n]+\): copy or train it again$"):
        ModelFolder(pets).rollback(2)
    assert content_of(pets) == before


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    # Files are shared with other copies only by links, which `copytree` does not make.
    path.unlink()
    if how == "changed":
        path.write_bytes(bytes([*content[:-9], content[-9] ^ 1, *content[-8:]]))
    elif how == "truncated":
        path.write_bytes(content[: len(content) // 2])


def set_entry(content: dict[str, Any], **changes: Any) -> None:
    content["entries"][0] |= changes


FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "another format": lambda one: one.update(format=99),
    "no entries": lambda one: one.pop("entries"),
    "entries that are none": lambda one: one.update(entries=[1]),
    "an unknown field": lambda one: set_entry(one, more=1),
    "an unknown kind": lambda one: set_entry(one, kind="run"),
    "no figures": lambda one: set_entry(one, figures={}),
    "figures that are no numbers": lambda one: one["entries"][0]["figures"].update(documents="all"),
    "infinite figures": lambda one: one["entries"][0]["figures"].update(unknown_words=float("inf")),
    "a time that is none": lambda one: set_entry(one, time=7),
    "a gap": lambda one: one["entries"].pop(0),
    "a base after the end": lambda one: one.update(base_step=4),
    "no checksums": lambda one: one.update(files={"kept.safetensors": "", "kept.json": ""}),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_forged_journals_are_refused_in_one_sentence(pets: Path, what: str) -> None:
    forge(pets, FORGERIES[what])
    with pytest.raises(ValueError, match=rf"{pets} is damaged \([^\n]+\): copy or train it again$"):
        ModelFolder(pets).learn(["a cat"], [["cat"]])


def forge(model: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a journal; its checksum is right."""
    path = model / "learning" / "journal.json"
    content = json.loads(path.read_text())
    del content["sha256"]
    change(content)
    write_json(path, {**content, "sha256": checksum(content)})


OPERATIONS: dict[str, object] = {
    "no operation": [],
    "an unknown kind": {"kind": "run", "names": []},
    "names that are none": {"kind": "retire", "names": [7]},
    "one label to merge": {"kind": "merge", "names": ["cat"]},
    "labels of other documents": {
        "kind": "learn", "names": [], "labels": [["cat"]], "ids": [], "texts": [], "titles": None,
    },
    "ids of other documents": {
        "kind": "learn", "names": [], "labels": [["cat"]], "ids": ["a", "b"], "texts": ["a"], "titles": None,
    },
    "labels that are numbers": {
        "kind": "learn", "names": [], "labels": [[1 << 30]], "ids": [], "texts": ["a"], "titles": None,
    },
    "features of another model": {
        "kind": "learn", "names": [], "labels": [["cat"]], "ids": [],
        "X": {"n_features": 1 << 40, "indptr": "AAAAAAAAAAAAAAAAAAAAAA==", "indices": "", "values": ""},
    },
}  # fmt: skip


@pytest.mark.parametrize("what", OPERATIONS)
def test_forged_entries_are_refused_in_one_sentence(pets: Path, what: str) -> None:
    path = pets / "learning" / "000001.json.gz"
    path.unlink()
    path.write_bytes(gzip.compress(json.dumps(OPERATIONS[what]).encode()))
    forge(pets, lambda one: one["files"].update({path.name: sha256(map_file(path))}))
    with pytest.raises(ValueError, match=r"is damaged \([^\n]+\): copy or train it again$"):
        ModelFolder(pets).rollback(1)


def test_training_data_of_another_model_are_refused(pets: Path, tmp_path: Path) -> None:
    LightDXML("fast").fit(TEXTS, [["a"], ["b"], ["c"]] * 12, keep_training_data=True).save(tmp_path / "other")
    for name in ("kept.safetensors", "kept.json"):
        shutil.copy(tmp_path / "other" / "learning" / name, pets / "learning" / name)
        digest = sha256(map_file(pets / "learning" / name))
        forge(pets, lambda one, name=name, digest=digest: one["files"].update({name: digest}))  # type: ignore[misc]
    with pytest.raises(ValueError, match="its training data are of another model"):
        ModelFolder(pets).retire(["horse"])
