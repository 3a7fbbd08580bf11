"""The measured tables of README and docs: one script measures all of them, and says nothing that was not measured."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lightdxml.experiments.bench.results import Group

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(BENCHMARKS)
    import readme_numbers

    return readme_numbers


def test_every_measured_table_has_a_command_and_every_command_a_table(script: ModuleType) -> None:
    assert set(script.pages()) == set(script.BENCH) | set(script.PRINTED)


@pytest.mark.parametrize(
    ("program", "count", "expected"),
    [
        ("print('| a |\\n|---|\\n| 1 |\\nand\\n| b |\\n|---|')", 2, "| a |\n|---|\n| 1 |\n\n| b |\n|---|"),
        ("print('| a |\\n|---|\\n\\n| b |\\n|---|')", 1, None),
        ("print('| a |\\n|---|')", 2, None),
        ("print('| a |\\n|---|'); raise SystemExit(1)", 1, None),
    ],
)
def test_a_command_that_fails_or_prints_other_tables_gives_none(
    script: ModuleType, tmp_path: Path, program: str, count: int, expected: str | None
) -> None:
    (tmp_path / "program.py").write_text(program)
    wanted, log = script.Printed("{out}/program.py", count), tmp_path / "log"
    if expected is not None:
        assert script.printed(wanted, tmp_path, tmp_path, log) == expected
        return
    with pytest.raises(SystemExit, match="tables: see"):
        script.printed(wanted, tmp_path, tmp_path, log)


def test_measurements_of_other_code_are_refused(script: ModuleType, tmp_path: Path) -> None:
    script.claim(tmp_path)
    script.claim(tmp_path)
    (tmp_path / "code").write_text("0.1.0+00000000")
    with pytest.raises(SystemExit, match="choose another folder"):
        script.claim(tmp_path)


def test_a_measured_table_is_written_without_what_its_measurement_needs(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("LIGHTDXML_PECOS", "LIGHTDXML_ANNIF"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(SystemExit, match="summary: set LIGHTDXML_PECOS"):
        script.measured("summary", tmp_path, tmp_path)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "summary.md").write_text("| a |\n|---|\n")
    assert script.measured("summary", tmp_path, tmp_path) == "| a |\n|---|"


def test_a_tie_is_not_a_win(script: ModuleType) -> None:
    def group(method: str, first: float, seconds: float) -> Group:
        metrics = dict.fromkeys(("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5"), first)
        cell: dict[str, Any] = {"status": "done", "metrics": metrics, "train_seconds": seconds, "size_mb": 1.0}
        return Group("bibtex", method, [{**cell, "batch_ms": 1.0}])

    methods = {"lightdxml": (60.0, 2.0), "bonsai": (60.004, 1.0), "parabel": (59.0, 4.0)}
    groups = {"bibtex": {name: group(name, *values) for name, values in methods.items()}}
    shown = sys.modules["bench_tables"].wins(groups, "lightdxml", ("bonsai", "parabel"))
    assert shown.endswith("Of 12 comparisons of accuracy, LightDXML wins 6 and ties in 6.")
    assert "ahead in all but P@1 **tie** (Bonsai)" in shown
    assert "| **2.00** | 1.00 | 1.00 |" in shown
