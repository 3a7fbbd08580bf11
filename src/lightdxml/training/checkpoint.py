"""Checkpoints: a training that is killed at any moment goes on from the last one, and ends at the same bits.

A checkpoint is a numbered folder within the checkpoint folder, written under another name, synced, and renamed when
complete. The last two are kept: should the newest be damaged, the one before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.persistence import arrays as stored
from lightdxml import storage
from lightdxml.config import Config
from lightdxml.training import lock, snapshot
from lightdxml.training.snapshot import Frame
from lightdxml.training.state import State

# What a snapshot holds, and how; another number, and earlier checkpoints are refused.
_FORMAT = 4
_ARRAYS, _FACTS, _LOCK = "arrays.safetensors", "state.json", "lock"
_KEPT = 2
_MOST_FACTS = 1 << 28


class Interrupted(KeyboardInterrupt):
    """A training was asked to stop, and stopped; `signal` is what asked, `folder` where it can go on from."""

    def __init__(self, number: int, folder: Path) -> None:
        super().__init__(f"training was stopped; fit with checkpoint={str(folder)!r}, resume=True goes on with it")
        self.signal = number
        self.folder = folder


class Keeper:
    """What looks after a training that keeps nothing: nothing is restored, kept or stopped."""

    def restore(self, state: State, frame: Frame) -> None:
        """Put a state to where the last checkpoint was."""

    def keep(self, state: State) -> None:
        """Write a checkpoint if it is time for one, and stop if that was asked for."""

    def check(self) -> None:
        """Stop, if that was asked for, where no checkpoint can be written."""

    def stop(self, state: State) -> None:
        """Write a checkpoint on the way out."""

    def done(self, state: State) -> None:
        """Write a checkpoint of a training whose plan is done: what comes after, its model's save, may fail."""


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
        self.good: list[int] = []
        self.last = time.monotonic()

    def restore(self, state: State, frame: Frame) -> None:
        """Put a state to where the last checkpoint was that is whole; later ones are damaged, and removed."""
        numbers = _numbers(self.folder)
        if not numbers:
            return
        if not self.resume:
            raise ValueError(
                f"{self.folder} holds the checkpoint of a training: go on with it (--resume, resume=True), or choose"
                " another folder"
            )
        self.number = numbers[-1]
        self.good = [self._restore_newest(numbers, state, frame)]
        self._tidy(number for number in numbers if number > self.good[0])

    def _restore_newest(self, numbers: list[int], state: State, frame: Frame) -> int:
        reasons = []
        for number in reversed(numbers):
            try:
                facts, arrays = _read(self.folder / f"{number:08}")
            except (OSError, ValueError, RecursionError, MemoryError) as error:
                reasons.append(str(error))
                continue
            if facts["fingerprint"] != self.fingerprint:
                raise ValueError(
                    f"the checkpoint in {self.folder} is of other data or settings (a seed is one), or of another"
                    " version of lightdxml: give those, or choose another folder"
                )
            try:
                snapshot.unpack(state, facts, arrays, frame)
                return number
            except ValueError as error:
                reasons.append(str(error))
        raise ValueError(f"the checkpoints in {self.folder} are damaged ({reasons[0]}): remove it and begin again")

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

    def done(self, state: State) -> None:
        """Write a checkpoint of a training whose plan is done: what comes after, its model's save, may fail."""
        if self.wanted is not None:
            self.keep(state)
        # On a full disk the model itself, which may lie on another one, is worth more than this.
        with suppress(OSError):
            self._write(state)

    def _write(self, state: State) -> None:
        self.number += 1
        facts, arrays = snapshot.pack(state)
        write(self.folder, self.number, facts | {"fingerprint": self.fingerprint}, arrays)
        self.good = [*self.good, self.number][-_KEPT:]
        self._tidy(number for number in _numbers(self.folder) if number not in self.good)
        self.last = time.monotonic()

    def _tidy(self, numbers: Iterable[int]) -> None:
        """Remove checkpoints; one that cannot be removed does no harm."""
        for number in numbers:
            shutil.rmtree(self.folder / f"{number:08}", ignore_errors=True)

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
        # What is ignored stays so, as after nohup; what C code handles cannot be put back.
        before = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}

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
    """Return what tells data and settings apart, and the versions that made something of them."""
    from lightdxml import __version__

    digest = hashlib.sha256(json.dumps([_FORMAT, __version__, asdict(config)], sort_keys=True).encode())
    for part in parts:
        for array in _arrays_of(part):
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _arrays_of(part: csr_matrix | NDArray[Any] | None) -> list[NDArray[Any]]:
    if part is None:
        return [np.array("nothing")]
    return [np.array(part.shape), part.indptr, part.indices, part.data] if isinstance(part, csr_matrix) else [part]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for this process alone; a process that dies lets go of it."""
    lock.make_room(folder, "checkpoints")
    with lock.held(folder / _LOCK) as mine:
        if not mine:
            raise ValueError(f"another training is at work in {folder}: wait for it, or choose another folder")
        for path in folder.iterdir():
            if re.fullmatch(r"\.[0-9]{8,}\.part", path.name):
                shutil.rmtree(path, ignore_errors=True)
        yield


def write(folder: Path, number: int, facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write a checkpoint, whole or not at all."""
    fresh = folder / f".{number:08}.part"
    fresh.mkdir()
    try:
        stored.write(fresh / _ARRAYS, arrays)
        content = json.dumps(facts | {"sha256": storage.sha256(fresh / _ARRAYS)})
        (fresh / _FACTS).write_text(content, encoding="utf-8")
        for path in (fresh / _ARRAYS, fresh / _FACTS, fresh):
            storage.sync(path)
        fresh.rename(folder / f"{number:08}")
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    storage.sync(folder)


def remove(folder: Path) -> None:
    """Remove the checkpoints of a training whose model is safe, and the folder if nothing else is in it.

    Nothing is removed while another training is at work there.
    """
    if not folder.is_dir():
        return
    with lock.held(folder / _LOCK) as mine:
        if not mine:
            return
        for number in _numbers(folder):
            shutil.rmtree(folder / f"{number:08}")
        if os.name != "nt":
            (folder / _LOCK).unlink(missing_ok=True)
    if os.name == "nt":  # it removes no file that is open
        (folder / _LOCK).unlink(missing_ok=True)
    # Something else may be in it.
    with suppress(OSError):
        folder.rmdir()


def is_in(folder: Path) -> bool:
    """Return whether there is a checkpoint in a folder."""
    return bool(_numbers(folder))


def _numbers(folder: Path) -> list[int]:
    paths = folder.iterdir() if folder.is_dir() else ()
    return sorted(int(path.name) for path in paths if _is_checkpoint(path))


def _is_checkpoint(path: Path) -> bool:
    """Return whether this may be a checkpoint, whole or not: nothing of anyone else's is ever removed."""
    if re.fullmatch("[0-9]{8,}", path.name) is None or path.name != f"{int(path.name):08}":
        return False
    return path.is_dir() and not path.is_symlink() and {inner.name for inner in path.iterdir()} <= {_ARRAYS, _FACTS}


def _read(place: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what is in a checkpoint, or raise where it is not whole."""
    facts = storage.read_json(place / _FACTS, _MOST_FACTS)
    if not isinstance(facts, dict) or not {"sha256", "fingerprint"} <= set(facts):
        raise ValueError(f"{place / _FACTS} is of another form")
    arrays = stored.read(place / _ARRAYS)
    if facts["sha256"] != storage.sha256(place / _ARRAYS):
        raise ValueError(f"{place / _ARRAYS} was altered after it was written")
    return facts, arrays
