"""`lightdxml push`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lightdxml.cli.card import Data, Language, License, evaluated
from lightdxml.cli.output import ModelFolder, NJobs, note, print_table, say
from lightdxml.cli.reading import Reading, with_reading

if TYPE_CHECKING:
    from lightdxml.hub.push import Upload

_MAX_CARD = 1 << 20
Repo = Annotated[
    str, typer.Argument(metavar="REPO", help="Repository on the Hugging Face Hub: OWNER/NAME.", show_default=False)
]


@with_reading
def run(
    model: ModelFolder,
    repo: Repo,
    data: Data = None,
    license: License = "",
    language: Language = "",
    card: Annotated[
        Path | None,
        typer.Option(
            "--card", help="A model card of your own. Default: the card that `lightdxml card` writes.", metavar="FILE"
        ),
    ] = None,
    keep_card: Annotated[bool, typer.Option("--keep-card", help="Keep the card that is in the repository.")] = False,
    with_training_data: Annotated[
        bool,
        typer.Option("--with-training-data", help="Share the training data, too: the folder `learning` of the model."),
    ] = False,
    private: Annotated[
        bool | None,
        typer.Option(
            "--private/--public", help="Make a new repository private or public. Default: as its owner has set."
        ),
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option("--revision", help="Branch, created if missing. Default: the main branch.", show_default=False),
    ] = None,
    message: Annotated[str, typer.Option("--message", help="Commit message.", show_default=False)] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be uploaded, and upload nothing.")
    ] = False,
    n_jobs: NJobs = None,
    *,
    reading: Reading,
) -> None:
    """Share a model on the Hugging Face Hub, with a model card.

    Log in with `hf auth login` first, or set HF_TOKEN. Training documents are shared only with --with-training-data.

    Example: `lightdxml push my-model alice/my-model --data my-data --license mit`
    """
    from lightdxml.hub.card import About
    from lightdxml.hub.connection import check_repo, hide_bars, require_hub
    from lightdxml.hub.push import plan, push, with_card

    require_hub()
    check_repo(repo)
    hide_bars()
    if card is not None and keep_card:
        raise ValueError("--card and --keep-card exclude each other: give one of them")
    about = About(repo.rpartition("/")[2], repo, license.lower(), language.lower(), with_training_data)
    own = None if card is None else _text(card)
    upload = plan(model, with_training_data)
    if not keep_card:
        upload = with_card(upload, about, own, None if card is not None else evaluated(model, data, n_jobs, reading))
    _show(upload, model, repo, with_training_data)
    if dry_run:
        say("Nothing was uploaded: --dry-run.")
        return
    say(f"The model is at {push(upload, repo, message=message, revision=revision, private=private)}")
    if not license and card is None and not keep_card:
        note("The card names no license: others may not use the model. Give --license, and push again.")


def _text(path: Path) -> str:
    """Return a model card; raise a `ValueError` if it cannot be one."""
    from lightdxml.data.files import as_data_errors

    with as_data_errors(path):
        content = path.read_bytes()
    if len(content) > _MAX_CARD:
        raise ValueError(f"{path} has {len(content):,} bytes, too many for a model card: give a Markdown file")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: give a Markdown file") from error


def _show(upload: Upload, model: Path, repo: str, with_training_data: bool) -> None:
    """Show what is uploaded, and what stays here."""
    from lightdxml.hub.contents import size_of
    from lightdxml.model.store import LEARNING

    rows = [(name, size_of([size])) for name, size in upload.sizes]
    print_table(f"{model} → {repo}", ("file", "size"), [*rows, ("all", size_of(size for _, size in upload.sizes))])
    has_data = (model / LEARNING).is_dir()
    if has_data and not with_training_data:
        say("Training data and journal are not uploaded: --with-training-data shares them.")
    if has_data and with_training_data:
        say("Includes features, labels and ids of all training documents, and texts of those that were learned later.")
    vectors = upload.stored.model.word_vectors
    if vectors is not None and Path(vectors).name != vectors:
        note(f"The model names the file of word vectors that its training started from: {vectors}")
