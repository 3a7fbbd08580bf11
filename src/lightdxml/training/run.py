"""A training in progress: data, settings, what has been trained so far, and the callbacks that watch it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_matrix, vstack

from lightdxml.config import Config
from lightdxml.executor import Executor, Threads
from lightdxml.kernels import parallel
from lightdxml.metrics import inverse_propensity
from lightdxml.persistence.arrays import Arrays
from lightdxml.persistence.spill import ALL_FEATURES, SpillDirectory
from lightdxml.views.base import Batch, View

if TYPE_CHECKING:
    from lightdxml.model.candidates import Candidates
    from lightdxml.training.callbacks import Callback
    from lightdxml.training.state import CycleState, DenseResult
    from lightdxml.views.names.forms import NameForms

J = TypeVar("J")
S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)
class TrainingData:
    """Documents to train on and to validate on.

    Attributes
    ----------
    X, Y
        Features (canonical CSR float32, unit rows) and labels (CSR of ones) to train on.
    X_validation, Y_validation
        The same for the documents on which everything is chosen.
    held_out
        Whether the validation documents were held out of the user's training documents.
    names
        The names of labels as features; None if labels have no names.
    own, own_validation
        A label per document that it cannot have, because it is that label; -1 for none. None if there are no such
        labels.
    weights, weights_validation
        How much each document counts in the linear view and the label trees; None if all count the same.
    """

    X: csr_matrix
    Y: csr_matrix
    X_validation: csr_matrix
    Y_validation: csr_matrix
    held_out: bool = False
    names: NameForms | None = None
    own: NDArray[np.int32] | None = None
    own_validation: NDArray[np.int32] | None = None
    weights: NDArray[np.float32] | None = None
    weights_validation: NDArray[np.float32] | None = None
    _memo: dict[Any, Any] = field(default_factory=dict, repr=False)

    def memo(self, key: Any, compute: Callable[[], T]) -> T:
        """Return what `compute` returns, computed once per key."""
        if key not in self._memo:
            self._memo[key] = compute()
        value: T = self._memo[key]
        return value

    @property
    def validation_batch(self) -> Batch:
        """The validation documents, to be scored."""
        return Batch(self.X_validation, self.own_validation)

    @property
    def n_labels(self) -> int:
        """Number of labels, those without documents included."""
        return int(self.Y.shape[1])

    @cached_property
    def label_to_docs(self) -> csr_matrix:
        """The transpose of Y: the training documents of each label."""
        return csr_matrix(self.Y.T)

    @cached_property
    def label_frequency(self) -> NDArray[np.int32]:
        """Number of training documents of each label."""
        frequency: NDArray[np.int32] = np.diff(self.label_to_docs.indptr).astype(np.int32)
        return frequency

    @property
    def n_documents(self) -> int:
        """Number of documents, held-out ones included."""
        return int(self.X.shape[0] + (self.X_validation.shape[0] if self.held_out else 0))

    @cached_property
    def all_label_frequency(self) -> NDArray[np.int32]:
        """Number of documents of each label, held-out ones included."""
        held_out = self.Y_validation.indices if self.held_out else []
        return self.label_frequency + np.bincount(held_out, minlength=self.n_labels).astype(np.int32)

    @cached_property
    def known_labels(self) -> NDArray[np.int64]:
        """The labels that have training documents."""
        return np.flatnonzero(self.label_frequency)

    @cached_property
    def trained_labels(self) -> NDArray[np.int64]:
        """The labels that have training documents or a name."""
        if self.names is None:
            return self.known_labels
        return np.union1d(self.known_labels, self.names.labels).astype(np.int64)

    @cached_property
    def own_document(self) -> NDArray[np.int32] | None:
        """The training document that is each label, -1 for none; None if documents are no labels."""
        if self.own is None:
            return None
        found = np.full(self.n_labels, -1, dtype=np.int32)
        rows = np.flatnonzero(self.own >= 0)
        found[self.own[rows]] = rows
        return found

    @cached_property
    def inv_propensity(self) -> NDArray[np.float64]:
        """Inverse propensities of the labels, for PSP."""
        return inverse_propensity(self.Y)


@dataclass
class Phase:
    """A piece of work that takes time: what is shown of it and what goes into the history."""

    name: str
    title: str
    total: int
    figures: dict[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)
    completed: bool = False


@dataclass
class Run:
    """A training in progress.

    Attributes
    ----------
    cycle
        The state of Algorithm 1 while it runs; None after it, or without dense views.
    result
        What the cycle has found, when it is done; None without dense views.
    views
        The views trained so far, by name.
    products
        The results of finished steps after the cycle, by name: with `result` they are what a checkpoint holds.
    history
        What happened, one entry per phase.
    machines
        Where it takes place, and took place before it was resumed: instruction sets and versions of libraries.
    spill
        Where large arrays go; None for memory.
    candidates
        The candidates of the validation documents, scored by the views that ship before held-out documents are learned.
    executor
        Where the work that can be divided runs.
    """

    data: TrainingData
    config: Config
    callbacks: Sequence[Callback] = ()
    cycle: CycleState | None = None
    result: DenseResult | None = None
    views: dict[str, View] = field(default_factory=dict)
    products: dict[str, Arrays] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    machines: list[dict[str, str]] = field(default_factory=list)
    spill: SpillDirectory | None = None
    candidates: Candidates | None = None
    executor: Executor = field(default_factory=Threads)

    def notify(self, hook: str, *arguments: Any) -> None:
        """Call a hook of all callbacks."""
        for callback in self.callbacks:
            getattr(callback, hook)(self, *arguments)

    @contextmanager
    def phase(self, name: str, title: str = "", total: int = 1) -> Iterator[Phase]:
        """Run a phase: callbacks see its beginning, its progress and its end."""
        phase = Phase(name, title, total)
        self.notify("on_phase_begin", phase)
        try:
            yield phase
            phase.completed = True
        finally:
            self.notify("on_phase_end", phase)

    def progress(self, phase: Phase, amount: int = 0, **figures: Any) -> None:
        """Tell callbacks that a phase has advanced; they may stop the training by an exception."""
        phase.figures |= figures
        self.notify("on_progress", phase, amount)

    def tick(self) -> None:
        """Let callbacks stop the training within a long computation, by an exception."""
        self.notify("on_tick")

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an uninitialized array, in the spill directory if there is one."""
        return np.empty(shape, dtype=dtype) if self.spill is None else self.spill.array(name, shape, dtype)

    def say(self, message: str) -> None:
        """Show a message."""
        self.notify("on_message", message)

    @cached_property
    def all_data(self) -> TrainingData:
        """The training documents and, after them, those that were held out, to train on."""
        data, parts = self.data, [self.data.X, self.data.X_validation]
        X = csr_matrix(vstack(parts)) if self.spill is None else self.spill.matrix(ALL_FEATURES, parts)
        Y = csr_matrix(vstack([data.Y, data.Y_validation]))
        own = None if data.own is None else np.concatenate([data.own, data.own_validation])
        weights = None
        if data.weights is not None and data.weights_validation is not None:
            weights = np.concatenate([data.weights, data.weights_validation])
        return TrainingData(X, Y, data.X_validation, data.Y_validation, names=data.names, own=own, weights=weights)

    @staticmethod
    def key(phase: str, name: str) -> str:
        """Return the name of a step's product in a checkpoint."""
        return f"{phase}: {name}"

    @staticmethod
    @contextmanager
    def from_checkpoint(key: str) -> Iterator[None]:
        """Say that a product cannot be used: what was just computed always can, so it comes from a checkpoint."""
        try:
            yield
        except (ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
            what = f"the checkpoint holds a damaged product of {key!r} ({type(error).__name__}: {error})"
            raise ValueError(f"{what}: remove the checkpoint and start again") from error

    def step(self, phase: str, name: str, compute: Callable[[], Arrays], check: Callable[[Arrays], T]) -> T:
        """Return the product of a step after the cycle: from the checkpoint, or computed now and checkpointed.

        `check` takes the product, which may come from a checkpoint, and returns what is asked for; it raises a
        `ValueError` if the product does not fit.
        """
        return self.chunks(phase, name, 1, 1, lambda _: compute(), check)

    def chunks(
        self,
        phase: str,
        name: str,
        n: int,
        size: int,
        compute: Callable[[tuple[int, int]], Arrays],
        check: Callable[[Arrays], T],
    ) -> T:
        """Return the product of a step that is computed in chunks of 0 … n, one after the other."""
        key = self.key(phase, name)
        if key not in self.products:
            pieces = []
            with self.phase(phase, key, n) as current:
                for bounds in parallel.fixed_chunks(n, size):
                    pieces.append(self.piece(key, bounds[0], partial(compute, bounds)))
                    self.progress(current, bounds[1] - bounds[0])
            self._join(key, pieces)
        with self.from_checkpoint(key):
            return check(self.products[key])

    def map(
        self,
        phase: str,
        name: str,
        function: Callable[[S, J], Arrays],
        shared: S,
        items: Sequence[J],
        check: Callable[[Arrays], T],
    ) -> T:
        """Return the product of a step whose pieces, function(shared, item) of every item, the executor computes."""
        key = self.key(phase, name)
        if key not in self.products:
            with self.phase(phase, key, len(items)) as current:
                self._join(key, self.map_pieces(current, key, function, shared, items))
        with self.from_checkpoint(key):
            return check(self.products[key])

    def map_pieces(
        self, phase: Phase, key: str, function: Callable[[S, J], Arrays], shared: S, items: Sequence[J]
    ) -> list[Arrays]:
        """Return function(shared, item) of every item: from the checkpoint, or computed by the executor."""
        missing = [number for number in range(len(items)) if f"{key}/{number}" not in self.products]
        shown = 0

        def keep(place: int, piece: Arrays) -> None:
            self.products[f"{key}/{missing[place]}"] = piece

        def after(done: int) -> None:
            nonlocal shown
            self.progress(phase, done - shown)
            shown = done

        if len(missing) < len(items):
            self.progress(phase, len(items) - len(missing))
        self.executor.map(function, shared, [items[number] for number in missing], keep, after)
        if shown < len(missing):
            self.progress(phase, len(missing) - shown)
        return [self.products[f"{key}/{number}"] for number in range(len(items))]

    def _join(self, key: str, pieces: list[Arrays]) -> None:
        """Make a step's product of its pieces."""
        self.drop_pieces(key)
        with self.from_checkpoint(key):
            self.products[key] = {one: np.concatenate([piece[one] for piece in pieces]) for one in pieces[0]}

    def product(self, phase: str, name: str) -> Arrays:
        """Return the product of a step that is done."""
        return self.products[self.key(phase, name)]

    def forget(self, phase: str, name: str) -> None:
        """Release the product of a step that is no longer needed."""
        self.products.pop(self.key(phase, name), None)

    def piece(self, key: str, number: int, compute: Callable[[], Arrays]) -> Arrays:
        """Return a part of a step's product: from the checkpoint, or computed now."""
        piece = self.products.get(f"{key}/{number}")
        if piece is None:
            piece = self.products[f"{key}/{number}"] = compute()
        return piece

    def drop_pieces(self, key: str) -> None:
        """Release the parts of a step's product, once they are joined."""
        for piece in [one for one in self.products if one.startswith(f"{key}/")]:
            del self.products[piece]
