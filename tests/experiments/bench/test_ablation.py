"""The ablation: curves, table and figure from cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lightdxml.experiments.bench import ablation
from lightdxml.experiments.bench.results import grouped
from tests.support.bench import done_cell, ended_cell


def cells_of(name: str, *values: float) -> list[dict[str, Any]]:
    """Return repeats of a variant, with all metrics equal to a value."""
    cells = []
    for repeat, value in enumerate(values):
        metrics = dict.fromkeys(done_cell()["metrics"], value)
        cells.append(done_cell(method=name, repeat=repeat, metrics=metrics, beta_curve=[[0.5, metrics]]))
    return cells


def test_curves_and_table_show_means_over_repeats(tmp_path: Path) -> None:
    cells = (
        cells_of("default", 50, 60) + cells_of("shortlist_size=25", 40, 44) + cells_of("without linear view", 30, 34)
    )
    curves = ablation.curves(grouped(cells)["bibtex"])
    assert [(value, metrics["P@1"]) for value, metrics in curves["shortlist size"]] == [(25, 42.0)]
    assert [(value, metrics["P@1"]) for value, metrics in curves["β"]] == [(0.5, 32.0)]
    ablation.write_reports([*cells, ended_cell("failed", "bad luck", method="epochs=2")], tmp_path)
    rows = [
        line.split(" | ")[:2] for line in (tmp_path / "ablation.md").read_text().splitlines() if line.startswith("| ")
    ][1:]
    assert rows == [
        ["| default", "55.00"],
        ["| shortlist_size=25", "42.00 (+10.00)"],
        ["| without linear view", "32.00 (-23.00)"],
        ["| epochs=2 (failed)", "–"],
    ]


def test_all_variants_are_in_the_figure(tmp_path: Path) -> None:
    cells = [cell for variant in ablation.variants() for cell in cells_of(variant.name, 50)]
    curves = ablation.curves(grouped(cells)["bibtex"])
    assert list(curves) == [
        "β", "epochs", "shortlist size", "epochs between refreshes",
        "label tree", "refit", "linear view", "re-ranker", "refresh",
    ]  # fmt: skip
    written = {path.name for path in ablation.write_reports(cells, tmp_path)}
    assert written == {"ablation-bibtex.png", "ablation.md", "ablation.json", "ablation.csv"}


def test_an_unknown_variant_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown variant 'epochs=3': choose from default, without label tree"):
        ablation.variants(["default", "epochs=3"])
