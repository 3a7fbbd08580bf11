"""Every measured table of README and docs can be measured again by one script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_measured_table_has_a_command_and_every_command_a_table() -> None:
    code = "import readme_numbers as r; print(sorted(set(r.pages()) ^ (set(r.BENCH) | set(r.PRINTED))))"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "benchmarks", capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\n"
