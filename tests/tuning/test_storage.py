"""Where trials are kept, and what they belong to."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

from lightdxml.tuning.sampling import ERROR, INTERRUPTED, OWNER
from lightdxml.tuning.storage import open_study, recover

IDENTITY: dict[str, Any] = {"data": "a" * 64, "metric": "PSP@5", "tail": 0.0, "seed": 0}


@pytest.mark.parametrize("name", ["tune.db", "tune.journal"])
def test_a_storage_of_another_study_is_refused(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    open_study(path, 0, IDENTITY)
    assert open_study(path, 0, IDENTITY).trials == []
    for change, message in (
        ({"metric": "P@5"}, r"its metric is PSP@5, not P@5"),
        ({"data": "b" * 64}, r"its data is another one"),
        ({"tail": 1.0}, r"its --tail is 0.0, not 1.0"),
    ):
        with pytest.raises(ValueError, match=rf"{name} has trials of another study \({message}\): choose another"):
            open_study(path, 0, {**IDENTITY, **change})


def test_what_cannot_hold_trials_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database" * 100)
    (tmp_path / "notes.log").write_text("no journal\n")
    for name in ("notes.txt", "notes.log", "missing/tune.db", "."):
        with pytest.raises(ValueError, match=r"cannot hold trials \(.*\): choose another --storage") as caught:
            open_study(str(tmp_path / name), 0, IDENTITY)
        assert "\n" not in str(caught.value)
    assert (tmp_path / "notes.txt").read_text() == "no database" * 100
    assert (tmp_path / "notes.log").read_text() == "no journal\n"


def dead() -> str:
    """Return the owner of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return f"{socket.gethostname()} {process.pid}"


@pytest.mark.skipif(os.name == "nt", reason="there, it is not known whether a process runs")
def test_a_trial_whose_process_has_ended_is_run_once_more(tmp_path: Path) -> None:
    study = open_study(str(tmp_path / "tune.log"), 0, IDENTITY)
    for running in (f"{socket.gethostname()} {os.getppid()}", "elsewhere 7"):
        study.ask().set_user_attr(OWNER, running)
    assert recover(study) == 0
    for _ in range(2):
        study.ask().set_user_attr(OWNER, dead())
        assert recover(study) == 1
    first, second = study.trials[2:]
    assert first.state == second.state == TrialState.FAIL
    assert first.user_attrs[INTERRUPTED] == "ended"
    assert "twice" in second.user_attrs[ERROR]
    assert INTERRUPTED not in second.user_attrs


def test_a_process_that_was_killed_before_it_could_mark_its_trial_leaves_none_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = open_study(None, 0, IDENTITY)
    study.ask()
    assert recover(study) == 0
    monkeypatch.setattr("lightdxml.tuning.storage._JUST_NOW", timedelta(0))
    assert recover(study) == 1
