"""From checked matrices to a model: memory check, compilation, the cycle, and what comes after it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.config import Config, resolved, walk
from lightdxml.executor import Executor, Threads, WorkersLostError
from lightdxml.kernels import blas
from lightdxml.model.model import Model
from lightdxml.persistence.checkpoint import CheckpointFolder, Identity, is_in, locked
from lightdxml.persistence.spill import FEATURES, spill_directory
from lightdxml.progress import History, Progress
from lightdxml.resources import estimate
from lightdxml.resources.machine import machine
from lightdxml.training import cycle, state
from lightdxml.training.callbacks import (
    Callback,
    Checkpointer,
    Diverged,
    DivergedError,
    DivergenceCheck,
    HistoryLog,
    ProgressBars,
)
from lightdxml.training.choose import CHOICES
from lightdxml.training.compilation import compile_kernels
from lightdxml.training.finalize import dense_model, finalize
from lightdxml.training.run import Run, TrainingData
from lightdxml.training.snapshot import unpack
from lightdxml.validation import check_dev, check_features, check_labels, check_trainable, check_vectors, split_rows
from lightdxml.views.names.forms import NameForms

# The content of a snapshot; a higher number, and earlier checkpoints are refused.
_SNAPSHOT = 7
# How often processes of a cluster may be lost before training gives up.
_MAX_LOSSES = 10
# Seconds before training goes on after a loss, twice as many after each further one up to a minute: memory that is full
# needs time to become free.
_PAUSE, _LONGEST_PAUSE = 1.0, 60.0


@dataclass(frozen=True)
class CheckpointOptions:
    """Where checkpoints go, the seconds between two of them, and whether and where to resume from the last one.

    `settings` are further ones, by name, on which the data depend: how texts became features.
    """

    folder: Path
    every: float = 300.0
    resume: bool = False
    allow_different_machine: bool = False
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.every, bool) or not isinstance(self.every, int | float) or not self.every >= 0:
            raise ValueError(f"checkpoint_every is {self.every!r}: it must be a number of seconds from 0")


@dataclass
class Prepared:
    """Checked data, split into training and validation documents.

    Attributes
    ----------
    data
        The documents; None once a training run has taken them over, to release memory.
    vectors
        Word vectors to start from, or None.
    rows
        The documents to train on, and those that are held out; None if none are.
    """

    data: TrainingData | None
    vectors: NDArray[np.float32] | None
    rows: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def take(self) -> TrainingData:
        """Return the data, which are no longer held here."""
        data, self.data = self.data, None
        assert data is not None
        return data


def fit(
    X: Any, Y: Any, config: Config, dev: tuple[Any, Any] | None = None, progress: Progress | None = None, **options: Any
) -> tuple[Model, list[dict[str, Any]]]:
    """Check the data and train; return the model and its history.

    Without `dev`, some documents are held out for validation. With fewer than 20 documents, or `validation_fraction`
    0, training documents choose everything, which favors overfitting.

    Parameters
    ----------
    X, Y
        Features and labels.
    config
        All settings.
    dev
        X and Y on which everything is chosen, or None.
    progress
        Where progress is shown.
    options
        As for `train`.
    """
    return train(prepare(X, Y, config, dev), config, progress, **options)


def prepare(X: Any, Y: Any, config: Config, dev: tuple[Any, Any] | None = None, vectors: Any = None) -> Prepared:
    """Check the data, and hold validation documents out unless `dev` is given."""
    X, Y = check_features(X), check_labels(Y)
    check_trainable(X, Y)
    return hold_out(X, Y, config, dev, vectors)


def hold_out(
    X: csr_matrix,
    Y: csr_matrix,
    config: Config,
    dev: tuple[Any, Any] | None = None,
    vectors: Any = None,
    names: NameForms | None = None,
    own: tuple[NDArray[np.int32], NDArray[np.int32] | None] | None = None,
    weights: NDArray[np.float32] | None = None,
) -> Prepared:
    """Hold validation documents out of checked data, unless `dev` is given.

    `own` are the labels that the documents, and those of dev, cannot have because they are these labels. `weights` are
    how much each document counts.
    """
    n_documents, n_features = X.shape
    config = resolved(config, n_documents, n_features, vectors is not None, names is not None)
    rows = split_rows(Y, config) if dev is None else None
    if dev is not None:
        parts, owns = (X, Y, *check_dev(dev, X, Y)), own or (None, None)
    elif rows is None:
        parts, owns = (X, Y, X, Y), (None, None) if own is None else (own[0], own[0])
    else:
        kept, held = rows
        parts = X[kept], Y[kept], X[held], Y[held]
        owns = (None, None) if own is None else (own[0][kept], own[0][held])
    weighted = (weights, None) if weights is None or rows is None else (weights[rows[0]], weights[rows[1]])
    data = TrainingData(*parts, rows is not None, names, *owns, *weighted)
    return Prepared(data, None if vectors is None else check_vectors(vectors, X.shape[1], config.dense.dim), rows)


def train(
    prepared: Prepared,
    config: Config,
    progress: Progress | None = None,
    checkpoint: CheckpointOptions | None = None,
    memory_limit: int | None = None,
    spill: Path | None = None,
    callbacks: Sequence[Callback] = (),
    on_compiled: Callable[[], None] = lambda: None,
    executor: Executor | None = None,
) -> tuple[Model, list[dict[str, Any]]]:
    """Train on prepared data, which are taken over; return the model and its history.

    Further `callbacks` see everything before checkpoints are written. `on_compiled` is called when all kernels are
    compiled. Work that can be divided goes to the `executor`; None for the threads of this process.
    """
    progress = progress or Progress(show=False)
    assert prepared.data is not None
    data, has_vectors = prepared.data, prepared.vectors is not None
    config = resolved(config, data.n_documents, data.X.shape[1], has_vectors, data.names is not None)
    del data
    history = History()
    with history.phase("compile"):
        compile_kernels(prepared.data, config, progress)
        on_compiled()
    with history.phase("memory estimate"):
        need = estimate.check(prepared.data, config, memory_limit, spilled=spill is not None)
    history.entries[-1]["estimated_mb"] = need.total / 1e6
    progress.say(f"training needs up to {need}")
    run = Run(prepared.take(), config, history=history.entries, machines=[machine()], executor=executor or Threads())
    run.callbacks = [ProgressBars(progress), HistoryLog(), DivergenceCheck(prepared.vectors), *callbacks]
    # Our own threads divide the work in a way that does not depend on their number.
    with blas.on_one_thread(), _watched(run, prepared.vectors, checkpoint, spill) as start_again:
        try:
            run.notify("on_begin")
            model = _train(run, start_again)
            run.notify("on_end", model)
        except Diverged as reason:
            raise _diverged_error(run, reason) from None
    return model, run.history


def _train(run: Run, start_again: Callable[[], None], losses: int = 0) -> Model:
    """Run the cycle, unless it is done or not needed, and everything after it.

    If processes of a cluster are lost, training goes on from the last checkpoint.
    """
    try:
        if run.cycle is not None:
            run.result = cycle.train(run, run.cycle)
            # Optimizer state and buffers are released: the views after the cycle need the memory.
            run.cycle = None
        return finalize(run)
    except WorkersLostError as error:
        if losses == _MAX_LOSSES:
            often = f"{error}, {losses + 1} times: look at the memory and the logs of its machines"
            raise WorkersLostError(often) from error
        run.say(f"{error}: training goes on from the last checkpoint")
    time.sleep(min(_PAUSE * 2**losses, _LONGEST_PAUSE))
    start_again()
    return _train(run, start_again, losses + 1)


@contextmanager
def _watched(
    run: Run, vectors: NDArray[np.float32] | None, checkpoint: CheckpointOptions | None, spill: Path | None
) -> Iterator[Callable[[], None]]:
    """Set up spill directory, initial state and, if there is one, the last checkpoint.

    Yields a function that goes back to the last checkpoint.
    """
    with ExitStack() as stack:
        if spill is not None:
            run.spill = stack.enter_context(spill_directory(spill))
            moved, data = run.spill.matrix(FEATURES, [run.data.X]), run.data
            validation = moved if data.X_validation is data.X else data.X_validation
            # Without what was computed from them so far.
            run.data = replace(data, X=moved, X_validation=validation, _memo={})
            del data
        if run.config.dense.enabled:
            run.cycle = state.start(run.data, run.config, vectors)
        folder = checkpointer = None
        if checkpoint is not None:
            settings = {**checkpoint.settings, **{name: value for name, _, value in walk(run.config)}}
            identity = Identity(fingerprint(run.config, run.data, vectors), settings, run.machines[0])
            stack.enter_context(locked(checkpoint.folder))
            folder = CheckpointFolder(checkpoint.folder, identity, checkpoint.allow_different_machine)
            checkpointer = Checkpointer(folder, checkpoint.every)
            run.callbacks = [*run.callbacks, checkpointer]
            _resume(run, folder, checkpoint)
            stack.enter_context(checkpointer.signals())
        yield partial(_start_again, run, vectors, folder, list(run.history))
        if checkpointer is not None:
            checkpointer.finish(run)


def _start_again(
    run: Run, vectors: NDArray[np.float32] | None, folder: CheckpointFolder | None, history: list[dict[str, Any]]
) -> None:
    """Go back to the last checkpoint or, without one, to the start of the cycle; steps after the cycle are kept."""
    run.views, run.candidates = {}, None
    if run.cycle is None:
        run.history = [entry for entry in run.history if entry["phase"] not in CHOICES]
        return
    run.cycle, run.history = state.start(run.data, run.config, vectors), list(history)
    if folder is not None:
        folder.restore(lambda facts, arrays: unpack(run, facts, arrays))


def _resume(run: Run, folder: CheckpointFolder, checkpoint: CheckpointOptions) -> None:
    if not checkpoint.resume and is_in(checkpoint.folder):
        raise ValueError(
            f"{checkpoint.folder} holds the checkpoint of a training run: resume it (--resume, resume=True), or choose"
            " another folder"
        )
    folder.restore(lambda facts, arrays: unpack(run, facts, arrays))


def _diverged_error(run: Run, reason: Diverged) -> DivergedError:
    """Return the error that says what to change, with the best model of the cycle until then."""
    best = run.cycle.best if run.cycle is not None else None
    kept = None if best is None else dense_model(run, best)
    note = "" if kept is None else f"; the best model so far (validation P@1 {kept.metrics['P@1']:.2f}) is kept"
    return DivergedError(f"training diverged in {reason.where}{note}: {reason.advice}", kept, run.history)


def fingerprint(config: Config, data: TrainingData, vectors: NDArray[np.float32] | None) -> str:
    """Return what identifies data, settings and version of a training run."""
    from lightdxml import __version__

    digest = hashlib.sha256(json.dumps([_SNAPSHOT, __version__, asdict(config)], sort_keys=True).encode())
    for matrix in (data.X, data.Y, data.X_validation, data.Y_validation):
        for array in (np.array(matrix.shape), matrix.indptr, matrix.indices, matrix.data):
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(np.ascontiguousarray(array).data)
    names = None if data.names is None else (data.names.labels, data.names.terms.indptr, data.names.terms.indices)
    weights = data.weights, data.weights_validation
    for array in (vectors, data.own, data.own_validation, *weights, *(names or ())):
        digest.update(b"none" if array is None else np.ascontiguousarray(array).data)
    return digest.hexdigest()
