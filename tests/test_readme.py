"""The examples of the README and of `examples/` run as they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.S)


def test_every_python_example_runs_in_order(tmp_path: Path) -> None:
    program = "\n".join(blocks("python"))
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("[['cat']]\n")


def test_two_commands_are_complete_on_one_line() -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("python3 -m venv")]
    assert len(lines) == 2
    assert lines[0].endswith("lightdxml evaluate see-also-model see-also")
    assert lines[1].endswith("pytest -q -n 2 --dist loadfile")


@pytest.mark.parametrize(("name", "shown"), [("own_csv.py", "why "), ("subject_indexing.py", "Beekeeping")])
def test_the_examples_run(tmp_path: Path, name: str, shown: str) -> None:
    command = [sys.executable, "-W", "error", str(README.parent / "examples" / name)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    assert shown in result.stdout
