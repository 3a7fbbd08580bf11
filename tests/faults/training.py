"""`lightdxml train` and `lightdxml learn` in child processes, to which faults happen."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lightdxml.data import Dataset, load, save
from tests.support.processes import forked, run_command

TIMEOUT = 300
# Small, but every phase runs: several refreshes, hard negatives, a choice of the blend, and trees.
SETTINGS = (
    "--dim", "16", "--shortlist-size", "20", "--epochs", "4", "--random-state", "3",
    "--set", "dense.refresh_every=2", "--set", "dense.batch_size=64", "--set", "linear.work=0",
    "--set", "dense.train=always", "--set", "tree.max_trees=2", "--set", "linear.min_clusters=4",
    "--set", "tree.branching=4", "--set", "tree.max_leaf=8", "--set", "blend.min_documents=1",
    "--set", "blend.min_gain=0", "--set", "blend.min_errors=0",
)  # fmt: skip
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Child:
    """A command in a child process.

    Parameters
    ----------
    arguments
        The command line, without `lightdxml`.
    log
        The file that its output goes to.
    file_limit
        The size at which no file can grow any more, as on a full disk; None for no limit.
    show_progress
        Whether to show progress bars, as on a terminal: they say which phase is running.
    """

    def __init__(
        self, arguments: list[str], log: Path, *, file_limit: int | None = None, show_progress: bool = False
    ) -> None:
        self.log = log
        log.unlink(missing_ok=True)
        self.process = forked.Process(target=_run, args=(arguments, log, file_limit, show_progress))
        self.process.start()

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return _ESCAPES.sub("", self.log.read_text(errors="replace")) if self.log.exists() else ""

    @property
    def errors(self) -> list[str]:
        """The errors that it has printed."""
        return [line for line in self.output.splitlines() if line.startswith("error:")]

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return bool(self.process.is_alive())

    def send(self, number: int) -> None:
        """Send a signal; a child that has ended meanwhile does not get it, as its exit code will show."""
        assert self.process.pid is not None
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, number)

    def wait(self) -> int:
        """Wait for the end; return the exit code."""
        self.process.join(TIMEOUT)
        code: int | None = self.process.exitcode
        if code is None:
            self.process.kill()
            raise TimeoutError(f"a training run takes more than {TIMEOUT} s: {self.output[-500:]}")
        return code


def _run(arguments: list[str], log: Path, file_limit: int | None, show_progress: bool) -> None:
    if file_limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "200"} if show_progress else {}
    run_command(arguments, log, log, {**os.environ, **terminal})


class Background:
    """A function that runs in another process inside the `with` block, and is killed at its end."""

    def __init__(self, function: Callable[..., None], *arguments: Any) -> None:
        self.process = forked.Process(target=function, args=arguments)

    def __enter__(self) -> None:
        self.process.start()

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.join()


class Lab:
    """A folder with a data set, and the model of a training run that nothing happened to.

    Parameters
    ----------
    folder
        Where everything is written.
    data
        The data set.
    settings
        The settings of all training runs, as on the command line.
    """

    def __init__(self, folder: Path, data: Path, settings: Sequence[str] = SETTINGS) -> None:
        self.folder, self.data, self.settings = folder, data, settings
        self.expected = folder / "expected"
        child = self.start(self.expected)
        assert child.wait() == 0, child.output

    def start(
        self, model: Path, checkpoint: Path | None = None, *options: str, every: str = "0s", n_jobs: int = 2, **how: Any
    ) -> Child:
        """Start a training run; with a checkpoint folder, it is resumed from there."""
        command = ["train", str(self.data), "--model", str(model), "--force", "--n-jobs", str(n_jobs)]
        command += [*self.settings, *options]
        if checkpoint is not None:
            command += ["--checkpoint", str(checkpoint), "--every", every, "--resume"]
        return Child(command, model.with_suffix(".log"), **how)

    def taught(self, name: str) -> Path:
        """Return a model that keeps its training data; it is trained once."""
        origin = self.folder / "taught"
        if not origin.exists():
            child = self.start(origin, None, "--keep-training-data")
            assert child.wait() == 0, child.output
        return shutil.copytree(origin, self.folder / name)

    def lesson(self, name: str, first: int, stop: int) -> Path:
        """Return a data set of some of the training documents, each with the labels of another one."""
        every = load(self.data)
        train, rows = every.train.take(np.arange(first, stop)), np.arange(first, stop) + 1
        data = Dataset(name, replace(train, Y=every.train.Y[rows]), label_names=every.label_names)
        return save(data, self.folder / name, "jsonl" if train.X is None else "xc")

    def learn(self, model: Path, lesson: Path, log: str = "learn", n_jobs: int = 2) -> Child:
        """Start a lesson."""
        arguments = ["learn", str(model), str(lesson), "--n-jobs", str(n_jobs)]
        return Child(arguments, self.folder / f"{model.name}-{log}.log")

    def resumes(self, model: Path, checkpoint: Path) -> bool:
        """Return whether a training run can be resumed to its end, and gives the same model; clean up."""
        held = self.start(model, checkpoint, every="1h").wait() == 0 and self.is_expected(model)
        for folder in (model, checkpoint):
            shutil.rmtree(folder, ignore_errors=True)
        return held

    def stopped(self, name: str, number: int, checkpoints: int = 2) -> Path:
        """Return the checkpoint folder of a training run that got a signal after some checkpoints."""
        checkpoint = self.folder / name
        child = self.start(self.folder / f"{name}-model", checkpoint)
        wait_for(lambda: len(numbered(checkpoint)) >= checkpoints)
        child.send(number)
        child.wait()
        return checkpoint

    def is_expected(self, model: Path) -> bool:
        """Return whether a model is the expected one, byte for byte; only times in its history may differ."""
        names = sorted(path.name for path in self.expected.iterdir())
        if names != sorted(path.name for path in model.iterdir()):
            return False
        same = [
            (self.expected / name).read_bytes() == (model / name).read_bytes()
            for name in names
            if name not in ("history.json", "manifest.json")
        ]
        return all(same) and _without_history(self.expected) == _without_history(model)


def _without_history(model: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((model / "manifest.json").read_text())
    # The manifest's own checksum covers the one of the history.
    del manifest["files"]["history.json"], manifest["sha256"]
    return manifest


def numbered(checkpoint: Path) -> list[Path]:
    """Return the complete checkpoints in a folder, the newest last."""
    return sorted(checkpoint.glob("0*"))


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited for {TIMEOUT} s")
        time.sleep(0.005)
