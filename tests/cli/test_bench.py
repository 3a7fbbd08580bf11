"""`lightdxml bench`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lightdxml.cli import application
from lightdxml.data import Dataset, Split, save
from lightdxml.experiments.baselines import method
from lightdxml.experiments.bench import grid
from tests.support.bench import documents
from tests.support.commands import run


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    X, Y = documents(np.random.default_rng(0), 50)
    return save(Dataset("tiny", Split(Y=Y, X=X)), tmp_path_factory.mktemp("data") / "tiny", "npz")


def test_the_command_runs_the_grid(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/bin/lightdxml", "bench", "--out", "my bench"])
    out = run("bench", "--data", source, "--methods", "knn", "--out", tmp_path / "out", "--n-jobs", "1")
    assert "results.md" in out
    assert "training time" in out
    assert "\nlightdxml bench --out 'my bench'\n" in (tmp_path / "out" / "results.md").read_text("utf-8")
    assert "| knn |" in (tmp_path / "out" / "results" / "tiny.md").read_text("utf-8")


def test_an_ablation_runs_only_the_chosen_variants(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "out"
    run("bench", "ablate", "--data", source, "--only", "epochs=2", "--out", out, "--n-jobs", "1")
    assert [path.name for path in (out / "cells").glob("*.json")] == ["tiny.epochs=2.0.json"]
    assert "| epochs=2 |" in (out / "ablation.md").read_text()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"--methods": "knnn"},
            "unknown method 'knnn': choose from lightdxml, lightdxml-fast, lightdxml-paper, astec, sleec",
        ),
        ({"--data": "nothing"}, "nothing: found no file or data set with this name"),
        ({"--data": ","}, "--data is empty"),
        ({"--timeout": "soon"}, "--timeout soon"),
        ({"--repeat": "0"}, "repeat is 0"),
        ({"--n-jobs": "0"}, " is 0: it must be "),
        ({"--out": __file__}, "is a file: choose another folder for --out"),
    ],
)
def test_wrong_options_are_explained(tmp_path: Path, source: Path, changed: dict[str, str], message: str) -> None:
    options = {"--data": str(source), "--methods": "knn", "--out": str(tmp_path / "out")} | changed
    with pytest.raises(ValueError, match=re.escape(message)):
        run("bench", *(word for option in options.items() for word in option))


def test_the_papers_table_has_methods_of_its_own(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--paper runs the methods of the paper"):
        run("bench", "--data", source, "--paper", "--methods", "knn", "--out", tmp_path / "out")


def test_a_benchmark_without_results_ends_with_an_error(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(method("knn"), "package", "no_such_package")
    run("bench", "--data", source, "--methods", "knn", "--out", tmp_path / "out", "--n-jobs", "1", code=1)


def test_an_interrupted_benchmark_says_how_to_resume(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(grid, "run", stop)
    options = ["bench", "--data", str(source), "--methods", "knn", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(application(), options)
    assert result.exit_code == 130
    assert "run the same command to resume" in result.output
