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
from lightdxml.shortlist import check_kind
from lightdxml.training import cycle, memory
from lightdxml.training.checkpoint import FolderKeeper, fingerprint
from lightdxml.training.plan import validation_size
from lightdxml.persistence.spill import Scratch, scratch_in

_WORTH_SAYING = 1.0


@dataclass(frozen=True)
class Checkpoint:
    """Where a training keeps what it needs to go on, every how many seconds, and whether to go on from there."""

    folder: Path
    every: float = 300.0
    resume: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.every, bool) or not isinstance(self.every, int | float) or not self.every >= 0:
            raise ValueError(f"checkpoint_every is {self.every!r}: it must be a number of seconds from 0")


Parts = tuple[csr_matrix, csr_matrix, csr_matrix, csr_matrix]


@dataclass
class Prepared:
    """Data that was checked and parted.

    Attributes
    ----------
    parts
        X and Y to train on and to validate on; None once a training has taken them over.
    vectors
        Word vectors to begin with, or None.
    label_frequency, n_documents
        Of all documents, those set aside included: what is frequent is what the user's data says.
    sizes
        How large the data is.
    set_aside
        Whether the validation documents are of the user's training documents.
    held, given
        What this process held before, and the matrices' bytes in that which the estimate counts.
    """

    parts: Parts | None
    vectors: NDArray[np.float32] | None
    label_frequency: NDArray[np.int32]
    n_documents: int
    sizes: memory.Sizes
    set_aside: bool
    held: int
    given: int

    def take(self) -> Parts:
        """Return the matrices, which are no longer held here: memory is short."""
        parts, self.parts = self.parts, None
        assert parts is not None
        return parts


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
    prepared = prepare(X, Y, config, dev, vectors)
    return train(prepared, config, progress, checkpoint, memory_limit, scratch)


def prepare(
    X: Any,
    Y: Any,
    config: Config,
    dev: tuple[Any, Any] | None = None,
    vectors: NDArray[np.float32] | None = None,
    *,
    given_stays: bool = True,
) -> Prepared:
    """Check the data and set validation documents aside unless `dev` is given.

    `given_stays` says whether the caller keeps X and Y, which then count among what training needs.
    """
    held, given = memory.resident_memory() or 0, (X, Y, *(dev or ()))
    X, Y = _check_matrices(X, Y)
    parts = set_aside(X, Y, config) if dev is None else (X, Y, *_check_dev(dev, X, Y))
    frequency = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int32)
    sizes = memory.Sizes(
        X.shape[0], X.shape[1], Y.shape[1], X.nnz, Y.nnz,
        validation=None if dev is None else parts[2].shape[0],
        known=int(np.count_nonzero(frequency)),
        given_stays=given_stays,
    )  # fmt: skip
    counted = (X, Y, *(parts[2:] if dev is not None else ()))
    return Prepared(
        parts=parts,
        vectors=_check_vectors(vectors, (X.shape[1], config.D)),
        label_frequency=frequency,
        n_documents=Y.shape[0],
        sizes=sizes,
        set_aside=parts[2] is not X and dev is None,
        held=held,
        given=memory.counted_of(given, counted),
    )


def _check_matrices(X: Any, Y: Any) -> tuple[csr_matrix, csr_matrix]:
    X, Y = check_features(X), check_labels(Y)
    _check_pair(X, Y, "X and Y")
    if X.shape[1] == 0:
        raise ValueError(f"X has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if Y.nnz == 0:
        raise ValueError("Y has no labels at all: at least one document must have one")
    return X, Y


def _check_dev(dev: tuple[Any, Any], X: csr_matrix, Y: csr_matrix) -> tuple[csr_matrix, csr_matrix]:
    X_dev, Y_dev = check_features(dev[0], X.shape[1]), check_labels(dev[1])
    _check_pair(X_dev, Y_dev, "the X and Y of dev")
    if Y_dev.shape[1] != Y.shape[1]:
        raise ValueError(f"dev has {Y_dev.shape[1]} labels and Y {Y.shape[1]}: they must agree")
    return X_dev, Y_dev


def _check_vectors(vectors: Any, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    if vectors is None:
        return None
    checked = np.asarray(vectors, dtype=np.float32)
    if checked.shape != shape:
        raise ValueError(f"vectors have shape {checked.shape}: it must be features × D, {shape}")
    if not np.all(np.isfinite(checked)):
        raise ValueError("vectors hold NaN or infinite values: every one must be a finite number")
    return checked


def train(
    prepared: Prepared,
    config: Config,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    memory_limit: int | None = None,
    scratch: Path | None = None,
) -> cycle.Result:
    """Train on prepared data, which is taken over; a training that diverges tells its best model as complete."""
    progress = progress or Progress(show=False)
    before = memory.resident_memory() or 0
    seconds = _compile(config, progress)
    loaded = max(0, (memory.resident_memory() or 0) - before)
    sizes = replace(prepared.sizes, scratch=scratch is not None)
    others = memory.held_besides(prepared.held + loaded, prepared.given)
    check_kind(config.index, config.D)
    need = memory.check(sizes, config, memory_limit, others=others)
    said = ", ".join(f"{name} {size}" for name, size in memory.table(need))
    progress.say(f"memory that training will need: {said}")
    first = {"cycle": 0, "phase": "compile", "seconds": seconds, "estimated_mb": need.total / 1e6}
    try:
        result = _train(prepared, config, progress, checkpoint, scratch)
    except cycle.DivergedError as error:
        if error.kept is not None:
            _complete(error.kept, prepared, first)
        raise
    _complete(result, prepared, first)
    return result


def _train(
    prepared: Prepared, config: Config, progress: Progress, checkpoint: Checkpoint | None, scratch: Path | None
) -> cycle.Result:
    """Train, with files for features and a folder for checkpoints where they are wanted."""
    parts = prepared.take()
    with ExitStack() as at_work:
        room = None if scratch is None else at_work.enter_context(scratch_in(scratch))
        if room is not None:
            parts = _moved(parts, room)
        keeper = None
        if checkpoint is not None:
            mark = fingerprint(config, *parts, prepared.vectors)
            keeper = FolderKeeper(checkpoint.folder, checkpoint.every, mark, resume=checkpoint.resume)
            at_work.enter_context(keeper.at_work())
        return cycle.train(*parts, config, progress, prepared.vectors, keeper, room, set_aside=prepared.set_aside)


def _moved(parts: Parts, room: Scratch) -> Parts:
    """Return the same matrices, the features to train on in files."""
    X, Y, X_validation, Y_validation = parts
    moved = room.matrix(X)
    return moved, Y, moved if X_validation is X else X_validation, Y_validation


def _complete(result: cycle.Result, prepared: Prepared, first: dict[str, Any]) -> None:
    """Tell a model of the documents that were set aside, and its history how it began."""
    result.model.label_frequency, result.model.n_documents = prepared.label_frequency, prepared.n_documents
    result.history.insert(0, first)


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


def set_aside(X: csr_matrix, Y: csr_matrix, config: Config) -> tuple[csr_matrix, csr_matrix, csr_matrix, csr_matrix]:
    """Return X and Y to train on, and X and Y to validate on: all of it for both where it is too little to share."""
    n = X.shape[0]
    size = validation_size(n, config)
    if size == 0:
        return X, Y, X, Y
    order = np.random.default_rng(config.seed).permutation(n)
    held, kept = np.sort(order[:size]), np.sort(order[size:])
    if Y[kept].nnz == 0:
        return X, Y, X, Y
    return X[kept], Y[kept], X[held], Y[held]
