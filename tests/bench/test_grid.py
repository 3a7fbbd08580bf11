"""The grid, with methods that are made to do what real ones sometimes do."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml.baselines import method
from lightdxml.bench import ablation, grid, matrices
from lightdxml.bench.grid import Event, Plan, Variant
from lightdxml.data import Dataset, Split, Texts, save
from lightdxml.text.tfidf import TextSettings
from tests.baselines.test_contract import documents
from tests.cli.test_data import run

KNN = Variant("knn", "knn")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    (X, Y), (X_test, Y_test) = documents(rng, 120), documents(rng, 30)
    folder = tmp_path_factory.mktemp("data") / "tiny"
    return save(Dataset("tiny", Split(Y=Y, X=X), Split(Y=Y_test, X=X_test)), folder, "npz")


def plan_of(source: Path, out: Path, *variants: Variant) -> Plan:
    return Plan((str(source),), variants, out)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, source: Path) -> Path:
    """Return a folder in which the grid has been run with one method."""
    out = tmp_path_factory.mktemp("ran") / "out"
    grid.run(plan_of(source, out, KNN))
    return out


@pytest.fixture
def out(tmp_path: Path, ran: Path) -> Path:
    """Return a copy of it."""
    return Path(shutil.copytree(ran, tmp_path / "out"))


def test_a_cell_holds_all_that_is_compared(out: Path) -> None:
    cell = json.loads((out / "cells" / "tiny.knn.0.json").read_text())
    assert cell["status"] == "done"
    assert {f"{name}@{k}" for name in ("P", "nDCG", "PSP", "PSnDCG") for k in (1, 3, 5)} == set(cell["metrics"])
    assert cell["metrics"]["P@1"] > 50
    assert cell["sizes"] == {"train": 120, "test": 30, "features": 152, "labels": 30}
    for name in ("train_seconds", "peak_mb", "size_mb", "batch_ms"):
        assert cell[name] > 0
    assert 0 < cell["single_ms"]["p50"] <= cell["single_ms"]["p99"]
    assert {"numpy", "lightdxml", "python"} <= set(cell["versions"])


def test_a_finished_cell_is_not_run_again(out: Path, source: Path) -> None:
    before = (out / "cells" / "tiny.knn.0.json").read_bytes()
    events: list[Event] = []
    grid.run(plan_of(source, out, KNN), events.append)
    assert events[-1].was_there
    assert (out / "cells" / "tiny.knn.0.json").read_bytes() == before


def test_a_method_that_crashes_is_a_marked_cell_and_the_grid_goes_on(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "site"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import lightdxml.baselines.knn as k\ndef crash(*a, **b): raise RuntimeError('no luck')\nk.KNN.fit = crash\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(broken))
    failed, done = grid.run(plan_of(source, tmp_path / "out", KNN, Variant("plain", "ova")))
    assert failed["status"] == "failed"
    assert "no luck" in failed["message"]
    assert done["status"] == "done"
    monkeypatch.delenv("PYTHONPATH")
    plan = plan_of(source, tmp_path / "out", KNN)
    assert grid.run(plan)[0]["status"] == "failed", "it is not run again unasked"
    assert grid.run(replace(plan, retry=True))[0]["status"] == "done"


def test_a_method_that_takes_too_long_is_stopped(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "site"
    slow.mkdir()
    (slow / "sitecustomize.py").write_text("import sys, time\nif 'bench.cell' in str(sys.orig_argv): time.sleep(60)\n")
    monkeypatch.setenv("PYTHONPATH", str(slow))
    (cell,) = grid.run(replace(plan_of(source, tmp_path / "out", KNN), timeout=0.5))
    assert (cell["status"], cell["message"]) == ("timeout", "stopped after 0 s")


def test_a_method_that_is_killed_says_so(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = tmp_path / "site"
    dying.mkdir()
    (dying / "sitecustomize.py").write_text(
        "import os, sys\nif 'bench.cell' in str(sys.orig_argv): os.kill(os.getpid(), 9)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(dying))
    (cell,) = grid.run(plan_of(source, tmp_path / "out", KNN))
    assert cell["status"] == "failed"
    assert "SIGKILL (out of memory?)" in cell["message"]


def test_a_missing_package_is_a_skipped_cell_with_the_command_that_installs_it(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(method("knn"), "packages", ("no_such_package",))
    monkeypatch.setattr(method("knn"), "install", 'pip install "lightdxml[none]"')
    (cell,) = grid.run(plan_of(source, tmp_path / "out", KNN))
    assert cell["status"] == "skipped"
    assert cell["message"] == 'no_such_package is not installed: pip install "lightdxml[none]"'


def test_results_of_another_version_are_not_mixed(out: Path, source: Path) -> None:
    path = out / "cells" / "tiny.knn.0.json"
    cell = json.loads(path.read_text())
    cell["versions"]["lightdxml"] = "0.0.1+older"
    path.write_text(json.dumps(cell))
    with pytest.raises(ValueError, match=r"0\.0\.1\+older.*use another --out"):
        grid.run(plan_of(source, out, KNN))


def test_results_of_other_settings_are_not_mixed(out: Path, source: Path) -> None:
    plan = plan_of(source, out, KNN)
    with pytest.raises(ValueError, match="use another --out"):
        grid.run(replace(plan, seed=3))
    with pytest.raises(ValueError, match="holds other things"):
        grid.run(replace(plan, out=source))


def test_repeats_have_seeds_of_their_own(out: Path, source: Path) -> None:
    cells = grid.run(replace(plan_of(source, out, KNN), repeat=2))
    assert [cell["seed"] for cell in cells] == [0, 1]


def test_reports_are_written(out: Path, source: Path) -> None:
    written = grid.write_reports(grid.run(plan_of(source, out, KNN)), out)
    assert {path.name for path in written} == {
        "results.json", "results.csv", "results.md", "accuracy-time.png", "head-tail.png", "size.png", "latency.png",
    }  # fmt: skip
    assert all(path.stat().st_size > 0 for path in written)


def test_texts_become_features_by_the_training_part_alone(tmp_path: Path) -> None:
    Y = csr_matrix(np.ones((4, 1), dtype=np.float32))
    train, test = Split(Y=Y, texts=Texts(["red rose"] * 4)), Split(Y=Y, texts=Texts(["blue rose"] * 4))
    folder = save(Dataset("words", train, test, label_names=["a"]), tmp_path / "words", "jsonl")
    name = matrices.prepare(str(folder), tmp_path / "made", TextSettings(ngrams=1))
    made = matrices.read(tmp_path / "made" / name)
    assert made.X.shape[1] == made.X_test.shape[1] == 2
    assert made.X_test.getnnz(axis=1).tolist() == [1] * 4


def test_without_a_test_part_a_fifth_is_set_aside(tmp_path: Path) -> None:
    X, Y = documents(np.random.default_rng(0), 50)
    folder = save(Dataset("alone", Split(Y=Y, X=X)), tmp_path / "alone", "npz")
    made = matrices.read(tmp_path / "made" / matrices.prepare(str(folder), tmp_path / "made", TextSettings()))
    assert (made.X.shape[0], made.X_test.shape[0]) == (40, 10)


def test_the_ablation_is_drawn_from_its_cells(tmp_path: Path, source: Path) -> None:
    first, *others = ablation.variants()[:4]
    plan = plan_of(source, tmp_path / "out", replace(first, settings={"D": 8, "e_model": 1}))
    (base,) = grid.run(plan)
    assert base["status"] == "done", base["message"]
    worse = {name: value - 1 for name, value in base["metrics"].items()}
    cells = [base, *({**base, "method": other.name, "metrics": worse} for other in others)]
    curves = ablation.curves(cells, "tiny")
    assert list(curves) == ["β", "e_model", "re-ranker", "refresh"]
    assert [value for value, _ in curves["β"]] == [i / 10 for i in range(11)]
    assert [measures["P@1"] - base["metrics"]["P@1"] for _, measures in curves["refresh"]] == [-1, 0]
    written = ablation.write_reports(cells, tmp_path / "out")
    assert "ablation-tiny.png" in {path.name for path in written}
    assert (tmp_path / "out" / "ablation.md").read_text().count("(-1.00)") == 18


def test_the_command_runs_the_grid(out: Path, source: Path) -> None:
    assert "results.md" in run("bench", "--data", source, "--methods", "knn", "--out", out, "--threads", "1")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"--methods": "knnn"}, "there is no method 'knnn': known are lightdxml, lightdxml-paper, astec, parabel"),
        ({"--data": "nothing"}, "data set"),
        ({"--data": ","}, "--data names nothing"),
        ({"--timeout": "soon"}, "--timeout soon is no time"),
        ({"--repeat": "0"}, "repeat is 0"),
    ],
)
def test_what_the_command_does_not_know_it_says(
    tmp_path: Path, source: Path, changed: dict[str, str], message: str
) -> None:
    options = {"--data": str(source), "--methods": "knn", "--out": str(tmp_path / "out")} | changed
    with pytest.raises(ValueError, match=re.escape(message)):
        run("bench", *(word for option in options.items() for word in option))
