"""The trials: each makes a fault happen to a real training in a child process and counts what came of it."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightdxml import load
from lightdxml.data import save
from lightdxml.data import see_also as builder

SETTINGS = (
    "--set", "D=48", "--set", "k=50", "--set", "e_model=6", "--set", "e_hat_label=2", "--set", "batch_size=64",
    "--set", "sparse_work=1000000", "--seed", "3",
)  # fmt: skip
TIMEOUT = 300


@dataclass(frozen=True)
class Outcome:
    """What a trial tried, how often it held, and what there is to say of it."""

    promise: str
    tried: int
    held: int
    remark: str = ""


class Place:
    """A folder with real data, and the model of a training that nothing happened to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = save(builder.build(), folder / "data", "jsonl")
        self.expected = folder / "expected"
        done = self.train(self.expected)
        assert done.returncode == 0, done.stderr

    def command(self, model: Path, checkpoint: Path | None = None, every: str = "0s", threads: int = 2) -> list[str]:
        """Return the command that trains; with a checkpoint folder, it goes on from there."""
        command = [sys.executable, "-m", "lightdxml", "train", str(self.data), "--model", str(model), *SETTINGS]
        command += ["--threads", str(threads)]
        return (
            command if checkpoint is None else [*command, "--checkpoint", str(checkpoint), "--every", every, "--resume"]
        )

    def train(self, *arguments: Any, before: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
        """Train to the end."""
        return subprocess.run(
            self.command(*arguments), capture_output=True, text=True, timeout=TIMEOUT, check=False, preexec_fn=before
        )

    def is_expected(self, model: Path) -> bool:
        """Return whether a model is the expected one, byte for byte; only its history tells other times."""
        names = sorted(path.name for path in self.expected.iterdir())
        if names != sorted(path.name for path in model.iterdir()):
            return False
        for name in names:
            tells_times = name in ("history.json", "manifest.json")
            if not tells_times and (self.expected / name).read_bytes() != (model / name).read_bytes():
                return False
        return _without_history(self.expected) == _without_history(model)


def _without_history(model: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((model / "manifest.json").read_text())
    # The manifest's own checksum covers the history's.
    del manifest["files"]["history.json"], manifest["sha256"]
    return manifest


def kills(place: Place, times: int, seed: int = 0) -> Outcome:
    """Kill a training at random moments, resume it each time, and compare its model."""
    rng = random.Random(seed)
    checkpoint, model = place.folder / "killed", place.folder / "killed-model"
    within_a_write = killed = 0
    while killed < times:
        before = max(checkpoint.glob("0*"), default=None)
        with subprocess.Popen(
            place.command(model, checkpoint, threads=rng.choice([1, 2, 4])),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as child:
            # Not while it is still being imported.
            _wait_for(lambda child=child, before=before: child.poll() is not None  # type: ignore[misc]
                      or max(checkpoint.glob("0*"), default=None) != before)  # fmt: skip
            time.sleep(rng.uniform(0, 0.5))
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
                killed += 1
        within_a_write += any(checkpoint.glob(".*.part"))
        if model.exists():  # it was faster: once more from the start
            shutil.rmtree(model)
    done = place.train(model, checkpoint, "1h")
    held = done.returncode == 0 and place.is_expected(model)
    return Outcome("SIGKILL at random moments, resumed: the same model, byte for byte", killed, killed * held,
                   f"{within_a_write} within the write of a checkpoint")  # fmt: skip


def signals(place: Place) -> Outcome:
    """Stop a training by SIGTERM and by Ctrl-C; it must say how to go on, and go on to the same model."""
    held = 0
    for number in (signal.SIGTERM, signal.SIGINT):
        checkpoint, model = place.folder / f"stopped-{number}", place.folder / f"stopped-{number}-model"
        command = place.command(model, checkpoint, "0.2s")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
            _wait_for(lambda checkpoint=checkpoint: any(checkpoint.glob("0*")))  # type: ignore[misc]
            child.send_signal(number)
            _, said = child.communicate(timeout=TIMEOUT)
        stopped = child.returncode == 128 + number and "go on with: lightdxml train" in said and "--resume" in said
        held += stopped and place.train(model, checkpoint, "1h").returncode == 0 and place.is_expected(model)
    return Outcome("SIGTERM and Ctrl-C: saved, told how to go on, the same model", 2, held)


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + TIMEOUT
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)


def _interrupted(place: Place, name: str) -> Path:
    """Return the checkpoint folder of a training that was stopped after at least two checkpoints."""
    checkpoint = place.folder / name
    with subprocess.Popen(
        place.command(place.folder / f"{name}-model", checkpoint), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as child:
        _wait_for(lambda: len(list(checkpoint.glob("0*"))) >= 2)
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=TIMEOUT)
    return checkpoint


def truncations(place: Place, cuts: tuple[float, ...] = (0.0, 0.5, 0.999)) -> Outcome:
    """Cut every kind of file of the newest checkpoint short: the one before it must be used."""
    origin = _interrupted(place, "cut")
    tried = held = 0
    for name in ("arrays.safetensors", "state.json"):
        for cut in cuts:
            checkpoint, model = place.folder / "cut-copy", place.folder / "cut-copy-model"
            shutil.copytree(origin, checkpoint)
            newest = max(checkpoint.glob("0*"))
            content = (newest / name).read_bytes()
            (newest / name).write_bytes(content[: int(cut * len(content))])
            tried += 1
            held += place.train(model, checkpoint, "1h").returncode == 0 and place.is_expected(model)
            shutil.rmtree(checkpoint, ignore_errors=True)
            shutil.rmtree(model, ignore_errors=True)
    shutil.rmtree(origin)
    return Outcome("a truncated checkpoint: the one before it is used, the same model", tried, held)


def all_damaged(place: Place) -> Outcome:
    """Damage all checkpoints: one sentence, and nothing removed."""
    checkpoint = _interrupted(place, "damaged")
    for path in checkpoint.glob("0*/state.json"):
        path.write_text("{")
    before = sorted(checkpoint.rglob("*"))
    done = place.train(place.folder / "damaged-model", checkpoint)
    said = done.returncode == 1 and len(_errors(done)) == 1 and "are damaged" in done.stderr
    held = said and sorted(checkpoint.rglob("*")) == before
    shutil.rmtree(checkpoint)
    return Outcome("all checkpoints damaged: one sentence, nothing removed", 1, int(held))


def _errors(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return what was said in error, without the line on what `--resume` has found."""
    found = ("going on from the last checkpoint", "no checkpoint, beginning anew")
    return [line for line in done.stderr.splitlines() if not line.endswith(found)]


def full_disk(place: Place) -> Outcome:
    """Let the disk fill within a checkpoint's write: the last good one survives, and the training can go on."""
    checkpoint, model = _interrupted(place, "full"), place.folder / "full-model"
    kept = {path: path.read_bytes() for path in max(checkpoint.glob("0*")).iterdir()}

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = place.train(model, checkpoint, before=limit)
    said = done.returncode == 1 and len(_errors(done)) == 1 and "Traceback" not in done.stderr
    survived = all(path.read_bytes() == content for path, content in kept.items())
    went_on = place.train(model, checkpoint, "1h").returncode == 0 and place.is_expected(model)
    return Outcome("a disk that fills: one sentence, the last checkpoint survives, the same model later", 1,
                   int(said and survived and went_on))  # fmt: skip


def full_scratch(place: Place) -> Outcome:
    """Let the disk fill under the scratch folder: one sentence, no SIGBUS, and nothing left there."""
    room = place.folder / "full-room"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    command = [*place.command(place.folder / "full-room-model"), "--scratch", str(room)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False, preexec_fn=limit)
    said = done.returncode == 1 and done.stderr.count("\n") == 1 and "there is no room for" in done.stderr
    return Outcome("a scratch folder that fills: one sentence, nothing left", 1, int(said and not any(room.iterdir())))


def killed_scratch(place: Place) -> Outcome:
    """Kill a training that has files in a scratch folder: the next one removes them, and comes to the same model."""
    room, model = place.folder / "left-room", place.folder / "left-room-model"
    command = [*place.command(model), "--scratch", str(room)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        _wait_for(lambda: any(room.glob("lightdxml-*/shortlists")))
        child.send_signal(signal.SIGKILL)
    left = any(room.iterdir())
    done = subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=False)
    held = left and done.returncode == 0 and not any(room.iterdir()) and place.is_expected(model)
    return Outcome("SIGKILL with a scratch folder: the next training removes what was left", 1, int(held))


SAVING = """
import sys
from lightdxml import load
model = load(sys.argv[1])
print("ready", flush=True)
while True:
    model.save(sys.argv[2])
"""


def replaced(place: Place, times: int = 5, seed: int = 0) -> Outcome:
    """Kill a process that replaces a model again and again: there is a whole one at its place at any moment."""
    rng, model, held = random.Random(seed), place.folder / "replaced" / "model", 0
    shutil.copytree(place.expected, model)
    for _ in range(times):
        command = [sys.executable, "-c", SAVING, str(place.expected), str(model)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(rng.uniform(0.05, 0.3))
            child.send_signal(signal.SIGKILL)
        load(model)
        held += place.is_expected(model)
    return Outcome("SIGKILL while a model replaces another: a whole model at its place", times, held)


def second_training(place: Place) -> Outcome:
    """Point a second training to a folder in which one is at work: it refuses."""
    checkpoint = place.folder / "shared"
    with subprocess.Popen(
        place.command(place.folder / "shared-model", checkpoint), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as child:
        _wait_for(lambda: any(checkpoint.glob("0*")))
        # Held still, so that it is at work all the while.
        child.send_signal(signal.SIGSTOP)
        second = place.train(place.folder / "second-model", checkpoint)
        refused = second.returncode == 1 and "another training is at work" in second.stderr
        child.send_signal(signal.SIGCONT)
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=TIMEOUT)
    return Outcome("two trainings in one folder: the second refuses", 1, int(refused))


def read_only(place: Place) -> Outcome:
    """Point a training to a folder in which nothing can be written: one sentence, at once."""
    folder = place.folder / "read-only"
    folder.mkdir()
    folder.chmod(0o500)
    # A superuser may write anywhere: for one, a folder below a file stands in for it.
    target = folder / "checkpoint"
    if os.access(folder, os.W_OK):
        (folder / "file").touch()
        target = folder / "file" / "checkpoint"
    done = place.train(place.folder / "read-only-model", target)
    held = done.returncode == 1 and len(_errors(done)) == 1 and "Traceback" not in done.stderr
    return Outcome("a folder that cannot be written: one sentence", 1, int(held))
