"""Trainings that are interrupted end at the same bits, wherever that happens."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.config import Config, changed
from lightdxml.kernels import parallel
from lightdxml.persistence import arrays as stored
from lightdxml.persistence import checkpoint
from lightdxml.resources import machine
from lightdxml.training import fit
from lightdxml.training.callbacks import Callback, Interrupted
from lightdxml.training.fit import CheckpointOptions
from lightdxml.training.run import Phase, Run
from lightdxml.views.linear.solver import Problem, Weights
from tests.support.configs import FOUR_VIEWS, PAPER, SMALL, small
from tests.support.data import topics, with_rare_label
from tests.support.indexes import needs_rabitq
from tests.support.trainings import InterruptAt, InterruptAtTick, bits, interrupt, phases, train

SHORT = small(epochs=2, linear=False)
ALL_VIEWS = changed(Config(), FOUR_VIEWS | {"epochs": 1})
# A label that only a held-out document has: the refit then has something to add.
HELD_OUT = int(np.random.default_rng(0).permutation(120)[0])
DATA = with_rare_label(*topics(120), HELD_OUT)


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """The bits of all views without an interruption, and the phases."""
    model, history = train(DATA, ALL_VIEWS)
    return bits(model) | {"phases": phases(history)}


CYCLES: list[Any] = [
    {},
    {"dense.relu": True, "dense.residual": True},
    pytest.param({"index": "rabitq"}, marks=needs_rabitq),
    {"precision": "float32", "dense.label_epochs": 3},
]


@pytest.mark.parametrize("settings", CYCLES, ids=str)
def test_a_cycle_that_is_interrupted_again_and_again_ends_at_the_same_bits(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    config = changed(small(epochs=3, dense__label_epochs=2, linear=False), settings)
    model, history = train(DATA, config)
    interruptions = 0
    # The first stop is early in a refresh, later ones further on: each run must get further than the one before.
    while interrupt(
        tmp_path, DATA, config, 1 + 2 * interruptions % 11, number=(signal.SIGINT, signal.SIGTERM)[interruptions % 2]
    ):
        interruptions += 1
        assert interruptions < 50
    assert interruptions > 3
    again, resumed = train(DATA, config, tmp_path)
    assert bits(again) == bits(model)
    assert phases(resumed) == phases(history)


def test_every_refresh_can_be_interrupted_within(tmp_path: Path) -> None:
    """A refresh has no checkpoint of its own: it is done again from its beginning."""
    config = small(epochs=2, linear=False)
    model, history = train(DATA, config)
    for phase in ("label encoder", "index", "shortlist", "validation"):
        for at in (1, 2):
            folder = tmp_path / f"{phase}-{at}"
            assert interrupt(folder, DATA, config, at, phase)
            again, resumed = train(DATA, config, folder)
            assert bits(again) == bits(model)
            assert phases(resumed) == phases(history)


# From the first step to the last, in every phase after the cycle.
MOMENTS = [
    *(("linear view", at) for at in (1, 3, 6, 9)),
    ("blend", 1),
    *(("label tree", at) for at in (1, 2, 9, 20)),
    ("tail", 1),
    ("refit linear view", 1),
    *(("refit label tree", at) for at in (1, 7)),
]


@pytest.mark.parametrize(("phase", "at"), MOMENTS, ids=lambda part: str(part))
def test_steps_after_the_cycle_resume_to_the_same_bits(
    tmp_path: Path, phase: str, at: int, expected: dict[str, Any]
) -> None:
    # With one thread every part is reported.
    with parallel.use_threads(1):
        assert interrupt(tmp_path, DATA, ALL_VIEWS, at, phase)
    model, history = train(DATA, ALL_VIEWS, tmp_path)
    assert bits(model) | {"phases": phases(history)} == expected


def test_the_comparison_of_costs_resumes_to_the_same_bits(tmp_path: Path) -> None:
    """Only with a hundred validation documents and more are costs compared."""
    data, dev = topics(150), topics(400, seed=1)
    config = changed(Config(), {"dense": "never", "tree": False, "blend.min_documents": 1, "linear.costs": (0.5, 1.0)})
    expected, _ = train(data, config, dev=dev)
    watch = InterruptAt(2, "linear view")
    with parallel.use_threads(1), pytest.raises(Interrupted):
        train(data, config, tmp_path, [watch], dev=dev)
    assert watch.seen == 2
    again, _ = train(data, config, tmp_path, dev=dev)
    assert bits(again) == bits(expected)


def test_long_computations_can_be_interrupted_within(tmp_path: Path, expected: dict[str, Any]) -> None:
    watch = InterruptAtTick(0)
    with parallel.use_threads(1):
        train(DATA, ALL_VIEWS, callbacks=[watch])
        # Validation of each refresh, clusters, choices.
        assert watch.seen > 20
        for i, at in enumerate(range(1, watch.seen, 7)):
            with pytest.raises(Interrupted):
                train(DATA, ALL_VIEWS, tmp_path / str(i), [InterruptAtTick(at)])
            model, history = train(DATA, ALL_VIEWS, tmp_path / str(i))
            assert bits(model) | {"phases": phases(history)} == expected


class CountSolved(Callback):
    """Counts the classes that are solved in each phase after the cycle."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        self.title = ""
        solve = Problem.solve

        def counted(problem: Problem, classes: NDArray[np.int32]) -> Weights:
            self.counts[self.title] += len(classes)
            return solve(problem, classes)

        monkeypatch.setattr(Problem, "solve", counted)

    def on_phase_begin(self, run: Run, phase: Phase) -> None:
        """Take the title of a step."""
        self.title = phase.title

    def on_phase_end(self, run: Run, phase: Phase) -> None:
        """Leave the step: what is solved outside of steps is not counted among them."""
        self.title = ""

    def solved(self) -> dict[str, int]:
        """Return the counts of steps."""
        return {title: n for title, n in self.counts.items() if title}


def test_finished_steps_and_parts_are_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = CountSolved(monkeypatch)
    with parallel.use_threads(1):
        train(DATA, ALL_VIEWS, callbacks=[counter])
        once = counter.solved()
        counter.counts.clear()
        interruptions = 0
        # Each run reports the parts of an unfinished step again: to get further, it must be interrupted later.
        while interrupt_after_cycle(tmp_path, counter, 3 + interruptions):
            interruptions += 1
        assert interruptions > 5
    assert counter.solved() == once


def interrupt_after_cycle(folder: Path, counter: CountSolved, at: int) -> bool:
    class AfterCycle(InterruptAt):
        def on_progress(self, run: Run, phase: Phase, amount: int) -> None:
            if run.result is not None:
                super().on_progress(run, phase, amount)

    try:
        train(DATA, ALL_VIEWS, folder, [counter, AfterCycle(at)])
    except Interrupted:
        return True
    return False


def test_checkpoints_are_written_as_often_as_asked_for(tmp_path: Path) -> None:
    numbers: list[int] = []

    class Watch(Callback):
        def on_progress(self, run: Run, phase: Phase, amount: int) -> None:
            numbers.append(max((int(path.name) for path in tmp_path.glob("0*")), default=0))

    options = CheckpointOptions(tmp_path, every=0)
    fit.train(fit.prepare(*DATA, SHORT), SHORT, checkpoint=options, callbacks=[Watch()])
    assert numbers[-1] > 5
    assert len(list(tmp_path.glob("0*"))) == 2


def test_a_finished_training_is_finished_again_without_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a model cannot be saved, because the disk is full, the training is not lost."""
    expected, _ = train(DATA, ALL_VIEWS, tmp_path)
    counter = CountSolved(monkeypatch)
    again, history = train(DATA, ALL_VIEWS, tmp_path, [counter])
    assert bits(again) == bits(expected)
    assert not counter.solved()
    assert history


def test_a_full_disk_at_the_end_does_not_cost_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stored, "write", full)
    model, _ = train(DATA, SHORT, tmp_path)
    monkeypatch.undo()
    assert bits(model) == bits(train(DATA, SHORT)[0])
    assert not list(tmp_path.glob("0*"))


def test_other_data_or_settings_are_refused(tmp_path: Path) -> None:
    X, Y = DATA
    settings = PAPER | {"epochs": 1}
    LightDXML(options=settings).fit(X, Y, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="holds the checkpoint of a training run: resume it"):
        LightDXML(options=settings).fit(X, Y, checkpoint=tmp_path)
    for changes in ({"random_state": 1}, {"dense.epochs": 2}, {"blend.beta": 0.5}):
        with pytest.raises(ValueError, match=rf"belongs to other settings \({next(iter(changes))}"):
            LightDXML(options=settings | changes).fit(X, Y, checkpoint=tmp_path, resume=True)
    with pytest.raises(ValueError, match="belongs to other data or another version"):
        LightDXML(options=settings).fit(X[1:], Y[1:], checkpoint=tmp_path, resume=True)
    other = X.copy()
    other.data[0] += 1
    with pytest.raises(ValueError, match="belongs to other data or another version"):
        LightDXML(options=settings).fit(other, Y, checkpoint=tmp_path, resume=True)


def test_a_spill_directory_changes_no_bits_and_resumes(tmp_path: Path, expected: dict[str, Any]) -> None:
    for phase in ("classifier", "shortlist", "label tree"):
        folder, spill = tmp_path / phase, tmp_path / "spill"
        with pytest.raises(Interrupted):
            train(DATA, ALL_VIEWS, folder, [InterruptAt(1, phase)], spill=spill)
        model, history = train(DATA, ALL_VIEWS, folder, spill=spill)
        assert bits(model) | {"phases": phases(history)} == expected
        assert not list(spill.iterdir())


def test_what_a_user_keeps_in_a_checkpoint_folder_survives(tmp_path: Path) -> None:
    for name in (".mine.part", "20260101", ".123.part"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis").write_text("important")
    (tmp_path / ".00000003.part").mkdir()
    LightDXML(options=SMALL | {"epochs": 1}).fit(*DATA, checkpoint=tmp_path, checkpoint_every=0)
    checkpoint.remove(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".123.part", ".mine.part", "20260101"]
    assert len(list(tmp_path.glob("*/thesis"))) == 3


def test_data_of_other_shapes_types_and_versions_have_other_fingerprints(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = DATA
    wider = csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], X.shape[1] + 5))
    data = [fit.prepare(*part, SHORT).take() for part in ((X, Y), (wider, Y), (X[:-1], Y[:-1]))]
    marks = [fit.fingerprint(SHORT, one, None) for one in data]
    marks.append(fit.fingerprint(small(epochs=3), data[0], None))
    marks.append(fit.fingerprint(SHORT, data[0], np.zeros((X.shape[1], 16), dtype=np.float32)))
    monkeypatch.setattr("lightdxml.__version__", "9.9")
    marks.append(fit.fingerprint(SHORT, data[0], None))
    assert len(set(marks)) == len(marks)


def test_other_options_of_texts_are_named(tmp_path: Path) -> None:
    texts, labels = ["red rose", "white wine", "red wine", "a rose"] * 10, [["a"], ["b"]] * 20
    LightDXML(ngrams=2, options=PAPER | {"epochs": 1}).fit(texts, labels, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"belongs to other settings \(ngrams 2, now 1\)"):
        LightDXML(ngrams=1, options=PAPER | {"epochs": 1}).fit(texts, labels, checkpoint=tmp_path, resume=True)


def test_a_training_on_two_machines_is_noted_in_the_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = PAPER | {"epochs": 1}
    LightDXML(options=settings).fit(*DATA, checkpoint=tmp_path / "kept").save(tmp_path / "one")
    assert len(manifest_of(tmp_path / "one")["machines"]) == 1
    there = {**machine.machine(), "numpy": "9.9"}
    monkeypatch.setattr(fit, "machine", lambda: there)
    with pytest.raises(ValueError, match=r"other libraries \(numpy .*, now 9\.9\).*--allow-different-machine"):
        LightDXML(options=settings).fit(*DATA, checkpoint=tmp_path / "kept", resume=True)
    resumed = LightDXML(options=settings)
    resumed.fit(*DATA, checkpoint=tmp_path / "kept", resume=True, allow_different_machine=True).save(tmp_path / "two")
    assert [entry["numpy"] for entry in manifest_of(tmp_path / "two")["machines"]][1:] == ["9.9"]


def manifest_of(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text())
