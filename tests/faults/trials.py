"""The trials: each causes a fault in real training runs and counts how often its guarantee held."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lightdxml import LightDXML, ModelFolder, load
from tests.faults.training import Background, Child, Lab, numbered, wait_for

# The phases after the cycle, by what is printed when they begin; the blend is chosen before and after the trees.
AFTER_CYCLE = (
    "label tree: tree 1, clusters",
    "linear view: hard negatives",
    "linear view: labels",
    "blend: validation",
    "label tree: tree 1, labels",
    "label trees:",
    "refit linear view",
    "refit label tree: tree 1",
)
_FULL = 20_000


@dataclass(frozen=True)
class Outcome:
    """What a trial promises, how often it was tried, how often it held, and a remark."""

    guarantee: str
    tried: int
    held: int
    note: str = ""


def kills(lab: Lab, times: int = 20, seed: int = 0) -> Outcome:
    """Kill a training run at random moments, resume it each time, and compare its model."""
    rng = random.Random(seed)
    checkpoint, model = lab.folder / "killed", lab.folder / "killed-model"
    killed = while_writing = 0
    while killed < times:
        before = numbered(checkpoint)
        child = lab.start(model, checkpoint, n_jobs=rng.choice([1, 2, 4]))
        wait_for(lambda child=child, before=before: not child.is_running or numbered(checkpoint) != before)  # type: ignore[misc]
        time.sleep(rng.uniform(0, 0.5))
        child.send(signal.SIGKILL)
        killed += child.wait() == -signal.SIGKILL
        while_writing += any(checkpoint.glob(".*.part"))
        # It ended before it was killed: start again.
        shutil.rmtree(model, ignore_errors=True)
    held = lab.resumes(model, checkpoint)
    note = f"{while_writing} of them while a checkpoint was written"
    return Outcome("SIGKILL at random moments, then resume: the same model", killed, killed * held, note)


def kills_after_cycle(lab: Lab, phases: tuple[str, ...] = AFTER_CYCLE, rounds: int = 1) -> Outcome:
    """Kill a training run in each phase after the cycle: what it did before its last checkpoint is not repeated."""
    lost: list[float] = []

    def kill(child: Child, checkpoint: Path) -> None:
        child.send(signal.SIGKILL)
        now = time.time()
        child.wait()
        lost.append(now - max((path.stat().st_mtime for path in numbered(checkpoint)), default=now))

    outcomes = [_in_each_phase(lab, "killed-late", phases, kill, -signal.SIGKILL) for _ in range(rounds)]
    tried, held = (sum(outcome[i] for outcome in outcomes) for i in (0, 1))
    note = f"at most {max(lost):.2f} s of work lost, with a checkpoint after every part of it"
    return Outcome("SIGKILL in the phases after the cycle, then resume: the same model", tried, held, note)


def interrupts_after_cycle(lab: Lab, phases: tuple[str, ...] = AFTER_CYCLE) -> Outcome:
    """Interrupt a training run in each phase after the cycle, as by Ctrl-C: it saves its state and ends soon."""
    seconds: list[float] = []

    def interrupt(child: Child, checkpoint: Path) -> None:
        start = time.perf_counter()
        child.send(signal.SIGINT)
        child.wait()
        seconds.append(time.perf_counter() - start)

    tried, held = _in_each_phase(lab, "interrupted-late", phases, interrupt, 128 + signal.SIGINT)
    note = f"ended within {max(seconds):.2f} s, {sum(seconds) / len(seconds):.2f} s on average"
    return Outcome("Ctrl-C in the phases after the cycle, then resume: the same model", tried, held, note)


def _in_each_phase(
    lab: Lab, name: str, phases: tuple[str, ...], stop: Callable[[Child, Path], None], expected: int
) -> tuple[int, int]:
    """Stop one training run in each phase and resume it; return how often it was stopped and how often all was well.

    It must end with the expected exit code, and a resumed run must not repeat the cycle.
    """
    rng, well = random.Random(0), list[bool]()
    checkpoint, model = lab.folder / name, lab.folder / f"{name}-model"
    for i in range(len(phases)):
        child = lab.start(model, checkpoint, n_jobs=rng.choice([1, 2, 4]), show_progress=True)
        # Short phases may have ended before the last signal arrived: then the next one will do.
        wait_for(lambda child=child, left=phases[i:]: _has_begun(child, left) or not child.is_running)  # type: ignore[misc]
        time.sleep(rng.uniform(0, 0.05))
        if child.is_running:
            stop(child, checkpoint)
        if child.wait() == 0:
            break
        repeated = bool(well) and "classifier, epoch" in child.output
        well.append(child.wait() == expected and not repeated)
    same = lab.resumes(model, checkpoint)
    return len(well), sum(well) * same


def _has_begun(child: Child, phases: tuple[str, ...]) -> bool:
    return any(phase in child.output for phase in phases)


def signals(lab: Lab, numbers: tuple[int, ...] = (signal.SIGTERM, signal.SIGINT)) -> Outcome:
    """Stop a training run by SIGTERM and by Ctrl-C: it prints the command that resumes it."""
    held = 0
    for number in numbers:
        checkpoint, model = lab.folder / f"stopped-{number}", lab.folder / f"stopped-{number}-model"
        child = lab.start(model, checkpoint)
        wait_for(lambda checkpoint=checkpoint: numbered(checkpoint))  # type: ignore[misc]
        child.send(number)
        said = child.wait() == 128 + number and "resume with: lightdxml train" in child.output
        held += said and child.output.rstrip().endswith("--resume") and lab.resumes(model, checkpoint)
    return Outcome("SIGTERM and Ctrl-C: state saved, command to resume printed, the same model", len(numbers), held)


def truncations(lab: Lab, cuts: tuple[float, ...] = (0.0, 0.5, 0.999)) -> Outcome:
    """Truncate each file of the newest checkpoint: the previous checkpoint is used."""
    origin = lab.stopped("cut", signal.SIGTERM)
    tried = held = 0
    for name in ("arrays.safetensors", "state.json"):
        for cut in cuts:
            checkpoint = lab.folder / "cut-copy"
            shutil.copytree(origin, checkpoint)
            file = numbered(checkpoint)[-1] / name
            os.truncate(file, int(cut * file.stat().st_size))
            tried += 1
            held += lab.resumes(lab.folder / "cut-copy-model", checkpoint)
    shutil.rmtree(origin)
    return Outcome("a truncated checkpoint: the previous one is used, the same model", tried, held)


def all_damaged(lab: Lab) -> Outcome:
    """Damage all checkpoints: one sentence says so, and nothing is removed."""
    checkpoint = lab.stopped("damaged", signal.SIGTERM)
    for folder in numbered(checkpoint):
        (folder / "state.json").write_text("{")
    before = sorted(checkpoint.rglob("*"))
    child = lab.start(lab.folder / "damaged-model", checkpoint)
    refused = child.wait() == 1 and len(child.errors) == 1 and "are damaged" in child.errors[0]
    held = refused and sorted(checkpoint.rglob("*")) == before
    return Outcome("all checkpoints damaged: one clear sentence, nothing removed", 1, int(held))


def full_disk(lab: Lab) -> Outcome:
    """Fill the disk while a checkpoint is written: the last one survives, and the training run can be resumed."""
    checkpoint, model = lab.stopped("full", signal.SIGTERM), lab.folder / "full-model"
    kept = {path: path.read_bytes() for path in numbered(checkpoint)[-1].iterdir()}
    child = lab.start(model, checkpoint, file_limit=_FULL)
    refused = child.wait() == 1 and len(child.errors) == 1 and "Traceback" not in child.output
    survived = all(path.read_bytes() == content for path, content in kept.items())
    held = refused and survived and lab.resumes(model, checkpoint)
    return Outcome("a full disk: one clear sentence, the last checkpoint survives, the same model later", 1, int(held))


def full_spill(lab: Lab) -> Outcome:
    """Fill the disk of the spill directory: one sentence, no SIGBUS, and nothing is left behind."""
    spill = lab.folder / "full-spill"
    child = lab.start(lab.folder / "full-spill-model", None, "--spill", str(spill), file_limit=_FULL)
    refused = child.wait() == 1 and len(child.errors) == 1 and "there is no space for" in child.errors[0]
    held = refused and not any(spill.iterdir())
    return Outcome("a full spill directory: one clear sentence, nothing left behind", 1, int(held))


def killed_spill(lab: Lab) -> Outcome:
    """Kill a training run that has a spill directory: the next one removes it, and gives the same model."""
    spill, model = lab.folder / "left", lab.folder / "left-model"
    child = lab.start(model, None, "--spill", str(spill))
    wait_for(lambda: any(spill.glob("lightdxml-*/shortlists")))
    child.send(signal.SIGKILL)
    child.wait()
    left = any(spill.iterdir())
    done = lab.start(model, None, "--spill", str(spill)).wait() == 0
    held = left and done and not any(spill.iterdir()) and lab.is_expected(model)
    return Outcome("SIGKILL with a spill directory: the next training run removes the leftovers", 1, int(held))


def replaced(lab: Lab, times: int = 5, seed: int = 0) -> Outcome:
    """Kill training runs that replace a model: there is always a complete one at its path."""
    rng, model, checkpoint = random.Random(seed), lab.folder / "replaced", lab.folder / "replaced-checkpoint"
    shutil.copytree(lab.expected, model)
    held = 0
    for _ in range(times):
        for leftover in lab.folder.glob(".replaced.*.part"):
            shutil.rmtree(leftover)
        child = lab.start(model, checkpoint, every="1h")
        wait_for(lambda: any(lab.folder.glob(".replaced.*.part")))
        time.sleep(rng.uniform(0, 0.01))
        child.send(signal.SIGKILL)
        child.wait()
        load(model)
        held += lab.is_expected(model)
    return Outcome("SIGKILL while a model replaces another: a complete model at its path", times, held)


def swapped(lab: Lab, loads: int = 10_000) -> Outcome:
    """Load a model while another process replaces it all the time: every model is whole, and none is refused."""
    model, others = lab.folder / "swapped", [lab.folder / "swap-a", lab.folder / "swap-b"]
    for i, other in enumerate(others):
        # Two models that differ in every file.
        texts, labels = ["red rose", "white wine", "red wine", f"blue {i}"] * 5, [[f"{i} a"], [f"{i} b"]] * 10
        LightDXML(dim=8, epochs=1, min_df=1, random_state=i).fit(texts, labels).save(other)
    shutil.copytree(others[0], model)
    expected = {load(other).classes_[0]: load(other).model_.arrays() for other in others}
    seen: set[str] = set()
    held = 0
    with Background(replace_forever, model, others):
        for _ in range(loads):
            found = load(model)
            name, arrays = found.classes_[0], found.model_.arrays()
            held += all(np.array_equal(arrays[one], array) for one, array in expected[name].items())
            seen.add(name)
    note = "" if len(seen) == 2 else "it was never replaced"
    return Outcome("a model replaced all the time: every load is whole, none is refused", loads, held, note)


def replace_forever(model: Path, others: list[Path]) -> None:
    """Replace a model by these in turn, until the process is killed."""
    trained = [load(other) for other in others]
    while True:
        for one in trained:
            one.save(model)


def second_training(lab: Lab) -> Outcome:
    """Start a second training run with the checkpoint folder of a running one: it is refused."""
    checkpoint = lab.folder / "shared"
    child = lab.start(lab.folder / "shared-model", checkpoint)
    wait_for(lambda: numbered(checkpoint))
    # Paused, so that it is still running when the second one starts.
    child.send(signal.SIGSTOP)
    second = lab.start(lab.folder / "second-model", checkpoint)
    refused = second.wait() == 1 and len(second.errors) == 1 and "another training uses" in second.errors[0]
    child.send(signal.SIGKILL)
    child.wait()
    return Outcome("two training runs with one checkpoint folder: the second one is refused", 1, int(refused))


def read_only(lab: Lab) -> Outcome:
    """Give a training run a checkpoint folder that cannot be written: one sentence."""
    # Below a file: root may write into every folder.
    target = lab.data / next(path.name for path in lab.data.iterdir()) / "checkpoint"
    child = lab.start(lab.folder / "read-only-model", target)
    held = child.wait() == 1 and len(child.errors) == 1 and "Traceback" not in child.output
    return Outcome("a folder that cannot be written: one clear sentence", 1, int(held))


def learning_kills(lab: Lab, times: int = 20, seed: int = 0) -> Outcome:
    """Kill lessons at random moments: the model is the one before or after, and learns it to the same bits."""
    rng, lesson = random.Random(seed), lab.lesson("lesson", 0, 40)
    origin, model = lab.taught("pupil-origin"), lab.folder / "pupil"
    undisturbed = shutil.copytree(origin, lab.folder / "undisturbed")
    start = time.monotonic()
    child = lab.learn(undisturbed, lesson)
    wait_for(lambda: not child.is_running or any(lab.folder.glob(".undisturbed.*.part")))
    writing_starts = time.monotonic()
    assert child.wait() == 0
    end = time.monotonic()
    expected = _versions(undisturbed)
    killed = held = writing = after = 0
    while killed < times:
        shutil.rmtree(model, ignore_errors=True)
        shutil.copytree(origin, model)
        for leftover in lab.folder.glob(".pupil.*.part"):
            shutil.rmtree(leftover)
        child = lab.learn(model, lesson, n_jobs=rng.choice([1, 2, 4]))
        # Writing takes a small part of the time: every second lesson is killed then.
        if killed % 2:
            wait_for(lambda child=child: not child.is_running or any(lab.folder.glob(".pupil.*.part")))  # type: ignore[misc]
            time.sleep(rng.uniform(0, end - writing_starts))
        else:
            time.sleep(rng.uniform(0, end - start))
        if not child.is_running:
            continue
        child.send(signal.SIGKILL)
        if child.wait() == 0:
            continue
        killed += 1
        writing += any(lab.folder.glob(".pupil.*.part"))
        found = _versions(model)
        after += found == expected
        # Learning again must not wait for the lock of the killed process either.
        held += found == expected or (
            not found and lab.learn(model, lesson).wait() == 0 and _versions(model) == expected
        )
    note = f"{writing} of them while a model was written or removed, {after} after the lesson was on disk"
    return Outcome("SIGKILL within a lesson: a complete model, then the same lesson: the same bits", killed, held, note)


def _versions(model: Path) -> list[str]:
    """Return the versions of a model after each step of its journal; reading checks everything that is on disk."""
    return [entry.version for entry in ModelFolder(model).journal.entries]


def two_lessons(lab: Lab, rounds: int = 3) -> Outcome:
    """Let two processes teach one model at the same time: both lessons count, one after the other."""
    origin, model = lab.taught("shared-origin"), lab.folder / "shared-pupil"
    lessons = [lab.lesson("lesson-a", 0, 20), lab.lesson("lesson-b", 20, 50)]
    held = 0
    for _ in range(rounds):
        shutil.rmtree(model, ignore_errors=True)
        shutil.copytree(origin, model)
        children = [lab.learn(model, lesson, lesson.name) for lesson in lessons]
        done = [child.wait() for child in children] == [0, 0]
        documents = [entry.figures["documents"] for entry in ModelFolder(model).journal.entries]
        held += done and sorted(documents) == [20, 30] and _is_replayed(model, lab.folder / "shared-replayed")
    return Outcome("two lessons of one model at the same time: both are learned, one after the other", rounds, held)


def replays(lab: Lab, lessons: int = 5) -> Outcome:
    """Go back to every step of a journal: the model has the same bits as then."""
    model = lab.taught("replayed")
    for i in range(lessons):
        assert lab.learn(model, lab.lesson(f"lesson-{i}", 10 * i, 10 * i + 15), n_jobs=1 + i % 3).wait() == 0
    folder = ModelFolder(model)
    names = folder.model.label_names
    first, second, third = ("0", "1", "2") if names is None else names[:3]
    folder.retire([first])
    folder.merge(second, third)
    steps = folder.journal.step
    held = sum(_is_replayed(model, lab.folder / "replayed-copy", step) for step in range(steps))
    return Outcome("the journal replayed up to each of its steps: the same bits", steps, held)


def _is_replayed(model: Path, target: Path, step: int = 1) -> bool:
    """Return whether a model that goes back to a step has the same bits as then."""
    before, is_same = _versions(model)[:step], ModelFolder(model).rollback(step, target)[1]
    return is_same and _versions(target) == before
