"""Commands as a user runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from typer.testing import CliRunner

from lightdxml.cli import _COMMANDS as COMMANDS
from lightdxml.cli import application
from tests.support.processes import forked, run_command

COMMAND = [sys.executable, "-c", "from lightdxml.__main__ import main; main()"]
_SECONDS = 60


def run(*arguments: Any, text: str | bytes = "", code: int = 0) -> str:
    """Run a command in this process and return what it prints; its errors are raised."""
    command = [str(argument) for argument in arguments]
    # As the entry point does: other commands would only take time.
    wanted = command[:1] if command and command[0] in COMMANDS else COMMANDS
    result = CliRunner().invoke(application(wanted), command, input=text, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def run_process(*arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, which shows exit codes and error output."""
    command = [str(argument) for argument in arguments]
    with TemporaryDirectory() as folder:
        out, errors = Path(folder, "out"), Path(folder, "errors")
        process = forked.Process(target=run_command, args=(command, out, errors, dict(os.environ)))
        process.start()
        process.join(_SECONDS)
        code = process.exitcode
        if code is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(command, _SECONDS)
        return subprocess.CompletedProcess(command, code, out.read_text("utf-8"), errors.read_text("utf-8"))
