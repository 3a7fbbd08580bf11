"""`lightdxml rollback`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lightdxml.cli.changes import Out, changing, working
from lightdxml.cli.output import Force, Json, ModelFolder, print_json, print_table, say, warn

if TYPE_CHECKING:
    from lightdxml.learning.journal import Entry

To = Annotated[
    int | None,
    typer.Option("--to", help="The step to go back to; 0 is the training. Default: one step back.", metavar="STEP"),
]


def run(model: ModelFolder, to: To = None, out: Out = None, force: Force = False, json: Json = False) -> None:
    """Undo what a model has learned: go back to where it was after an earlier step.

    The model is rebuilt from its training and the steps up to this one. Later steps are removed from the journal.

    Example: `lightdxml rollback my-model --to 3`
    """
    from lightdxml.learning import folder

    with changing(model, out, force) as target, working("going back"):
        opened = folder.ModelFolder(model)
        entries = opened.journal.entries
        if not entries:
            raise ValueError(f"{model} has learned nothing since training: there is nothing to undo")
        step = len(entries) - 1 if to is None else to
        _, is_same = opened.rollback(step, out)
        undone = entries[step:]
    _show(target, step, undone, is_same, json)


def _show(target: Path, step: int, undone: Sequence[Entry], is_same: bool, json: bool) -> None:
    from lightdxml.learning.summary import summary

    if json:
        content = {"model": str(target), "step": step, "same_bits": is_same}
        print_json({**content, "undone": [asdict(entry) for entry in undone]})
        return
    rows = [(str(one.step), one.time[:19].replace("T", " "), summary(one)) for one in undone]
    print_table("Undone", ("step", "time (UTC)", ""), rows)
    if not is_same:
        warn(f"some bits differ from the model after step {step}, which another machine or version of lightdxml made")
    bit_for_bit = ", bit for bit" if is_same else ""
    say(f"The model in {target} is back at step {step}{bit_for_bit}.")
