"""How long a user waits for the first answer: `python benchmarks/startup.py DATA OUT [--rounds 5]`.

Two models are measured: debian-relations with pairs of words, and see-also with the paper's views. DATA holds the
folder of debian-relations. OUT receives the models; those that are there are not trained again.

Every measurement is a process of its own, with byte code, as pip installs it, and with compiled kernels in the cache.
Times are medians of wall time.

- predict: `lightdxml predict MODEL -` with one line; then the same with an empty cache of kernels, once.
- first prediction: from the import of `Predictor` to its first prediction.
- one document: the median of 200 texts, one at a time, after the first.
- train: `lightdxml train see-also`, with an empty cache of kernels, once, and with a full one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

TEXT = "draw random samples from a normal distribution"
COMMAND = [sys.executable, "-m", "lightdxml"]
PAPER = ("--dense", "always")
FIRST = """
import json, sys, time, lightdxml
start = time.perf_counter()
predictor = lightdxml.Predictor.load(sys.argv[1])
predictor.predict([sys.argv[2]])
first = time.perf_counter() - start
times = []
for i in range(200):
    start = time.perf_counter()
    predictor.predict([f"{sys.argv[2]} {i}"])
    times.append(time.perf_counter() - start)
print(json.dumps([first, sorted(times)[100]]))
"""


def run(command: Sequence[str], **variables: str) -> tuple[float, float, str]:
    """Return wall time, peak memory in MB of the largest process so far, and what is printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | variables
    start = time.perf_counter()
    shown = subprocess.run(command, input=TEXT + "\n", stdout=subprocess.PIPE, text=True, env=environment, check=True)
    wall = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
    return wall, peak, shown.stdout


def median(commands: Sequence[str], rounds: int) -> float:
    return statistics.median(run(commands)[0] for _ in range(rounds))


def starts(model: Path, rounds: int) -> dict[str, str]:
    """Return the cells of a model."""
    imported = median([sys.executable, "-c", "import lightdxml"], rounds)
    predict = [*COMMAND, "predict", str(model), "-"]
    run(predict)  # compiles what is not in the cache yet
    _, peak, _ = run(predict)
    warm = median(predict, rounds)
    with tempfile.TemporaryDirectory() as empty:
        cold, _, _ = run(predict, NUMBA_CACHE_DIR=empty)
    firsts = [json.loads(run([sys.executable, "-c", FIRST, str(model), TEXT])[2]) for _ in range(rounds)]
    first, single = (statistics.median(one[i] for one in firsts) for i in (0, 1))
    return {
        "`import lightdxml`": f"{imported:.2f} s",
        "`lightdxml predict` of one line": f"{warm:.2f} s, {peak:.0f} MB",
        "the same, nothing compiled yet": f"{cold:.1f} s",
        "import of `Predictor`, load, first prediction": f"{first:.2f} s",
        "one document, afterwards": f"{1000 * single:.1f} ms",
    }


def trainings(folder: Path) -> dict[str, str]:
    """Return a cell: seconds of a first training and of a second one, with the default views and with the paper's."""
    cells = []
    for options in ((), PAPER):
        with tempfile.TemporaryDirectory(dir=folder) as empty:
            command = [*COMMAND, "train", "see-also", "--model", f"{empty}/model", "--force", *options]
            cold, warm = (run(command, NUMBA_CACHE_DIR=f"{empty}/cache")[0] for _ in range(2))
        cells.append(f"{cold:.1f} s / {warm:.1f} s")
    return dict(zip(("default", "with the paper's views"), cells, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder of the data sets")
    parser.add_argument("out", type=Path, help="the folder for models")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    models = {
        "see-also": ["see-also", *PAPER],
        "debian-relations": [str(given.data / "debian-relations"), "--ngrams", "2"],
    }
    # The largest model comes last: a peak is that of the largest process so far.
    found = {}
    for name, arguments in models.items():
        model = given.out / name
        if not model.exists():
            subprocess.run([*COMMAND, "train", *arguments, "--model", str(model)], check=True)
        size = sum(file.stat().st_size for file in model.iterdir()) / 1e6
        found[f"{name}, {size:.0f} MB"] = starts(model, given.rounds)
    print(f"| | {' | '.join(found)} |\n|---|{'--:|' * len(found)}")
    for title in next(iter(found.values())):
        print(f"| {title} | {' | '.join(cells[title] for cells in found.values())} |", flush=True)
    for title, cell in trainings(given.out).items():
        print(f"| `train see-also`, {title}: nothing compiled yet / again | {cell} | |", flush=True)


if __name__ == "__main__":
    main()
