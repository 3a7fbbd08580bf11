"""Faults of a Ray cluster under real training runs: each trial starts a cluster on this machine."""

from __future__ import annotations

import os
import random
import shutil
import signal
from contextlib import suppress
from pathlib import Path

from tests.faults.training import Child, Lab, numbered, wait_for
from tests.faults.trials import Outcome
from tests.support.clusters import Nodes, nodes

# By what is printed when they begin: two phases of the cycle, and those after it that the cluster works in.
PHASES = (
    "refresh 1: classifier, epoch 2",
    "refresh 2: shortlists",
    "linear view: hard negatives",
    "linear view: labels",
    "label tree: tree 1, level 2",
    "label tree: tree 1, labels",
    "refit linear view",
)


def killed_nodes(lab: Lab, phases: tuple[str, ...] = PHASES) -> Outcome:
    """Kill a node of a cluster in each phase of a training run; it ends, and its model is the same."""
    held = 0
    with nodes() as cluster:
        for phase in phases:
            cluster.resize(2)
            child = _start(lab, cluster, "killed-node")
            wait_for(lambda child=child, phase=phase: phase in child.output or not child.is_running)  # type: ignore[misc]
            cluster.kill_one()
            held += _ends_well(lab, child, "killed-node")
    return Outcome("A node of a cluster is killed, in each phase: the same model, without a restart", len(phases), held)


def killed_workers(lab: Lab, times: int = 10, seed: int = 0) -> Outcome:
    """Kill processes of a cluster at random moments, as the out-of-memory killers of Linux and Ray do."""
    rng, held, killed = random.Random(seed), 0, 0
    with nodes() as cluster:
        cluster.resize(2)
        for _ in range(times):
            child = _start(lab, cluster, "killed-worker")
            wait_for(lambda child=child: "classifier, epoch" in child.output or not child.is_running)  # type: ignore[misc]
            for _ in range(2):
                child.process.join(rng.uniform(0, 3))
                killed += _kill_a_worker(rng)
            held += _ends_well(lab, child, "killed-worker")
    note = f"{killed} processes killed"
    return Outcome("Processes of a cluster are killed at random moments: the same model", times, held, note)


def killed_drivers(lab: Lab, times: int = 5, seed: int = 0) -> Outcome:
    """Kill the driver; the run is resumed on fewer nodes, on more, and at last without a cluster."""
    rng, checkpoint, killed = random.Random(seed), lab.folder / "killed-driver", 0
    with nodes() as cluster:
        while killed < times:
            cluster.resize(rng.choice([1, 2]))
            before = numbered(checkpoint)
            child = _start(lab, cluster, "killed-driver-model", checkpoint)
            wait_for(lambda child=child, before=before: not child.is_running or numbered(checkpoint) != before)  # type: ignore[misc]
            child.process.join(rng.uniform(0, 0.5))
            child.send(signal.SIGKILL)
            killed += child.wait() == -signal.SIGKILL
    model = lab.folder / "killed-driver-model"
    shutil.rmtree(model, ignore_errors=True)
    held = lab.resumes(model, checkpoint)
    guarantee = "The driver is killed; resumed on another number of nodes, and without a cluster: the same model"
    return Outcome(guarantee, killed, killed * held)


def _start(lab: Lab, cluster: Nodes, name: str, checkpoint: Path | None = None) -> Child:
    return lab.start(lab.folder / name, checkpoint, "--ray", cluster.address, show_progress=True)


def _ends_well(lab: Lab, child: Child, name: str) -> bool:
    model = lab.folder / name
    held = child.wait() == 0 and lab.is_expected(model)
    shutil.rmtree(model, ignore_errors=True)
    return held


def _kill_a_worker(rng: random.Random) -> bool:
    """Kill a process that runs tasks or holds parts of the classifier; return whether there was one."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_text(errors="replace")
            if command.startswith(("ray::_task", "ray::_Shard")):
                found.append(int(process.name))
    if not found:
        return False
    with suppress(ProcessLookupError):
        os.kill(rng.choice(sorted(found)), signal.SIGKILL)
    return True
