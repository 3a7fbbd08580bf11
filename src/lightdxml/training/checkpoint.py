"""Checkpoints: a training that is killed at any moment goes on from the last one, and ends at the same bits.

A checkpoint is a numbered folder within the checkpoint folder, written under another name, synced, and renamed when
complete. The last two are kept: should the newest be damaged, the one before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import arrays as stored
from lightdxml import shortlist as shortlists
from lightdxml import storage
from lightdxml.config import Config
from lightdxml.encoder import Encoder, Residual
from lightdxml.model import Model
from lightdxml.training.state import State

_ARRAYS, _FACTS, _LOCK = "arrays.safetensors", "state.json", "lock"
_KEPT = 2
_BEST = "best."


class Interrupted(KeyboardInterrupt):
    """A training was asked to stop, and stopped; `signal` is what asked, `folder` where it can go on from."""

    def __init__(self, number: int, folder: Path) -> None:
        super().__init__(f"training was stopped; its checkpoint is in {folder}")
        self.signal = number
        self.folder = folder


class Keeper:
    """What looks after a training that keeps nothing: nothing is restored, kept or stopped."""

    def restore(self, state: State, config: Config, frequency: NDArray[np.int32], n_documents: int) -> None:
        """Put a state to where the last checkpoint was."""

    def keep(self, state: State) -> None:
        """Write a checkpoint if it is time for one, and stop if that was asked for."""

    def check(self) -> None:
        """Stop, if that was asked for, where no checkpoint can be written."""

    def stop(self, state: State) -> None:
        """Write a checkpoint on the way out."""


class FolderKeeper(Keeper):
    """Keeps checkpoints in a folder.

    Parameters
    ----------
    folder
        Where they lie; made if it is not there.
    every
        Seconds between two of them.
    fingerprint
        What data and settings these are: a checkpoint of others is refused.
    resume
        Whether to go on from what is there. Without, a folder with checkpoints is refused, so that none is lost.
    """

    def __init__(self, folder: Path, every: float, fingerprint: str, *, resume: bool) -> None:
        self.folder, self.every, self.fingerprint, self.resume = folder, every, fingerprint, resume
        self.wanted: int | None = None
        self.number = 0
        self.last = time.monotonic()

    def restore(self, state: State, config: Config, frequency: NDArray[np.int32], n_documents: int) -> None:
        """Put a state to where the last checkpoint was."""
        numbers = _numbers(self.folder)
        if not numbers:
            return
        if not self.resume:
            raise ValueError(f"{self.folder} holds the checkpoint of a training: go on with it (resume), or remove it")
        self.number = numbers[-1]
        facts, arrays = _newest(self.folder, numbers)
        if facts["fingerprint"] != self.fingerprint:
            raise ValueError(f"the checkpoint in {self.folder} is of other data or settings: give those, or remove it")
        _unpack(state, facts, arrays, config, frequency, n_documents)

    def keep(self, state: State) -> None:
        """Write a checkpoint if it is time for one, and stop if that was asked for."""
        if self.wanted is not None:
            self.stop(state)
            raise Interrupted(self.wanted, self.folder)
        if time.monotonic() - self.last >= self.every:
            self._write(state)

    def check(self) -> None:
        """Stop, if that was asked for, where no checkpoint can be written."""
        if self.wanted is not None:
            raise Interrupted(self.wanted, self.folder)

    def stop(self, state: State) -> None:
        """Write a checkpoint on the way out."""
        self._write(state)

    def _write(self, state: State) -> None:
        self.number += 1
        facts, arrays = _pack(state)
        write(self.folder, self.number, facts | {"fingerprint": self.fingerprint}, arrays)
        self.last = time.monotonic()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Hold the folder for this process alone, and let Ctrl-C and SIGTERM stop the training where it can go on.

        A second Ctrl-C leaves at once.
        """
        with locked(self.folder), self._signals():
            yield

    @contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield  # signals are the main thread's business
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def note(number: int, frame: FrameType | None) -> None:
            self.wanted = number
            for other, handler in before.items():
                signal.signal(other, handler)

        for number in before:
            signal.signal(number, note)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def fingerprint(config: Config, *parts: csr_matrix | NDArray[Any] | None) -> str:
    """Return what tells data and settings apart."""
    digest = hashlib.sha256(json.dumps(asdict(config), sort_keys=True).encode())
    for part in parts:
        arrays = (part.indptr, part.indices, part.data) if isinstance(part, csr_matrix) else (part,)
        for array in arrays:
            digest.update(b"nothing" if array is None else np.ascontiguousarray(array).data)
    return digest.hexdigest()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for this process alone; a process that dies lets go of it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("a") as stream:
        if not _lock(stream.fileno()):
            raise ValueError(f"another training is at work in {folder}: wait for it, or choose another folder")
        for leftover in folder.glob(".*.part"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield


def _lock(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write(folder: Path, number: int, facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write a checkpoint, whole or not at all, and remove the ones before the last two."""
    fresh = folder / f".{number:08}.part"
    fresh.mkdir()
    try:
        stored.write(fresh / _ARRAYS, arrays)
        _sync(fresh / _ARRAYS)
        content = json.dumps(facts | {"sha256": storage.sha256(fresh / _ARRAYS)})
        (fresh / _FACTS).write_text(content, encoding="utf-8")
        _sync(fresh / _FACTS)
        _sync(fresh)
        fresh.rename(folder / f"{number:08}")
        _sync(folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    for old in _numbers(folder)[:-_KEPT]:
        shutil.rmtree(folder / f"{old:08}")


def _sync(path: Path) -> None:
    if path.is_dir() and os.name == "nt":
        return  # Windows has no such thing for folders
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(folder: Path) -> None:
    """Remove the checkpoints of a training whose model is safe, and the folder if nothing else is in it."""
    for number in _numbers(folder):
        shutil.rmtree(folder / f"{number:08}")
    (folder / _LOCK).unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def _numbers(folder: Path) -> list[int]:
    names = [path.name for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if len(name) == 8 and name.isdecimal())


def _newest(folder: Path, numbers: list[int]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the newest checkpoint that is whole."""
    for number in reversed(numbers):
        place = folder / f"{number:08}"
        try:
            facts = json.loads((place / _FACTS).read_text(encoding="utf-8"))
            if facts["sha256"] == storage.sha256(place / _ARRAYS):
                return facts, stored.read(place / _ARRAYS)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    raise ValueError(f"the checkpoints in {folder} are damaged: remove it and begin again")


def _pack(state: State) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return a state as facts for JSON, and arrays."""
    arrays = {**_trained(state), "shortlists": state.shortlists, "order": state.order}
    facts = {
        "rng": state.rng.bit_generator.state,
        "classifier_steps": state.classifier.steps,
        "label_encoder_steps": state.label_encoder.steps,
        **{name: getattr(state, name) for name in ("batch", "loss", "step", "cycle", "history", "best_accuracy")},
    }
    if state.best is not None:
        arrays |= {_BEST + name: array for name, array in storage.arrays_of(state.best).items()}
        facts["best"] = {
            "beta": state.best.beta,
            "metrics": state.best.metrics,
            "kind": state.best.shortlist.kind,
        }
    return facts, arrays


def _trained(state: State) -> dict[str, NDArray[Any]]:
    """Return the arrays that training changes in place, by name."""
    features, classifier, label_encoder = state.features, state.classifier, state.label_encoder
    arrays = {
        "vectors": features.encoder.vectors,
        "vectors_mean": features.mean,
        "vectors_square": features.square,
        "W": classifier.W,
        "W_mean": classifier.mean,
        "W_square": classifier.square,
    }
    for i in range(len(label_encoder.layers)):
        arrays[f"layer{i}"] = label_encoder.layers[i]
        arrays[f"layer{i}_mean"] = label_encoder.means[i]
        arrays[f"layer{i}_square"] = label_encoder.squares[i]
    if features.encoder.residual is not None:
        arrays["residual"], arrays["residual_bias"] = features.encoder.residual.R, features.encoder.residual.bias
        arrays["residual_mean"], arrays["residual_square"] = features.residual_mean, features.residual_square
        arrays["singular"] = features.singular
    return arrays


def _unpack(
    state: State,
    facts: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    config: Config,
    frequency: NDArray[np.int32],
    n_documents: int,
) -> None:
    """Put a fresh state to what a checkpoint says."""
    for name, array in _trained(state).items():
        array[...] = arrays[name]
    _check(arrays, len(frequency), n_documents)
    state.shortlists, state.order = np.array(arrays["shortlists"]), np.array(arrays["order"])
    state.rng.bit_generator.state = facts["rng"]
    state.classifier.steps = facts["classifier_steps"]
    state.label_encoder.steps = facts["label_encoder_steps"]
    state.batch, state.loss, state.step, state.cycle = (facts[name] for name in ("batch", "loss", "step", "cycle"))
    state.history, state.best_accuracy = facts["history"], facts["best_accuracy"]
    if "best" in facts:
        best = {name.removeprefix(_BEST): np.array(array) for name, array in arrays.items() if name.startswith(_BEST)}
        state.best = _best(facts["best"], best, config, frequency, n_documents)


def _check(arrays: dict[str, NDArray[Any]], n_labels: int, n_documents: int) -> None:
    """Raise where numbers of documents and labels are out of range: compiled code trusts them."""
    found, order = arrays["shortlists"], arrays["order"]
    wrong = found.ndim != 2 or found.min(initial=-1) < -1 or found.max(initial=-1) >= n_labels
    wrong |= found.dtype != np.int32 or len(found) not in (0, n_documents)
    wrong |= len(order) > 0 and not np.array_equal(np.sort(order), np.arange(n_documents))
    if wrong:
        raise ValueError("the checkpoint names documents or labels that are not there: remove it and begin again")


def _best(
    facts: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    config: Config,
    frequency: NDArray[np.int32],
    n_documents: int,
) -> Model:
    storage.check_arrays(arrays, config)
    residual = Residual(arrays["residual"], arrays["residual_bias"]) if "residual" in arrays else None
    graph = storage.graph_in(arrays, facts["kind"])
    return Model(
        encoder=Encoder(arrays["word_vectors"], config.relu, residual),
        classifier=arrays["classifier"],
        shortlist=shortlists.build(arrays["labels"], arrays["label_embeddings"], facts["kind"], graph),
        everywhere=arrays["everywhere"],
        beta=facts["beta"],
        config=config,
        label_frequency=frequency,
        n_documents=n_documents,
        metrics=facts["metrics"],
    )
