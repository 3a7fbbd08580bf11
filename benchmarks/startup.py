"""How long a user waits for the first answer: `python benchmarks/startup.py DATA OUT [--rounds 5]`.

Two models are measured: debian-relations with pairs of words, and see-also with the paper's views. DATA holds the
folder of debian-relations. OUT receives the models; those that are there are not trained again.

Every measurement is a process of its own, with byte code, as pip installs it, and with compiled kernels in the cache.
Times are medians of wall time.

- predict: `lightdxml predict MODEL -` with one line, and its peak memory; then the same with an empty cache of kernels,
  once.
- first prediction: from the import of `Predictor` to its first prediction.
- one document: the median of 200 texts, one at a time, after the first.
- train: `lightdxml train see-also`, once with an empty cache of kernels, then with a full one.
"""

from __future__ import annotations

import argparse
import json
import os
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
    """Return wall time, peak memory in MB, and what is printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | variables
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as shown:
        given.write(TEXT + "\n")
        given.seek(0)
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=given, stdout=shown, env=environment)
        # The peak of this process, not of all children.
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        shown.seek(0)
        return wall, used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6, shown.read()


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


def trainings(folder: Path, rounds: int) -> dict[str, list[str]]:
    """Return seconds of a first training, and the median of later ones, with the default views and with the paper's."""
    cells = {}
    for title, options in (("`train see-also`", ()), ("`train see-also --dense always`", PAPER)):
        with tempfile.TemporaryDirectory(dir=folder) as empty:
            command = [*COMMAND, "train", "see-also", "--model", f"{empty}/model", "--force", *options]
            times = [run(command, NUMBA_CACHE_DIR=f"{empty}/cache")[0] for _ in range(1 + rounds)]
        cells[title] = [f"{times[0]:.1f} s", f"{statistics.median(times[1:]):.1f} s"]
    return cells


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
    print("\n| | Nothing compiled yet | Compiled |\n|---|--:|--:|")
    for title, cells in trainings(given.out, given.rounds).items():
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
