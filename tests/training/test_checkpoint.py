"""Trainings that are stopped at every kind of moment end at the same bits."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import LightDXML, load
from lightdxml.persistence import arrays as stored
from lightdxml.config import Config
from lightdxml.model import predict
from lightdxml.progress import Progress
from lightdxml.training import checkpoint, classifier, cycle, label_encoder, lock
from lightdxml.training.checkpoint import FolderKeeper, Interrupted
from lightdxml.training.cycle import DivergedError, Result, train
from lightdxml.training.plan import plan
from lightdxml.persistence.spill import Scratch, scratch_in
from lightdxml.training.state import State
from tests.processor import needs_sketches
from tests.training.test_cycle import SMALL, topics

X, Y = topics(120)
KINDS: list[Any] = [
    {},
    {"relu": True, "residual": True, "frequent_labels": 2},
    {"index": "hnsw"},
    {"index": "ivf"},
    pytest.param({"index": "sketch"}, marks=needs_sketches),
]


class Stopping(FolderKeeper):
    """A keeper that is asked to stop at its n-th look."""

    def __init__(self, folder: Path, at: int) -> None:
        super().__init__(folder, 1e9, "mark", resume=True)
        self.looks, self.at = 0, at

    def look(self) -> None:
        self.looks += 1
        if self.looks == self.at:
            self.wanted = signal.SIGTERM

    def keep(self, state: State) -> None:
        self.look()
        super().keep(state)

    def check(self) -> None:
        self.look()
        super().check()


def run(config: Config, keeper: FolderKeeper | None = None) -> Result:
    return train(X, Y, X[:20], Y[:20], config, Progress(show=False), None, keeper)


def bits(result: Result) -> list[bytes]:
    model = result.model
    arrays = [model.encoder.vectors, model.classifier, model.shortlist.vectors, np.array(model.beta)]
    return [array.tobytes() for array in (*arrays, *predict(model, X, 3))]


@pytest.mark.parametrize("settings", KINDS, ids=str)
def test_a_training_stopped_again_and_again_ends_at_the_same_bits(tmp_path: Path, settings: dict[str, Any]) -> None:
    config = Config(**(SMALL | {"e_model": 3, "e_label": 2} | settings))
    expected = run(config)
    (tmp_path / "kept").mkdir()
    stops = 0
    for look in range(1, 200):
        try:
            result = run(config, Stopping(tmp_path / "kept", 1 + look % 9))
            break
        except Interrupted as stopped:
            assert stopped.signal == signal.SIGTERM
            stops += 1
    assert stops > 5
    assert bits(result) == bits(expected)
    phases = [entry["phase"] for entry in result.history]
    assert phases == [entry["phase"] for entry in expected.history]


def test_no_more_than_two_checkpoints_are_kept(tmp_path: Path) -> None:
    run(Config(**(SMALL | {"e_model": 2})), FolderKeeper(tmp_path, 0, "mark", resume=False))
    assert len(list(tmp_path.glob("0*"))) == 2
    checkpoint.remove(tmp_path)
    assert not tmp_path.exists()


def test_other_data_or_settings_are_refused(tmp_path: Path) -> None:
    trained = LightDXML(**SMALL).fit(X, Y, checkpoint=tmp_path / "kept", checkpoint_every=0)
    with pytest.raises(ValueError, match="holds the checkpoint of a training"):
        LightDXML(**SMALL).fit(X, Y, checkpoint=tmp_path / "kept")
    with pytest.raises(ValueError, match="other data or settings"):
        LightDXML(**SMALL, seed=1).fit(X, Y, checkpoint=tmp_path / "kept", resume=True)
    with pytest.raises(ValueError, match="other data or settings"):
        LightDXML(**SMALL).fit(X[1:], Y[1:], checkpoint=tmp_path / "kept", resume=True)
    again = LightDXML(**SMALL).fit(X, Y, checkpoint=tmp_path / "kept", resume=True)
    np.testing.assert_array_equal(again.rank(X)[1], trained.rank(X)[1])


SHORT = Config(**(SMALL | {"e_model": 2}))
Forged = Callable[[dict[str, Any], dict[str, NDArray[Any]]], object]


def stopped(folder: Path, at: int = 6, config: Config = SHORT) -> Path:
    """Stop a training within an epoch; return its checkpoint."""
    with pytest.raises(Interrupted):
        run(config, Stopping(folder, at))
    return max(folder.glob("0*"))


def forge(place: Path, change: Forged) -> None:
    """Change a checkpoint as whoever wrote it could have: with its checksum."""
    facts = json.loads((place / "state.json").read_text())
    arrays = {key: np.array(array) for key, array in stored.read(place / "arrays.safetensors").items()}
    assert facts["batch"] > 0
    change(facts, arrays)
    shutil.rmtree(place)
    checkpoint.write(place.parent, int(place.name), facts, arrays)


def entry(name: str, value: float) -> Forged:
    """Change the last number of an array."""
    return lambda facts, arrays: arrays[name].flat.__setitem__(-1, value)


def fact(**changed: Any) -> Forged:
    return lambda facts, arrays: facts.update(changed)


def array(**changed: Any) -> Forged:
    """Change arrays; a dot in a name is written as two underscores."""
    made = {name.replace("__", "."): change for name, change in changed.items()}
    return lambda facts, arrays: arrays.update({name: change(arrays[name]) for name, change in made.items()})


def best(**changed: Any) -> Forged:
    return lambda facts, arrays: facts["best"].update(changed)


def without(*names: str) -> Forged:
    return lambda facts, arrays: [part.pop(name, None) for name in names for part in (facts, arrays)]


FORGED: dict[str, Forged] = {
    "a label in the shortlists": entry("shortlists", 10_000),
    "a document in the order": entry("order", 10_000),
    "a document twice": entry("order", 0),
    "a label in the index": entry("best.labels", 10_000),
    "wide shortlists": array(shortlists=lambda a: np.tile(a, (1, 400))),
    "narrow shortlists": array(shortlists=lambda a: a[:, 1:].copy()),
    "no shortlists": array(shortlists=lambda a: np.empty((0, 0), np.int32)),
    "no rows": array(shortlists=lambda a: a[:0]),
    "no order": array(order=lambda a: a[:0]),
    "order in float": array(order=lambda a: a.astype(np.float32)),
    "weights to be repeated": array(W=lambda a: a[:1, :1].copy()),
    "weights of 16 bits": array(W=lambda a: a.astype(np.float16)),
    "means of another type": array(W_mean=lambda a: a.astype(np.int32)),
    "NaN": entry("vectors", np.nan),
    "no weights": without("W"),
    "no fingerprint": without("fingerprint"),
    "no best model": without("best"),
    "no index": without("best.labels"),
    "few word vectors": array(best__word_vectors=lambda a: a[:1]),
    "more labels": array(best__classifier=lambda a: np.tile(a, (2, 1)), best__label_frequency=lambda a: np.tile(a, 2)),
    "another index": best(kind="zzz"),
    "an index without its graph": best(kind="hnsw"),
    "an index without its clusters": best(kind="ivf"),
    "an index without its sketches": best(kind="sketch"),
    "a best model of bytes": array(best__word_vectors=lambda a: np.zeros((len(a), a.shape[1] + 4), dtype=np.int8)),
    "no measures": best(metrics=None),
    "a beta of text": best(beta="1"),
    "a step beyond": fact(step=99),
    "a step before": fact(step=-2),
    "another step": fact(step=0),
    "a batch beyond": fact(batch=999),
    "a batch before": fact(batch=-3),
    "a batch in float": fact(batch=1.0),
    "an endless loss": fact(loss=float("-inf")),
    "steps without end": fact(label_encoder_steps=10**400),
    "another generator": fact(rng={"bit_generator": "MT19937"}),
    "a generator of nothing": fact(rng=None),
    "a history of another form": fact(history=5),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_checkpoint_is_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    """Whoever can write a checkpoint can write its checksum; some of these led compiled code out of bounds."""
    forge(stopped(tmp_path), FORGED[name])
    with pytest.raises(ValueError, match=r"the checkpoints in .* are damaged \(.*\): remove it") as refused:
        run(SHORT, FolderKeeper(tmp_path, 1e9, "mark", resume=True))
    assert "\n" not in str(refused.value)
    assert list(tmp_path.glob("0*"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
@pytest.mark.parametrize("name", ["state.json", "arrays.safetensors", "lock"])
def test_a_pipe_in_place_of_a_file_of_a_checkpoint_is_not_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / "lock" if name == "lock" else stopped(tmp_path) / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    keeper = FolderKeeper(tmp_path, 1e9, "mark", resume=True)
    with pytest.raises(ValueError, match=r"no file"), keeper.at_work():
        run(SHORT, keeper)


def test_a_forged_checkpoint_leaves_the_one_before_it_to_go_on_from(tmp_path: Path) -> None:
    expected = run(SHORT)
    place = stopped(tmp_path)
    shutil.copytree(place, tmp_path / "00000009")
    forge(tmp_path / "00000009", FORGED["another index"])
    assert bits(run(SHORT, FolderKeeper(tmp_path, 1e9, "mark", resume=True))) == bits(expected)


def test_a_damaged_checkpoint_is_not_kept_in_place_of_a_good_one(tmp_path: Path) -> None:
    """It counted as one of the two that are kept: the next write removed the good one."""
    good = stopped(tmp_path)
    shutil.copytree(good, tmp_path / "00000009")
    (tmp_path / "00000009" / "state.json").write_text("{")
    with pytest.raises(Interrupted):
        run(SHORT, Stopping(tmp_path, 1))
    assert sorted(path.name for path in tmp_path.glob("0*")) == [good.name, "00000010"]
    shutil.rmtree(tmp_path / "00000010")
    (tmp_path / "00000010").mkdir()
    assert bits(run(SHORT, FolderKeeper(tmp_path, 1e9, "mark", resume=True))) == bits(run(SHORT))


def test_what_a_user_keeps_in_a_checkpoint_folder_survives(tmp_path: Path) -> None:
    for name in (".mine.part", "20260101", ".123.part"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis").write_text("important")
    (tmp_path / ".00000003.part").mkdir()
    LightDXML(**(SMALL | {"e_model": 2})).fit(X, Y, checkpoint=tmp_path, checkpoint_every=0)
    checkpoint.remove(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".123.part", ".mine.part", "20260101"]
    assert len(list(tmp_path.glob("*/thesis"))) == 3


def test_a_training_that_is_done_can_be_finished_again_without_training(tmp_path: Path) -> None:
    """A model that could not be saved, as its disk was full, cost the training."""
    config = SMALL | {"e_model": 2}
    expected = LightDXML(**config).fit(X, Y, checkpoint=tmp_path)
    facts = json.loads((max(tmp_path.glob("0*")) / "state.json").read_text())
    assert facts["step"] == len(plan(Config(**config)))
    again = LightDXML(**config).fit(X, Y, checkpoint=tmp_path, resume=True)
    np.testing.assert_array_equal(again.rank(X)[1], expected.rank(X)[1])
    assert again.model_.metrics == expected.model_.metrics
    assert len(list(tmp_path.glob("0*"))) == 1


def test_a_full_disk_at_the_very_end_does_not_cost_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write", full)
    assert bits(run(SHORT, FolderKeeper(tmp_path, 1e9, "mark", resume=False))) == bits(run(SHORT))


def test_checkpoints_are_not_removed_while_another_training_is_at_work(tmp_path: Path) -> None:
    stopped(tmp_path)
    with checkpoint.locked(tmp_path):
        checkpoint.remove(tmp_path)
        assert checkpoint.is_in(tmp_path)
    checkpoint.remove(tmp_path)
    assert not tmp_path.exists()


def test_a_lock_file_that_was_removed_holds_nothing(tmp_path: Path) -> None:
    with lock.held(tmp_path / "lock") as first:
        (tmp_path / "lock").unlink()
        with lock.held(tmp_path / "lock") as second:
            assert first
            assert second


def test_an_old_checkpoint_that_cannot_be_removed_does_not_end_a_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, *_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "rmdir", refuse)
    monkeypatch.setattr(os, "unlink", refuse)
    assert bits(run(SHORT, FolderKeeper(tmp_path, 0, "mark", resume=False))) == bits(run(SHORT))


def test_shapes_and_types_tell_data_apart() -> None:
    wider = csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], X.shape[1] + 5))
    marks = [checkpoint.fingerprint(SHORT, part) for part in (X, wider, X.astype(np.int32), None)]
    zeros = [np.zeros(4, np.float32), np.zeros((2, 2), np.float32), np.zeros(4, np.int32)]
    marks += [checkpoint.fingerprint(SHORT, part) for part in zeros]
    assert len(set(marks)) == 7


def test_another_version_of_lightdxml_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    before = checkpoint.fingerprint(SHORT, X)
    monkeypatch.setattr("lightdxml.__version__", "9.9")
    assert checkpoint.fingerprint(SHORT, X) != before


@pytest.mark.skipif(sys.platform == "win32", reason="signals of its own")
@pytest.mark.parametrize("before", [signal.SIG_IGN, None], ids=["ignored", "handled in C"])
def test_signals_that_are_ignored_or_not_ours_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: Any
) -> None:
    """After nohup, or in the background of a script, Ctrl-C is meant for others."""
    assert threading.current_thread() is threading.main_thread()
    usual = signal.getsignal
    monkeypatch.setattr(signal, "getsignal", lambda number: before if number == signal.SIGINT else usual(number))
    handler = usual(signal.SIGINT)
    keeper = FolderKeeper(tmp_path, 1e9, "mark", resume=False)
    with keeper.at_work():
        assert usual(signal.SIGINT) is handler
        signal.raise_signal(signal.SIGTERM)
    assert keeper.wanted == signal.SIGTERM


def test_the_plan_has_as_many_epochs_as_the_settings_say() -> None:
    config = Config(e_model=7, e_hat_label=3)
    steps = plan(config)
    assert [step.epoch for step in steps if step.what == "classifier"] == list(range(7))
    assert sum(step.what == "refresh" for step in steps) == config.e_model // config.e_hat_label + 1


def test_a_training_that_grows_without_end_is_stopped_and_its_best_model_kept(tmp_path: Path) -> None:
    wild = LightDXML(**(SMALL | {"learning_rate": 10.0, "random_weight": 1e6, "e_model": 60}), feature_rate=10.0)
    with pytest.raises(DivergedError, match=r"diverged in epoch \d+; the model of .* is kept: lower learning_rate"):
        wild.fit(X, Y)
    wild.save(tmp_path / "model")
    assert np.isfinite(wild.rank(X)[1]).all()


def test_the_model_that_a_diverging_training_keeps_is_complete(tmp_path: Path) -> None:
    """It once told of the documents without those set aside, and its measures were those before rounding."""
    wild = LightDXML(**(SMALL | {"learning_rate": 10.0, "random_weight": 1e6, "e_model": 60}), feature_rate=10.0)
    with pytest.raises(DivergedError) as diverged:
        wild.fit(X, Y)
    kept = diverged.value.kept
    assert kept is not None
    assert kept.model.n_documents == X.shape[0]
    assert kept.model.label_frequency.sum() == Y.nnz
    assert [kept.history[i]["phase"] for i in (0, -2, -1)] == ["compile", "rounding", "tail"]
    assert kept.history[-2]["after"] == kept.model.metrics
    assert f"P@1 {kept.model.metrics['P@1']:.2f}" in str(diverged.value)
    wild.save(tmp_path / "model")
    assert load(tmp_path / "model").model_.n_documents == X.shape[0]


def test_given_vectors_that_are_too_large_are_named_as_the_cause() -> None:
    vectors = np.full((X.shape[1], SMALL["D"]), 1e20, dtype=np.float32)
    with pytest.raises(DivergedError, match=r"given are as large as 1e\+20, so give some of length about 1"):
        LightDXML(**SMALL, vectors=vectors).fit(X, Y)


def test_a_label_encoder_that_diverges_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_encoder, "train_epoch", lambda *_: float("inf"))
    with pytest.raises(DivergedError, match="in the label encoder: lower label_learning_rate"):
        run(SHORT)


@pytest.mark.parametrize("part", ["R", "bias"])
def test_a_residual_layer_that_diverges_is_stopped(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    usual: Any = classifier.train_batch

    def grow(weights: Any, features: Any, *others: Any) -> float:
        loss: float = usual(weights, features, *others)
        getattr(features.encoder.residual, part).flat[0] = 1e6
        return loss

    monkeypatch.setattr(classifier, "train_batch", grow)
    with pytest.raises(DivergedError, match="diverged in epoch 1; the model of"):
        run(Config(**(SMALL | {"residual": True})))


def test_weights_are_looked_at_within_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[float] = []
    usual: Any = classifier.train_batch

    def grow(weights: Any, *others: Any) -> float:
        batches.append(usual(weights, *others))
        weights.W[0, 0] = 1e9
        return batches[-1]

    monkeypatch.setattr(cycle, "_BATCHES_BETWEEN_LOOKS", 2)
    monkeypatch.setattr(classifier, "train_batch", grow)
    with pytest.raises(DivergedError, match="diverged in epoch 1"):
        run(SHORT)
    assert len(batches) == 2


def test_gradients_too_small_to_matter_do_not_become_denormal_numbers() -> None:
    from lightdxml.kernels import adam

    row, mean, square = np.ones((1, 8), np.float32), np.full((1, 8), 1, np.uint16), np.ones(1, np.float32)
    adam.adam_row(row, mean, square, 0, np.full(8, 1e-38, np.float32), np.float32(0.1))
    assert not mean.any()


def test_features_and_shortlists_in_files_give_the_same_bits_and_leave_nothing(tmp_path: Path) -> None:
    expected = LightDXML(**SMALL).fit(X, Y)
    trained = LightDXML(**SMALL).fit(X, Y, scratch=tmp_path)
    np.testing.assert_array_equal(trained.model_.classifier, expected.model_.classifier)
    assert list(tmp_path.iterdir()) == []


def test_a_scratch_folder_without_room_is_said_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files were sparse: a disk that was full ended the process by SIGBUS when they were written."""

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match=r"no room for \d+ MB of \w+ in .*No space left .*choose another scratch folder"):
        LightDXML(**SMALL).fit(X, Y, scratch=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system writes zeros")
@pytest.mark.parametrize("supported", [True, False])
def test_scratch_files_have_their_place_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, supported: bool
) -> None:
    def not_here(*_: Any) -> None:
        raise OSError(95, "Operation not supported")

    if not supported:
        monkeypatch.setattr(os, "posix_fallocate", not_here)
    made = Scratch(tmp_path).array("numbers", (1000, 700), np.int32)
    assert not made.any()
    assert (tmp_path / "numbers").stat().st_size == made.nbytes
    assert 512 * (tmp_path / "numbers").stat().st_blocks >= made.nbytes


def test_scratch_that_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    for name, files in {
        "lightdxml-left": ("lock", "values"),
        "lightdxml-mine": ("lock", "thesis"),
        "other": (),
    }.items():
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).touch()
    with scratch_in(tmp_path) as first, scratch_in(tmp_path) as second:
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"lightdxml-mine", "other", first.folder.name, second.folder.name}
    assert {path.name for path in tmp_path.iterdir()} == {"lightdxml-mine", "other"}


@pytest.mark.parametrize("settings", [{}, {"validation": 0.0}], ids=["set aside", "all for both"])
def test_with_scratch_features_and_resumed_shortlists_are_not_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    words = ["cat purrs", "dog barks", "bird sings loudly", "fish swims"]
    texts, labels = [f"{words[i % 4]} {words[i // 7 % 4]}" for i in range(200)], [[i % 4] for i in range(200)]
    small = SMALL | {"e_model": 2, "k": 3} | settings
    seen: list[tuple[Any, list[int]]] = []
    usual: Any = classifier.train_batch
    # What other tests have left is held on to, so that it is known by its address.
    left = [m for m in gc.get_objects() if isinstance(m, csr_matrix)]
    known = {id(m) for m in left}

    def look(*arguments: Any) -> Any:
        width = arguments[3].shape[1]
        matrices = [m for m in gc.get_objects() if isinstance(m, csr_matrix) and id(m) not in known]
        held = [m for m in matrices if m.shape[1] == width]
        seen.append((arguments[6], [m.shape[0] for m in held if not isinstance(m.data, np.memmap)]))
        if len(seen) == 3:
            signal.raise_signal(signal.SIGTERM)
        return usual(*arguments)

    monkeypatch.setattr(classifier, "train_batch", look)
    monkeypatch.setattr("lightdxml.training.fit._compile", lambda *_: 0.0)
    with pytest.raises(Interrupted):
        LightDXML(**small).fit(texts, labels, checkpoint=tmp_path / "kept", scratch=tmp_path / "room")
    LightDXML(**small).fit(texts, labels, checkpoint=tmp_path / "kept", scratch=tmp_path / "room", resume=True)
    for shortlists, in_memory in seen:
        assert isinstance(shortlists, np.memmap)
        assert Path(str(shortlists.filename)).name == "shortlists"
        assert in_memory == ([10] if not settings else [])


def test_too_little_memory_is_said_before_training() -> None:
    with pytest.raises(ValueError, match=r"training needs .* of memory and the limit is 100 MB"):
        LightDXML(**SMALL).fit(X, Y, memory_limit="100MB")
