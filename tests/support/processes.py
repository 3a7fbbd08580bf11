"""Processes that are forked from one that has loaded everything: imports take longer than a small command."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Windows cannot fork. The two kinds of contexts have no common type with a `Process`.
forked: Any = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
if sys.platform != "win32":
    forked.set_forkserver_preload(["tests.support.preload"])


def run_command(arguments: Sequence[str], out: Path, errors: Path, environment: Mapping[str, str]) -> None:
    """Run a command line in this process, which is a child, with its output in files.

    Parameters
    ----------
    arguments
        The command line, without `lightdxml`.
    out, errors
        The files, which may be one.
    environment
        The whole environment: the one of the process that was forked may be older.
    """
    for place, path in ((1, out), (2, errors)):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["lightdxml", *arguments]
    from lightdxml.__main__ import main

    main()
