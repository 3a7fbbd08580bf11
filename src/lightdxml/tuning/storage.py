"""Where trials are kept: SQLite or another database, or a journal; and what they belong to."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock, JournalFileSymlinkLock
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from lightdxml.tuning.sampling import ERROR, INTERRUPTED, OWNER, RepeatableSampler, place

_NAME, _IDENTITY = "lightdxml tune", "lightdxml"
_JOURNALS = (".log", ".journal")
_LONGEST_ENTRY, _JUST_NOW = 1 << 20, timedelta(minutes=1)
_TITLES = {
    "data": "data",
    "metric": "metric",
    "tail": "--tail",
    "preset": "preset",
    "space": "space of settings",
    "seed": "random seed",
    "version": "version of lightdxml",
}


def open_study(storage: str | None, seed: int, identity: Mapping[str, Any]) -> optuna.Study:
    """Open a study, or create it; raise a `ValueError` if the storage has another one.

    Parameters
    ----------
    storage
        A file (SQLite; a journal if its name ends in `.log` or `.journal`), the URL of a database, or None for memory.
    seed
        The seed of the sampler.
    identity
        What the study belongs to, by the names of `_TITLES`. Long values, such as fingerprints, are not shown.

    Examples
    --------
    >>> open_study(None, 0, {"metric": "PSP@5"}).user_attrs
    {'lightdxml': {'metric': 'PSP@5'}}
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    called = storage if storage is None or "://" not in storage else "the database"
    try:
        study = optuna.create_study(
            storage=None if storage is None else _storage(storage),
            sampler=RepeatableSampler(seed),
            pruner=optuna.pruners.NopPruner(),
            study_name=_NAME,
            direction="maximize",
            load_if_exists=True,
        )
        known = study.user_attrs.get(_IDENTITY)
        if known is None:
            study.set_user_attr(_IDENTITY, dict(identity))
    except (SQLAlchemyError, OSError, RuntimeError, ValueError, KeyError, ImportError) as error:
        reason = str(getattr(error, "orig", None) or error).partition("\n")[0]
        raise ValueError(f"{called} cannot hold trials ({reason}): choose another --storage") from error
    if known is not None and known != dict(identity):
        raise ValueError(f"{called} has trials of another study ({_difference(known, identity)}): {_ADVICE}")
    return study


_ADVICE = "choose another --storage, or the same data and options"


def _storage(given: str) -> BaseStorage:
    if "://" in given:
        return RDBStorage(given)
    path = Path(given)
    if path.is_dir():
        raise ValueError("it is a folder")
    if path.suffix in _JOURNALS:
        _check_journal(path)
        # Windows lets few users make symbolic links.
        lock = (JournalFileOpenLock if os.name == "nt" else JournalFileSymlinkLock)(str(path))
        return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))
    # A second process waits while the first one writes.
    return RDBStorage(f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": 60}})


def _check_journal(path: Path) -> None:
    """Raise a `ValueError` if a file is something else than a journal: Optuna would append to it."""
    if not path.exists():
        return
    with path.open("rb") as stream:
        start = stream.readline(_LONGEST_ENTRY)
    if start and not (start.startswith(b"{") and b'"op_code"' in start):
        raise ValueError("it is not a journal")


def _difference(known: Any, identity: Mapping[str, Any]) -> str:
    before = known if isinstance(known, dict) else {}
    for name, title in _TITLES.items():
        if before.get(name) != identity.get(name):
            values = before.get(name), identity.get(name)
            is_short = all(isinstance(one, str | int | float) and len(str(one)) < 20 for one in values)
            return f"its {title} is {values[0]}, not {values[1]}" if is_short else f"its {title} is another one"
    return "it was written by another version"


def owner() -> str:
    """Return what identifies this process."""
    return f"{socket.gethostname()} {os.getpid()}"


def recover(study: optuna.Study) -> int:
    """Mark trials whose process has ended as interrupted; return their number.

    A trial that ended its process twice is counted as failed: it would end the next one too.
    """
    trials, found = study.get_trials(deepcopy=False), 0
    for trial in trials:
        if trial.state != TrialState.RUNNING or _is_alive(trial):
            continue
        at = place(trials, trial.number)
        before = [one for one in trials if one.user_attrs.get(INTERRUPTED) == "ended" and one.number < trial.number]
        attribute = (ERROR, "the process ended twice in this trial: it may need too much memory")
        if not any(place(trials, one.number) == at for one in before):
            attribute = (INTERRUPTED, "ended")
        set_attribute(study, trial, *attribute)
        study.tell(trial.number, state=TrialState.FAIL)
        found += 1
    return found


def set_attribute(study: optuna.Study, trial: FrozenTrial, name: str, value: Any) -> None:
    """Set an attribute of a trial of another process."""
    study._storage.set_trial_user_attr(trial._trial_id, name, value)


def _is_alive(trial: FrozenTrial) -> bool:
    """Return whether the process of a trial runs, or whether that cannot be known: it is on another machine."""
    if OWNER not in trial.user_attrs:
        # It has just started and will say whose it is, or its process was killed before it could.
        return trial.datetime_start is None or datetime.now() - trial.datetime_start < _JUST_NOW
    host, _, number = trial.user_attrs[OWNER].rpartition(" ")
    if host != socket.gethostname() or not number.isdecimal():
        return True
    if os.name == "nt":
        # There, signal 0 would end it.
        return int(number) != os.getpid()
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return int(number) != os.getpid()
