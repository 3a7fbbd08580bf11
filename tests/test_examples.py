"""The programs of `examples/` run as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize(("name", "shown"), [("own_csv.py", "why "), ("subject_indexing.py", "Beekeeping")])
def test_an_example_runs(tmp_path: Path, name: str, shown: str) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    assert shown in result.stdout
