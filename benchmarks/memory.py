"""The memory estimate against what training takes: `python benchmarks/memory.py [SET ...] [--set epochs=2]`.

Each training runs in a process of its own that holds nothing but its matrices, or its texts. Its peak is the most
memory that the process ever held. Without names of data sets, synthetic data of several shapes come first. The folder
given by `--data` holds one folder per data set.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# This process imports nothing large: a child's peak counts from what its parent held when it was started.
SETS = ("debian-relations", "citeulike-t", "wordnet", "eurlex57k")
# Documents, features, labels, features per document, labels per document, settings.
SHAPES: list[tuple[int, int, int, int, int, dict[str, Any]]] = [
    (5_000, 5_000, 1_000, 50, 3, {"dim": 64, "shortlist_size": 50, "dense.batch_size": 64}),
    (5_000, 60_000, 1_000, 100, 3, {"dim": 384}),
    (5_000, 60_000, 30_000, 30, 5, {"dim": 300, "shortlist_size": 100, "dense.relu": True, "dense.residual": True}),
    (60_000, 5_000, 1_000, 20, 3, {"dim": 384}),
    (60_000, 10_000, 2_000, 20, 3, {"dim": 64, "shortlist_size": 300, "dense.random_negatives": 0}),
    (60_000, 20_000, 2_000, 400, 3, {"dim": 64, "shortlist_size": 50}),
    (10_000, 5_000, 60_000, 30, 5, {"dim": 256, "precision": "float32"}),
    (20_000, 20_000, 15_000, 50, 5, {"dim": 128, "shortlist_size": 100}),
    (20_000, 20_000, 40_000, 50, 5, {"dim": 256, "shortlist_size": 100, "index": "rabitq"}),
    (30_000, 40_000, 20_000, 100, 5, {"dim": 384}),
    (40_000, 100_000, 10_000, 60, 4, {"dim": 300, "shortlist_size": 100, "validation_fraction": 0.0}),
    (20_000, 20_000, 50_000, 50, 200, {}),
    (20_000, 20_000, 5_000, 100, 20, {}),
    (50_000, 50_000, 50_000, 30, 2, {}),
    (10_000, 20_000, 3_000, 300, 10, {}),
    (3_000, 100_000, 10_000, 200, 30, {}),
]


def make(folder: Path, shape: list[int]) -> None:
    """Write random features and labels with a skewed distribution."""
    import numpy as np
    from scipy.sparse import csr_matrix, save_npz

    documents, features, labels, words, per_document = shape
    rng = np.random.default_rng(0)
    for name, columns, each in (("X", features, words), ("Y", labels, per_document)):
        indices = (columns * rng.random(documents * each) ** 2).astype(np.int32)
        indptr = np.arange(0, documents * each + 1, each, dtype=np.int32)
        matrix = csr_matrix((np.ones(len(indices), dtype=np.float32), indices, indptr), (documents, columns))
        matrix.sum_duplicates()
        save_npz(folder / f"{name}.npz", matrix, compressed=False)


def measure(folder: Path, source: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Train, and return the estimate and the peak in bytes."""
    from scipy.sparse import load_npz

    from lightdxml import LightDXML
    from lightdxml.data import load

    if source:
        data: Any = load(source)
        X, Y = (data.train.texts if data.train.X is None else data.train.X), data.train.Y
    else:
        X, Y = load_npz(folder / "X.npz"), load_npz(folder / "Y.npz")
    options = {"epochs": 1, **settings}
    trained = LightDXML(options=options, verbose=False).fit(X, Y)
    estimate = next(entry["estimated_mb"] for entry in trained.history_ if "estimated_mb" in entry) * 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    dense = trained.model_.config.dense
    return {"sizes": [Y.shape[0], trained.model_.n_features, Y.shape[1]], "estimate": estimate, "peak": peak,
            "per_document": Y.nnz / Y.shape[0], "dense": f"{dense.dim} / {dense.shortlist_size}"}  # fmt: skip


def child(arguments: list[Any]) -> str:
    command = [sys.executable, __file__, "--child", json.dumps(arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", help="data sets")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LIGHTDXML_DATA", "../shared/data")))
    parser.add_argument("--set", action="append", default=[], help="a setting, name=value; may be repeated")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        task, folder, *rest = json.loads(arguments.child)
        if task == "make":
            make(Path(folder), *rest)
        else:
            print(json.dumps(measure(Path(folder), *rest)))
        return
    given = dict(setting.split("=", 1) for setting in arguments.set)
    tasks = [] if arguments.sets else [("", shape, {**settings, **given}) for *shape, settings in SHAPES]
    tasks += [(str(arguments.data / name), [], given) for name in arguments.sets or SETS]
    print("| Data | Documents | Features | Labels | Labels per document | D / shortlist | Estimate | Peak / estimate |")
    print(f"|---|{'--:|' * 7}", flush=True)
    for source, shape, settings in tasks:
        with tempfile.TemporaryDirectory() as folder:
            if shape:
                child(["make", folder, shape])
            found = json.loads(child(["measure", folder, source, settings]).splitlines()[-1])
        cells = [Path(source).name or "synthetic", *(f"{size:,}" for size in found["sizes"])]
        cells += [f"{found['per_document']:.1f}", found["dense"], f"{found['estimate'] / 1e6:,.0f} MB"]
        print(f"| {' | '.join(cells)} | {found['peak'] / found['estimate']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
