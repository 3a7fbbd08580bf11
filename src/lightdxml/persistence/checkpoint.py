"""Checkpoints in a folder: written whole or not at all, the last two kept, one process at a time.

A checkpoint is a numbered folder, written under another name, synced, and renamed when complete. If the newest one is
damaged, the one before it is used.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lightdxml.persistence import arrays as stored
from lightdxml.persistence import lock
from lightdxml.persistence.arrays import Arrays
from lightdxml.persistence.atomic_dir import sync
from lightdxml.persistence.files import map_file, sha256

_ARRAYS, _FACTS, _LOCK = "arrays.safetensors", "state.json", "lock"
_KEPT = 2

Facts = dict[str, Any]


@dataclass(frozen=True)
class Identity:
    """What the result of a training run depends on: its checkpoints are for the same only.

    Attributes
    ----------
    fingerprint
        The checksum of data, settings and version.
    settings
        All settings by name, to say which one differs.
    machine
        Instruction sets and versions of libraries, on which the last bits depend.
    """

    fingerprint: str
    settings: dict[str, Any]
    machine: dict[str, str]


class CheckpointFolder:
    """A folder of checkpoints of one training.

    Parameters
    ----------
    folder
        Where they lie; created if it does not exist.
    identity
        What the training run depends on: checkpoints of other ones are refused.
    allow_different_machine
        Whether a checkpoint from another machine, or of other versions of libraries, is taken as well.
    """

    def __init__(self, folder: Path, identity: Identity, allow_different_machine: bool = False) -> None:
        self.folder, self.identity, self.allow_different_machine = folder, identity, allow_different_machine
        self._number = 0
        self._valid: list[int] = []

    def restore(self, unpack: Callable[[Facts, Arrays], None]) -> bool:
        """Unpack the newest valid checkpoint and remove damaged ones; return whether there is any checkpoint.

        `unpack` raises a `ValueError` if the content does not fit.
        """
        numbers = _numbers(self.folder)
        if not numbers:
            return False
        self._number = numbers[-1]
        self._valid = [self._restore_newest(numbers, unpack)]
        self._remove(number for number in numbers if number > self._valid[0])
        return True

    def _restore_newest(self, numbers: list[int], unpack: Callable[[Facts, Arrays], None]) -> int:
        reasons = []
        for number in reversed(numbers):
            try:
                facts, arrays = _read(self.folder / f"{number:08}")
            except (ValueError, RecursionError, FileNotFoundError) as error:
                reasons.append(str(error))
                continue
            except OSError as error:
                raise OSError(f"the checkpoint in {self.folder} cannot be read now ({error.strerror})") from error
            self._check_identity(facts)
            try:
                unpack(facts, arrays)
                return number
            except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
                reasons.append(f"{type(error).__name__}: {error}")
        raise ValueError(f"the checkpoints in {self.folder} are damaged ({reasons[0]}): remove it and start again")

    def _check_identity(self, facts: Facts) -> None:
        identity = self.identity
        if facts["fingerprint"] != identity.fingerprint:
            changed = _differences(facts["settings"], identity.settings)
            what = f"other settings ({changed})" if changed else "other data or another version of lightdxml"
            raise ValueError(f"the checkpoint in {self.folder} belongs to {what}: use those, or choose another folder")
        changed = _differences(facts["machine"], identity.machine)
        if changed and not self.allow_different_machine:
            raise ValueError(
                f"the checkpoint in {self.folder} is from another machine or other libraries ({changed}), where the"
                " last bits of a result may differ: resume it there, or allow it (--allow-different-machine,"
                " allow_different_machine=True)"
            )

    def write(self, facts: Facts, arrays: Arrays) -> None:
        """Write a checkpoint and remove all but the last two."""
        self._number += 1
        fresh = self.folder / f".{self._number:08}.part"
        fresh.mkdir()
        try:
            stored.write(fresh / _ARRAYS, arrays)
            content = {**facts, **asdict(self.identity), "arrays_sha256": sha256(map_file(fresh / _ARRAYS))}
            content["sha256"] = stored.checksum(content)
            (fresh / _FACTS).write_text(json.dumps(content), encoding="utf-8")
            for path in (fresh / _ARRAYS, fresh / _FACTS, fresh):
                sync(path)
            fresh.rename(self.folder / f"{self._number:08}")
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        sync(self.folder)
        self._valid = [*self._valid, self._number][-_KEPT:]
        self._remove(number for number in _numbers(self.folder) if number not in self._valid)

    def _remove(self, numbers: Iterator[int]) -> None:
        """Remove checkpoints; one that cannot be removed does no harm."""
        for number in list(numbers):
            with suppress(OSError):
                _discard(self.folder / f"{number:08}")


def _differences(before: Any, now: dict[str, Any]) -> str:
    """Return the first values that differ, as text.

    >>> _differences({"a": 1, "b": [2]}, {"a": 1, "b": (3,), "c": 4})
    'b [2], now [3]; c None, now 4'
    >>> _differences({"sets": "aes avx"}, {"sets": "aes avx avx2"})
    'sets , now avx2'
    """
    before = before if isinstance(before, dict) else {}
    found = []
    for name, value in now.items():
        one, other = before.get(name), json.loads(json.dumps(value))
        if isinstance(one, str) and isinstance(other, str):
            # Of long lists of words only what differs.
            words = set(one.split()) & set(other.split())
            one, other = (" ".join(word for word in text.split() if word not in words) for text in (one, other))
        if one != other:
            found.append(f"{name} {one!s:.40}, now {other!s:.40}")
    return "; ".join(found[:3])


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for this process alone; a process that dies releases it."""
    lock.make_writable(folder, "checkpoints")
    with lock.held(folder / _LOCK) as mine:
        if not mine:
            raise ValueError(f"another training uses {folder}: wait for it, or choose another folder")
        for path in folder.iterdir():
            if re.fullmatch(r"\.[0-9]{8,}\.part", path.name):
                shutil.rmtree(path, ignore_errors=True)
        yield


def remove(folder: Path) -> None:
    """Remove the checkpoints of a training run whose model is saved, and the folder if nothing else is in it.

    Nothing is removed while another training uses it.
    """
    if not folder.is_dir():
        return
    with lock.held(folder / _LOCK) as mine:
        if not mine:
            return
        for number in _numbers(folder):
            _discard(folder / f"{number:08}")
        if os.name != "nt":
            (folder / _LOCK).unlink(missing_ok=True)
    if os.name == "nt":  # Windows cannot remove an open file.
        (folder / _LOCK).unlink(missing_ok=True)
    # It may hold something else.
    with suppress(OSError):
        folder.rmdir()


def _discard(checkpoint: Path) -> None:
    """Remove a checkpoint; it is renamed first, so that a process killed here leaves no damaged checkpoint."""
    hidden = checkpoint.with_name(f".{checkpoint.name}.part")
    checkpoint.rename(hidden)
    shutil.rmtree(hidden)


def is_in(folder: Path) -> bool:
    """Return whether a folder holds a checkpoint."""
    return bool(_numbers(folder))


def _numbers(folder: Path) -> list[int]:
    paths = folder.iterdir() if folder.is_dir() else ()
    return sorted(int(path.name) for path in paths if _is_checkpoint(path))


def _is_checkpoint(path: Path) -> bool:
    """Return whether this may be a checkpoint, complete or not: nothing else is ever removed."""
    if re.fullmatch("[0-9]{8,}", path.name) is None or path.name != f"{int(path.name):08}":
        return False
    return path.is_dir() and not path.is_symlink() and {inner.name for inner in path.iterdir()} <= {_ARRAYS, _FACTS}


def _read(place: Path) -> tuple[Facts, Arrays]:
    """Return the content of a checkpoint; raise a `ValueError` if it is not complete."""
    facts = stored.read_json(place / _FACTS)
    if not isinstance(facts, dict) or not {"sha256", "arrays_sha256", "fingerprint", "settings", "machine"} <= set(
        facts
    ):
        raise ValueError(f"{place / _FACTS} has another form")
    if facts.pop("sha256") != stored.checksum(facts):
        raise ValueError(f"{place / _FACTS} was changed after it was written")
    content = map_file(place / _ARRAYS)
    if facts["arrays_sha256"] != sha256(content):
        raise ValueError(f"{place / _ARRAYS} was changed after it was written")
    return facts, stored.parse(content, _ARRAYS)
