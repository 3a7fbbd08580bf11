"""What commands that change a trained model share: where it goes, what has changed, and how far it has drifted."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from lightdxml.cli.output import errors, note, print_json, printable, say
from lightdxml.cli.reading import reading_options
from lightdxml.cli.settings import nearest_preset, training_options

if TYPE_CHECKING:
    from lightdxml.learning.drift import Drift
    from lightdxml.learning.folder import Changed
    from lightdxml.learning.journal import Entry
    from lightdxml.model.model import Model

Out = Annotated[
    Path | None,
    typer.Option("--out", help="Folder for the changed model. Default: replace MODEL.", metavar="NEW"),
]


def target_of(model: Path, out: Path | None, force: bool) -> Path:
    """Return where a changed model goes; raise a `ValueError` if it must not be written there."""
    from lightdxml.model import store

    target = model if out is None else out
    store.check_target(target)
    if not force and target.resolve() != model.resolve():
        store.check_absent(target)
    return target


@contextmanager
def changing(model: Path, out: Path | None, force: bool) -> Iterator[Path]:
    """Yield where a changed model goes. Whoever stops the command is told whether the model has changed."""
    with _sigterm_as_interrupt() as received:
        before = target = None
        try:
            check_model(model)
            target = target_of(model, out, force)
            before = _stamp(target)
            yield target
        except KeyboardInterrupt as stopped:
            if target is None or _stamp(target) == before:
                note(f"stopped: {model} is unchanged" if out is None else f"stopped: {out} was not written")
            else:
                note(f"stopped, but the step was done: it is in {target}")
            raise typer.Exit(128 + (received[0] if received else signal.SIGINT)) from stopped


def check_model(model: Path) -> None:
    """Raise a `ValueError` if a folder is not a model."""
    from lightdxml.learning.stored import overview
    from lightdxml.model.store import is_model, stamp

    stamp(model)
    if model.is_dir() and not is_model(model):
        overview(model)


def _stamp(model: Path) -> tuple[int, int] | None:
    """Return the stamp of a model; None if there is none."""
    from lightdxml.model.store import stamp

    try:
        return stamp(model)
    except ValueError:
        return None


@contextmanager
def _sigterm_as_interrupt() -> Iterator[list[int]]:
    """Let SIGTERM interrupt what runs as Ctrl-C does; yield a list of such signals that have come."""
    received: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        # Only the main thread may handle signals; whoever ignores or handles SIGTERM does so for a reason.
        yield received
        return
    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def working(on: str) -> Iterator[None]:
    """Show what is being done, on a terminal."""
    with errors.status(Text(printable(on))) if errors.is_terminal else nullcontext():
        yield


def print_change(changed: Changed, target: Path, json: bool) -> None:
    """Print what a command has changed, in a line or as JSON."""
    from lightdxml.learning.summary import summary

    if json:
        print_json({"model": str(target), **asdict(changed.entry)})
        return
    say(f"Step {changed.entry.step}: {summary(changed.entry)} in {changed.seconds:.1f} s. The model is in {target}.")


def n_trained(model: Model, entries: Sequence[Entry]) -> int:
    """Return the number of documents that a model was trained on, given its journal."""
    n_documents = model.n_documents
    for entry in entries:
        if entry.kind == "learn":
            n_documents -= entry.figures["documents"] - entry.figures["corrected"]
        elif entry.kind == "forget":
            n_documents += entry.figures["forgotten"]
    return n_documents


def show_drift(drift: Drift, model: Model, folder: Path, n_documents: int) -> None:
    """Show how far a model has moved since training, and the commands that train it again if that is due.

    `n_documents` is the number of documents that it was trained on.
    """
    say(f"Drift: {drift_text(drift)}.")
    if drift.is_due:
        say(f"A full training on all documents is due, because {_joined(drift.reasons)}. Export what was learned:")
        say(f"  {shlex.join(['lightdxml', 'history', str(folder), '--export', 'learned.jsonl'])}")
        say(f"Add these documents to DATA, and train: {_training(model, folder, n_documents)}")


def drift_text(drift: Drift) -> str:
    """Return how far a model has moved since training."""
    shares = (
        f"{drift.learned:.1%} of the documents and {drift.new_labels:.1%} of the labels came after training,"
        f" {drift.unknown_words:.1%} of the words in the latest documents were unknown"
    )
    if "P@1" not in drift.metrics:
        return shares
    before = f" and was {drift.trained_metrics['P@1']:.1f} in training" if "P@1" in drift.trained_metrics else ""
    return f"{shares}; P@1 is {drift.metrics['P@1']:.1f} on the latest {drift.documents:,} documents{before}"


def drift_as_json(drift: Drift) -> dict[str, Any]:
    """Return drift for JSON, with those measures of training that are measured later on as well."""
    before = {name: value for name, value in drift.trained_metrics.items() if name.startswith(("P@", "nDCG@"))}
    return {**asdict(drift), "trained_metrics": before, "is_due": drift.is_due}


def _joined(reasons: list[str]) -> str:
    return " and ".join(reasons)


def _training(model: Model, folder: Path, n_documents: int) -> str:
    """Return the command that trains a model again, as it was trained; DATA and FILE are to be filled in."""
    words = ["lightdxml", "train", "DATA", "--model", str(folder), "--discard-lessons", "--keep-training-data"]
    words += training_options(model, *nearest_preset(model.config, n_documents))
    return shlex.join([*words, *reading_options(model.reading)])
