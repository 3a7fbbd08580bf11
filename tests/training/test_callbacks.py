"""What watches a training: progress, history, divergence, and signals."""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lightdxml import LightDXML, load
from lightdxml.persistence.checkpoint import CheckpointFolder
from lightdxml.progress import Progress
from lightdxml.training.callbacks import Callback, Checkpointer, DivergedError
from lightdxml.training.run import Phase, Run
from tests.support.configs import PAPER, small
from tests.support.data import topics
from tests.support.identity import identity
from tests.support.trainings import train

# Far too large steps.
WILD = PAPER | {"learning_rate": 10.0, "dense.random_weight": 1e6, "dense.vector_rate": 10.0, "epochs": 60}


def test_callbacks_see_every_phase_begin_advance_and_end() -> None:
    seen: list[tuple[str, str]] = []

    class Watch(Callback):
        def on_phase_begin(self, run: Run, phase: Phase) -> None:
            seen.append(("begin", phase.name))

        def on_progress(self, run: Run, phase: Phase, amount: int) -> None:
            assert seen[-1] in (("begin", phase.name), ("progress", phase.name))
            seen.append(("progress", phase.name))

        def on_phase_end(self, run: Run, phase: Phase) -> None:
            assert phase.completed
            seen.append(("end", phase.name))

    _, history = train(topics(60), small(epochs=1), callbacks=[Watch()])
    ended = [name for event, name in seen if event == "end"]
    assert ended == [entry["phase"] for entry in history if entry["phase"] not in ("compile", "memory estimate")]
    assert len(ended) == sum(event == "begin" for event, _ in seen)


def test_the_history_has_times_and_can_be_written_as_json() -> None:
    _, history = train(topics(60), small(epochs=1))
    assert [entry["phase"] for entry in history[:2]] == ["compile", "memory estimate"]
    assert history[1]["estimated_mb"] > 0
    for entry in history:
        assert entry["seconds"] >= 0
        assert isinstance(entry["refresh"], int)
    json.dumps(history)


@pytest.mark.parametrize(("terminal", "end"), [(True, "100%"), (False, "linear view: labels: done in ")])
def test_progress_shows_every_phase_and_the_validation(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool, end: str
) -> None:
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    train(topics(60), small(), progress=Progress(show=True))
    shown = capfd.readouterr().err
    for words in (
        "refresh 1: label encoder, epoch 1",
        "refresh 2: classifier, epoch 3 of 6",
        "shortlists (exact)",
        "linear view: labels",
        "loss",
        "PSP@1",
        end,
        "training needs up to",
    ):
        assert words in shown


def test_a_phase_that_is_stopped_is_not_done(capfd: pytest.CaptureFixture[str]) -> None:
    class Stop(Callback):
        def on_progress(self, run: Run, phase: Phase, amount: int) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(topics(60), small(epochs=1), progress=Progress(show=True), callbacks=[Stop()])
    shown = capfd.readouterr().err
    assert ": started" in shown
    assert ": done" not in shown


def test_progress_is_silent_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    train(topics(60), small(epochs=1), progress=Progress())
    assert capfd.readouterr() == ("", "")


def test_a_training_that_diverges_is_stopped_and_its_best_model_kept(tmp_path: Path) -> None:
    X, Y = topics(120)
    wild = LightDXML(options=WILD)
    with pytest.raises(
        DivergedError, match=r"diverged in epoch \d+; the best model so far .* is kept: lower learning_rate"
    ) as e:
        wild.fit(X, Y)
    kept = e.value.kept
    assert kept is not None
    # It is complete: held-out documents count, and the measures are those of the model that ships.
    assert kept.n_documents == 120
    assert kept.label_frequency.sum() == Y.nnz
    assert f"P@1 {kept.metrics['P@1']:.2f}" in str(e.value)
    assert [e.value.history[i]["phase"] for i in (0, -1)] == ["compile", "probabilities"]
    wild.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.model_.n_documents == 120
    assert np.isfinite(again.rank(X)[1]).all()


def test_a_training_that_diverges_before_the_first_validation_keeps_nothing() -> None:
    wild = LightDXML(options=WILD, word_vectors=np.full((42, 16), 1e20, dtype=np.float32))
    with pytest.raises(DivergedError, match=r"as large as 1e\+20, so give vectors of length about 1") as e:
        wild.fit(*topics(60))
    assert e.value.kept is None
    assert not hasattr(wild, "model_")


class Grow(Callback):
    """Makes a weight large, as a training that diverges does."""

    def __init__(self, after: int, grow: Any) -> None:
        self.after, self.grow, self.batches = after, grow, 0

    def on_progress(self, run: Run, phase: Phase, amount: int) -> None:
        if phase.name == "classifier" and amount:
            self.batches += 1
            if self.batches == self.after:
                self.grow(run.cycle)


def residual_of(state: Any) -> Any:
    return state.encoder.encoder.residual


@pytest.mark.parametrize(
    "grow",
    [
        lambda state: state.classifier.W.fill(1e6),
        lambda state: state.encoder.encoder.vectors.fill(np.nan),
        lambda state: residual_of(state).bias.fill(1e6),
        lambda state: residual_of(state).R.fill(np.nan),
    ],
    ids=["classifier", "word vectors", "residual bias", "residual layer"],
)
def test_weights_that_grow_without_bounds_are_noticed(grow: Any) -> None:
    config = small(epochs=2, linear=False, dense__residual=True, dense__relu=True)
    with pytest.raises(DivergedError, match=r"diverged in epoch \d; the best model so far"):
        train(topics(120), config, callbacks=[Grow(2, grow)])


def test_weights_are_checked_within_a_long_epoch() -> None:
    config, grow = (
        small(epochs=1, linear=False, dense__batch_size=1),
        Grow(5, lambda state: state.classifier.W.fill(1e6)),
    )
    with pytest.raises(DivergedError, match="diverged in epoch 1"):
        train(topics(260), config, callbacks=[grow])
    assert grow.batches < 110


def test_a_label_encoder_that_diverges_is_named() -> None:
    class Break(Callback):
        def on_vectors(self, run: Run, name: str, vectors: NDArray[np.float32]) -> None:
            if run.cycle is not None and run.cycle.refreshes == 2:
                run.cycle.label_encoder.layers[0][:] = 1e30

    with pytest.raises(DivergedError, match=r"diverged in the label encoder; .*: lower dense\.label_learning_rate"):
        train(topics(60), small(linear=False), callbacks=[Break()])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
@pytest.mark.parametrize("before", [signal.SIG_IGN, None], ids=["ignored", "handled in C"])
def test_signals_that_are_ignored_or_handled_elsewhere_stay_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: Any
) -> None:
    """After nohup, or in the background of a script, Ctrl-C is not for us."""
    assert threading.current_thread() is threading.main_thread()
    usual = signal.getsignal
    monkeypatch.setattr(signal, "getsignal", lambda number: before if number == signal.SIGINT else usual(number))
    interrupt, terminate = usual(signal.SIGINT), usual(signal.SIGTERM)
    with Checkpointer(CheckpointFolder(tmp_path, identity()), 1e9).signals():
        assert usual(signal.SIGINT) is interrupt
        assert usual(signal.SIGTERM) is not terminate
    assert usual(signal.SIGTERM) is terminate


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    checkpointer = Checkpointer(CheckpointFolder(tmp_path, identity()), 1e9)
    with checkpointer.signals():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_outside_the_main_thread_signals_are_left_alone(tmp_path: Path) -> None:
    handlers = []

    def work() -> None:
        with Checkpointer(CheckpointFolder(tmp_path, identity()), 1e9).signals():
            handlers.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [before]
