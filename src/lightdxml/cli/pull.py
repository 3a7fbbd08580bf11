"""`lightdxml pull`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lightdxml.cli.output import Force, say
from lightdxml.cli.push import Repo

if TYPE_CHECKING:
    from lightdxml.model.model import Model


def run(
    repo: Repo,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder for the model.", show_default=False)],
    revision: Annotated[
        str | None,
        typer.Option("--revision", help="Branch, tag or commit. Default: the main branch.", show_default=False),
    ] = None,
    force: Force = False,
    discard_lessons: Annotated[
        bool,
        typer.Option("--discard-lessons", help="Replace an existing model even if it has learned since its training."),
    ] = False,
    with_training_data: Annotated[
        bool,
        typer.Option("--with-training-data", help="Download the training data, too, if it is shared."),
    ] = False,
) -> None:
    """Download a model from the Hugging Face Hub.

    The model is checked before it replaces anything, and no code from the hub is run. Files that are in the cache are
    not downloaded again. With HF_HUB_OFFLINE=1, only the cache is used.

    Example: `lightdxml pull alice/my-model my-model`
    """
    from lightdxml.cli.train import check_lessons
    from lightdxml.hub.connection import check_repo, hide_bars, require_hub
    from lightdxml.hub.contents import size_of
    from lightdxml.hub.pull import pull
    from lightdxml.model import store

    require_hub()
    check_repo(repo)
    hide_bars()
    store.check_target(model)
    if not force and not discard_lessons:
        store.check_absent(model)
    if not discard_lessons:
        check_lessons(model)
    found, read = pull(repo, model, revision, with_training_data=with_training_data)
    labels, documents = f"{read.model.n_labels:,} labels", f"{read.model.n_documents:,} documents"
    say(f"{repo}, commit {found.commit[:12]}: {labels}, trained on {documents}.")
    if found.left_out:
        size = size_of([found.left_out])
        say(f"The hub also has {size} of training data and journal: --with-training-data downloads them.")
    say(f"The model is in {model}. Next: {_next(read.model, model)}")


def _next(model: Model, folder: Path) -> str:
    """Return what to do with a new model."""
    if model.vectorizer is None:
        return shlex.join(["lightdxml", "info", str(folder)])
    return f"echo 'a text' | {shlex.join(['lightdxml', 'predict', str(folder), '-'])}"
