"""The benchmark grid."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lightdxml.data import Dataset, Split, save
from lightdxml.experiments.baselines import method
from lightdxml.experiments.bench import grid, machine, process
from lightdxml.experiments.bench.grid import Plan, Variant
from lightdxml.persistence import lock
from tests.experiments.bench.conftest import FakeCell
from tests.support.bench import documents

KNN = Variant("knn", "knn")


def plan_of(source: Path, out: Path, *variants: Variant) -> Plan:
    return Plan((str(source),), variants or (KNN,), out)


def test_a_finished_cell_is_not_run_again(out: Path, source: Path) -> None:
    before = (out / "cells" / "tiny.knn.0.json").read_bytes()
    shown: list[str] = []
    grid.run(plan_of(source, out), shown.append)
    assert "".join(shown).endswith(" s (from an earlier run)\n")
    assert (out / "cells" / "tiny.knn.0.json").read_bytes() == before


def test_a_failed_cell_does_not_stop_the_grid_and_is_run_again_on_request(
    tmp_path: Path, source: Path, fake_cell: FakeCell
) -> None:
    fake_cell.does("if job['method'] == 'knn':", "    print('bad luck', flush=True)", "    os._exit(1)", "done()")
    failed, done = grid.run(plan_of(source, tmp_path / "out", KNN, Variant("plain", "ova")))
    assert failed["status"] == "failed"
    assert "bad luck" in failed["message"]
    assert done["status"] == "done"
    fake_cell.does("done()")
    plan = plan_of(source, tmp_path / "out")
    assert grid.run(plan)[0]["status"] == "failed"
    assert grid.run(replace(plan, retry=True))[0]["status"] == "done"


def test_a_cell_that_timed_out_is_run_again_with_a_longer_limit(
    tmp_path: Path, source: Path, fake_cell: FakeCell
) -> None:
    fake_cell.does("time.sleep(60)")
    plan = plan_of(source, tmp_path / "out")
    assert grid.run(replace(plan, timeout=0.5))[0]["status"] == "timeout"
    fake_cell.does("done()")
    assert grid.run(replace(plan, timeout=0.5))[0]["status"] == "timeout"
    assert grid.run(replace(plan, timeout=20))[0]["status"] == "done"


def test_only_one_benchmark_runs_in_a_folder(out: Path, source: Path) -> None:
    with lock.held(out / ".lock"), pytest.raises(ValueError, match=r"another benchmark is running in .*: wait for it"):
        grid.run(plan_of(source, out))


def test_temporary_files_of_a_killed_run_are_removed(out: Path, source: Path) -> None:
    (out / "tmp-left").mkdir()
    grid.run(plan_of(source, out))
    assert not (out / "tmp-left").exists()


def test_a_variant_is_stored_under_its_own_name(out: Path, source: Path) -> None:
    variant = Variant("five neighbors", "knn", {"neighbors": 5})
    (found,) = grid.run(plan_of(source, out, variant))
    assert (found["method"], found["settings"]["neighbors"]) == ("five neighbors", 5)
    assert (out / "cells" / "tiny.five neighbors.0.json").exists()


def test_code_that_changes_during_the_benchmark_stops_it(
    out: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(*args: Any) -> dict[str, Any]:
        return {"status": "done", "versions": {"lightdxml": "0.0.1+other"}}

    monkeypatch.setattr(process, "run", other)
    shown: list[str] = []
    with pytest.raises(ValueError, match=r"changed during the benchmark: .*0\.0\.1\+other.*use another --out"):
        grid.run(replace(plan_of(source, out), repeat=3), shown.append)
    assert shown[-1] == "2/3 tiny, knn, run 2: "
    assert sorted(path.name for path in (out / "cells").iterdir()) == ["tiny.knn.0.json"]


@pytest.mark.parametrize(
    ("status", "retry", "accepted"),
    [("skipped", False, True), ("failed", False, False), ("failed", True, True), ("timeout", True, True)],
)
def test_versions_of_cells_that_are_run_again_do_not_matter(
    out: Path, source: Path, fake_cell: FakeCell, status: str, retry: bool, accepted: bool
) -> None:
    path = out / "cells" / "tiny.knn.0.json"
    old = json.loads(path.read_text()) | {"status": status, "message": "", "limit": 1.0}
    old["versions"]["numpy"] = "1.0"
    path.write_text(json.dumps(old))
    fake_cell.does("done()")
    with nullcontext() if accepted else pytest.raises(ValueError, match=r"numpy 1\.0.*use another --out"):
        grid.run(replace(plan_of(source, out), retry=retry))


def test_a_missing_package_skips_the_cell_and_says_how_to_install_it(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(method("knn"), "package", "no_such_package")
    (cell,) = grid.run(plan_of(source, tmp_path / "out"))
    assert cell["status"] == "skipped"
    assert cell["message"] == 'no_such_package is not installed: pip install "lightdxml[no_such_package]"'


def test_results_of_another_version_are_not_mixed(out: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_source_hash", lambda: "newer")
    with pytest.raises(ValueError, match=r"has lightdxml .*\+newer: use another --out"):
        grid.run(plan_of(source, out))


def test_results_of_other_settings_are_not_mixed(out: Path, source: Path) -> None:
    plan = plan_of(source, out)
    with pytest.raises(ValueError, match="use another --out"):
        grid.run(replace(plan, seed=3))
    with pytest.raises(ValueError, match="not a benchmark folder"):
        grid.run(replace(plan, out=source))


def test_each_repeat_has_its_own_seed(out: Path, source: Path, fake_cell: FakeCell) -> None:
    fake_cell.does("done()")
    cells = grid.run(replace(plan_of(source, out), repeat=2))
    assert [cell["seed"] for cell in cells] == [0, 1]


def test_reports_are_written(out: Path, source: Path) -> None:
    written = grid.write_reports(grid.run(plan_of(source, out)), out)
    assert {path.relative_to(out).as_posix() for path in written} == {
        "results.json", "results.csv", "results.md", "results/tiny.md",
        "accuracy-time.png", "head-tail.png", "size.png", "latency.png",
    }  # fmt: skip
    assert all(path.stat().st_size > 0 for path in written)


def test_two_data_sets_with_the_same_name_are_rejected_before_any_cell_runs(tmp_path: Path, source: Path) -> None:
    X, Y = documents(np.random.default_rng(1), 50)
    other = save(Dataset("tiny", Split(Y=Y, X=X)), tmp_path / "other" / "tiny", "npz")
    shown: list[str] = []
    with pytest.raises(ValueError, match="tiny was built from other data"):
        grid.run(Plan((str(source), str(other)), (KNN,), tmp_path / "out"), shown.append)
    assert not shown


def test_the_same_data_set_by_two_paths_runs_once(out: Path, source: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(source, tmp_path / "copy" / "tiny")
    assert len(grid.run(Plan((str(source), str(copied)), (KNN,), out))) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"repeat": 0}, "repeat is 0: it must be at least 1"),
        ({"timeout": 0}, "timeout is 0: it must be a positive number"),
        ({"variants": (Variant("a", "oracle"),)}, "unknown method 'oracle'"),
        ({"variants": (Variant("a", "knn", {"color": 1}),)}, "knn has no setting 'color'"),
    ],
)
def test_a_wrong_plan_is_rejected(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(Plan(("tiny",), (KNN,), tmp_path), **changes)
