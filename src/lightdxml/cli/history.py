"""`lightdxml history`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from lightdxml.cli.changes import done, drift_as_json, show_drift
from lightdxml.cli.output import Json, ModelFolder, print_json, print_table, say

if TYPE_CHECKING:
    from lightdxml.learning.stored import Journal
    from lightdxml.model.model import Model


def run(model: ModelFolder, json: Json = False) -> None:
    """Show what a model has learned since training, and how far it has drifted.

    Example: `lightdxml history my-model`
    """
    from lightdxml.learning.drift import drift
    from lightdxml.learning.stored import overview

    found = overview(model)
    trained, journal = found.stored.model, found.journal
    moved = drift(trained, journal.entries)
    if json:
        entries = [asdict(entry) for entry in journal.entries]
        content = {"trained_documents": _trained(trained, journal), "undoable_to": journal.base_step}
        print_json({**content, "entries": entries, "drift": drift_as_json(moved)})
        return
    print_table(str(model), ("step", "time (UTC)", "P@1", "seconds", ""), _rows(trained, journal))
    if journal.base_step:
        say(f"Steps up to {journal.base_step} cannot be undone: the whole model was changed or saved again after them.")
    show_drift(moved, trained, model)


def _rows(model: Model, journal: Journal) -> list[tuple[str, ...]]:
    """Return a row per step; P@1 is that of the documents before they were learned."""
    trained_p1 = f"{model.metrics['P@1']:.1f}" if "P@1" in model.metrics else ""
    rows: list[tuple[str, ...]] = [("0", "", trained_p1, "", f"trained on {_trained(model, journal):,} documents")]
    for entry in journal.entries:
        is_lesson = entry.kind == "learn"
        p1 = f"{entry.figures['measured']['metrics']['P@1']:.1f}" if is_lesson else ""
        time = entry.time[:19].replace("T", " ")
        rows.append((str(entry.step), time, p1, f"{entry.figures['seconds']:.1f}", done(entry)))
    return rows


def _trained(model: Model, journal: Journal) -> int:
    """Return the number of documents that a model was trained on."""
    n_documents = model.n_documents
    for entry in journal.entries:
        if entry.kind == "learn":
            n_documents -= entry.figures["documents"] - entry.figures["corrected"]
        elif entry.kind == "forget":
            n_documents += entry.figures["forgotten"]
    return n_documents
