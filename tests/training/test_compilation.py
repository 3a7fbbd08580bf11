from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from scipy.sparse import csr_matrix

from lightdxml.config import Config, changed, from_json
from lightdxml.kernels import linear, parallel
from lightdxml.kernels.cache import is_compiled
from lightdxml.training import compilation
from tests.support.configs import small
from tests.support.trainings import train


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The processes that are started, which sleep until they are killed; nothing is compiled yet."""
    processes: list[Any] = []
    popen = subprocess.Popen

    def start(arguments: list[str], **options: Any) -> Any:
        assert arguments[:3] == [sys.executable, "-c", compilation._HELPER]
        assert Config() == from_json(json.loads(arguments[4]))
        processes.append(popen([sys.executable, "-c", "import time; time.sleep(600)"], **options))
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(parallel, "thread_count", lambda: 2)
    monkeypatch.setattr(compilation, "is_compiled", lambda _: False)
    return processes


def test_a_helper_runs_until_it_is_stopped(started: list[Any]) -> None:
    with compilation.helper(Config()) as stop:
        assert started[0].poll() is None
        stop()
        assert started[0].poll() is not None


def test_a_helper_is_stopped_if_training_fails(started: list[Any]) -> None:
    with pytest.raises(ZeroDivisionError), compilation.helper(Config()):
        raise ZeroDivisionError
    assert started[0].poll() is not None


@pytest.mark.parametrize("reason", ["compiled", "one thread", "no cache", "no such cache", "no sparse views", "frozen"])
def test_no_helper_is_started_where_it_is_of_no_use(
    monkeypatch: pytest.MonkeyPatch, started: list[Any], tmp_path: Path, reason: str
) -> None:
    config = changed(Config(), {"linear": reason != "no sparse views"})
    if reason == "compiled":
        monkeypatch.setattr(compilation, "is_compiled", lambda _: True)
    if reason == "one thread":
        monkeypatch.setattr(parallel, "thread_count", lambda: 1)
    if reason == "no cache":
        monkeypatch.setattr(compilation, "cache_folder", lambda: None)
    if reason == "no such cache":
        monkeypatch.setattr(compilation, "cache_folder", lambda: tmp_path / "missing")
    if reason == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    with compilation.helper(config):
        assert not started


def test_a_helper_that_cannot_start_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "is_compiled", lambda _: False)
    monkeypatch.setattr(parallel, "thread_count", lambda: 2)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with compilation.helper(Config()):
        pass


def test_the_helper_imports_nothing_from_the_current_folder(tmp_path: Path) -> None:
    for name in ("json", "numba", "lightdxml"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the current folder')")
    settings = json.dumps(asdict(changed(Config(), {"dense": "always"})))
    arguments = [sys.executable, "-c", compilation._HELPER, "\n".join(sys.path), settings]
    subprocess.run(arguments, cwd=tmp_path, check=True)
    assert is_compiled(linear.train_classes)


def test_training_again_in_a_process_compiles_nothing_and_trains_no_toy(
    documents: tuple[csr_matrix, csr_matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The toy once took half the time of small trainings, such as those of a grid search."""
    train(documents, small(random_state=1))
    finalized: list[Any] = []
    monkeypatch.setattr(compilation, "finalize", finalized.append)
    train(documents, small(random_state=2, epochs=3))
    assert not finalized
    compilation._train_toy.cache_clear()
    train(documents, small(random_state=2))
    assert len(finalized) == 1
