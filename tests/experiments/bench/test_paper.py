"""The paper's main table."""

from __future__ import annotations

from typing import Any

from lightdxml.experiments.bench.paper import METHODS, page
from tests.support.bench import done_cell, ended_cell


def rows(*cells: dict[str, Any]) -> list[list[str]]:
    """Return the rows of the table, cell by cell."""
    lines = [line for line in page(cells).splitlines() if line.startswith("|")]
    return [[part.strip() for part in line.strip("|").split("|")] for line in lines]


def test_methods_are_grouped_by_class_in_the_papers_order() -> None:
    shown = rows(*(done_cell(data="mine", method=method) for method in reversed(METHODS)))
    assert shown[0][:5] == ["Class", "Method", "P@1", "P@3", "P@5"]
    assert [row[1] for row in shown[2:]] == list(METHODS)
    assert [row[0] for row in shown[2:]] == ["Embd", "", "Tree", "", "", "", "DL", "", ""]


def test_published_rows_stand_below_the_measured_ones() -> None:
    shown = rows(done_cell(data="eurlex4k", method="sleec"), done_cell(data="eurlex4k", method="lightdxml-paper"))
    names = [row[1] for row in shown]
    assert names[names.index("sleec") + 1].startswith("SLEEC †")
    assert names[names.index("lightdxml-paper") + 1].startswith("LightDXML †")
    assert next(row[2] for row in shown if row[1].startswith("LightDXML †")) == "82.38"
    assert any(name.startswith("AnnexML †") for name in names), (
        "published rows of methods that were not run are shown too"
    )


def test_data_that_the_paper_does_not_have_show_rows_of_others_with_their_source() -> None:
    text = page([done_cell(data="bibtex", method="sleec")])
    assert "|  | SLEEC †1 | 65.08 |" in text
    assert "| Tree | PfastreXML †2 | 63.46 |" in text
    assert (
        "†1 Published, not measured here: XC repository, 2024-08; hardware unknown; the best P in that repository"
        in text
    )
    assert (
        "†2 Published, not measured here: XC repository, 2024-08; hardware unknown; the best PSP in that repository"
        in text
    )
    assert "PD-Sparse" not in text, "it is no method of the table"


def test_a_method_that_ran_out_of_time_is_marked() -> None:
    text = page([done_cell(method="sleec"), ended_cell("timeout", "stopped after 1 h", method="annexml")])
    assert "| Embd | annexml (timeout) | – |" in text
    assert "✗ annexml, timeout: stopped after 1 h" in text
