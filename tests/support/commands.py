"""Commands as a user runs them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from typer.testing import CliRunner

from lightdxml.cli import application

COMMAND = [sys.executable, "-c", "from lightdxml.__main__ import main; main()"]


def run(*arguments: Any, text: str | bytes = "", code: int = 0) -> str:
    """Run a command in this process and return what it prints; its errors are raised."""
    result = CliRunner().invoke(
        application(), [str(argument) for argument in arguments], input=text, catch_exceptions=False
    )
    assert result.exit_code == code, result.output
    return result.stdout


def run_process(*arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, which shows exit codes and error output."""
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
