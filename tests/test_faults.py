"""The fault trials in a short form; `python -m tests.faults` is the long one."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("the trials use signals and limits that this system does not have", allow_module_level=True)

from lightdxml.config import Config, changed
from lightdxml.data import Dataset, Split, load, save
from lightdxml.persistence.checkpoint import CheckpointFolder, is_in, remove
from lightdxml.training.callbacks import Callback, Interrupted
from lightdxml.training.fit import CheckpointOptions, prepare, train
from lightdxml.training.run import Run
from tests.faults import trials
from tests.faults.training import Lab
from tests.support.data import topics
from tests.support.identity import identity


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    folder = tmp_path_factory.mktemp("faults")
    X, Y = topics(300, labels=60)
    return Lab(folder, save(Dataset("topics", Split(Y=Y, X=X)), folder / "data", "xc"))


def check(outcome: trials.Outcome) -> None:
    assert outcome.tried
    assert outcome.held == outcome.tried


def test_a_killed_training_resumes_to_the_same_model(lab: Lab) -> None:
    check(trials.kills(lab, 1))


def test_a_training_killed_after_the_cycle_resumes_to_the_same_model(lab: Lab) -> None:
    check(trials.kills_after_cycle(lab, ("linear view: labels",)))


def test_a_training_interrupted_after_the_cycle_resumes_to_the_same_model(lab: Lab) -> None:
    check(trials.interrupts_after_cycle(lab, ("label tree: tree 1, clusters",)))


def test_a_stopped_training_says_how_to_resume_it(lab: Lab) -> None:
    check(trials.signals(lab, (signal.SIGTERM,)))


def test_a_truncated_checkpoint_is_skipped(lab: Lab) -> None:
    check(trials.truncations(lab, cuts=(0.5,)))


def test_a_full_disk_loses_nothing(lab: Lab) -> None:
    check(trials.full_disk(lab))


def test_a_full_spill_directory_is_reported_in_one_sentence(lab: Lab) -> None:
    check(trials.full_spill(lab))


def test_a_spill_directory_of_a_killed_training_is_removed_by_the_next(lab: Lab) -> None:
    check(trials.killed_spill(lab))


def test_a_model_that_is_being_replaced_is_complete_at_every_moment(lab: Lab) -> None:
    check(trials.replaced(lab, 1))


def test_a_second_training_with_the_same_checkpoint_folder_is_refused(lab: Lab) -> None:
    check(trials.second_training(lab))


def test_a_lesson_that_is_killed_is_learned_or_not_and_then_learned_to_the_same_bits(lab: Lab) -> None:
    check(trials.learning_kills(lab, 2))


def test_two_lessons_at_the_same_time_are_both_learned(lab: Lab) -> None:
    check(trials.two_lessons(lab, 1))


def test_the_journal_gives_the_same_bits_again(lab: Lab) -> None:
    check(trials.replays(lab, 2))


class InterruptAtTick(Callback):
    """Sends SIGINT at the n-th tick after the cycle, and counts all of them."""

    def __init__(self, n: int) -> None:
        self.n, self.seen = n, 0

    def on_tick(self, run: Run) -> None:
        if run.result is not None:
            self.seen += 1
            if self.seen == self.n:
                signal.raise_signal(signal.SIGINT)


def test_ctrl_c_within_a_long_computation_stops_at_once(lab: Lab, tmp_path: Path) -> None:
    # How many ticks there are depends on time: of more than a hundred, the first ones are there on any machine.
    small = {"dim": 8, "epochs": 1, "linear.work": 0, "dense": "always", "blend.min_documents": 1}
    config, documents = changed(Config(), small), load(lab.data).train
    keep = CheckpointOptions(tmp_path / "checkpoint", every=1e9, resume=True)
    for n in (1, 10, 20):
        interrupt = InterruptAtTick(n)
        with pytest.raises(Interrupted):
            train(prepare(documents.X, documents.Y, config), config, checkpoint=keep, callbacks=[interrupt])
        assert interrupt.seen == n


def test_a_removal_that_is_cut_short_leaves_no_damaged_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CheckpointFolder(tmp_path, identity()).write({}, {})

    def stop(path: Path) -> None:
        (path / "arrays.safetensors").unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", stop)
    with pytest.raises(KeyboardInterrupt):
        remove(tmp_path)
    assert not is_in(tmp_path)
