"""Which files of a model are shared: those of a model folder, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightdxml.model import store
from lightdxml.model.store import FILES, LEARNING
from lightdxml.persistence.atomic_dir import locate
from lightdxml.persistence.files import map_file, sha256

MANIFEST = FILES[0]
_OWN = "|".join(map(re.escape, FILES))
# What `lightdxml.learning.stored` writes. That module is not imported, as prediction needs none of what it imports.
_DATA = r"kept\.safetensors|kept\.json|recent\.safetensors"
_PATHS = re.compile(
    rf"(?:{_OWN})|{LEARNING}/(?:journal\.json|[0-9]{{6,9}}\.json\.gz|{_DATA}|base/(?:{_OWN}|{_DATA}))", re.ASCII
)


@dataclass(frozen=True)
class Shared:
    """A file of a model: its path in the repository, where it is, its bytes and its checksum."""

    name: str
    path: Path
    size: int
    sha256: str


def is_of_model(name: str) -> bool:
    """Return whether a path in a repository can be that of a file of a model.

    >>> [is_of_model(name) for name in ("manifest.json", "learning/000001.json.gz", "setup.py", "learning/../setup.py")]
    [True, True, False, False]
    """
    return _PATHS.fullmatch(name) is not None


def is_for_learning(name: str) -> bool:
    """Return whether a file of a model is in the folder `learning`, which prediction does not need.

    >>> is_for_learning("learning/journal.json"), is_for_learning("manifest.json")
    (True, False)
    """
    return name.startswith(f"{LEARNING}/")


def names_in(manifest: Mapping[str, Any]) -> list[str]:
    """Return the manifest, and the files of a model that it names.

    >>> names_in({"files": {"arrays.safetensors": {}, "setup.py": {}}})
    ['manifest.json', 'arrays.safetensors']
    """
    return [MANIFEST, *(name for name in FILES[1:] if name in manifest["files"])]


def files_of(folder: Path, manifest: Mapping[str, Any], with_training_data: bool) -> list[Shared]:
    """Return the files of a model that are shared, given its manifest."""
    place = locate(folder, store.is_model)
    found = [_file(place, name) for name in names_in(manifest)]
    if with_training_data:
        names = sorted(path.relative_to(place).as_posix() for path in (place / LEARNING).rglob("*") if path.is_file())
        found += [_file(place, name) for name in names if is_of_model(name)]
    return found


def _file(place: Path, name: str) -> Shared:
    content = map_file(place / name)
    return Shared(name, place / name, len(content), sha256(content))


def size_of(sizes: Iterable[int]) -> str:
    """Return the sum of numbers of bytes for people.

    >>> size_of([2_000_000, 345_678]), size_of([4_321]), size_of([15])
    ('2.3 MB', '4.3 kB', '15 B')
    """
    count = sum(sizes)
    if count < 1000:
        return f"{count} B"
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"
