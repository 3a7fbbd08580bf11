"""Model folders changed as their author could have changed them: with checksums that fit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.persistence import arrays as stored

Arrays = dict[str, NDArray[Any]]


def write_file(folder: Path, name: str, content: bytes) -> None:
    """Replace a file of a model, and its checksum."""
    (folder / name).write_bytes(content)
    seal = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    change_manifest(folder, lambda manifest: manifest["files"].update({name: seal}))


def change_manifest(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a model's manifest, and its checksum."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest.pop("sha256", None)
    change(manifest)
    seal = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest | {"sha256": seal}), encoding="utf-8")


def change_arrays(folder: Path, change: Callable[[Arrays], object]) -> None:
    """Change a model's arrays, and their checksums."""
    path = folder / "arrays.safetensors"
    content = {name: np.array(array) for name, array in stored.read(path).items()}
    change(content)
    stored.write(path, content)
    write_file(folder, path.name, path.read_bytes())
