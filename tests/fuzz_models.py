"""Damaged models: `python -m tests.fuzz_models --minutes 5 --seed 0`.

Damages the files of model folders at random, bytes and values, and makes the checksums fit. Each model must be refused
by a `ValueError` of one line, or else predict scores from 0 to 1, explain them, and be saved again.
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

from lightdxml import LightDXML, Vocabulary, load
from lightdxml.data.vocabulary import Concept
from lightdxml.model import store
from lightdxml.vocabulary_update import update_vocabulary

TEXTS = ["a purring cat", "a barking dog", "a cat and a dog", "a goldfish in a bowl"] * 10
NAMES = [["cat"], ["dog"], ["cat", "dog"], ["fish"]] * 10
QUERIES = ["a purring cat", "", "no dog", "a cat, a dog and a goldfish"]
VALUES = [0, -1, 1, 5, 2**31 - 1, -(2**31), 60_000, np.nan, np.inf, 3e38]
LARGE = [6e4, 0.99e9, -0.99e9, 0.99e6, -0.99e6]
JSON_VALUES: list[Any] = [
    0, -1, 1, 2**31 - 1, -(2**31), 10**12, 0.5, -1e300, True, None, "x", "../x", [], {}, [[]], float("inf"),
]  # fmt: skip


def make_models(folder: Path) -> list[Path]:
    """Train models of all views, both blends, both indexes and all precisions; save them into a folder."""
    trees = {"linear.work": 0, "tree.max_trees": 2, "blend.min_gain": 0, "blend.min_errors": 0}
    small: dict[str, Any] = {"dim": 8, "shortlist_size": 3, "epochs": 1, "min_df": 1}
    four = LightDXML(**small, options={**trees, "blend.fit": False}).fit(TEXTS, NAMES)
    layers = {"dense.relu": True, "dense.residual": True, "blend.beta": 0.5}
    paper = LightDXML(**small, linear=False, index="rabitq", precision="float32", options=layers).fit(TEXTS, NAMES)
    concepts = [Concept(f"urn:{name}", {"en": (name,)}) for name in ("cat", "dog", "fish", "cow")]
    uris = [[f"urn:{name}" for name in names] for names in NAMES]
    named = LightDXML(**small, options=trees | {"names.min_documents": 1}).fit(
        TEXTS, uris, vocabulary=Vocabulary(concepts)
    )
    updated = update_vocabulary(named.model_, Vocabulary([*concepts[:3], Concept("urn:bee", {"en": ("bee",)})]))[0]
    models = [one for trained in (four.model_, paper.model_, updated) for one in (trained, trained.quantize("int8"))]
    for i, model in enumerate(models):
        store.save(model, folder / str(i), "1", [])
    return sorted(folder.iterdir())


def damage_bytes(rng: random.Random, folder: Path) -> None:
    """Change, remove or insert some bytes of a file."""
    path = rng.choice([path for path in sorted(folder.iterdir()) if path.name != "manifest.json"])
    content = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 8)):
        if not content:
            break
        at = rng.randrange(len(content) if rng.random() < 0.5 else min(len(content), 2000))
        change = rng.random()
        if change < 0.6:
            content[at] = rng.randrange(256)
        elif change < 0.8:
            del content[at : at + rng.randint(1, 64)]
        else:
            content[at:at] = rng.randbytes(rng.randint(1, 16))
    path.write_bytes(content)


def damage_array(rng: random.Random, folder: Path) -> None:
    """Change a value, the length or the type of an array, or remove it."""
    arrays = load_file(folder / "arrays.safetensors")
    name = rng.choice(sorted(arrays))
    array, change = arrays[name], rng.random()
    if change < 0.5 and array.size:
        value = np.float64(rng.choice(VALUES))
        with np.errstate(all="ignore"):
            array.flat[rng.randrange(array.size)] = value.astype(array.dtype)
    elif change < 0.6 and array.dtype.kind == "f":
        # As large as a number of a model can be, all over: sums and products may overflow.
        array[...] = np.minimum(np.float64(rng.choice(LARGE)), np.finfo(array.dtype).max).astype(array.dtype)
    elif change < 0.7:
        arrays[name] = array[: rng.randint(0, len(array))].copy()
    elif change < 0.8:
        arrays[name] = np.concatenate([array, array])
    elif change < 0.9:
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(rng.choice([np.float32, np.float16, np.int32, np.int64, np.uint8]))
    else:
        del arrays[name]
    save_file(arrays, folder / "arrays.safetensors")


def damage_manifest(rng: random.Random, folder: Path) -> None:
    """Change or remove an entry of the manifest, at any depth."""
    manifest = json.loads((folder / "manifest.json").read_text())
    inner, key = manifest, rng.choice(sorted(manifest))
    while isinstance(inner[key], dict) and inner[key] and rng.random() < 0.8:
        inner = inner[key]
        key = rng.choice(sorted(inner))
    if rng.random() < 0.2:
        del inner[key]
    else:
        inner[key] = rng.choice(JSON_VALUES)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def seal(folder: Path) -> None:
    """Write checksums that fit, as somebody who forges a model would."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest.pop("sha256", None)
    files = manifest.get("files")
    for name, entry in files.items() if isinstance(files, dict) else ():
        path = folder / Path(name).name
        if path.is_file() and isinstance(entry, dict):
            content = path.read_bytes()
            entry |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    checksum = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps({**manifest, "sha256": checksum}))


def use(folder: Path) -> str:
    """Load and use a model; return whether it was refused or used."""
    try:
        with np.errstate(all="ignore"):
            model = load(folder)
            for model.n_jobs in (1, 2):
                labels, scores = model.rank(QUERIES, k=3)
                assert ((scores >= 0) & (scores <= 1)).all(), scores
                assert labels.max() < model.model_.n_labels
                rules = model.rank(QUERIES, k=3, exclude=[0])[0]
                assert 0 not in rules, rules
                shifted = model.rank(QUERIES, k=3, tail=1.0)[1]
                assert ((shifted >= 0) & (shifted <= 1)).all(), shifted
            for rows in model.explain(QUERIES, k=2):
                assert all(np.isfinite([row.score, row.base]).all() for row in rows), rows
            model.save(folder.with_name("saved"))
    except ValueError as error:
        assert "\n" not in str(error), error
        return "refused"
    return "used"


def fuzz(minutes: float, seed: int) -> Counter[str]:
    """Damage and use models for some minutes; return how many were refused and how many were used."""
    rng, outcomes = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as temporary:
        models = make_models(Path(temporary) / "models")
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end:
            folder = Path(temporary) / "model"
            shutil.copytree(rng.choice(models), folder)
            # Bytes last: after them a file may have no values that could be changed.
            for kind in sorted(rng.sample(range(3), rng.randint(1, 2))):
                (damage_array, damage_manifest, damage_bytes)[kind](rng, folder)
            seal(folder)
            try:
                outcomes[use(folder)] += 1
            except BaseException:
                kept = shutil.copytree(folder, Path(tempfile.mkdtemp()) / "model")
                print(f"failed after {sum(outcomes.values()):,} models; the failing one is {kept}")
                raise
            for used in (folder, folder.with_name("saved")):
                shutil.rmtree(used, ignore_errors=True)
    return outcomes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    counts = fuzz(arguments.minutes, arguments.seed)
    print(f"{sum(counts.values()):,} models: {counts['refused']:,} refused, {counts['used']:,} used")
