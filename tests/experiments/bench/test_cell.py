"""What a cell measures."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml.data import Dataset, Split, save
from lightdxml.experiments.baselines import Method, TooLargeError, method
from lightdxml.experiments.baselines.base import Ranked
from lightdxml.experiments.bench import cell, matrices
from lightdxml.experiments.bench.cell import Job
from lightdxml.experiments.bench.matrices import Matrices
from lightdxml.experiments.bench.tables import settings_list
from lightdxml.kernels import parallel
from lightdxml.text.tfidf import TextOptions


@pytest.fixture
def job(finished: Path, tmp_path: Path) -> Job:
    shutil.copytree(finished / "matrices", tmp_path / "matrices")
    return Job(str(tmp_path), "tiny", "knn", "knn", {})


def test_a_cell_has_all_results(finished: Path) -> None:
    found = json.loads((finished / "cells" / "tiny.knn.0.json").read_text())
    assert found["status"] == "done"
    cut = {f"{name}@{k}" for name in ("P", "nDCG", "PSP", "PSnDCG") for k in (1, 3, 5)}
    assert cut | {"RP@5", "R-precision"} == set(found["metrics"])
    assert found["metrics"]["P@1"] > 50
    assert found["sizes"] == {"train": 120, "test": 30, "features": 152, "labels": 30}
    for name in ("train_seconds", "peak_mb", "size_mb", "batch_ms"):
        assert found[name] > 0
    assert 0 < found["single_ms"]["p50"] <= found["single_ms"]["p99"]
    assert {"numpy", "lightdxml", "python"} <= set(found["versions"])


def test_a_cell_uses_the_given_number_of_threads(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, seen = method("knn"), set()
    rank = kind.rank

    def watched(self: Any, X: csr_matrix, k: int) -> Any:
        seen.add(parallel.thread_count())
        return rank(self, X, k)

    monkeypatch.setattr(kind, "rank", watched)
    cell.run(replace(job, threads=3))
    assert seen == {3}


def test_settings_that_a_method_adjusts_are_reported(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = method("knn").fit

    def adjusting(self: Any, *args: Any, **options: Any) -> None:
        fit(self, *args, **options)
        self.settings["neighbors"] = 7

    monkeypatch.setattr(method("knn"), "fit", adjusting)
    found = cell.run(job)
    assert found["held_settings"] == {"neighbors": 7}
    shown = {"data": "tiny", "method": "knn", "settings": {"neighbors": 20}, **found}
    assert "`neighbors=20`; set in training: `neighbors=7`" in settings_list([shown])


@pytest.mark.parametrize("warm_up", [0, 20])
def test_single_documents_are_timed_for_a_limited_time(monkeypatch: pytest.MonkeyPatch, warm_up: int) -> None:
    monkeypatch.setattr(cell, "_SINGLE_SECONDS", -1.0)
    monkeypatch.setattr(cell, "_WARM_UP", warm_up)
    times = iter([7.0])
    monkeypatch.setattr(cell, "_rank_ms", lambda *_: next(times))
    assert cell._single_ms(method("knn")(), csr_matrix((3, 4))) == {"p50": 7.0, "p99": 7.0}


def test_compilation_does_not_count_as_training_time(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = method("knn").fit

    def slow(self: Any, *args: Any, **options: Any) -> None:
        fit(self, *args, **options)
        self.phases["compile"] = 1000.0

    monkeypatch.setattr(method("knn"), "fit", slow)
    measured = cell.run(job)
    assert measured["train_seconds"] < 0
    assert measured["phases"]["compile"] == 1000.0


def test_data_that_is_too_large_for_a_method_skips_the_cell(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Any, *args: Any, **options: Any) -> None:
        raise TooLargeError("too many labels")

    monkeypatch.setattr(method("knn"), "fit", refuse)
    path = tmp_path / "cell.job"
    path.write_text(json.dumps(asdict(job)))
    cell.main(path, os.getppid())
    found = json.loads(job.result.read_text())
    assert (found["status"], found["message"]) == ("skipped", "too many labels")


class Reversed(Method):
    """Ranks labels by descending id."""

    name = "reversed"

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None: ...

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        labels = np.tile(np.arange(199, 199 - k, -1, dtype=np.int32), (X.shape[0], 1))
        return labels, np.ones(labels.shape, dtype=np.float32)

    def save(self, folder: Path) -> None: ...


@pytest.mark.parametrize(("n_true", "expected"), [(20, 100.0), (100, 100.0), (160, 62.5)])
def test_r_precision_looks_as_deep_as_documents_have_labels_but_not_beyond_a_limit(
    n_true: int, expected: float
) -> None:
    Y = np.zeros((3, 200), dtype=np.float32)
    Y[:, 200 - n_true :] = 1
    X = csr_matrix((3, 4), dtype=np.float32)
    data = Matrices(X, csr_matrix(Y), X, csr_matrix(Y), None, np.ones(200))
    found = cell._metrics(Reversed(), data)
    assert found["R-precision"] == pytest.approx(expected)
    assert found["P@5"] == found["RP@5"] == 100


@pytest.mark.parametrize("unit_rows", [True, False])
def test_a_method_gets_rows_of_length_1_or_features_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit_rows: bool
) -> None:
    part = Split(Y=csr_matrix(np.eye(30, 6, dtype=np.float32)), X=csr_matrix(np.full((30, 4), 2, dtype=np.float32)))
    folder = save(Dataset("twos", part, part), tmp_path / "twos", "npz")
    matrices.prepare(str(folder), tmp_path / "matrices", TextOptions())
    seen = set()

    class Watching(Reversed):
        def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
            seen.update(X.data.tolist())

        def rank(self, X: csr_matrix, k: int) -> Ranked:
            seen.update(X.data.tolist())
            labels = np.tile(np.arange(k, dtype=np.int32), (X.shape[0], 1))
            return labels, np.ones(labels.shape, dtype=np.float32)

    Watching.unit_rows = unit_rows
    monkeypatch.setattr(cell, "method", lambda _: Watching)
    cell.run(Job(str(tmp_path), "twos", "watching", "watching", {}))
    assert seen == ({0.5} if unit_rows else {2.0})
