"""The examples of a page of the documentation, and how to run them.

- Blocks of `python` and `sh` run in the order of the page, in an empty temporary folder of the page. Python blocks
  share one namespace. Each `sh` block is a new `bash -euo pipefail` with `lightdxml` on its path.
- A block of `output` directly after such a block is what it prints to stdout, compared as doctest does with ELLIPSIS
  and NORMALIZE_WHITESPACE.
- `<!-- not run: REASON -->` directly before a block: it is shown, and not run.
- `<!-- run: COMMANDS -->`, on one line or several: shell commands that run, and are not shown.
- `<!-- examples not run: REASON -->` on the first line: nothing on this page runs.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

_FENCE = r"(?P<indent> *)(?P<fence>```+)(?P<language>[^\n`]*)\n(?P<code>.*?)(?<=\n)(?P=indent)(?P=fence) *(?:\n|\Z)"
_COMMENT = r" *<!-- *(?P<word>not run|run)\b:?(?P<comment>.*?)-->"
_PIECE = re.compile(rf"^(?:{_FENCE}|{_COMMENT})", flags=re.S | re.M)
_WHOLE_PAGE = re.compile(r"<!-- examples not run: \S.*?-->")
_LIKE_DOCTEST = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_SECONDS = 300


@dataclass
class Block:
    """A fenced block, or hidden commands."""

    language: str
    code: str
    line: int
    reason: str = ""
    output: str | None = None

    @property
    def runs(self) -> bool:
        """Whether CI runs the block."""
        return self.language in ("python", "sh") and not self.reason


def blocks(text: str) -> list[Block]:
    """Return the blocks of a page in their order."""
    found: list[Block] = []
    reason, end = "", 0
    for piece in _PIECE.finditer(f"{text}\n"):
        line = text.count("\n", 0, piece.start()) + 1
        directly, end = not text[end : piece.start()].strip(), piece.end()
        if reason and (piece["word"] or not directly):
            break
        if piece["word"]:
            comment = dedent(piece["comment"]).strip()
            if not comment:
                raise ValueError(f"line {line}: 'not run' needs a reason, and 'run' needs commands, after a colon")
            if piece["word"] == "not run":
                reason = comment
            else:
                found.append(Block("sh", comment, line))
        elif piece["language"].strip() == "output" and found and directly:
            found[-1].output = dedent(piece["code"])
        else:
            found.append(Block(piece["language"].strip(), dedent(piece["code"]), line, reason))
            reason = ""
    if reason:
        raise ValueError(f"'not run: {reason}' does not stand directly before a block")
    return found


def examples(page: Path) -> list[Block]:
    """Return the blocks of a page that CI runs."""
    text = page.read_text("utf-8")
    return [] if _WHOLE_PAGE.match(text) else [block for block in blocks(text) if block.runs]


def run(page: Path) -> None:
    """Run the examples of a page in the working directory. Errors name the line of the page."""
    with contextlib.ExitStack() as background:
        languages: dict[str, Callable[[Block], str]] = {
            "python": lambda block: _python(page, block, namespace),
            "sh": lambda block: _sh(page, block, background),
        }
        namespace: dict[str, Any] = {"__name__": "__main__"}
        for block in examples(page):
            printed = languages[block.language](block)
            if block.output is None or doctest.OutputChecker().check_output(block.output, printed, _LIKE_DOCTEST):
                continue
            raise AssertionError(f"{page}:{block.line} should print\n{block.output}\nand prints\n{printed}")


def _python(page: Path, block: Block, namespace: dict[str, Any]) -> str:
    printed = io.StringIO()
    code = compile("\n" * block.line + block.code, str(page), "exec")  # lines of tracebacks are lines of the page
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def _sh(page: Path, block: Block, background: contextlib.ExitStack) -> str:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}
    command = ["bash", "-euo", "pipefail", "-c", block.code]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        # Files, not pipes: a service in the background would keep a pipe open. It ends with the page.
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=err, start_new_session=True)
        background.callback(_end, process.pid)
        code = process.wait(_SECONDS)
        out.seek(0), err.seek(0)
        if code:
            raise AssertionError(f"{page}:{block.line} ends with code {code}:\n{block.code}\n{err.read()}")
        return out.read()


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
