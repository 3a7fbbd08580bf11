"""The memory estimate against what training takes: `python benchmarks/memory.py [--data FOLDER …] [--set epochs=2]`.

Each training runs in a process of its own that holds nothing but its matrices, or its texts. Its peak is the most
memory that the process ever held. By default the data are synthetic, in several shapes; `--data` takes data sets.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# This process imports nothing large: a child's peak counts from what its parent held when it was started.
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
    sizes = f"N={Y.shape[0]:,} V={trained.model_.n_features:,} L={Y.shape[1]:,}"
    dense = trained.model_.config.dense
    name = f"{Path(source).name} {sizes} D={dense.dim} k={dense.shortlist_size}".strip()
    return {"name": name, "estimate": estimate, "peak": peak}


def child(arguments: list[Any]) -> str:
    command = [sys.executable, __file__, "--child", json.dumps(arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="append", default=[], help="a data set; may be repeated")
    parser.add_argument("--set", action="append", default=[], help="a setting, name=value; may be repeated")
    parser.add_argument("--from", dest="first", type=int, default=0, help="leave out this many shapes")
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
    tasks = [("", shape, {**settings, **given}) for *shape, settings in SHAPES[arguments.first :]]
    if arguments.data:
        tasks = [(source, [], given) for source in arguments.data]
    print(f"{'training':60} {'estimate MB':>12} {'peak MB':>9} {'peak / estimate':>16}")
    ratios = []
    for source, shape, settings in tasks:
        with tempfile.TemporaryDirectory() as folder:
            if shape:
                child(["make", folder, shape])
            result = json.loads(child(["measure", folder, source, settings]).splitlines()[-1])
        ratios.append(result["peak"] / result["estimate"])
        print(
            f"{result['name']:60} {result['estimate'] / 1e6:12,.0f} {result['peak'] / 1e6:9,.0f} {ratios[-1]:16.2f}",
            flush=True,
        )
    print(f"from {min(ratios):.2f} to {max(ratios):.2f}; the goal is 0.60 to 1.05")


if __name__ == "__main__":
    main()
