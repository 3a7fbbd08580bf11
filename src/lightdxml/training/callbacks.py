"""What watches a training run: progress bars, the history, divergence checks and checkpoints.

Callbacks see every phase of a run. They train nothing, but they may stop it by an exception.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.persistence.checkpoint import CheckpointFolder
from lightdxml.progress import Progress, peak_memory

if TYPE_CHECKING:
    from lightdxml.model.model import Model
    from lightdxml.text.tfidf import Vectorizer
    from lightdxml.training.run import Phase, Run

# No weight of a sound model comes near it. Checked every so many batches: a check takes as long as a small batch.
_MAX_WEIGHT, _CHECK_EVERY = 1e3, 100
# Word vectors with larger numbers are a cause of divergence themselves.
_LARGE_VECTORS = 100.0


class Callback:
    """Hooks of a run; each does nothing unless it is overridden."""

    def on_vectorizer(self, vectorizer: Vectorizer) -> None:
        """See how texts become features, before the training run begins."""

    def on_begin(self, run: Run) -> None:
        """See the start of a training run; steps whose products are put into `run.products` are not computed."""

    def on_phase_begin(self, run: Run, phase: Phase) -> None:
        """See a phase begin."""

    def on_progress(self, run: Run, phase: Phase, amount: int) -> None:
        """See a phase advance by so many items."""

    def on_phase_end(self, run: Run, phase: Phase) -> None:
        """See a phase end, completed or not."""

    def on_step_begin(self, run: Run) -> None:
        """See a step of the cycle begin."""

    def on_batch_end(self, run: Run) -> None:
        """See the end of a batch that is not the last one of its epoch."""

    def on_step_end(self, run: Run) -> None:
        """See a step of the cycle end."""

    def on_tick(self, run: Run) -> None:
        """See a moment within a long computation at which the training can be stopped."""

    def on_vectors(self, run: Run, name: str, vectors: NDArray[np.float32]) -> None:
        """See vectors that were just computed."""

    def on_message(self, run: Run, message: str) -> None:
        """Take a message for people."""

    def on_model(self, run: Run, model: Model) -> None:
        """See the model when all is chosen, before it learns held-out documents."""

    def on_end(self, run: Run, model: Model) -> None:
        """See the end of a training run, and the model."""


class ProgressBars(Callback):
    """Shows a bar per phase that has a title."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._bar: Any = None
        self._context: Any = None

    def on_phase_begin(self, run: Run, phase: Phase) -> None:
        """Open a bar."""
        if phase.title:
            self._context = self.progress.phase(phase.title, phase.total)
            self._bar = self._context.__enter__()

    def on_progress(self, run: Run, phase: Phase, amount: int) -> None:
        """Advance the bar; figures that are numbers stand beside it."""
        if self._bar is not None:
            shown = {name: value for name, value in phase.figures.items() if isinstance(value, float)}
            self._bar.advance(amount, **shown)

    def on_phase_end(self, run: Run, phase: Phase) -> None:
        """Close the bar."""
        if self._context is not None:
            self._context.__exit__(*((None, None, None) if phase.completed else sys.exc_info()))
            self._bar = self._context = None

    def on_message(self, run: Run, message: str) -> None:
        """Show a line."""
        self.progress.say(message)


class HistoryLog(Callback):
    """Appends an entry to the history for each phase that is completed: time, memory and figures."""

    def on_phase_end(self, run: Run, phase: Phase) -> None:
        """Append an entry."""
        if phase.completed:
            seconds = time.perf_counter() - phase.started
            refresh = run.cycle.refreshes if run.cycle is not None else 0
            entry = {"refresh": refresh, "phase": phase.name, "seconds": seconds, **peak_memory()}
            run.history.append({**entry, **phase.figures})


class Diverged(Exception):  # noqa: N818 - a message to `fit`, which raises the error that users see
    """The numbers of a training run grow without bounds: where, and what to change."""

    def __init__(self, where: str, advice: str) -> None:
        super().__init__(where)
        self.where, self.advice = where, advice


class DivergedError(ValueError):
    """Training diverged; `kept` is the best model until then, None if there was none yet, with its history."""

    def __init__(self, message: str, kept: Model | None, history: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.kept = kept
        self.history = history


class DivergenceCheck(Callback):
    """Stops a training run whose numbers grow without bounds; its best model is kept.

    Parameters
    ----------
    vectors
        The word vectors that were given, or None.
    """

    def __init__(self, vectors: NDArray[np.float32] | None) -> None:
        self._given = 0.0 if vectors is None else _largest(vectors)

    def on_progress(self, run: Run, phase: Phase, amount: int) -> None:
        """Check the loss, and now and then the weights."""
        if phase.name in ("classifier", "label encoder") and "loss" in phase.figures:
            where = "the label encoder" if phase.name == "label encoder" else f"epoch {phase.figures['epoch'] + 1}"
            self._check(run, where, phase.figures["loss"], np.inf)
            if phase.name == "classifier":
                self._check_weights(run, where)

    def _check_weights(self, run: Run, where: str) -> None:
        state = run.cycle
        assert state is not None
        at_end = state.batch * run.config.dense.batch_size >= run.data.X.shape[0]
        if not at_end and state.batch % _CHECK_EVERY:
            return
        encoder = state.encoder.encoder
        layer = () if encoder.residual is None else (encoder.residual.R, encoder.residual.bias)
        largest = [state.training.largest_weight(), *map(_largest, (encoder.vectors, *layer))]
        for value in largest:
            self._check(run, where, value, _MAX_WEIGHT * max(1.0, self._given))

    def on_vectors(self, run: Run, name: str, vectors: NDArray[np.float32]) -> None:
        """Check that float32 can hold squared distances."""
        bound = 0.1 * float(np.sqrt(np.finfo(np.float32).max / run.config.dense.dim))
        self._check(run, name, _largest(vectors), bound)

    def _check(self, run: Run, where: str, value: float, bound: float) -> None:
        if not value < bound:
            raise Diverged(where, self._advice(run, where))

    def _advice(self, run: Run, where: str) -> str:
        options = run.config.dense
        if self._given > _LARGE_VECTORS:
            return f"the given word vectors are as large as {self._given:.2g}, so give vectors of length about 1"
        if where == "the label encoder":
            return f"lower dense.label_learning_rate (it is {options.label_learning_rate:g})"
        weight = f"dense.random_weight ({options.random_weight:g})"
        return f"lower learning_rate (it is {options.learning_rate:g}) or {weight}"


def _largest(weights: NDArray[np.float32]) -> float:
    """Return the largest absolute value without a copy of the array; NaN if there is one."""
    return float(np.maximum(weights.max(initial=0), -weights.min(initial=0)))


class Interrupted(KeyboardInterrupt):
    """A training was asked to stop, and stopped; `signal` asked for it, `folder` holds the checkpoint."""

    def __init__(self, number: int, folder: Path) -> None:
        super().__init__(f"training was stopped; fit with checkpoint={str(folder)!r}, resume=True continues it")
        self.signal = number
        self.folder = folder


class Checkpointer(Callback):
    """Writes checkpoints, and stops a training run on Ctrl-C or SIGTERM where it can be resumed.

    Parameters
    ----------
    folder
        Where checkpoints go.
    every
        Seconds between two of them.
    """

    def __init__(self, folder: CheckpointFolder, every: float) -> None:
        self.folder, self.every = folder, every
        self._signal: int | None = None
        self._last = time.monotonic()
        self._rewind: tuple[Any, int] | None = None

    def maybe_save(self, run: Run) -> None:
        """Save and stop if that was asked for; save if it is time."""
        if self._signal is not None:
            self.save(run)
            raise Interrupted(self._signal, self.folder.folder)
        if time.monotonic() - self._last >= self.every:
            self.save(run)

    def save(self, run: Run) -> None:
        """Write a checkpoint."""
        from lightdxml.training.snapshot import pack

        self.folder.write(*pack(run))
        self._last = time.monotonic()

    def finish(self, run: Run) -> None:
        """Write a last checkpoint: saving the model may fail."""
        # On a full disk the model, which may go to another one, is worth more than this.
        with suppress(OSError):
            self.save(run)

    def on_step_begin(self, run: Run) -> None:
        """Remember what a refresh changes before it can be checkpointed, to stop as if it had not begun."""
        state = run.cycle
        assert state is not None
        self._rewind = state.mark(), len(run.history)

    def on_batch_end(self, run: Run) -> None:
        """Save or stop between batches."""
        self.maybe_save(run)

    def on_step_end(self, run: Run) -> None:
        """Save or stop between steps of the cycle."""
        self.maybe_save(run)

    def on_progress(self, run: Run, phase: Phase, amount: int) -> None:
        """Save or stop within the steps after the cycle; stop within a refresh."""
        if run.cycle is None:
            self.maybe_save(run)
        elif phase.name != "classifier":
            self.on_tick(run)

    def on_tick(self, run: Run) -> None:
        """Stop within a refresh or within the steps after the cycle."""
        if self._signal is not None and run.cycle is None:
            self.maybe_save(run)
        elif self._signal is not None:
            self._stop_in_refresh(run)

    def _stop_in_refresh(self, run: Run) -> None:
        state = run.cycle
        assert state is not None
        assert self._rewind is not None
        assert self._signal is not None
        mark, length = self._rewind
        state.rewind(mark)
        del run.history[length:]
        self.save(run)
        raise Interrupted(self._signal, self.folder.folder)

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Let Ctrl-C and SIGTERM stop the training at the next opportunity; a second Ctrl-C stops it at once."""
        if threading.current_thread() is not threading.main_thread():
            yield  # Only the main thread may handle signals.
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        # Ignored signals stay ignored, as after nohup. Handlers of C code cannot be put back.
        before = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}

        def note(number: int, frame: FrameType | None) -> None:
            self._signal = number
            for other, handler in before.items():
                signal.signal(other, handler)

        for number in before:
            signal.signal(number, note)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
