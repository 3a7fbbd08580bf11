"""Cells: reading, comparing and averaging."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lightdxml.experiments.bench.results import check_comparable, grouped, read
from tests.support.bench import done_cell, ended_cell


def test_all_finished_files_are_read(tmp_path: Path) -> None:
    cells = [done_cell("wordnet"), done_cell(repeat=10), done_cell(repeat=2), done_cell(method="knn")]
    for i, cell in enumerate(cells):
        (tmp_path / f"{i}.json").write_text(json.dumps(cell), "utf-8")
    (tmp_path / ".unfinished.json").write_text("half of a", "utf-8")
    assert [(cell["data"], cell["method"], cell["repeat"]) for cell in read(tmp_path)] == [
        ("wordnet", "parabel", 0),
        ("bibtex", "parabel", 10),
        ("bibtex", "parabel", 2),
        ("bibtex", "knn", 0),
    ]


@pytest.mark.parametrize(
    "content",
    [
        b'{"data": "bib',
        b"[]",
        b"\xff\xfe",
        b"",
        b"[" * 100_000,
        json.dumps({"data": "bibtex"}).encode(),
    ],
    ids=("truncated", "list", "bytes", "empty", "deep", "method"),
)
def test_a_damaged_cell_is_named_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bibtex.knn.0.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"bibtex\.knn\.0\.json: found .*, expected .*delete the file") as error:
        read(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"machine": "Xeon, 8 cores, 64 GB, Linux x86_64"}, "EPYC.*Xeon"),
        ({"versions": {"lightdxml": "0.2.0"}}, "lightdxml 0.1.0.*lightdxml 0.2.0"),
        ({"versions": {"lightdxml": "0.1.0", "numpy": "2.2"}}, "numpy 2.1.*numpy 2.2"),
        ({"sizes": {"train": 5}}, "train=4880.*train=5"),
    ],
    ids=("machine", "lightdxml", "package", "sizes"),
)
def test_cells_under_other_conditions_are_not_comparable(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"bibtex\.parabel\.0 has .*{message}.*--out or delete the old cells"):
        check_comparable([done_cell(), done_cell(method="knn", **change)])


def test_repeats_with_other_settings_are_not_comparable() -> None:
    with pytest.raises(ValueError, match=r"trees=3.*trees=5"):
        check_comparable([done_cell(), done_cell(repeat=1, settings={"trees": 5})])
    check_comparable([done_cell(), done_cell(method="bonsai", settings={"trees": 5})])


def test_other_numbers_of_threads_are_not_comparable() -> None:
    with pytest.raises(ValueError, match=r"1 threads.*2 threads"):
        check_comparable([done_cell(threads=1), done_cell(method="knn", threads=2)])


def test_other_seeds_are_not_comparable() -> None:
    with pytest.raises(ValueError, match=r"the seed 0.*the seed 5"):
        check_comparable([done_cell(), done_cell(method="knn", seed=5)])


def test_methods_may_need_different_packages() -> None:
    other = done_cell(method="knn", versions={"lightdxml": "0.1.0", "omikuji": "0.5.2"})
    check_comparable([done_cell(), other, done_cell("wordnet", sizes={})])


def test_settings_read_from_a_file_equal_settings_in_memory() -> None:
    given = done_cell(settings={"layers": (1, 2)})
    check_comparable([given, json.loads(json.dumps(given))])


def test_repeats_are_averaged() -> None:
    cells = [done_cell(P=60.0), done_cell(repeat=1, P=62.0), ended_cell("failed", "bad luck", repeat=2)]
    (group,) = grouped(cells)["bibtex"]
    value = group.values["P@1"]
    assert (value.mean, value.low, value.high) == (60.0, 59.0, 61.0)
    assert group.values["single_ms.p50"].mean == 1.2
    assert (len(group.done), len(group.rest)) == (2, 1)


def test_missing_and_undefined_values_are_left_out() -> None:
    one = done_cell(peak_mb=None, batch_ms=float("nan"))
    del one["single_ms"]
    (group,) = grouped([one])["bibtex"]
    assert not {"peak_mb", "batch_ms", "single_ms.p50"} & set(group.values)
