"""What training was said to need beside what it took: `python benchmarks/memory.py [--data FOLDER …] [--set k=100]`.

Each training runs in a process of its own that holds nothing but its matrices; what it took is the most memory that the
process ever held. Made-up data of several shapes by default; with `--data`, data sets, the texts as TF-IDF.
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
GOAL = 0.15
# Documents, features, labels, features a document, labels a document, settings.
SHAPES: list[tuple[int, int, int, int, int, dict[str, Any]]] = [
    (5_000, 5_000, 1_000, 50, 3, {"D": 64, "k": 50, "batch_size": 64}),
    (5_000, 60_000, 1_000, 100, 3, {"D": 384, "k": 200}),
    (5_000, 60_000, 30_000, 30, 5, {"D": 300, "k": 100, "relu": True, "residual": True}),
    (60_000, 5_000, 1_000, 20, 3, {"D": 384, "k": 200}),
    (60_000, 10_000, 2_000, 20, 3, {"D": 64, "k": 300, "random_negatives": 0}),
    (60_000, 20_000, 2_000, 400, 3, {"D": 64, "k": 50}),
    (10_000, 5_000, 60_000, 30, 5, {"D": 256, "k": 200, "precision": "float32"}),
    (20_000, 20_000, 15_000, 50, 5, {"D": 128, "k": 100, "index": "hnsw"}),
    (20_000, 20_000, 40_000, 50, 5, {"D": 256, "k": 100, "index": "ivf"}),
    (20_000, 20_000, 40_000, 50, 5, {"D": 256, "k": 100, "index": "sketch"}),
    (30_000, 40_000, 20_000, 100, 5, {"D": 384, "k": 200, "frequent_labels": 50}),
    (40_000, 100_000, 10_000, 60, 4, {"D": 300, "k": 100, "validation": 0.0}),
]


def make(folder: Path, shape: list[int]) -> None:
    """Write made-up features and labels, the frequent ones much more frequent than the others."""
    import numpy as np
    from scipy.sparse import csr_matrix, save_npz

    documents, features, labels, words, topics = shape
    rng = np.random.default_rng(0)
    for name, columns, each in (("X", features, words), ("Y", labels, topics)):
        indices = (columns * rng.random(documents * each) ** 2).astype(np.int32)
        pointers = np.arange(0, documents * each + 1, each, dtype=np.int32)
        matrix = csr_matrix((np.ones(len(indices), dtype=np.float32), indices, pointers), (documents, columns))
        matrix.sum_duplicates()
        save_npz(folder / f"{name}.npz", matrix, compressed=False)


def convert(folder: Path, source: str) -> None:
    """Write the features and labels of a data set's parts."""
    from scipy.sparse import save_npz

    from lightdxml.data import load
    from lightdxml.text import tfidf

    data: Any = load(source)
    parts, vectorizer = {"": data.train} | ({"_dev": data.dev} if data.dev is not None else {}), None
    for name, split in parts.items():
        X = split.X
        if X is None:
            if vectorizer is None:
                vectorizer, X = tfidf.fit(split.texts)
            else:
                X = tfidf.transform(vectorizer, split.texts)
        save_npz(folder / f"X{name}.npz", X, compressed=False)
        save_npz(folder / f"Y{name}.npz", split.Y, compressed=False)


def measure(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Train on what is in the folder, and return the bytes that it took and those that were said to be needed."""
    import numpy as np
    from scipy.sparse import load_npz

    from lightdxml.config import configure
    from lightdxml.training import memory
    from lightdxml.training.fit import fit

    X, Y = load_npz(folder / "X.npz"), load_npz(folder / "Y.npz")
    dev = None
    if (folder / "X_dev.npz").exists():
        dev = load_npz(folder / "X_dev.npz"), load_npz(folder / "Y_dev.npz")
    config = configure("default", X.shape[0], **settings)
    sizes = memory.Sizes(
        X.shape[0], X.shape[1], Y.shape[1], X.nnz, Y.nnz,
        validation=None if dev is None else dev[0].shape[0],
        known=int(np.count_nonzero(np.bincount(Y.indices))),
    )  # fmt: skip
    estimate = memory.estimate(sizes, config)
    fit(X, Y, config, dev)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    name = f"N={X.shape[0]:,} V={X.shape[1]:,} L={Y.shape[1]:,} D={config.D} k={config.k}"
    return {"name": name, "estimate": estimate.total, "measured": peak, "parts": estimate.parts}


def child(arguments: list[Any]) -> str:
    command = [sys.executable, __file__, "--child", json.dumps(arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def run_child(task: str, folder: str, argument: Any) -> None:
    if task == "make":
        make(Path(folder), argument)
    elif task == "convert":
        convert(Path(folder), argument)
    else:
        print(json.dumps(measure(Path(folder), argument)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="append", default=[], help="a data set; may be repeated")
    parser.add_argument("--set", action="append", default=[], help="a setting for the data sets, name=value")
    parser.add_argument("--parts", action="store_true", help="show what each estimate is made of")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        run_child(*json.loads(arguments.child))
        return
    given: dict[str, Any] = {"e_model": 1} | dict(setting.split("=", 1) for setting in arguments.set)
    tasks: list[tuple[str, Any, dict[str, Any]]] = [("convert", source, given) for source in arguments.data]
    if not tasks:
        tasks = [("make", shape, {"e_model": 1} | settings) for *shape, settings in SHAPES]
    print(f"{'training':50} {'estimate MB':>12} {'measured MB':>12} {'ratio':>6}")
    worst = 0.0
    for task, argument, settings in tasks:
        with tempfile.TemporaryDirectory() as folder:
            child([task, folder, argument])
            result = json.loads(child(["measure", folder, settings]).splitlines()[-1])
        ratio = result["estimate"] / result["measured"]
        worst = max(worst, abs(ratio - 1))
        print(
            f"{result['name']:50} {result['estimate'] / 1e6:12,.0f} {result['measured'] / 1e6:12,.0f} {ratio:6.2f}",
            flush=True,
        )
        if arguments.parts:
            print("    " + ", ".join(f"{name} {size / 1e6:,.0f}" for name, size in result["parts"].items()), flush=True)
    print(f"the worst is {100 * worst:.0f} % off; the goal is {100 * GOAL:.0f} %")


if __name__ == "__main__":
    main()
