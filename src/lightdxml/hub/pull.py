"""Write a model from a hub into a folder: all of it is checked before it replaces anything."""

from __future__ import annotations

import shutil
from pathlib import Path

from lightdxml.hub.connection import DEFAULT_HUB, Hub
from lightdxml.hub.contents import is_for_learning
from lightdxml.hub.fetch import Fetched, called, fetch
from lightdxml.learning import stored as learning
from lightdxml.model import store
from lightdxml.persistence.atomic_dir import replace_folder
from lightdxml.persistence.files import map_file, sha256
from lightdxml.persistence.lock import writing


def pull(
    repo: str, folder: Path, revision: str | None = None, hub: Hub = DEFAULT_HUB, with_training_data: bool = False
) -> tuple[Fetched, store.Stored]:
    """Write a model from a repository into a folder; return where it is from, and the model.

    The folder appears, or replaces an older model, only when all of it is on the disk and every byte has been checked.
    Parameters are those of `fetch`.
    """
    store.check_target(folder)
    found = fetch(repo, revision, hub, with_training_data)
    checked: list[store.Stored] = []

    def write(place: Path) -> None:
        for name in found.names:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            # A copy: who empties or changes the cache does not change the model.
            shutil.copyfile(found.folder / name, place / name)
        with called(repo, place):
            checked.append(store.load(place))
            if any(map(is_for_learning, found.names)):
                _check_learning(place)

    with writing(folder):
        store.check_target(folder)
        replace_folder(folder, write, store.is_model)
    return found, checked[0]


def _check_learning(folder: Path) -> None:
    """Raise a `ValueError` if a model could not learn on: if its folder `learning` lacks files, or has damaged ones."""
    opened, inside = learning.read(folder), learning.inside_of(folder)
    for name, digest in opened.files.items():
        if not (inside / name).is_file() or sha256(map_file(inside / name)) != digest:
            raise ValueError(f"{folder} is damaged ({name} is missing or was changed): copy or train it again")
    if (inside / learning.BASE).is_dir():
        learning.read_base(folder, opened.files)
