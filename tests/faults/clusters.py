"""Faults of a Ray cluster under real training runs: each trial starts a cluster on this machine."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, save_npz

from tests.faults.training import Background, Child, Lab, numbered, wait_for
from tests.faults.trials import Outcome
from tests.support.clusters import STORE_BYTES, Nodes, nodes

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
# What a training run prints that has lost a process; in which steps memory is filled, as shares of all, and for how
# many seconds it stays full at most.
_LOST, _STEP, _PATIENCE = "a process of the cluster was lost", 0.02, 60


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


def small_stores(lab: Lab) -> Outcome:
    """Train on features that the object store of no node can hold."""
    rng, n, words = np.random.default_rng(0), 40_000, 300
    places = np.sort(rng.integers(0, 100_000 - words, (n, words)), axis=1) + np.arange(words)
    values = rng.random(n * words, dtype=np.float32)
    X = csr_matrix((values, places.ravel(), np.arange(n + 1) * words), shape=(n, 100_000))
    Y = csr_matrix((np.ones(n, np.float32), places[:, 0] % 8, np.arange(n + 1)), shape=(n, 8))
    data, spill = lab.folder / "large", lab.folder / "spilled"
    for folder in (data, lab.folder / "large-lab"):
        folder.mkdir()
    save_npz(data / "train_X.npz", X)
    save_npz(data / "train_Y.npz", Y)
    large = Lab(lab.folder / "large-lab", data, ("--dense", "never", "--set", "linear.work=0"))
    with nodes(spill) as cluster:
        cluster.resize(2)
        child = _start(large, cluster, "large-model")
        wait_for(lambda: not child.is_running or any(path.is_file() for path in spill.rglob("*")))
        was_spilled = child.is_running
        held = int(_ends_well(large, child, "large-model") and was_spilled)
    size = f"{(X.data.nbytes + X.indices.nbytes) / 1e6:.0f} MB of features, {STORE_BYTES / 1e6:.0f} MB per store"
    return Outcome("Object stores have less space than the features: the same model", 1, held, size)


def full_memory(lab: Lab, times: int = 3) -> Outcome:
    """Fill the memory while the classifier is trained, so that Ray ends processes that hold parts of it."""
    held = 0
    for _ in range(times):
        most = _used_memory() + 4 * _STEP
        # Nearly full before it matters: the classifier is trained within seconds.
        with Background(_fill_memory, most - _STEP), nodes(system={"memory_usage_threshold": most}) as cluster:
            cluster.resize(2)
            child = _start(lab, cluster, "full-memory")
            wait_for(lambda child=child: "classifier, epoch" in child.output or not child.is_running)  # type: ignore[misc]
            end = time.monotonic() + _PATIENCE
            with Background(_fill_memory, most + _STEP):
                wait_for(lambda child=child, end=end: _LOST in child.output or time.monotonic() > end)  # type: ignore[misc]
            was_lost = _LOST in child.output
            held += _ends_well(lab, child, "full-memory") and was_lost
    return Outcome("Ray ends processes because the memory of a machine is full: the same model", times, held)


def _total_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _used_memory() -> float:
    """Return the share of the memory that is in use."""
    facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return 1 - int(facts["MemAvailable"].split()[0]) * 1024 / _total_memory()


def _fill_memory(share: float) -> None:
    """Take memory until this share of it is in use, and keep it."""
    taken = []
    while True:
        if _used_memory() < share:
            taken.append(bytearray(os.urandom(1 << 20) * 64))
        else:
            time.sleep(0.05)


def _start(lab: Lab, cluster: Nodes, name: str, checkpoint: Path | None = None) -> Child:
    return lab.start(lab.folder / name, checkpoint, "--ray", cluster.address, show_progress=True)


def _ends_well(lab: Lab, child: Child, name: str) -> bool:
    model = lab.folder / name
    held = child.wait() == 0 and lab.is_expected(model)
    shutil.rmtree(model, ignore_errors=True)
    return held


def _kill_a_worker(rng: random.Random) -> bool:
    """Kill a process that runs tasks or holds parts of the classifier; return whether there was one."""
    found = [process for process in _workers() if _is_ours(process)]
    if not found:
        return False
    with suppress(ProcessLookupError):
        os.kill(rng.choice(sorted(found)), signal.SIGKILL)
    return True


def _workers() -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_text(errors="replace")
            if command.startswith(("ray::_task", "ray::_Shard")):
                found.append(int(process.name))
    return found


def _is_ours(process: int) -> bool:
    """Return whether this process started another one, or one that did: other clusters may run on this machine."""
    while process > 1 and process != os.getpid():
        try:
            status = Path(f"/proc/{process}/stat").read_text(errors="replace")
        except OSError:
            return False
        # After the name, which may have any characters, come the state and the parent.
        process = int(status.rpartition(")")[2].split()[1])
    return process == os.getpid()
