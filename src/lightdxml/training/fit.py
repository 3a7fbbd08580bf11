"""From a user's matrices to the cycle: checks, and validation documents set aside."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.config import Config
from lightdxml.model import check_features, whole_matrix
from lightdxml.progress import Progress
from lightdxml.training import cycle, memory
from lightdxml.training.checkpoint import FolderKeeper, fingerprint
from lightdxml.training.scratch import scratch_in

_MOST_VALIDATION = 5000
_FEWEST_TO_SPLIT = 20
_WORTH_SAYING = 1.0


@dataclass(frozen=True)
class Checkpoint:
    """Where a training keeps what it needs to go on, every how many seconds, and whether to go on from there."""

    folder: Path
    every: float = 300.0
    resume: bool = False

    def __post_init__(self) -> None:
        if not self.every >= 0:
            raise ValueError(f"every is {self.every!r}: it must be a number of seconds from 0")


def fit(
    X: Any,
    Y: Any,
    config: Config,
    dev: tuple[Any, Any] | None = None,
    progress: Progress | None = None,
    vectors: NDArray[np.float32] | None = None,
    checkpoint: Checkpoint | None = None,
    memory_limit: int | None = None,
    scratch: Path | None = None,
) -> cycle.Result:
    """Check the data, set validation documents aside unless `dev` is given, and train.

    With fewer than 20 documents, or `validation=0`, nothing is set aside: then training documents decide, which favours
    what fits them closely.
    """
    # Texts, for one, stay in memory all the while.
    others = memory.held_besides(X, Y, *(dev or ()))
    X, Y = check_features(X), check_labels(Y)
    _check_pair(X, Y, "X and Y")
    if X.shape[1] == 0:
        raise ValueError(f"X has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if Y.nnz == 0:
        raise ValueError("Y has no labels at all: at least one document must have one")
    if vectors is not None:
        vectors = np.asarray(vectors, dtype=np.float32)
        if vectors.shape != (X.shape[1], config.D):
            raise ValueError(f"vectors have shape {vectors.shape}: it must be features × D, {(X.shape[1], config.D)}")
        if not np.all(np.isfinite(vectors)):
            raise ValueError("vectors hold NaN or infinite values: every one must be a finite number")
    if dev is not None:
        X_dev, Y_dev = check_features(dev[0], X.shape[1]), check_labels(dev[1])
        _check_pair(X_dev, Y_dev, "the X and Y of dev")
        if Y_dev.shape[1] != Y.shape[1]:
            raise ValueError(f"dev has {Y_dev.shape[1]} labels and Y {Y.shape[1]}: they must agree")
        parts = X, Y, X_dev, Y_dev
    else:
        parts = _set_aside(X, Y, config)
    progress = progress or Progress(show=False)
    seconds = _compile(config, progress)
    n_dev = None if dev is None else parts[2].shape[0]
    need = _check_memory(X, Y, n_dev, config, memory_limit, scratch, others)
    said = ", ".join(f"{name} {size}" for name, size in memory.table(need))
    progress.say(f"memory that training will need: {said}")
    with ExitStack() as at_work:
        room = None if scratch is None else at_work.enter_context(scratch_in(scratch))
        if room is not None:
            parts = (room.matrix(parts[0]), *parts[1:])
        keeper = None
        if checkpoint is not None:
            mark = fingerprint(config, *parts, vectors)
            keeper = FolderKeeper(checkpoint.folder, checkpoint.every, mark, resume=checkpoint.resume)
            at_work.enter_context(keeper.at_work())
        result = cycle.train(*parts, config, progress, vectors, keeper, room)
    # Of all documents, those set aside included: what is frequent is what the user's data says.
    result.model.label_frequency = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int32)
    result.model.n_documents = Y.shape[0]
    first = {"cycle": 0, "phase": "compile", "seconds": seconds, "estimated_mb": need.total / 1e6}
    result.history.insert(0, first)
    return result


def _check_memory(
    X: csr_matrix,
    Y: csr_matrix,
    n_dev: int | None,
    config: Config,
    limit: int | None,
    scratch: Path | None,
    others: int,
) -> memory.Estimate:
    """Return what training will need, or say what to change where that is too much."""
    known = int(np.count_nonzero(np.bincount(Y.indices)))
    sizes = X.shape[0], X.shape[1], Y.shape[1], X.nnz, Y.nnz, n_dev
    if scratch is not None:
        # What lives in files the system drops and reads again as it must.
        need = memory.estimate(*sizes, config, known_labels=known)
        return memory.Estimate({**need.parts, "texts and others": others})
    return memory.check(*sizes, config, limit, known_labels=known, others=others)


def _compile(config: Config, progress: Progress) -> float:
    """Train a toy, which compiles every kernel that training needs or loads it from disk; return the seconds taken."""
    start = time.perf_counter()
    toy = csr_matrix(np.eye(2, dtype=np.float32))
    small = replace(config, D=4, k=1, batch_size=2, e_model=1, e_label=1, e_hat_label=1)
    cycle.train(toy, toy, toy, toy, small, Progress(show=False))
    seconds = time.perf_counter() - start
    if seconds > _WORTH_SAYING:
        progress.say(f"kernels compiled in {seconds:.1f} s; next time they are loaded from disk")
    return seconds


def check_labels(Y: Any) -> csr_matrix:
    """Return labels as CSR float32 of ones with sorted int32 columns, or say what is wrong with them."""
    Y = whole_matrix(Y, "Y")
    if not np.all(np.isfinite(Y.data)) or (Y.data < 0).any():
        raise ValueError("Y holds NaN, infinite or negative values: labels are 0 or 1")
    Y.sum_duplicates()
    Y.eliminate_zeros()
    Y.data[:] = 1
    Y.indices = Y.indices.astype(np.int32, copy=False)
    return Y


def _check_pair(X: csr_matrix, Y: csr_matrix, what: str) -> None:
    if X.shape[0] != Y.shape[0]:
        raise ValueError(f"{what} have {X.shape[0]} and {Y.shape[0]} rows: there must be one of each a document")
    if X.shape[0] == 0:
        raise ValueError(f"{what} have no rows: there is nothing to learn from")


def _set_aside(X: csr_matrix, Y: csr_matrix, config: Config) -> tuple[csr_matrix, csr_matrix, csr_matrix, csr_matrix]:
    n = X.shape[0]
    size = min(round(config.validation * n), _MOST_VALIDATION)
    if n < _FEWEST_TO_SPLIT or size == 0:
        return X, Y, X, Y
    order = np.random.default_rng(config.seed).permutation(n)
    held, kept = np.sort(order[:size]), np.sort(order[size:])
    if Y[kept].nnz == 0:
        return X, Y, X, Y
    return X[kept], Y[kept], X[held], Y[held]
