"""Cells read, kept apart and written as tables."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from lightdxml.experiments.bench import published
from lightdxml.experiments.bench.results import check_alike, grouped, read
from lightdxml.experiments.bench.tables import markdown, module_table, settings_table, write_csv


def cell(data: str = "bibtex", method: str = "parabel", repeat: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a cell that is done; `P` is its P@1, from which all other measures follow."""
    p = changes.pop("P", 60.0)
    measures = {"P": p, "nDCG": p + 1, "PSP": p / 2, "PSnDCG": p / 2 + 1}
    return {
        "data": data,
        "method": method,
        "repeat": repeat,
        "seed": repeat,
        "status": "done",
        "message": "",
        "settings": {"trees": 3},
        "versions": {"lightdxml": "0.1.0", "python": "3.11.7", "numpy": "2.1"},
        "machine": {"processor": "EPYC", "cores": 2, "memory_gb": 24.0, "system": "Linux"},
        "sizes": {"train": 4880, "test": 2515, "features": 1836, "labels": 159},
        "train_seconds": 12.0,
        "phases": {"M1": 5.0, "validation": 2.0},
        "peak_mb": 512.0,
        "size_mb": 3.4,
        "batch_ms": 0.12,
        "single_ms": {"p50": 1.2, "p99": 2.3},
        "metrics": {f"{name}@{k}": value - k for name, value in measures.items() for k in (1, 3, 5)},
    } | changes


def ended(status: str, message: str, **changes: Any) -> dict[str, Any]:
    """Return a cell without results."""
    measured = ("train_seconds", "phases", "peak_mb", "size_mb", "batch_ms", "single_ms", "metrics")
    whole = cell(**changes) | {"status": status, "message": message}
    return {name: value for name, value in whole.items() if name not in measured}


def row(text: str, method: str) -> dict[str, str]:
    """Return the first row of a method, by column."""
    lines = text.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith(f"| {method}"))
    head = next(line for line in reversed(lines[:place]) if line.startswith("| Method"))
    split = ([part.strip() for part in line.strip("|").split(" | ")] for line in (head, lines[place]))
    return dict(zip(*split, strict=True))


def store(folder: Path, *cells: dict[str, Any]) -> None:
    for one in cells:
        path = folder / f"{one['data']}.{one['method']}.{one['repeat']}.json"
        path.write_text(json.dumps(one), "utf-8")


def test_cells_are_read_sorted(tmp_path: Path) -> None:
    store(tmp_path, cell("wordnet"), cell("bibtex", repeat=10), cell("bibtex", repeat=2), cell("bibtex", "knn"))
    (tmp_path / ".bibtex.knn.0.json").write_text("half of a", "utf-8")
    found = [(one["data"], one["method"], one["repeat"]) for one in read(tmp_path)]
    assert found == [
        ("bibtex", "knn", 0),
        ("bibtex", "parabel", 2),
        ("bibtex", "parabel", 10),
        ("wordnet", "parabel", 0),
    ]


@pytest.mark.parametrize(
    "content",
    [
        b'{"data": "bib',
        b"[]",
        b"\xff\xfe",
        b"",
        b"[" * 100_000,
        json.dumps(cell() | {"status": "half"}).encode(),
        json.dumps(cell() | {"versions": None}).encode(),
        json.dumps({"data": "bibtex"}).encode(),
        json.dumps(cell() | {"metrics": None}).encode(),
    ],
    ids=("broken", "list", "bytes", "empty", "deep", "status", "versions", "method", "metrics"),
)
def test_a_damaged_cell_is_named_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bibtex.knn.0.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"bibtex\.knn\.0\.json: found .*, expected .*remove the file") as error:
        read(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"machine": {"processor": "Xeon", "cores": 8, "memory_gb": 64.0, "system": "Linux"}}, "EPYC.*Xeon"),
        ({"versions": {"lightdxml": "0.2.0"}}, "lightdxml 0.1.0.*lightdxml 0.2.0"),
        ({"versions": {"lightdxml": "0.1.0", "numpy": "2.2"}}, "numpy 2.1.*numpy 2.2"),
        ({"sizes": {"train": 5}}, "train=4880.*train=5"),
    ],
    ids=("machine", "lightdxml", "package", "sizes"),
)
def test_cells_that_differ_are_not_mixed(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=rf"bibtex\.parabel\.0 has .*{said}.*--out, or remove the old cells"):
        check_alike([cell(), cell(method="knn", **change)])
    with pytest.raises(ValueError, match="--out"):
        markdown([cell(), cell(method="knn", **change)])


def test_repeats_with_other_settings_are_not_mixed() -> None:
    with pytest.raises(ValueError, match=r"trees=3.*trees=5"):
        check_alike([cell(), cell(repeat=1, settings={"trees": 5})])
    check_alike([cell(), cell(method="bonsai", settings={"trees": 5})])


def test_other_thread_counts_are_not_mixed() -> None:
    with pytest.raises(ValueError, match=r"1 threads.*2 threads"):
        check_alike([cell(threads=1), cell(method="knn", threads=2)])


def test_cells_of_other_methods_may_have_packages_of_their_own() -> None:
    check_alike(
        [cell(), cell(method="knn", versions={"lightdxml": "0.1.0", "omikuji": "0.5.2"}), cell("wordnet", sizes={})]
    )


def test_settings_from_a_file_and_in_memory_are_alike() -> None:
    given = cell(settings={"layers": (1, 2)})
    check_alike([given, json.loads(json.dumps(given))])


def test_repeats_have_a_mean_and_a_spread() -> None:
    (group,) = grouped([cell(P=60.0), cell(repeat=1, P=62.0), ended("failed", "bad luck", repeat=2)])
    value = group.values["P@1"]
    assert (value.mean, value.low, value.high) == (60.0, 59.0, 61.0)
    assert group.values["single_ms.p50"].mean == 1.2
    assert (len(group.done), len(group.rest)) == (2, 1)


def test_missing_and_undefined_values_are_left_out() -> None:
    one = cell(peak_mb=None, batch_ms=float("nan"))
    del one["single_ms"]
    (group,) = grouped([one])
    assert not {"peak_mb", "batch_ms", "single_ms.p50"} & set(group.values)
    shown = row(markdown([one]), "parabel")
    assert (shown["peak memory"], shown["batch ms"], shown["single ms p50"]) == ("–", "–", "–")


def test_the_layout_is_the_papers() -> None:
    text = markdown([cell()])
    head = next(line for line in text.splitlines() if line.startswith("| Method"))
    assert head.split(" | ")[1:9] == ["P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "train", "size"]
    assert "EPYC, 2 cores, 24 GB, Linux" in text
    assert "lightdxml 0.1.0, python 3.11.7, numpy 2.1" in text
    assert "4,880 training documents, 2,515 test documents, 1,836 features, 159 labels." in text


def test_the_best_measured_value_is_bold_in_each_column() -> None:
    cells = [cell(P=60.0, train_seconds=3.0), cell(method="knn", P=65.0, train_seconds=4.0)]
    text = markdown(cells, published.rows())
    assert (row(text, "knn")["P@1"], row(text, "parabel")["P@1"]) == ("**64.00**", "59.00")
    # Less is better of time, and the published 65.08 is no competitor.
    assert (row(text, "knn")["train"], row(text, "parabel")["train"]) == ("4.00 s", "**3.00 s**")
    assert row(text, "SLEEC †")["P@1"] == "65.08"


def test_what_looks_equal_is_equally_bold_and_one_row_alone_is_not() -> None:
    text = markdown([cell(P=60.001), cell(method="knn", P=60.002)])
    assert row(text, "knn")["P@1"] == row(text, "parabel")["P@1"] == "**59.00**"
    assert row(markdown([cell()]), "parabel")["P@1"] == "59.00"


def test_repeats_show_their_spread() -> None:
    text = markdown([cell(P=60.0, train_seconds=1.0), cell(repeat=1, P=62.0, train_seconds=2.0)])
    shown = row(text, "parabel")
    assert (shown["P@1"], shown["train"]) == ("60.00 (59.00–61.00)", "1.50 s (1.00–2.00 s)")


@pytest.mark.parametrize(
    ("status", "words"), [("failed", "failed"), ("timeout", "ran out of time"), ("skipped", "was skipped")]
)
def test_a_cell_without_results_is_a_marked_row_with_its_message(status: str, words: str) -> None:
    text = markdown([cell(), ended(status, "no |luck|\nat <all>", method="sleec")])
    shown = row(text, "sleec ✗")
    assert shown["Method"] == f"sleec ✗ {status}"
    assert set(shown.values()) == {f"sleec ✗ {status}", "–"}
    assert f"✗ sleec {words}: no \\|luck\\| at &lt;all>" in text


def test_a_method_that_failed_once_says_so() -> None:
    text = markdown([cell(), ended("failed", "bad luck", repeat=1)])
    assert row(text, "parabel")["Method"] == "parabel ✗ (1 of 2)"
    assert "✗ parabel, repeat 1, failed: bad luck" in text


def test_published_rows_have_their_source_and_hardware_below() -> None:
    text = markdown([cell("eurlex-4k"), cell("wordnet")], published.rows())
    shown = row(text, "LightDXML †")
    assert (shown["P@1"], shown["train"], shown["size"], shown["batch ms"]) == ("82.38", "75 s", "23.2 MB", "0.42")
    mark = shown["Method"].split()[-1]
    assert f"\n{mark} LightDXML paper; 2 RTX 2080 Ti, 20 cores" in text
    assert "shifted by one method" in text
    assert "†" not in text[text.index("## wordnet") :]
    assert "AmazonCat-13K" not in text


def test_all_published_rows_can_be_had() -> None:
    text = markdown([cell("eurlex-4k")], published.rows(), all_published=True)
    assert text.count("| LightDXML †") == 5
    assert text.count("## ") == 7
    assert "## EURLex-4K" not in text


def test_csv_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "cells.csv"
    cells = [cell(P=60.5), ended("failed", 'a "bad",\nthing', method="sleec", settings={"layers": [1, 2], "C": None})]
    write_csv(cells, path)
    with path.open(encoding="utf-8", newline="") as stream:
        first, second = csv.DictReader(stream)
    assert list(first)[:3] == ["data", "method", "repeat"]
    assert float(first["metrics.P@1"]) == 59.5
    assert (first["single_ms.p99"], first["machine.cores"], first["settings.trees"]) == ("2.3", "2", "3")
    assert (second["message"], second["metrics.P@1"], second["settings.C"]) == ('a "bad",\nthing', "", "")
    assert json.loads(second["settings.layers"]) == [1, 2]


def test_modules_stand_next_to_the_papers() -> None:
    astec = cell(method="astec", phases={"M1": 9.0, "M2": 0.5, "M3+M4": 20.0, "re-ranker": 4.0})
    ours = cell(method="lightdxml", phases={"M1": 5.0, "M3+M4": 2.5, "validation": 2.0, "compile": 1.0})
    lines = module_table([astec, ours, cell(), ended("failed", "", method="lightdxml-paper")]).splitlines()
    assert [line for line in lines if line.startswith("| bibtex")] == [
        "| bibtex | astec | 9.00 | 0.500 | 20.0 | 4.00 | – |",
        "| bibtex | lightdxml | 5.00 | – | 2.50 | – | 3.00 |",
    ]
    assert "| EURLex-4K | LightDXML † | 21.6 | 7.7 | 45.0 | 0.0 | – |" in lines
    assert lines[-1] == "† LightDXML paper; 2 RTX 2080 Ti, 20 cores"
    assert module_table([cell()]) == ""


def test_settings_are_listed_once_where_they_are_the_same() -> None:
    cells = [cell(), cell("wordnet"), cell(method="knn", settings={"k": 5, "auto": None}), cell("wordnet", "knn")]
    lines = settings_table(cells).splitlines()[2:]
    versions = "lightdxml 0.1.0, python 3.11.7, numpy 2.1"
    assert lines == [
        f"- **parabel**: `trees=3`; {versions}",
        f"- **knn** (bibtex): `k=5`; {versions}",
        f"- **knn** (wordnet): `trees=3`; {versions}",
    ]
