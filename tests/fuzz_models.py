"""Models of strangers: `python -m tests.fuzz_models --minutes 5 --seed 0`.

Damages the files of model folders at random, byte by byte and value by value, with checksums that fit, and loads and
uses them. Each must be refused with a `ValueError` of one line, or predict, explain and be saved again; nothing else.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from lightdxml import load
from tests.test_storage import write_manifest
from tests.training.test_cycle import topics

MODELS = Path(__file__).parent / "models"
ODD: list[Any] = [
    0,
    -1,
    1,
    2**31 - 1,
    -(2**31),
    10**12,
    0.5,
    -1e300,
    True,
    None,
    "x",
    "../x",
    [],
    {},
    [[]],
    float("inf"),
]


def damage_bytes(rng: random.Random, folder: Path) -> None:
    path = rng.choice([path for path in sorted(folder.iterdir()) if path.name != "manifest.json"])
    content = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 8)):
        place = rng.randrange(len(content)) if rng.random() < 0.5 else rng.randrange(min(len(content), 2000))
        change = rng.random()
        if change < 0.6:
            content[place] = rng.randrange(256)
        elif change < 0.8:
            del content[place : place + rng.randint(1, 64)]
        else:
            content[place:place] = rng.randbytes(rng.randint(1, 16))
        if not content:
            break
    path.write_bytes(content)


def damage_array(rng: random.Random, folder: Path) -> None:
    arrays = load_file(folder / "arrays.safetensors")
    name = rng.choice(sorted(arrays))
    array = arrays[name]
    change = rng.random()
    if change < 0.5 and array.size:
        value: Any = rng.choice([0, -1, 1, 5, 2**31 - 1, -(2**31), 60_000, np.nan, np.inf])
        with np.errstate(all="ignore"):
            if array.dtype.kind != "f":
                # Bytes take what is left of a larger number.
                value = np.array(value if np.isfinite(value) else 7, dtype=np.int64).astype(array.dtype)
            array.flat[rng.randrange(array.size)] = value
    elif change < 0.7:
        arrays[name] = array[: rng.randint(0, len(array))].copy()
    elif change < 0.8:
        arrays[name] = np.concatenate([array, array])
    elif change < 0.9:
        arrays[name] = array.astype(rng.choice([np.float32, np.float16, np.int32, np.int64, np.uint8]))
    else:
        del arrays[name]
    save_file(arrays, folder / "arrays.safetensors")


def damage_manifest(rng: random.Random, folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    place: Any = manifest
    while True:
        key = rng.choice(sorted(place))
        if isinstance(place[key], dict) and place[key] and rng.random() < 0.8:
            place = place[key]
            continue
        if rng.random() < 0.2:
            del place[key]
        else:
            place[key] = rng.choice(ODD)
        break
    (folder / "manifest.json").write_text(json.dumps(manifest))


def with_checksums(folder: Path) -> None:
    """Write the checksums that whoever made such a model would have written."""
    manifest = json.loads((folder / "manifest.json").read_text())
    if isinstance(manifest.get("files"), dict):
        for name in manifest["files"]:
            path = folder / Path(name).name
            if path.is_file() and isinstance(manifest["files"][name], dict):
                content = path.read_bytes()
                manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    write_manifest(folder, manifest)


def use(folder: Path, texts: bool) -> str:
    """Load and use a model; return what came of it."""
    X: Any = ["a purring cat", "", "no dog"] if texts else topics(60)[0][:3]
    try:
        with np.errstate(all="ignore"):
            model = load(folder)
            for threads in (1, 2):
                model.threads = threads
                model.predict(X, k=3)
            model.explain(X, k=2)
            model.save(folder.with_name("again"))
    except ValueError as error:
        assert "\n" not in str(error), error
        return "refused"
    return "used"


def main(minutes: float, seed: int) -> Counter[str]:
    rng = random.Random(seed)
    outcomes: Counter[str] = Counter()
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as scratch:
        while time.monotonic() < end:
            source = rng.choice(sorted(path for path in MODELS.iterdir() if path.is_dir()))
            folder = Path(scratch) / "model"
            shutil.copytree(source, folder)
            kinds = rng.sample(range(3), rng.randint(1, 2))
            # Bytes last: what they leave is no file in which values could be changed.
            for kind in sorted(kinds):
                (damage_array, damage_manifest, damage_bytes)[kind](rng, folder)
            with_checksums(folder)
            outcomes[use(folder, source.name.endswith("texts"))] += 1
            shutil.rmtree(scratch)
            Path(scratch).mkdir()
    return outcomes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    counted = main(arguments.minutes, arguments.seed)
    print(f"{sum(counted.values()):,} models: " + ", ".join(f"{n:,} {what}" for what, n in sorted(counted.items())))
