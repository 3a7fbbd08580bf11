"""Documents that a model has learned since training, as a data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lightdxml.cli.output import print_json, say, warn

if TYPE_CHECKING:
    from lightdxml.learning.lessons import Lessons


def export(model: Path, target: Path, json: bool) -> None:
    """Write the documents that a model has learned, and say where they are."""
    from lightdxml.learning.lessons import lessons_of
    from lightdxml.learning.summary import count, some

    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise ValueError(f"{target} already exists: choose another name")
    if target.resolve().is_relative_to(model.resolve()):
        raise ValueError(
            f"{target} is inside the folder of the model {model}, which holds nothing else: choose another file"
        )
    found = lessons_of(model)
    if found.lost:
        steps = some([str(step) for step in found.lost])
        changed = "the whole model was changed or saved again after them"
        which = f"{'step' if len(found.lost) == 1 else 'steps'} {steps}"
        warn(f"the journal no longer has the documents of {which}: {changed}")
    if not len(found):
        raise ValueError(f"{model} has learned no documents since training: there is nothing to export")
    _write(target, found)
    if json:
        print_json({"file": str(target), "documents": len(found), "lost_steps": found.lost})
        return
    say(f"{count(len(found), 'document')} that {model} has learned since training: {target}")


def _write(target: Path, found: Lessons) -> None:
    """Write documents: texts as JSON Lines, features as a folder in XC format."""
    from lightdxml.data import Dataset, Split, jsonl, save

    names = found.label_names
    if found.texts is None:
        save(Dataset(target.name, Split(found.Y, found.X), label_names=names), target, "xc")
        return
    if target.is_dir():
        raise ValueError(f"{target} is a folder: give a file, such as {target / 'learned.jsonl'}")
    split = Split(found.Y, texts=found.texts, ids=found.ids if any(found.ids) else None)
    jsonl.write(target, split, [str(j) for j in range(found.Y.shape[1])] if names is None else names)
