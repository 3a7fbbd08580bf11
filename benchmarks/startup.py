"""How long a user waits for the first answer: `python benchmarks/startup.py MODEL [--rounds 5]`.

Every measurement is a process of its own, with byte code, as pip installs it, and with compiled kernels in the cache.
Prints the median wall time, the CPU time of the process, and its peak memory. MODEL is a folder with a model of texts.

- `import`: `import lightdxml`.
- `--version`: the smallest command.
- `predict`: `lightdxml predict MODEL -` with one line.
- `predict, cold`: the same with an empty cache of kernels, once.
- `first prediction`: seconds from the import to the first prediction of `Predictor`, and of `load`, which imports
  scikit-learn.
- `single`: the median of 200 texts, one at a time, after the first.
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

TEXT = "draw random samples from a normal distribution"
COMMAND = [sys.executable, "-m", "lightdxml"]
FIRST = """
import json, sys, time, {imports}
start = time.perf_counter()
predictor = {load}(sys.argv[1])
predictor.predict([sys.argv[2]])
first = time.perf_counter() - start
times = []
for i in range(200):
    start = time.perf_counter()
    predictor.predict([f"{{sys.argv[2]}} {{i}}"])
    times.append(time.perf_counter() - start)
print(json.dumps([first, sorted(times)[100]]))
"""


def run(command: list[str], **variables: str) -> tuple[float, float, float, str]:
    """Return wall time, CPU time, peak memory in MB, and what is printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | variables
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    out, _ = process.communicate(TEXT + "\n")
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, after.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6, out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    model, rounds = arguments.model, arguments.rounds
    # In the order of their memory: the peak is that of the largest process so far.
    commands = {
        "import": [sys.executable, "-c", "import lightdxml"],
        "--version": [*COMMAND, "--version"],
        "predict": [*COMMAND, "predict", model, "-"],
    }
    run(commands["predict"])  # compiles what is not in the cache yet
    print(f"{'':28} {'wall s':>7} {'CPU s':>7} {'peak MB':>8}")
    for name, command in commands.items():
        found = [run(command) for _ in range(rounds)]
        wall, cpu, peak = (statistics.median(float(one[i]) for one in found) for i in range(3))
        print(f"{name:28} {wall:7.2f} {cpu:7.2f} {peak:8,.0f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu, peak, _ = run(commands["predict"], NUMBA_CACHE_DIR=folder)
        print(f"{'predict, cold':28} {wall:7.2f} {cpu:7.2f} {peak:8,.0f}", flush=True)
    for name, load in (("Predictor.load", "lightdxml.Predictor.load"), ("load", "lightdxml.load")):
        program = FIRST.format(imports="lightdxml", load=load)
        firsts = [json.loads(run([sys.executable, "-c", program, model, TEXT])[3]) for _ in range(rounds)]
        first, single = (statistics.median(one[i] for one in firsts) for i in (0, 1))
        print(f"{'first prediction, ' + name:28} {first:7.2f}           single {1000 * single:.2f} ms", flush=True)


if __name__ == "__main__":
    main()
