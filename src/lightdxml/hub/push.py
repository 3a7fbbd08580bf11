"""Upload a model folder to a hub, in one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lightdxml.hub.card import About, card
from lightdxml.hub.connection import DEFAULT_HUB, Hub, as_our_errors, check_repo
from lightdxml.hub.contents import Shared, files_of, is_of_model
from lightdxml.hub.evaluation import Evaluation
from lightdxml.learning.stored import at_one_moment
from lightdxml.model import store

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

CARD = "README.md"
# Files up to this size are read at once. Larger ones are uploaded from the disk, and checked before the commit.
_SMALL = 1 << 24


@dataclass(frozen=True)
class Upload:
    """What goes to a hub.

    Attributes
    ----------
    stored
        The model.
    files
        Its files.
    card
        The model card; None leaves that of the repository as it is.
    """

    stored: store.Stored
    files: Sequence[Shared]
    card: str | None = None

    @property
    def sizes(self) -> list[tuple[str, int]]:
        """The name and the bytes of everything that is uploaded."""
        card = [] if self.card is None else [(CARD, len(self.card.encode()))]
        return [*card, *((one.name, one.size) for one in self.files)]


def plan(folder: Path, with_training_data: bool = False) -> Upload:
    """Read a model, check every byte of it, and return what of it is shared: without what it has learned from."""

    def read(place: Path) -> Upload:
        found = store.load(place)
        return Upload(found, files_of(place, found.manifest, with_training_data))

    return at_one_moment(folder, read)


def with_card(upload: Upload, about: About, text: str | None = None, evaluation: Evaluation | None = None) -> Upload:
    """Return an upload with a model card: a text, or one that is generated from the model and its evaluation."""
    return replace(upload, card=card(upload.stored, about, evaluation) if text is None else text)


def push(
    upload: Upload,
    repo: str,
    *,
    message: str = "",
    revision: str | None = None,
    private: bool | None = None,
    hub: Hub = DEFAULT_HUB,
) -> str:
    """Upload a model in one commit, and return its address. Files of an older model that it does not have are removed.

    Parameters
    ----------
    upload
        What is uploaded.
    repo
        The repository: `OWNER/NAME`. It is created if it does not exist.
    message
        The message of the commit.
    revision
        The branch, which is created if it does not exist; None for the main branch.
    private
        Whether a new repository is private; None for the default of its owner. One that exists stays as it is.
    hub
        Where it is, and who asks.
    """
    check_repo(repo)
    api = hub.api()
    with as_our_errors(api, repo, revision):
        name = api.create_repo(repo, private=private, exist_ok=True).repo_id
        if revision is not None:
            api.create_branch(name, branch=revision, exist_ok=True)
        additions = _additions(upload)
        gone = _gone(api, name, revision, upload)
        api.preupload_lfs_files(name, additions, revision=revision)
        _check_uploaded(upload, additions)
        about = message or f"Model of lightdxml {upload.stored.manifest['lightdxml']}"
        try:
            done = api.create_commit(name, [*gone, *additions], commit_message=about, revision=revision)
        except ValueError as error:
            # Of several lines: the hub accepts no such metadata, a license that it does not know perhaps.
            reason = " ".join(str(error).split())
            raise ValueError(f"{api.endpoint} does not accept the model card: {reason}") from error
    return str(done.commit_url)


def _additions(upload: Upload) -> list[CommitOperationAdd]:
    from huggingface_hub import CommitOperationAdd

    found = [
        CommitOperationAdd(one.name, one.path.read_bytes() if one.size <= _SMALL else one.path) for one in upload.files
    ]
    return found if upload.card is None else [CommitOperationAdd(CARD, upload.card.encode()), *found]


def _gone(api: HfApi, repo: str, revision: str | None, upload: Upload) -> list[CommitOperationDelete]:
    """Return how files of an older model are removed that the new one does not have."""
    from huggingface_hub import CommitOperationDelete

    kept = {one.name for one in upload.files}
    there = api.list_repo_files(repo, revision=revision)
    return [CommitOperationDelete(name) for name in there if is_of_model(name) and name not in kept]


def _check_uploaded(upload: Upload, additions: Sequence[CommitOperationAdd]) -> None:
    """Raise an `OSError` if files are not those that were checked: the model was replaced meanwhile."""
    expected = {one.name: one.sha256 for one in upload.files}
    for one in additions:
        if one.path_in_repo != CARD and one.upload_info.sha256.hex() != expected[one.path_in_repo]:
            raise OSError(f"{one.path_in_repo} was replaced during the upload: nothing is published, push again")
