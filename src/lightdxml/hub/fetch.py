"""Download a model from a hub into the cache of huggingface_hub: only files that a model has, and only if they fit."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightdxml.hub.connection import DEFAULT_HUB, Hub, UnreachableError, as_our_errors, check_repo
from lightdxml.hub.contents import MANIFEST, is_for_learning, is_of_model, names_in
from lightdxml.model import store

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_MAX_MANIFEST, _MAX_BYTES = 1 << 24, 1 << 35
_logger = logging.getLogger("lightdxml")


@dataclass(frozen=True)
class Fetched:
    """A model in the cache.

    Attributes
    ----------
    folder
        Where its files are. There may be others beside them.
    commit
        The commit that they are from.
    names
        Its files: paths within the folder.
    left_out
        The bytes of its training data and journal, if the repository has them and they were not wanted.
    """

    folder: Path
    commit: str
    names: list[str]
    left_out: int = 0


def fetch(repo: str, revision: str | None = None, hub: Hub = DEFAULT_HUB, with_training_data: bool = False) -> Fetched:
    """Download the files of a model, as far as they are not in the cache.

    Without a hub that answers, the model is taken from the cache.

    Parameters
    ----------
    repo
        The repository: `OWNER/NAME`.
    revision
        A branch, a tag or a commit; None for the main branch.
    hub
        Where it is, and who asks.
    with_training_data
        Whether to download what the model needs to learn, if it is there.
    """
    check_repo(repo)
    api = hub.api()
    try:
        with as_our_errors(api, repo, revision):
            info = api.model_info(repo, revision=revision, files_metadata=True)
    except UnreachableError as error:
        try:
            found = _from_cache(api, repo, revision, with_training_data)
        except UnreachableError:
            raise UnreachableError(f"{error}; {repo} is not in the cache") from error
        _logger.info("%s cannot be asked: %s is commit %.12s from the cache", api.endpoint, repo, found.commit)
        return found
    return _from_hub(api, repo, revision, info, with_training_data)


def folder_of(source: str | Path, revision: str | None = None, hub: Hub = DEFAULT_HUB) -> Path:
    """Return where a model lies: a folder as it is, a repository in the cache, into which it is downloaded."""
    if Path(source).is_dir():
        return Path(source)
    return fetch(str(source), revision, hub).folder


@contextmanager
def called(repo: str, folder: Path) -> Iterator[None]:
    """Call a model by the name of its repository in errors inside the `with` block."""
    try:
        yield
    except ValueError as error:
        reason = str(error).replace(str(folder), repo)
        raise ValueError(reason.replace("copy or train it again", "its owner must push it again")) from error


def _from_hub(api: HfApi, repo: str, revision: str | None, info: Any, with_training_data: bool) -> Fetched:
    sizes = {one.rfilename: one.size or 0 for one in info.siblings or [] if is_of_model(one.rfilename)}
    if MANIFEST not in sizes:
        raise ValueError(f"{repo} is not a model of lightdxml: it has no {MANIFEST}")
    if sizes[MANIFEST] > _MAX_MANIFEST:
        raise ValueError(f"{repo} is not a model of lightdxml: its {MANIFEST} has {sizes[MANIFEST]:,} bytes")
    with as_our_errors(api, repo, revision):
        path = Path(api.hf_hub_download(repo, MANIFEST, revision=revision))
    with called(repo, path.parent):
        manifest = store.read_manifest(path.parent)
    _check_sizes(repo, manifest, sizes)
    more = [name for name in sizes if is_for_learning(name)]
    names = [*names_in(manifest), *(more if with_training_data else ())]
    if (wanted := sum(sizes[name] for name in names)) > _MAX_BYTES:
        raise ValueError(
            f"{repo} has {wanted:,} bytes, more than {_MAX_BYTES >> 30} GB: download it by hand if it is right"
        )
    with as_our_errors(api, repo, revision):
        folder = Path(api.snapshot_download(repo, revision=revision, allow_patterns=names))
    if folder != path.parent or folder.name != info.sha:
        raise OSError(f"{repo} was changed during the download: try again")
    return Fetched(folder, folder.name, names, 0 if with_training_data else sum(sizes[name] for name in more))


def _check_sizes(repo: str, manifest: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
    """Raise a `ValueError` if files are missing, or their sizes are not those of the manifest."""
    for name in names_in(manifest)[1:]:
        if name not in sizes:
            raise ValueError(f"{repo} is damaged ({name} is missing): its owner must push it again")
        if sizes[name] != (expected := manifest["files"][name]["bytes"]):
            reason = f"{name} has {sizes[name]} bytes and should have {expected!r:.20}"
            raise ValueError(f"{repo} is damaged ({reason}): its owner must push it again")


def _from_cache(api: HfApi, repo: str, revision: str | None, with_training_data: bool) -> Fetched:
    with as_our_errors(api, repo, revision):
        found = api.hf_hub_download(repo, MANIFEST, revision=revision, local_files_only=True)
    folder = Path(found).parent
    with called(repo, folder):
        manifest = store.read_manifest(folder)
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    more = [name for name in paths if is_of_model(name) and is_for_learning(name)]
    return Fetched(folder, folder.name, [*names_in(manifest), *(more if with_training_data else ())])
