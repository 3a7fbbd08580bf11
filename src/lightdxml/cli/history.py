"""`lightdxml history`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lightdxml.cli.changes import drift_as_json, n_trained, show_drift
from lightdxml.cli.export import export as write_lessons
from lightdxml.cli.output import Json, ModelFolder, print_json, print_table, say

if TYPE_CHECKING:
    from lightdxml.learning.stored import Journal
    from lightdxml.model.model import Model

Export = Annotated[
    Path | None,
    typer.Option(
        "--export",
        help="Write the documents that the model has learned since training, without forgotten ones. Texts become a"
        " JSON Lines file, features a folder in XC format.",
        metavar="FILE",
        show_default=False,
    ),
]
# P@1 of fewer documents says little.
_ENOUGH = 20


def run(model: ModelFolder, export: Export = None, json: Json = False) -> None:
    """Show what a model has learned since training, and how far it has drifted.

    Example: `lightdxml history my-model --export learned.jsonl`
    """
    from lightdxml.learning.drift import drift
    from lightdxml.learning.stored import overview

    if export is not None:
        write_lessons(model, export, json)
        return
    found = overview(model)
    trained, journal = found.stored.model, found.journal
    moved, names = drift(trained, journal.entries), _new_labels(trained, journal)
    n_documents = n_trained(trained, journal.entries)
    if json:
        entries: list[dict[str, Any]] = [asdict(entry) for entry in journal.entries]
        for entry, new in zip(entries, names, strict=True):
            entry["new_label_names"] = new
        content = {"trained_documents": n_documents, "undoable_to": journal.base_step}
        print_json({**content, "entries": entries, "drift": drift_as_json(moved)})
        return
    trained_p1 = f"{trained.metrics['P@1']:.1f}" if "P@1" in trained.metrics else ""
    first = ("0", "", trained_p1, "", f"trained on {n_documents:,} documents")
    print_table(str(model), ("step", "time (UTC)", "P@1", "seconds", ""), [first, *_rows(journal, names)])
    if journal.base_step:
        say(f"Steps up to {journal.base_step} cannot be undone: the whole model was changed or saved again after them.")
    show_drift(moved, trained, model, n_documents)


def _rows(journal: Journal, names: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return a row per step, given the names of its new labels; P@1 is that of documents before they were learned."""
    from lightdxml.learning.summary import some, summary

    rows: list[tuple[str, ...]] = []
    for entry, new in zip(journal.entries, names, strict=True):
        figures, time = entry.figures, entry.time[:19].replace("T", " ")
        is_measured = entry.kind == "learn" and figures["measured"]["documents"] >= _ENOUGH
        p1 = f"{figures['measured']['metrics']['P@1']:.1f}" if is_measured else ""
        about = summary(entry)
        about += f" from {figures['source']}" if figures.get("source") else ""
        about += f"; new: {some(new)}" if new else ""
        rows.append((str(entry.step), time, p1, f"{figures['seconds']:.1f}", about))
    return rows


def _new_labels(model: Model, journal: Journal) -> list[list[str]]:
    """Return the names of each step's new labels, which come after all earlier ones.

    Those of steps before the whole model was changed are not known.
    """
    names, end = [list[str]() for _ in journal.entries], model.n_labels
    for entry in reversed(journal.entries[journal.base_step :]):
        start = end - entry.figures.get("new_labels", 0)
        names[entry.step - 1] = [model.label(j).name for j in range(max(0, start), end)]
        end = start
    return names
