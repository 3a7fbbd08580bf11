"""`lightdxml forget`: retire labels, merge them, and forget documents."""

from __future__ import annotations

from typing import Annotated

import typer

from lightdxml.cli.changes import Out, changing, print_change, working
from lightdxml.cli.output import Force, Json, ModelFolder

app = typer.Typer(
    help="Remove labels or documents from a trained model.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command()
def retire(
    model: ModelFolder,
    labels: Annotated[list[str], typer.Argument(metavar="LABEL", help="Names or URIs of labels.", show_default=False)],
    out: Out = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Never suggest these labels again. All labels keep their ids.

    Example: `lightdxml forget retire my-model "floppy disks"`
    """
    from lightdxml.learning import folder

    with changing(model, out, force) as target, working("changing the model"):
        changed = folder.ModelFolder(model).retire(labels, out)
        print_change(changed, target, json)


@app.command()
def merge(
    model: ModelFolder,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="Label to retire.", show_default=False)],
    into: Annotated[str, typer.Argument(metavar="INTO", help="Label to keep.", show_default=False)],
    out: Out = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Merge a label into another one, which takes over its documents and names, and retire it.

    Example: `lightdxml forget merge my-model cats cat`
    """
    from lightdxml.learning import folder

    with changing(model, out, force) as target, working("changing the model"):
        changed = folder.ModelFolder(model).merge(label, into, out)
        print_change(changed, target, json)


@app.command()
def document(
    model: ModelFolder,
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="Ids of documents.", show_default=False)],
    out: Out = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Forget documents that a model has learned. The model must keep its training data (`--keep-training-data`).

    If the model learned the documents after training, their texts stay in the journal, and `lightdxml rollback` can
    restore them.

    Example: `lightdxml forget document my-model 4711`
    """
    from lightdxml.learning import folder

    with changing(model, out, force) as target, working("changing the model"):
        changed = folder.ModelFolder(model).forget(ids, out)
        print_change(changed, target, json)
