"""What commands that change a trained model share: where it goes, what has changed, and how far it has drifted."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lightdxml.cli.output import print_json, say
from lightdxml.cli.reading import reading_options
from lightdxml.cli.settings import TEXT_SETTINGS, nearest_preset, plain

if TYPE_CHECKING:
    from lightdxml.learning.drift import Drift
    from lightdxml.learning.folder import Changed
    from lightdxml.learning.journal import Entry
    from lightdxml.model.model import Model

Out = Annotated[
    Path | None,
    typer.Option("--out", help="Folder for the new model. Default: it replaces the old one.", metavar="NEW"),
]


def target_of(model: Path, out: Path | None, force: bool) -> Path:
    """Return where a changed model goes; raise a `ValueError` if it must not be written there."""
    from lightdxml.model import store

    target = model if out is None else out
    store.check_target(target)
    if not force and target.resolve() != model.resolve():
        store.check_absent(target)
    return target


def done(entry: Entry) -> str:
    """Return what an entry of the journal has changed, in a few words.

    >>> from lightdxml.learning.journal import Entry
    >>> done(Entry(2, "", "merge", {"merged": "cat", "into": "pet"}))
    'merged cat into pet'
    """
    figures = entry.figures
    if entry.kind == "retire":
        return f"retired {_listed(figures['retired'])}"
    if entry.kind == "merge":
        return f"merged {figures['merged']} into {figures['into']}"
    if entry.kind == "forget":
        return f"forgot {_count(figures['forgotten'], 'document')}"
    parts = [f"learned {_count(figures['documents'], 'document')}"]
    parts += [f"{figures['corrected']:,} corrected"] if figures["corrected"] else []
    parts += [_count(figures[f"new_{one}s"], f"new {one}") for one in ("label", "word") if figures[f"new_{one}s"]]
    return ", ".join(parts)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def _listed(names: list[str], most: int = 3) -> str:
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most:,} more"


def print_change(changed: Changed, target: Path, json: bool) -> None:
    """Print what a command has changed, in a line or as JSON."""
    if json:
        print_json({"model": str(target), **asdict(changed.entry)})
        return
    say(f"Step {changed.entry.step}: {done(changed.entry)} in {changed.seconds:.1f} s. The model is in {target}.")


def show_drift(drift: Drift, model: Model, folder: Path) -> None:
    """Show how far a model has moved since training, and the command that trains it again if that is due."""
    say(f"Drift: {drift_text(drift)}.")
    if drift.is_due:
        say(f"A full training on all documents is due, because {_joined(drift.reasons)}: {_training(model, folder)}")


def drift_text(drift: Drift) -> str:
    """Return how far a model has moved since training."""
    shares = (
        f"{drift.learned:.1%} of the documents and {drift.new_labels:.1%} of the labels came after training,"
        f" {drift.unknown_words:.1%} of the latest words were unknown"
    )
    if "P@1" not in drift.metrics:
        return shares
    before = f", and {drift.trained_metrics['P@1']:.1f} in training" if "P@1" in drift.trained_metrics else ""
    return f"{shares}; P@1 {drift.metrics['P@1']:.1f} on the latest {drift.documents:,} documents{before}"


def drift_as_json(drift: Drift) -> dict[str, Any]:
    """Return drift for JSON, with those measures of training that are measured later on as well."""
    before = {name: value for name, value in drift.trained_metrics.items() if name.startswith(("P@", "nDCG@"))}
    return {**asdict(drift), "trained_metrics": before, "is_due": drift.is_due}


def _joined(reasons: list[str]) -> str:
    return " and ".join(reasons)


def _training(model: Model, folder: Path) -> str:
    """Return the command that trains a model again, as it was trained; DATA and FILE are to be filled in."""
    from lightdxml.text.tfidf import TextOptions

    preset, changes = nearest_preset(model.config, model.n_documents)
    words = ["lightdxml", "train", "DATA", "--model", str(folder), "--force", "--keep-training-data"]
    words += [] if preset == "default" else ["--preset", preset]
    words += [word for name, value in changes.items() for word in ("--set", f"{name}={plain(value)}")]
    if model.vectorizer is not None:
        settings, usual = model.vectorizer.settings, TextOptions()
        for name in (*TEXT_SETTINGS, "language"):
            if (value := getattr(settings, name)) != getattr(usual, name):
                words += [f"--{name.replace('_', '-')}", str(value)]
    words += [] if model.vocabulary is None else ["--vocabulary", "FILE"]
    return shlex.join([*words, *reading_options(model.reading)])
