"""Tables of cells."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from lightdxml.experiments.bench import grid
from lightdxml.experiments.bench.results import grouped
from lightdxml.experiments.bench.tables import page, settings_list, summary, write_csv
from tests.support.bench import done_cell, ended_cell


def page_of(*cells: dict[str, Any]) -> str:
    (groups,) = grouped(cells).values()
    return page(groups)


def row(text: str, method: str) -> dict[str, str]:
    """Return the first row of a method, by column."""
    lines = text.splitlines()
    i = next(i for i, line in enumerate(lines) if line.startswith(f"| {method}"))
    head = next(line for line in reversed(lines[:i]) if line.startswith("| Method"))
    split = ([part.strip() for part in line.strip("|").split(" | ")] for line in (head, lines[i]))
    return dict(zip(*split, strict=True))


def test_the_layout_is_the_papers() -> None:
    text = page_of(done_cell())
    head = next(line for line in text.splitlines() if line.startswith("| Method"))
    assert head.split(" | ")[1:9] == ["P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "training time", "model size"]
    assert "EPYC, 2 cores, 24 GB, Linux" in text
    assert "lightdxml 0.1.0, python 3.11.7, numpy 2.1" in text
    assert "4,880 training documents, 2,515 test documents, 1,836 features, 159 labels." in text


def test_the_best_measured_value_of_each_column_is_bold() -> None:
    cells = [done_cell(P=60.0, train_seconds=3.0), done_cell(method="knn", P=65.0, train_seconds=4.0)]
    text = page_of(*cells)
    assert (row(text, "knn")["P@1"], row(text, "parabel")["P@1"]) == ("**64.00**", "59.00")
    assert (row(text, "knn")["training time"], row(text, "parabel")["training time"]) == ("4.00 s", "**3.00 s**")
    # The published 65.08 does not compete.
    assert row(text, "SLEEC †")["P@1"] == "65.08"


def test_rows_that_look_equal_are_equally_bold_and_a_single_row_is_not() -> None:
    text = page_of(done_cell(P=60.001), done_cell(method="knn", P=60.002))
    assert row(text, "knn")["P@1"] == row(text, "parabel")["P@1"] == "**59.00**"
    assert row(page_of(done_cell()), "parabel")["P@1"] == "59.00"


def test_missing_values_are_dashes() -> None:
    shown = row(page_of(done_cell(peak_mb=None, batch_ms=float("nan"), single_ms={})), "parabel")
    assert (shown["peak memory"], shown["batch ms"], shown["single ms"]) == ("–", "–", "–")


def test_repeats_show_their_range() -> None:
    text = page_of(done_cell(P=60.0, train_seconds=1.0), done_cell(repeat=1, P=62.0, train_seconds=2.0))
    shown = row(text, "parabel")
    assert (shown["P@1"], shown["training time"]) == ("60.00 (59.00–61.00)", "1.50 s (1.00 s–2.00 s)")


@pytest.mark.parametrize("status", ["failed", "timeout", "skipped"])
def test_a_cell_without_results_is_a_row_with_a_note(status: str) -> None:
    text = page_of(done_cell(), ended_cell(status, "no |luck|\nat <all>", method="sleec"))
    shown = row(text, "sleec")
    assert set(shown.values()) == {f"sleec ({status})", "–"}
    assert f"✗ sleec, run 1, {status}: no \\|luck\\| at &lt;all>" in text


def test_a_method_that_failed_once_is_marked() -> None:
    text = page_of(done_cell(), ended_cell("failed", "bad luck", repeat=1))
    assert row(text, "parabel")["Method"] == "parabel (1 of 2 runs)"
    assert "✗ parabel, run 2, failed: bad luck" in text


def test_published_rows_have_a_footnote_with_source_and_hardware() -> None:
    text = page_of(done_cell("eurlex-4k"))
    shown = row(text, "LightDXML †")
    values = (shown["P@1"], shown["training time"], shown["model size"], shown["batch ms"])
    assert values == ("82.38", "75 s", "23.2 MB", "0.42")
    mark = shown["Method"].split()[-1]
    assert f"\n{mark} LightDXML paper; 2 RTX 2080 Ti, 20 cores" in text
    assert "shifted by one method" in text
    assert "†" not in page_of(done_cell("wordnet"))


def test_published_rows_are_in_the_table_of_the_metrics_that_they_have() -> None:
    second = page_of(done_cell(data="eurlex57k")).split("| Method | nDCG@3 ")[1]
    assert row(f"| Method | nDCG@3 {second}", "BERT-base")["RP@5"] == "79.60"
    assert row(f"| Method | nDCG@3 {second}", "parabel")["R-precision"] == "63.00"
    assert "BERT" not in page_of(done_cell(data="bibtex"))
    assert "SLEEC" not in page_of(done_cell(data="bibtex")).split("| Method | nDCG@3 ")[1].split("\n\n")[0]


def test_published_values_have_the_digits_that_were_published() -> None:
    shown = row(page_of(done_cell("AmazonTitles-670K")), "PfastreXML †")
    values = (shown["P@5"], shown["training time"], shown["model size"], shown["batch ms"])
    assert values == ("28.80", "3,996 s", "5.32 GB", "25.11")


def test_csv_can_be_read_back(tmp_path: Path) -> None:
    path = tmp_path / "cells.csv"
    write_csv([done_cell(P=60.5), ended_cell("failed", 'a "bad",\nthing', method="sleec")], path)
    with path.open(encoding="utf-8", newline="") as stream:
        first, second = csv.DictReader(stream)
    assert list(first)[:3] == ["data", "method", "repeat"]
    assert float(first["metrics.P@1"]) == 59.5
    assert (first["single_ms.p99"], first["threads"]) == ("2.3", "2")
    assert (second["message"], second["metrics.P@1"]) == ('a "bad",\nthing', "")


def test_measured_module_seconds_are_above_the_papers() -> None:
    astec = done_cell("EURLex-4K", "astec", phases={"M1": 9.0, "M2": 0.5, "M3+M4": 20.0, "re-ranker": 4.0})
    ours = done_cell("EURLex-4K", "lightdxml", phases={"M1": 5.0, "M3+M4": 2.5, "validation": 2.0, "compile": 1.0})
    trees = done_cell("EURLex-4K", "parabel", phases={"train": 5.0})
    text = page_of(astec, ours, trees, ended_cell("failed", "", data="EURLex-4K", method="lightdxml-paper"))
    lines = text[text.index("### Training seconds per module") :].splitlines()[4:]
    assert lines[0] == "| astec | 9.00 | 0.500 | 20.0 | 4.00 | – |"
    assert lines[1] == "| lightdxml | **5.00** | – | **2.50** | – | 2.00 |"
    assert [line.split(" †")[0] for line in lines[2:4]] == ["| Astec", "| LightDXML"]
    assert lines[3].endswith("| 21.6 | 7.7 | 45 | 0 | – |")
    assert "per module" not in page_of(trees)


def test_the_summary_opens_with_a_table_of_all_data_sets_and_the_command() -> None:
    cells = [done_cell(method="knn"), done_cell(P=70.0), done_cell("word net", method="knn", P=30.0)]
    lines = summary(cells, "lightdxml bench --out bench").splitlines()
    assert lines[2] == (
        "| Data set | Method | P@1 | P@3 | P@5 | PSP@1 | PSP@3 | PSP@5 | training time | model size | ms per document |"
    )
    assert lines[4].startswith("| [bibtex](results/bibtex.md) | knn | 59.00 |")
    assert lines[5].startswith("|  | parabel | **69.00** |")
    assert lines[6].startswith("| [word net](results/word%20net.md) | knn | 29.00 |")
    assert lines[8:11] == ["```sh", "lightdxml bench --out bench", "```"]


def test_each_data_set_has_its_own_page(tmp_path: Path) -> None:
    grid.write_reports([done_cell(), done_cell("wordnet", method="knn")], tmp_path)
    first, second = ((tmp_path / "results" / f"{name}.md").read_text("utf-8") for name in ("bibtex", "wordnet"))
    assert "| parabel |" in first
    assert "| parabel |" not in second


def test_equal_settings_are_listed_once() -> None:
    knn = done_cell(method="knn", settings={"k": 5, "auto": None})
    lines = settings_list([done_cell(), done_cell("wordnet"), knn, done_cell("wordnet", "knn")]).splitlines()[2:]
    assert lines == [
        "- **parabel**: `trees=3`",
        "- **knn** (bibtex): `k=5`",
        "- **knn** (wordnet): `trees=3`",
    ]
