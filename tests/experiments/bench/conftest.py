"""Fixtures of the benchmark tests."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from lightdxml.data import Dataset, Split, save
from lightdxml.experiments.bench import grid
from lightdxml.experiments.bench.grid import Plan, Variant
from tests.support.bench import documents


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small data set on disk."""
    rng = np.random.default_rng(0)
    (X, Y), (X_test, Y_test) = documents(rng, 120), documents(rng, 30)
    folder = tmp_path_factory.mktemp("data") / "tiny"
    return save(Dataset("tiny", Split(Y=Y, X=X), Split(Y=Y_test, X=X_test)), folder, "npz")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, source: Path) -> Path:
    """The output folder of a benchmark of one method."""
    out = tmp_path_factory.mktemp("finished") / "out"
    grid.run(Plan((str(source),), (Variant("knn", "knn"),), out))
    return out


@pytest.fixture
def out(tmp_path: Path, finished: Path) -> Path:
    """A copy of that folder."""
    return Path(shutil.copytree(finished, tmp_path / "out"))


class FakeCell:
    """Replaces the work of a cell's process by a few lines of Python, without the cost of its imports."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "site"
        self.folder.mkdir()
        paths = [str(self.folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))

    def does(self, *lines: str) -> None:
        """Set the program. `job` is the cell's job, `done(...)` writes a result."""
        code = "\n    ".join(lines)
        (self.folder / "sitecustomize.py").write_text(
            f"""import json, os, signal, subprocess, sys, time
if 'lightdxml.experiments.bench.cell' in sys.orig_argv:
    job = json.load(open(sys.orig_argv[-2]))
    def done(**more):
        measured = {{'metrics': {{'P@1': 50.0}}, 'train_seconds': 1.0}}
        content = {{'status': 'done', 'message': '', **measured, **more}}
        name = '{{data}}.{{name}}.{{repeat}}.json'.format(**job)
        os.makedirs(job['out'] + '/cells', exist_ok=True)
        with open(job['out'] + '/cells/' + name, 'w') as stream:
            json.dump(content, stream)
    {code}
    sys.stdout.flush()
    os._exit(0)
"""
        )


@pytest.fixture
def fake_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCell:
    return FakeCell(tmp_path, monkeypatch)
