"""Small trainings, and how they are interrupted and compared."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scipy.sparse import csr_matrix

from lightdxml.config import Config
from lightdxml.model.model import Model
from lightdxml.training.callbacks import Callback, Interrupted
from lightdxml.training.fit import CheckpointOptions, prepare
from lightdxml.training.fit import train as train_prepared
from lightdxml.training.run import Phase, Run

History = list[dict[str, Any]]


class InterruptAt(Callback):
    """Sends a signal when the training reports progress for the n-th time in phases whose names start so.

    Attributes
    ----------
    seen
        The number of reports so far.
    """

    def __init__(self, n: int, prefix: str = "", number: int = signal.SIGINT) -> None:
        self.n, self.prefix, self.number = n, prefix, number
        self.seen = 0

    def on_progress(self, run: Run, phase: Phase, amount: int) -> None:
        """Count, and send the signal."""
        if phase.name.startswith(self.prefix):
            self.seen += 1
            if self.seen == self.n:
                signal.raise_signal(self.number)


class InterruptAtTick(Callback):
    """Sends a signal at the n-th moment within long computations at which a training can be stopped."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.seen = 0

    def on_tick(self, run: Run) -> None:
        """Count, and send the signal."""
        self.seen += 1
        if self.seen == self.n:
            signal.raise_signal(signal.SIGINT)


def train(
    data: tuple[csr_matrix, csr_matrix],
    config: Config,
    checkpoint: Path | None = None,
    callbacks: Sequence[Callback] = (),
    dev: tuple[csr_matrix, csr_matrix] | None = None,
    vectors: Any = None,
    **options: Any,
) -> tuple[Model, History]:
    """Train; with a folder for checkpoints the training is resumed if it holds one."""
    keep = None if checkpoint is None else CheckpointOptions(checkpoint, every=1e9, resume=True)
    prepared = prepare(*data, config, dev, vectors)
    return train_prepared(prepared, config, checkpoint=keep, callbacks=callbacks, **options)


def interrupt(
    folder: Path,
    data: tuple[csr_matrix, csr_matrix],
    config: Config,
    at: int,
    prefix: str = "",
    number: int = signal.SIGINT,
) -> bool:
    """Train with checkpoints, and send a signal as `InterruptAt` does; return whether the training was stopped."""
    try:
        train(data, config, folder, [InterruptAt(at, prefix, number)])
    except Interrupted as interrupted:
        assert interrupted.signal == number
        assert interrupted.folder == folder
        return True
    return False


def bits(model: Model) -> dict[str, Any]:
    """Return everything that a training decides, comparable with ==."""
    arrays = {name: array for view in model.views.values() for name, array in view.arrays().items()}
    content: dict[str, Any] = {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}
    facts = {name: view.facts() for name, view in model.views.items()}
    return content | {"facts": facts, "blend": model.blend, "tail": model.shift, "metrics": model.metrics}


def phases(history: History) -> list[str]:
    """Return the names of all phases, sorted: after an interruption choices are made again, and come later."""
    return sorted(entry["phase"] for entry in history)
