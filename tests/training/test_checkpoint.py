"""Trainings that are interrupted end at the same bits, wherever that happens; forged checkpoints are refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
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
from lightdxml.persistence.atomic_dir import sha256
from lightdxml.training.callbacks import Callback, Interrupted
from lightdxml.training.run import Phase, Run
from lightdxml.views.linear.solver import Problem, Weights
from tests.support.configs import FOUR_VIEWS, PAPER, SMALL, small
from tests.support.data import topics, with_rare_label
from tests.support.indexes import needs_rabitq
from tests.support.trainings import InterruptAt, InterruptAtTick, bits, phases, train

SHORT = small(epochs=2, linear=False)
ALL_VIEWS = changed(Config(), FOUR_VIEWS | {"epochs": 1, "linear.frequent_work": 22_000})
# A label that only a held-out document has: the refit then has something to add.
HELD_OUT = int(np.random.default_rng(0).permutation(120)[0])
DATA = with_rare_label(*topics(120), HELD_OUT)


def interrupt(folder: Path, config: Config, at: int, prefix: str = "", number: int = signal.SIGINT) -> bool:
    """Train, and interrupt the training; return whether it was still running."""
    try:
        train(DATA, config, folder, [InterruptAt(at, prefix, number)])
    except Interrupted as interrupted:
        assert interrupted.signal == number
        assert interrupted.folder == folder
        return True
    return False


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
        tmp_path, config, 1 + 2 * interruptions % 11, number=(signal.SIGINT, signal.SIGTERM)[interruptions % 2]
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
            assert interrupt(folder, config, at, phase)
            again, resumed = train(DATA, config, folder)
            assert bits(again) == bits(model)
            assert phases(resumed) == phases(history)


# From the first step to the last, in every phase after the cycle.
MOMENTS = [
    *(("linear view", at) for at in (1, 3, 9, 14)),
    ("blend", 1),
    *(("label tree", at) for at in (1, 2, 9, 20)),
    ("share", 1),
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
        assert interrupt(tmp_path, ALL_VIEWS, at, phase)
    model, history = train(DATA, ALL_VIEWS, tmp_path)
    assert bits(model) | {"phases": phases(history)} == expected


def test_long_computations_can_be_interrupted_within(tmp_path: Path, expected: dict[str, Any]) -> None:
    watch = InterruptAtTick(0)
    with parallel.use_threads(1):
        train(DATA, ALL_VIEWS, callbacks=[watch])
        # Validation of each refresh, the cost of frequent labels, clusters, choices.
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

    from lightdxml.training.fit import CheckpointOptions, prepare
    from lightdxml.training.fit import train as train_prepared

    options = CheckpointOptions(tmp_path, every=0)
    train_prepared(prepare(*DATA, SHORT), SHORT, checkpoint=options, callbacks=[Watch()])
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
    with pytest.raises(ValueError, match="holds the checkpoint of a training: resume it"):
        LightDXML(options=settings).fit(X, Y, checkpoint=tmp_path)
    for changes in ({"random_state": 1}, {"epochs": 2}, {"blend.beta": 0.5}):
        with pytest.raises(ValueError, match="belongs to other data or settings"):
            LightDXML(options=settings | changes).fit(X, Y, checkpoint=tmp_path, resume=True)
    with pytest.raises(ValueError, match="belongs to other data or settings"):
        LightDXML(options=settings).fit(X[1:], Y[1:], checkpoint=tmp_path, resume=True)
    other = X.copy()
    other.data[0] += 1
    with pytest.raises(ValueError, match="belongs to other data or settings"):
        LightDXML(options=settings).fit(other, Y, checkpoint=tmp_path, resume=True)


def test_a_spill_directory_changes_no_bits_and_resumes(tmp_path: Path, expected: dict[str, Any]) -> None:
    for phase in ("classifier", "shortlist", "label tree"):
        folder, spill = tmp_path / phase, tmp_path / "spill"
        with pytest.raises(Interrupted):
            train(DATA, ALL_VIEWS, folder, [InterruptAt(1, phase)], spill=spill)
        model, history = train(DATA, ALL_VIEWS, folder, spill=spill)
        assert bits(model) | {"phases": phases(history)} == expected
        assert not list(spill.iterdir())


# Forged checkpoints.

Forgery = Callable[[dict[str, Any], dict[str, NDArray[Any]]], object]


@pytest.fixture(scope="module")
def in_epoch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint within an epoch of the classifier."""
    folder = tmp_path_factory.mktemp("epoch") / "checkpoint"
    assert interrupt(folder, SHORT, 7, "classifier")
    return folder


@pytest.fixture(scope="module")
def in_trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with finished and unfinished steps after the cycle."""
    folder = tmp_path_factory.mktemp("trees") / "checkpoint"
    with parallel.use_threads(1):
        assert interrupt(folder, ALL_VIEWS, 4, "label tree")
    return folder


def forge(source: Path, folder: Path, change: Forgery) -> None:
    """Copy a folder of checkpoints, and change the last one as its author could have: with its checksum."""
    shutil.copytree(source, folder)
    place = max(folder.glob("0*"))
    facts = json.loads((place / "state.json").read_text())
    arrays = {key: np.array(array) for key, array in stored.read(place / "arrays.safetensors").items()}
    change(facts, arrays)
    stored.write(place / "arrays.safetensors", arrays)
    facts["sha256"] = sha256(place / "arrays.safetensors")
    (place / "state.json").write_text(json.dumps(facts))


def last(name: str, value: float) -> Forgery:
    """Change the last number of an array."""
    return lambda facts, arrays: arrays[name].flat.__setitem__(-1, value)


def fact(**changes: Any) -> Forgery:
    return lambda facts, arrays: facts.update(changes)


def best(**changes: Any) -> Forgery:
    return lambda facts, arrays: facts["best"].update(changes)


def array(name: str, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Forgery:
    return lambda facts, arrays: arrays.update({name: change(arrays[name])})


def without(name: str) -> Forgery:
    return lambda facts, arrays: [part.pop(name, None) for part in (facts, arrays)]


FORGED: dict[str, Forgery] = {
    "a label in the shortlists": last("shortlists", 10_000),
    "a document in the order": last("order", 10_000),
    "a document twice": last("order", 0),
    "a label in the index": last("best.nearness.labels", 10_000),
    "wide shortlists": array("shortlists", lambda a: np.tile(a, (1, 400))),
    "narrow shortlists": array("shortlists", lambda a: a[:, 1:].copy()),
    "no shortlists": array("shortlists", lambda a: np.empty((0, 0), np.int32)),
    "no rows": array("shortlists", lambda a: a[:0]),
    "no order": array("order", lambda a: a[:0]),
    "order in float": array("order", lambda a: a.astype(np.float32)),
    "a single weight": array("W", lambda a: a[:1, :1].copy()),
    "weights of 16 bits": array("W", lambda a: a.astype(np.float16)),
    "means of another type": array("W_mean", lambda a: a.astype(np.int32)),
    "NaN": last("vectors", np.nan),
    "NaN in the best model": last("best.classifier.W", np.nan),
    "no weights": without("W"),
    "no best model": without("best"),
    "no index": without("best.nearness.labels"),
    "few word vectors": array("best.encoder.vectors", lambda a: a[:1]),
    "more labels": array("best.classifier.W", lambda a: np.tile(a, (2, 1))),
    "another index": lambda facts, arrays: facts["best"]["nearness"].update(index="zzz"),
    "an index without its codes": lambda facts, arrays: facts["best"]["nearness"].update(index="rabitq"),
    "other shortlists": lambda facts, arrays: facts["best"]["nearness"].update(shortlist_size=3),
    "another encoder": lambda facts, arrays: facts["best"]["nearness"].update(relu=True),
    "a best model of int8": array("best.encoder.vectors", lambda a: np.zeros((len(a), a.shape[1] + 4), dtype=np.int8)),
    "a beta of text": best(beta="1"),
    "an accuracy of NaN": best(accuracy=float("nan")),
    "a latest that is neither": best(is_latest=1),
    "a step beyond": fact(step=99),
    "a step before": fact(step=-2),
    "another step": fact(step=0),
    "a batch beyond": fact(batch=999),
    "a batch before": fact(batch=-3),
    "a batch in float": fact(batch=1.0),
    "an infinite loss": fact(loss=float("-inf")),
    "too many steps": fact(label_encoder_steps=10**400),
    "other refreshes": fact(refreshes=7),
    "another generator": fact(rng={"bit_generator": "MT19937"}),
    "no generator": fact(rng=None),
    "a history of another form": fact(history=5),
    "a history without phases": fact(history=[{}]),
    "another stage": fact(stage="finalize"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_checkpoint_of_the_cycle_is_refused_in_one_sentence(in_epoch: Path, tmp_path: Path, name: str) -> None:
    """Some of these once led compiled code out of bounds."""
    forge(in_epoch, tmp_path / "forged", FORGED[name])
    with pytest.raises(ValueError, match=r"the checkpoints in .* are damaged \(.*\): remove it and start") as refused:
        train(DATA, SHORT, tmp_path / "forged")
    assert "\n" not in str(refused.value)
    assert list((tmp_path / "forged").glob("0*")), "nothing is removed"


FINAL, CLUSTERS = "product.linear view: final round.", "product.label tree: tree 1, clusters.clusters"
HARD = "product.linear view: hard negatives.labels"
FORGED_PRODUCTS: dict[str, Forgery] = {
    "weights of a label that does not exist": last(f"{FINAL}classes", 10_000),
    "weights of label -1": last(f"{FINAL}classes", -1),
    "weights of a feature that does not exist": last(f"{FINAL}columns", 10_000),
    "weights of a negative feature": last(f"{FINAL}columns", -1),
    "counts beyond the weights": last(f"{FINAL}counts", 10**9),
    "negative counts": array(f"{FINAL}counts", lambda a: -a),
    "weights of NaN": last(f"{FINAL}weights", np.nan),
    "fewer biases": array(f"{FINAL}biases", lambda a: a[:-1]),
    "weights of another type": array(f"{FINAL}weights", lambda a: a.astype(np.float16)),
    "no axis": array(f"{FINAL}classes", lambda a: np.array(3, dtype=np.int32)),
    "hard negatives that do not exist": last(HARD, 10_000),
    "hard negatives below -1": last(HARD, -5),
    "fewer hard negatives": array(HARD, lambda a: a[:-1]),
    "a cluster that does not exist": array(CLUSTERS, lambda a: np.where(a >= 0, 99, a).astype(np.int32)),
    "a negative cluster": array(CLUSTERS, lambda a: np.where(a >= 0, -2, a).astype(np.int32)),
    "clusters of fewer labels": array(CLUSTERS, lambda a: a[:-1]),
    "another product": lambda facts, arrays: facts["products"].update({"linear view: final round": []}),
}


def part_of_a_level(facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Change the classes of a part of an unfinished step."""
    name = next(name for name in arrays if name.startswith("product.label tree") and "/" in name and "classes" in name)
    arrays[name] = arrays[name] + np.int32(1000)


@pytest.mark.parametrize("name", [*FORGED_PRODUCTS, "classes of a part"])
def test_forged_products_of_steps_are_refused_in_one_sentence(in_trees: Path, tmp_path: Path, name: str) -> None:
    forge(in_trees, tmp_path / "forged", FORGED_PRODUCTS.get(name, part_of_a_level))
    with pytest.raises(ValueError, match=r"checkpoint.* damaged .*: remove .* and start again") as refused:
        train(DATA, ALL_VIEWS, tmp_path / "forged")
    assert "\n" not in str(refused.value)
    assert list((tmp_path / "forged").glob("0*")), "nothing is removed"


FORGED_RESULTS: dict[str, Forgery] = {
    "products of another form": fact(products=5),
    "names of another form": lambda facts, arrays: facts["products"].update({"linear view: final round": 5}),
    "arrays that are missing": lambda facts, arrays: facts["products"].update({"linear view: final round": ["zzz"]}),
    "a label in the shortlists": last("shortlists", 10_000),
    "no shortlists": without("shortlists"),
    "a beta beyond 1": fact(beta=1.5),
    "layers of other sizes": array("layer0", lambda a: a[:1]),
    "NaN in a layer": last("layer1", np.nan),
    "a label in the index": last("dense.nearness.labels", 10_000),
    "another stage": fact(stage="cycle"),
    "no stage": without("stage"),
}


@pytest.mark.parametrize("name", FORGED_RESULTS)
def test_a_forged_result_of_the_cycle_is_refused_in_one_sentence(in_trees: Path, tmp_path: Path, name: str) -> None:
    forge(in_trees, tmp_path / "forged", FORGED_RESULTS[name])
    with pytest.raises(ValueError, match=r"the checkpoints in .* are damaged \(.*\): remove it and start") as refused:
        train(DATA, ALL_VIEWS, tmp_path / "forged")
    assert "\n" not in str(refused.value)


def test_a_forged_checkpoint_leaves_the_one_before_it(in_epoch: Path, tmp_path: Path) -> None:
    forge(in_epoch, tmp_path / "forged", lambda facts, arrays: None)
    good = max((tmp_path / "forged").glob("0*"))
    forge(tmp_path / "forged", tmp_path / "again", FORGED["another index"])
    max((tmp_path / "again").glob("0*")).rename(tmp_path / "forged" / "00000099")
    assert good.exists()
    assert bits(train(DATA, SHORT, tmp_path / "forged")[0]) == bits(train(DATA, SHORT)[0])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", ["state.json", "arrays.safetensors", "lock"])
def test_a_pipe_in_place_of_a_file_is_not_read(in_epoch: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(in_epoch, tmp_path / "piped")
    folder = tmp_path / "piped"
    path = folder / "lock" if name == "lock" else max(folder.glob("0*")) / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with pytest.raises(ValueError, match=r"not a file|are damaged"):
        train(DATA, SHORT, folder)


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
    from lightdxml.training.fit import fingerprint, prepare

    X, Y = DATA
    wider = csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], X.shape[1] + 5))
    data = [prepare(*part, SHORT).take() for part in ((X, Y), (wider, Y), (X[:-1], Y[:-1]))]
    marks = [fingerprint(SHORT, one, None) for one in data]
    marks.append(fingerprint(small(epochs=3), data[0], None))
    marks.append(fingerprint(SHORT, data[0], np.zeros((X.shape[1], 16), dtype=np.float32)))
    monkeypatch.setattr("lightdxml.__version__", "9.9")
    marks.append(fingerprint(SHORT, data[0], None))
    assert len(set(marks)) == len(marks)
