from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from lightdxml.config import Config, changed
from lightdxml.kernels import linear, parallel
from lightdxml.kernels.cache import is_compiled
from lightdxml.training import compilation


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The processes that are started, which sleep until they are killed."""
    processes: list[Any] = []
    popen = subprocess.Popen

    def start(arguments: list[str], **options: Any) -> Any:
        processes.append(popen([sys.executable, "-c", "import time; time.sleep(600)"], **options))
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(parallel, "thread_count", lambda: 2)
    return processes


def test_a_helper_runs_while_kernels_are_not_on_disk(monkeypatch: pytest.MonkeyPatch, started: list[Any]) -> None:
    monkeypatch.setattr(compilation, "is_compiled", lambda _: False)
    with compilation.helper(Config()):
        assert started[0].poll() is None
    assert started[0].poll() is not None


def test_compiled_kernels_need_no_helper(monkeypatch: pytest.MonkeyPatch, started: list[Any]) -> None:
    monkeypatch.setattr(compilation, "is_compiled", lambda _: True)
    with compilation.helper(Config()):
        pass
    assert not started


def test_a_helper_that_cannot_start_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "is_compiled", lambda _: False)
    monkeypatch.setattr(parallel, "thread_count", lambda: 2)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with compilation.helper(Config()):
        pass


def test_the_helper_compiles_the_sparse_views_and_imports_nothing_from_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("raise SystemExit('imported from the current folder')")
    settings = json.dumps(asdict(changed(Config(), {"dense": "always"})))
    arguments = [sys.executable, "-c", compilation._HELPER, json.dumps(sys.path), settings]
    subprocess.run(arguments, cwd=tmp_path, check=True)
    assert is_compiled(linear.train_classes)
