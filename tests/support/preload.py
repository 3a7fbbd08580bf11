"""Imports and compiled kernels of commands, loaded once by the process that all children are forked from."""

from __future__ import annotations

import rich.console
import rich.progress
import rich.table
import typer

from lightdxml.__main__ import main
from lightdxml.estimator import LightDXML
from tests.faults.training import SETTINGS

__all__ = ["main", "rich", "typer"]

# One thread: threads do not survive a fork.
_options = dict(one.split("=") for one in SETTINGS if "=" in one)
LightDXML(dim=16, epochs=1, n_jobs=1, options=_options).fit([[1, 0], [0, 1]] * 20, [[0], [1]] * 20)
