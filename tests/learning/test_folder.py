"""Model folders that learn: the journal, rollback, two writers, and files that were damaged or forged."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from lightdxml import LightDXML, ModelFolder, load
from lightdxml.learning import folder as folders
from lightdxml.learning import journal, stored
from lightdxml.learning.documents import documents_for
from lightdxml.learning.journal import Operation
from lightdxml.learning.measured import Recent
from lightdxml.persistence import arrays
from lightdxml.persistence.arrays import checksum, write_json
from lightdxml.persistence.files import map_file, sha256
from lightdxml.persistence.lock import writing

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
    for step, why in ((-1, "see lightdxml history"), (3, "it is there"), (7, "see lightdxml history")):
        with pytest.raises(ValueError, match=rf"cannot go back to step {step} \(possible: 0 to 2\): {why}$"):
            ModelFolder(pets).rollback(step)
    ModelFolder(pets).rollback(1)
    with pytest.raises(ValueError, match=r"cannot go back to step 5 \(only 0\): see lightdxml history$"):
        ModelFolder(pets).rollback(5)
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


def test_a_new_version_within_the_model_itself_is_refused_at_once(pets: Path) -> None:
    before = content_of(pets)
    with pytest.raises(ValueError, match=r"pets/sub is inside the folder of the model .*pets"):
        ModelFolder(pets).learn(["a big cow"] * 3, [["cow"]] * 3, out=pets / "sub")
    with pytest.raises(ValueError, match="is inside the folder of the model"):
        load(pets).save(pets / "learning" / "sub")
    assert content_of(pets) == before
    ModelFolder(pets).retire(["horse"])


def test_the_source_of_documents_is_in_the_journal_but_does_not_change_bits(origin: Path, tmp_path: Path) -> None:
    for name, source in (("one", ""), ("other", "horses.csv"), ("odd", "horses\udcff.csv")):
        pets = ModelFolder(shutil.copytree(origin, tmp_path / name))
        pets.learn(["a neighing horse"] * 3, [["horse"]] * 3, source=source)
    sources = [
        ModelFolder(tmp_path / name).journal.entries[0].figures.get("source") for name in ("one", "other", "odd")
    ]
    assert sources == [None, "horses.csv", "horses?.csv"]
    assert versions(tmp_path / "one") == versions(tmp_path / "other") == versions(tmp_path / "odd")
    ModelFolder(tmp_path / "other").retire(["cat"])
    opened, is_same = ModelFolder(tmp_path / "other").rollback(1)
    assert is_same
    assert opened.journal.entries[0].figures["source"] == "horses.csv"


FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "another format": lambda one: one.update(format=99),
    "no entries": lambda one: one.pop("entries"),
    "entries that are none": lambda one: one.update(entries=[1]),
    "an unknown field": lambda one: set_entry(one, more=1),
    "an unknown kind": lambda one: set_entry(one, kind="run"),
    "no figures": lambda one: set_entry(one, figures={}),
    "figures that are no numbers": lambda one: one["entries"][0]["figures"].update(documents="all"),
    "infinite figures": lambda one: one["entries"][0]["figures"].update(unknown_words=float("inf")),
    "a source that is none": lambda one: one["entries"][0]["figures"].update(source=7),
    "a time that is none": lambda one: set_entry(one, time=7),
    "a time that was never": lambda one: set_entry(one, time="yesterday"),
    "a number beyond all floats": lambda one: one["entries"][0]["figures"].update(documents=10**400),
    "no documents": lambda one: one["entries"][0]["figures"].update(documents=0),
    "documents that were never learned": lambda one: one["entries"][0]["figures"].update(documents=9000),
    "more corrected than there are": lambda one: one["entries"][0]["figures"].update(corrected=1 << 60),
    "a share above 1": lambda one: one["entries"][0]["figures"].update(unknown_words=7),
    "a figure of another name": lambda one: one["entries"][0]["figures"].update(more=float("nan")),
    "no P@1": lambda one: one["entries"][0]["figures"]["measured"]["metrics"].pop("P@1"),
    "another metric": lambda one: one["entries"][0]["figures"]["measured"]["metrics"].update({"P@7": 1.0}),
    "a metric above 100": lambda one: one["entries"][0]["figures"]["measured"]["metrics"].update({"P@1": 1e9}),
    "metrics that are none": lambda one: one["entries"][0]["figures"].update(measured={"documents": 3, "metrics": 7}),
    "metrics of other documents": lambda one: one["entries"][0]["figures"]["measured"].update(documents=2),
    "retired without labels": lambda one: set_entry(one, kind="retire", figures={"seconds": 1.0}),
    "retired a number": lambda one: set_entry(one, kind="retire", figures={"retired": 5, "seconds": 1.0}),
    "retired numbers": lambda one: set_entry(one, kind="retire", figures={"retired": [5], "seconds": 1.0}),
    "merged into nothing": lambda one: one["entries"][1]["figures"].pop("into"),
    "merged a list": lambda one: one["entries"][1]["figures"].update(merged=["dog"]),
    "forgot a part": lambda one: one["entries"][2]["figures"].update(forgotten=0.5),
    "no seconds": lambda one: one["entries"][1]["figures"].pop("seconds"),
    "negative seconds": lambda one: one["entries"][1]["figures"].update(seconds=-1),
    "a gap": lambda one: one["entries"].pop(0),
    "a base after the end": lambda one: one.update(base_step=4),
    "no checksums": lambda one: one.update(files={"kept.safetensors": "", "kept.json": ""}),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_forged_journals_are_refused_in_one_sentence(pets: Path, what: str) -> None:
    forge(pets, FORGERIES[what])
    with pytest.raises(ValueError, match=rf"{pets} is damaged \([^\n]+\): copy or train it again$"):
        ModelFolder(pets).learn(["a cat"], [["cat"]])


@pytest.mark.parametrize("what", [name for name in FORGERIES if name != "no checksums"])
def test_what_shows_a_journal_refuses_forged_ones(pets: Path, what: str) -> None:
    forge(pets, FORGERIES[what])
    with pytest.raises(ValueError, match=rf"{pets} is damaged \([^\n]+\): copy or train it again$"):
        stored.overview(pets)


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
    "nothing to retire": {"kind": "retire", "names": []},
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
    "a bomb": {"kind": "learn", "names": [], "labels": [[]] * 5_000_000, "ids": [], "texts": [], "titles": None},
    "features of another model": {
        "kind": "learn", "names": [], "labels": [["cat"]], "ids": [],
        "X": {"n_features": 1 << 40, "indptr": "AAAAAAAAAAAAAAAAAAAAAA==", "indices": "", "values": ""},
    },
}  # fmt: skip


@pytest.mark.parametrize("what", OPERATIONS)
def test_forged_entries_are_refused_in_one_sentence(pets: Path, what: str) -> None:
    path = pets / "learning" / "000001.json.gz"
    path.unlink()
    path.write_bytes(gzip.compress(json.dumps(OPERATIONS[what]).encode(), 1))
    forge_sums(pets, path.name)
    with pytest.raises(ValueError, match=r"is damaged \([^\n]+\): copy or train it again$"):
        ModelFolder(pets).rollback(1)


def forge_sums(model: Path, *names: str) -> None:
    """Give files of the folder `learning` the right checksums."""
    sums = {name: sha256(map_file(model / "learning" / name)) for name in names}
    forge(model, lambda one: one["files"].update(sums))


def test_training_data_of_another_model_are_refused(pets: Path, tmp_path: Path) -> None:
    LightDXML("fast").fit(TEXTS, [["a"], ["b"], ["c"]] * 12, keep_training_data=True).save(tmp_path / "other")
    for name in ("kept.safetensors", "kept.json"):
        shutil.copy(tmp_path / "other" / "learning" / name, pets / "learning" / name)
    forge_sums(pets, "kept.safetensors", "kept.json")
    with pytest.raises(ValueError, match="its training data are of another model"):
        ModelFolder(pets).retire(["horse"])


def test_features_that_are_too_large_are_refused(pets: Path) -> None:
    path = pets / "learning" / "kept.safetensors"
    content = {name: np.array(one) for name, one in arrays.read(path).items()}
    content["X.values"] = np.full_like(content["X.values"], 1000)
    path.unlink()
    arrays.write(path, content)
    forge_sums(pets, path.name)
    before = content_of(pets)
    with pytest.raises(ValueError, match=r"is damaged \(its training data have features that are not those of docu"):
        ModelFolder(pets).learn(["a cat"], [["cat"]])
    assert content_of(pets) == before


@pytest.mark.parametrize("value", [100.0, 1e30, float("nan")])
def test_features_in_the_journal_that_are_too_large_are_refused(value: float) -> None:
    model = LightDXML("fast").fit(np.eye(4)[[0, 1, 2, 3] * 6], [["cat"], ["dog"]] * 12).model_
    documents = documents_for(model, np.eye(4)[:2], [["cat"], ["dog"]])
    assert documents.X is not None
    journal.unpack(journal.pack(Operation("learn", documents)))
    documents.X.data[1] = value
    with pytest.raises(ValueError, match="has features that are none"):
        journal.unpack(journal.pack(Operation("learn", documents)))


def test_what_nobody_could_read_never_replaces_a_model(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content_of(pets)
    too_large = {"scores": np.full(3, np.inf, dtype=np.float32)}
    monkeypatch.setattr(Recent, "arrays", lambda _: too_large)
    with pytest.raises(ValueError, match=r"pets stays as it was, as nobody could read what would follow: its array sc"):
        ModelFolder(pets).retire(["horse"])
    monkeypatch.undo()
    opened = ModelFolder(pets)
    assert opened.model.n_labels == 3
    monkeypatch.setattr("lightdxml.model.store._MAX_NAME", 0)
    with pytest.raises(ValueError, match=r"nobody could read it: label_names\.json has more than 0 bytes$"):
        opened.retire(["horse"])
    monkeypatch.undo()
    assert content_of(pets) == before


def test_ids_labels_and_words_of_any_length_leave_the_model_readable(pets: Path) -> None:
    long, longest = "x" * 3_000_000, "\N{CAT FACE}" * 1000
    before = content_of(pets)
    with pytest.raises(
        ValueError, match=r"^the id 'xx[^ ]+ … has 3,000,000 characters, and may have 1,000: give a sho"
    ):
        ModelFolder(pets).learn(["a cat"], [["cat"]], ids=[long])
    with pytest.raises(
        ValueError, match=r"^the label 'xx[^ ]+ … has 3,000,000 characters, and may have 1,000: give it"
    ):
        ModelFolder(pets).learn(["a cat"], [[long]])
    assert content_of(pets) == before
    ModelFolder(pets).learn([f"a {long}"] * 3, [[longest]] * 3, ids=[f"{longest[2:]}{i}" for i in range(3)])
    opened = stored.read(pets).learner
    assert opened.kept is not None
    assert (opened.model.label_names or [])[-1] == longest
    assert max(map(len, [*opened.kept.rare.words, *opened.model.vectorizer.vocabulary])) <= 1000  # type: ignore[union-attr]


def test_a_long_id_is_refused_before_training() -> None:
    with pytest.raises(ValueError, match=r"has 5,000 characters, and may have 1,000"):
        LightDXML("fast").fit(TEXTS, LABELS, ids=["x" * 5000, *IDS[1:]], keep_training_data=True)


def test_none_is_no_id(pets: Path) -> None:
    ModelFolder(pets).learn(["a dog", "a cat"], [["dog"], ["cat"]], ids=[None, None])  # type: ignore[list-item]
    kept = stored.read(pets).learner.kept
    assert kept is not None
    assert kept.ids[-2:] == ["", ""]


def test_nothing_is_no_change(pets: Path) -> None:
    model, before = ModelFolder(pets), content_of(pets)
    with pytest.raises(ValueError, match=r"^there are no documents to forget: give at least one id$"):
        model.forget([])
    with pytest.raises(ValueError, match=r"^there are no labels to retire: give at least one$"):
        load(pets).retire([])
    for empty in ("", " "):
        with pytest.raises(ValueError, match=r"^a document has a label without a name: name it, or leave it out$"):
            model.learn(["a cat"], [[empty]])
    assert content_of(pets) == before


def test_documents_that_compress_too_well_are_kept_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = LightDXML("fast").fit(TEXTS, LABELS).model_
    operation = Operation("learn", documents_for(model, ["a cat, a dog"] * 3000, [["cat"]] * 3000))
    small = journal.pack(operation)
    monkeypatch.setattr("lightdxml.data.files._FREE_MEMORY", 1000)
    with pytest.raises(ValueError, match="far larger than its file"):
        journal.unpack(small)
    found = journal.unpack(journal.pack(operation)).documents
    assert found is not None
    assert len(found) == 3000


def test_the_journal_of_a_model_that_a_killed_process_left_is_found(pets: Path) -> None:
    pets.rename(pets.with_name(".pets.abcdef01.old"))
    left = load(pets)
    left.learn(["a zebu"], [["zebu"]])
    left.save(pets)
    assert ModelFolder(pets).journal.step == 4
    assert ModelFolder(pets).keeps_training_data


def test_waiting_for_another_writer_may_end(pets: Path) -> None:
    with writing(pets), pytest.raises(TimeoutError, match="pets is being changed by another process: try again later"):
        ModelFolder(pets, wait=0.1).retire(["horse"])
    ModelFolder(pets, wait=0.1).retire(["horse"])


def test_a_new_model_is_locked_before_its_folder_is_there(pets: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "pets"
    with writing(pets, target), pytest.raises(TimeoutError), writing(target, wait=0.1):
        pass
    assert not list(target.parent.iterdir())


def test_what_a_lesson_returns_is_shown_in_a_line(pets: Path) -> None:
    changed = ModelFolder(pets).learn(["a big cow"] * 3, [["cow"]] * 3)
    about = "learn: learned 3 documents, 1 new label, 2 new words"
    assert repr(changed) == f"<Changed: step 4, {about} in {changed.seconds:.1f} s>"
    assert repr(ModelFolder(pets).rollback(3)[0]) == "<Opened: 3 labels, after step 3>"


def test_seconds_of_a_step_do_not_count_waiting_for_another_process(pets: Path) -> None:
    done: list[float] = []
    start = time.perf_counter()

    def retire() -> None:
        seconds = ModelFolder(pets).retire(["horse"]).seconds
        done.extend([seconds, time.perf_counter() - start])

    thread = threading.Thread(target=retire)
    with writing(pets):
        thread.start()
        time.sleep(0.3)
    thread.join(30)
    assert done[0] <= done[1] - 0.25


def test_seconds_of_a_step_do_not_count_compilation(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apply, compiled = journal.apply, [0.0]

    def compile_first(*arguments: Any) -> Any:
        start = time.perf_counter()
        numba.njit(lambda x: x**2 + x**3)(1.5)
        compiled[0] = time.perf_counter() - start
        return apply(*arguments)

    monkeypatch.setattr(journal, "apply", compile_first)
    start = time.perf_counter()
    changed = ModelFolder(pets).retire(["horse"])
    assert changed.seconds <= time.perf_counter() - start - 0.5 * compiled[0]
    assert changed.entry.figures["seconds"] <= time.perf_counter() - start - 0.5 * compiled[0]


def test_a_rollback_says_each_step_that_it_learns_again(pets: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "lightdxml"):
        ModelFolder(pets).rollback(2)
    lines = [line for line in caplog.messages if "again" in line]
    assert lines == [
        "step 1 of 2 again: learned 3 documents, 1 new label, 2 new words", "step 2 of 2 again: merged dog into cat",
    ]  # fmt: skip
