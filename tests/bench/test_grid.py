"""The grid, with methods that are made to do what real ones sometimes do."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import lightdxml
from lightdxml.experiments.baselines import method
from lightdxml.experiments.bench import ablation, cell, grid, machine, matrices, tables
from lightdxml.experiments.bench.cell import Job
from lightdxml.experiments.bench.grid import Event, Plan, Variant
from lightdxml.experiments.bench.machine import _version
from lightdxml.cli import bench
from lightdxml.data import Dataset, Split, Texts, save
from lightdxml.kernels import parallel
from lightdxml.text.tfidf import TextOptions
from lightdxml.persistence import lock
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


class Child:
    """What the process of a cell does in the place of its work, without the time that its imports take."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "site"
        self.folder.mkdir()
        monkeypatch.setenv("PYTHONPATH", str(self.folder))

    def does(self, *lines: str) -> None:
        """Take the lines of a program; `job` is what the cell is told, `done` writes a result."""
        code = "\n    ".join(lines)
        (self.folder / "sitecustomize.py").write_text(
            f"""import json, os, signal, subprocess, sys, time
if 'lightdxml.experiments.bench.cell' in sys.orig_argv:
    job = json.load(open(sys.orig_argv[-1]))
    def done(**more):
        content = {{'status': 'done', 'message': '', 'metrics': {{}}, **more}}
        with open(job['result'], 'w') as stream:
            json.dump(content, stream)
    {code}
    sys.stdout.flush()
    os._exit(0)
"""
        )


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Child:
    return Child(tmp_path, monkeypatch)


def in_process(
    tmp_path: Path, timeout: float = 30.0, listen: Callable[[Event], None] = lambda event: None
) -> dict[str, Any]:
    job = Job("tiny", "knn", "nowhere", str(tmp_path / "result.json"))
    return grid._in_process(job, tmp_path / "cell.log", timeout, Event(1, 1, "tiny", "knn", 0, 0.0), listen)


def runs(process: int) -> bool:
    """Return whether there is such a process, and more of it than an entry that nobody has looked at."""
    try:
        os.kill(process, 0)
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except ProcessLookupError:
        return False
    except OSError:
        return sys.platform != "linux"


def ends(process: int) -> bool:
    """Return whether a process ends within a few seconds."""
    for _ in range(100):
        if not runs(process):
            return True
        time.sleep(0.05)
    os.kill(process, signal.SIGKILL)
    return False


linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells or does that")


def test_a_method_that_crashes_is_a_marked_cell_and_the_grid_goes_on(
    tmp_path: Path, source: Path, child: Child
) -> None:
    child.does(
        "if job['method'] == 'knn':", "    print('RuntimeError: no luck', flush=True)", "    os._exit(1)", "done()"
    )
    failed, done = grid.run(plan_of(source, tmp_path / "out", KNN, Variant("plain", "ova")))
    assert failed["status"] == "failed"
    assert "no luck" in failed["message"]
    assert done["status"] == "done"
    child.does("done()")
    plan = plan_of(source, tmp_path / "out", KNN)
    assert grid.run(plan)[0]["status"] == "failed", "it is not run again unasked"
    assert grid.run(replace(plan, retry=True))[0]["status"] == "done"


def test_a_method_that_takes_too_long_is_stopped_and_run_again_where_there_is_more_time(
    tmp_path: Path, source: Path, child: Child
) -> None:
    child.does("time.sleep(60)")
    plan = plan_of(source, tmp_path / "out", KNN)
    (cell,) = grid.run(replace(plan, timeout=0.5))
    assert (cell["status"], cell["message"]) == ("timeout", "stopped after 0.5 s")
    child.does("done()")
    assert grid.run(replace(plan, timeout=0.5))[0]["status"] == "timeout"
    assert grid.run(replace(plan, timeout=20))[0]["status"] == "done"


def test_a_method_that_is_killed_says_so(tmp_path: Path, source: Path, child: Child) -> None:
    child.does("os.kill(os.getpid(), 9)")
    (cell,) = grid.run(plan_of(source, tmp_path / "out", KNN))
    assert cell["status"] == "failed"
    assert "SIGKILL (out of memory?)" in cell["message"]


@linux
def test_the_peak_of_a_process_is_its_own_and_not_its_parents() -> None:
    held = bytearray(400_000_000)
    held[::4096] = b"x" * len(held[::4096])
    code = "from lightdxml.progress import peak_memory; print(peak_memory()['peak_mb'])"
    peak = float(subprocess.check_output([sys.executable, "-c", code], start_new_session=True))
    assert 5 < peak < len(held) / 1e6


@linux
def test_the_peak_counts_the_processes_that_a_method_starts(tmp_path: Path, child: Child) -> None:
    code = "held = b'x' * 150_000_000; print(1, flush=True); input()"
    start = f"[sys.executable, '-S', '-c', {code!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE"
    child.does(
        f"p = subprocess.Popen({start})", "p.stdout.readline()", "time.sleep(0.7)", "p.kill()", "done(peak_mb=1)"
    )
    assert 150 < in_process(tmp_path)["peak_mb"] < 300


@pytest.mark.parametrize("ending", ["os._exit(1)", "time.sleep(60)"])
def test_nothing_that_a_method_started_outlives_it(tmp_path: Path, child: Child, ending: str) -> None:
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    start = f"[sys.executable, '-S', '-c', {stubborn!r}], stdout=subprocess.PIPE, env={{}}"
    child.does(f"p = subprocess.Popen({start})", "p.stdout.readline()", "print(p.pid, flush=True)", ending)
    assert in_process(tmp_path, timeout=1.0)["status"] in ("failed", "timeout")
    assert ends(int((tmp_path / "cell.log").read_text()))


def test_whoever_ends_the_grid_ends_the_cell(tmp_path: Path, child: Child) -> None:
    child.does("print(os.getpid(), flush=True)", "time.sleep(60)")
    log = tmp_path / "cell.log"

    def end(event: Event) -> None:
        if log.read_text().endswith("\n"):
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit):
        in_process(tmp_path, listen=end)
    assert ends(int(log.read_text()))
    assert signal.getsignal(signal.SIGTERM) == before


@linux
def test_a_cell_ends_with_its_parent_whatever_ends_that() -> None:
    code = """if True:
        import os, time
        from lightdxml.experiments.bench import cell
        parent, (ready, say) = os.getpid(), os.pipe()
        child = os.fork()
        if child == 0:
            os.close(1)
            cell._end_with(parent)
            os.write(say, b"x")
            time.sleep(60)
        os.read(ready, 1)
        print(child, flush=True)
        os.kill(parent, 9)
    """
    ran = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=False)
    assert ends(int(ran.stdout))


def test_only_one_benchmark_works_in_a_folder(out: Path, source: Path) -> None:
    with lock.held(out / ".lock"), pytest.raises(ValueError, match=r"another benchmark is at work in .*: wait for it"):
        grid.run(plan_of(source, out, KNN))


def test_a_cell_has_a_folder_for_its_temporary_files_which_is_gone_afterwards(
    tmp_path: Path, source: Path, child: Child
) -> None:
    child.does("open(os.environ['TMPDIR'] + '/left', 'w')", "done(room=os.environ['TMPDIR'])")
    (cell,) = grid.run(plan_of(source, tmp_path / "out", KNN))
    assert Path(cell["room"]).is_relative_to(tmp_path / "out")
    assert not (tmp_path / "out" / "tmp").exists()


def test_a_cell_whose_parent_died_has_its_own_name(out: Path, source: Path, tmp_path: Path) -> None:
    variant = Variant("as it is", "knn")
    plan = plan_of(source, out, variant)
    note = tmp_path / "note.job"
    note.write_text(cell.as_json(replace(grid._job(plan, "tiny", variant, 0), parent=0)))
    cell.main(note)
    events: list[Event] = []
    (found,) = grid.run(plan, events.append)
    assert found["method"] == "as it is"
    assert events[-1].was_there


def test_a_cell_of_another_name_is_not_taken_for_the_one_that_is_wanted(out: Path, source: Path) -> None:
    variant = Variant("as it is", "knn")
    shutil.copy(out / "cells" / "tiny.knn.0.json", out / "cells" / "tiny.as it is.0.json")
    assert grid._known(plan_of(source, out, KNN), "tiny", KNN, 0) is not None
    assert grid._known(plan_of(source, out, variant), "tiny", variant, 0) is None


def test_all_of_a_cell_runs_on_the_threads_that_were_asked_for(ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, seen = method("knn"), set()
    rank = kind.rank

    def watched(self: Any, X: csr_matrix, k: int) -> Any:
        seen.add(parallel.thread_count())
        return rank(self, X, k)

    monkeypatch.setattr(kind, "rank", watched)
    cell.run(Job("tiny", "knn", str(ran / "matrices" / "tiny"), "", threads=3))
    assert seen == {3}


def test_a_setting_that_a_method_had_to_change_is_told(ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = method("knn")
    fit = kind.fit

    def changing(self: Any, *args: Any, **more: Any) -> None:
        fit(self, *args, **more)
        self.settings["neighbours"] = 7

    monkeypatch.setattr(kind, "fit", changing)
    found = cell.run(Job("tiny", "knn", str(ran / "matrices" / "tiny"), ""))
    assert found["held_settings"] == {"neighbours": 7}
    shown = {"data": "tiny", "method": "knn", "settings": {"neighbours": 20}, "versions": {}, **found}
    assert "`neighbours=20`; held with `neighbours=7`" in tables.settings_table([shown])


def test_what_changes_while_the_grid_runs_stops_it_at_once(
    out: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(*args: Any) -> dict[str, Any]:
        return {"status": "done", "metrics": {}, "versions": {"lightdxml": "0.0.1+other"}}

    monkeypatch.setattr(grid, "_in_process", other)
    events: list[Event] = []
    with pytest.raises(ValueError, match=r"changed while the grid ran: .*0\.0\.1\+other.*use another --out"):
        grid.run(replace(plan_of(source, out, KNN), repeat=3), events.append)
    assert max(event.number for event in events) == 2
    assert sorted(path.name for path in (out / "cells").iterdir()) == ["tiny.knn.0.json"]


def test_the_mark_of_the_source_is_of_all_that_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bench").mkdir()
    names = ("__init__.py", "bench/cell.py", "bench/matrices.py", "bench/tables.py")
    for name in names:
        (tmp_path / name).write_text("")
    monkeypatch.setattr(lightdxml, "__file__", str(tmp_path / "__init__.py"))
    mark = machine._source_mark.__wrapped__
    marks = [mark()]
    for name in names:
        (tmp_path / name).write_text("changed = 1")
        marks.append(mark())
    assert len(set(marks)) == 4
    assert marks[-1] == marks[-2], "tables measure nothing"


def test_the_machine_has_its_cores_whatever_is_used_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIGHTDXML_THREADS", "77")
    assert machine.describe()["cores"] == os.cpu_count()


@pytest.mark.parametrize(
    ("status", "retry", "alike"),
    [("skipped", False, True), ("failed", False, False), ("failed", True, True), ("timeout", True, True)],
)
def test_cells_that_are_run_again_do_not_stand_in_the_way(
    out: Path, source: Path, monkeypatch: pytest.MonkeyPatch, status: str, retry: bool, alike: bool
) -> None:
    variant = Variant("parabel", "parabel")
    plan = replace(plan_of(source, out, variant), retry=retry)
    monkeypatch.setattr(machine, "_version", lambda name: "none" if name == "omikuji" else _version(name))
    cell.write(grid._path(plan, "tiny", variant, 0), {**grid._header(plan, "tiny", variant, 0), "status": status})
    monkeypatch.setattr(machine, "_version", lambda name: "0.5" if name == "omikuji" else _version(name))
    with nullcontext() if alike else pytest.raises(ValueError, match=r"omikuji none.*omikuji 0\.5"):
        grid._check_alike(plan, [("tiny", variant, 0)])


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


def test_repeats_have_seeds_of_their_own(out: Path, source: Path, child: Child) -> None:
    child.does("done()")
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
    name = matrices.prepare(str(folder), tmp_path / "made", TextOptions(ngrams=1))
    made = matrices.read(tmp_path / "made" / name)
    assert made.X.shape[1] == made.X_test.shape[1] == 2
    assert made.X_test.getnnz(axis=1).tolist() == [1] * 4


def test_without_a_test_part_a_fifth_is_set_aside(tmp_path: Path) -> None:
    X, Y = documents(np.random.default_rng(0), 50)
    folder = save(Dataset("alone", Split(Y=Y, X=X)), tmp_path / "alone", "npz")
    made = matrices.read(tmp_path / "made" / matrices.prepare(str(folder), tmp_path / "made", TextOptions()))
    assert (made.X.shape[0], made.X_test.shape[0]) == (40, 10)


def test_the_same_data_by_another_path_is_the_same(out: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(source.parent)
    for written in ("tiny", "./tiny", f"../{source.parent.name}/tiny", str(source)):
        assert matrices.prepare(written, out / "matrices", TextOptions()) == "tiny"
    monkeypatch.chdir(source)
    assert matrices.prepare(".", out / "matrices", TextOptions()) == "tiny"


def test_other_data_under_the_same_path_are_not_mixed(tmp_path: Path) -> None:
    for seed in (0, 1):
        X, Y = documents(np.random.default_rng(seed), 50)
        shutil.rmtree(tmp_path / "data", ignore_errors=True)
        folder = save(Dataset("data", Split(Y=Y, X=X)), tmp_path / "data", "npz")
        expected = pytest.raises(ValueError, match="which has changed: use another --out") if seed else nullcontext()
        with expected:
            matrices.prepare(str(folder), tmp_path / "made", TextOptions())


def test_matrices_that_were_half_made_are_made_anew(tmp_path: Path, source: Path) -> None:
    half = tmp_path / "made" / "tiny"
    half.mkdir(parents=True)
    (half / "ignore.npz").write_bytes(b"of another attempt")
    matrices.prepare(str(source), tmp_path / "made", TextOptions())
    assert matrices.read(half).ignore is None


def test_names_of_data_are_names_that_files_can_have(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = Path(shutil.copytree(source, tmp_path / "..hidden"))
    (tmp_path / ".csv").write_text("text,labels\na,b\n")
    (source / "inner").mkdir(exist_ok=True)
    assert matrices.names_of([str(hidden)]) == ["hidden"]
    assert matrices.prepare(str(hidden), tmp_path / "made", TextOptions()) == "hidden"
    monkeypatch.chdir(source / "inner")
    assert matrices.names_of([".."]) == ["tiny"]
    with pytest.raises(ValueError, match="a folder with a plain name"):
        matrices.names_of([str(tmp_path / ".csv")])


def test_two_data_sets_of_one_name_are_refused_before_any_work(tmp_path: Path, source: Path) -> None:
    other = shutil.copytree(source, tmp_path / "other" / "tiny")
    plan = Plan((str(source), str(other)), (KNN,), tmp_path / "out")
    with pytest.raises(ValueError, match=r"tiny and .*tiny are both called tiny"):
        grid.run(plan)
    assert not (tmp_path / "out").exists()


REPEATS = [("as it is", 50.0), ("as it is", 60.0), ("k=25", 40.0), ("k=25", 44.0), ("without sparse view", 30.0)]


def test_the_ablation_is_of_the_means_of_repeats(ran: Path, tmp_path: Path) -> None:
    one = json.loads((ran / "cells" / "tiny.knn.0.json").read_text())
    cells = []
    for i, (name, value) in enumerate([*REPEATS, ("without sparse view", 34.0)]):
        measures = dict.fromkeys(one["metrics"], value)
        more = {"metrics": measures, "along": {"beta": [[0.5, measures]]}}
        cells.append({**one, "method": name, "repeat": i % 2, **more})
    curves = ablation.curves(cells, "tiny")
    assert [(value, measures["P@1"]) for value, measures in curves["k"]] == [(25, 42.0)]
    assert [(value, measures["P@1"]) for value, measures in curves["β"]] == [(0.5, 32.0)]
    table = ablation._table(cells, "tiny").splitlines()[4:]
    assert [line.split(" | ")[:2] for line in table] == [
        ["| as it is", "55.00"], ["| k=25", "42.00 (-13.00)"], ["| without sparse view", "32.00 (-23.00)"],
    ]  # fmt: skip
    with pytest.raises(ValueError, match="use another --out"):
        ablation.write_reports([*cells, {**cells[0], "threads": 64}], tmp_path)


def test_the_ablation_is_drawn_from_its_cells(tmp_path: Path, source: Path) -> None:
    as_it_is, no_tree, kept_aside, first, *others = ablation.variants()[:7]
    plan = plan_of(source, tmp_path / "out", replace(first, settings={"D": 8, "e_model": 1, "sparse": False}))
    (base,) = grid.run(plan)
    assert base["status"] == "done", base["message"]
    worse = {name: value - 1 for name, value in base["metrics"].items()}
    cells = [{**base, "method": as_it_is.name}, base]
    cells += [{**base, "method": other.name, "metrics": worse} for other in (no_tree, kept_aside, *others)]
    curves = ablation.curves(cells, "tiny")
    assert list(curves) == ["β", "e_model", "label tree", "documents set aside", "sparse view", "re-ranker", "refresh"]
    assert [value for value, _ in curves["β"]] == [i / 10 for i in range(11)]
    assert [measures["P@1"] - base["metrics"]["P@1"] for _, measures in curves["refresh"]] == [-1, 0]
    written = ablation.write_reports(cells, tmp_path / "out")
    assert "ablation-tiny.png" in {path.name for path in written}
    assert (tmp_path / "out" / "ablation.md").read_text().count("(-1.00)") == 30


def test_an_ablation_of_some_variants_runs_only_those(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "out"
    run("bench", "ablate", "--data", source, "--only", "e_model=2", "--out", out, "--threads", "1")
    assert [path.name for path in (out / "cells").glob("*.json")] == ["tiny.e_model=2.0.json"]
    assert "| e_model=2 |" in (out / "ablation.md").read_text()
    with pytest.raises(ValueError, match="there is no variant 'e_model=3': known are as it is, without label tree"):
        run("bench", "ablate", "--data", source, "--only", "e_model=3", "--out", out)


def test_the_command_runs_the_grid(out: Path, source: Path) -> None:
    assert "results.md" in run("bench", "--data", source, "--methods", "knn", "--out", out, "--threads", "1")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"--methods": "knnn"}, "there is no method 'knnn': known are lightdxml, lightdxml-paper, astec, parabel"),
        ({"--data": "nothing"}, "a path, or one of see-also, debian-relations, Mediamill, Bibtex"),
        ({"--data": "bibtex"}, "it to be fetched: lightdxml data get Bibtex"),
        ({"--data": ","}, "--data names nothing"),
        ({"--timeout": "soon"}, "--timeout soon is no time"),
        ({"--repeat": "0"}, "repeat is 0"),
        ({"--threads": "0"}, "threads is 0: it must be a whole number from 1"),
        ({"--out": __file__}, "is a file: choose another folder for --out"),
    ],
)
def test_what_the_command_does_not_know_it_says(
    tmp_path: Path, source: Path, changed: dict[str, str], message: str
) -> None:
    options = {"--data": str(source), "--methods": "knn", "--out": str(tmp_path / "out")} | changed
    with pytest.raises(ValueError, match=re.escape(message)):
        run("bench", *(word for option in options.items() for word in option))


def test_a_grid_in_which_nothing_was_measured_ends_with_an_error(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(method("knn"), "packages", ("no_such_package",))
    run("bench", "--data", source, "--methods", "knn", "--out", tmp_path / "out", "--threads", "1", code=1)


def test_a_stopped_grid_says_how_to_go_on(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(grid, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        bench._run(plan_of(source, tmp_path / "out", KNN))
    assert "and the same command goes on from there" in capsys.readouterr().err


def test_compiling_is_no_part_of_training_time(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = method("knn").fit

    def slow(self: Any, *given: Any, **settings: Any) -> None:
        fit(self, *given, **settings)
        self.phases["compile"] = 1000.0

    monkeypatch.setattr(method("knn"), "fit", slow)
    (folder,) = (out / "matrices").iterdir()
    measured = cell.run(Job("tiny", "knn", str(folder), str(out / "nowhere.json")))
    assert measured["train_seconds"] < 0
    assert measured["phases"]["compile"] == 1000.0
