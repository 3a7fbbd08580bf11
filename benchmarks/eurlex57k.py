"""LightDXML beside Parabel on EURLEX57K: `python benchmarks/eurlex57k.py [--data FOLDER] [--repeat 1]`.

Both read the same TF-IDF matrix from the same XC text file and train on it, each in a process of its own, in turns.
Time is from the start of reading to the end of training. Parabel is omikuji's, with its default settings (3 trees).
Accuracy is on the test part, which neither training sees; LightDXML chooses β and the epoch on the dev part.
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
from pathlib import Path
from typing import Any

import numpy as np

from lightdxml.data import Dataset, Split, load, save
from lightdxml.metrics import evaluate, inverse_propensity
from lightdxml.text import tfidf

MEASURES = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")
GOALS = {"P@1": 90.0, "P@3": 79.8, "P@5": 66.8, "PSP@1": 52.0, "PSP@5": 64.0}


def vectorize(folder: Path, target: Path, ngrams: int) -> None:
    data: Any = load(folder)
    vectorizer, X = tfidf.fit(data.train.texts, tfidf.TextOptions(ngrams=ngrams))
    parts = {"train": Split(Y=data.train.Y, X=X)}
    for name, split in data.splits.items():
        if name != "train":
            parts[name] = Split(Y=split.Y, X=tfidf.transform(vectorizer, split.texts))
    save(Dataset("eurlex57k", parts["train"], parts["test"], parts["dev"]), target, "xc")


def train_lightdxml(folder: Path, settings: list[str]) -> tuple[float, Any, dict[str, float]]:
    from lightdxml import LightDXML
    from lightdxml.config import configure

    given: dict[str, Any] = dict(setting.split("=", 1) for setting in settings)
    config = configure(**given)
    start = time.perf_counter()
    data: Any = load(folder)
    estimator = LightDXML(**{name: getattr(config, name) for name in given})
    estimator.fit(data.train.X, data.train.Y, dev=(data.dev.X, data.dev.Y))
    seconds = time.perf_counter() - start
    phases: dict[str, float] = {}
    for entry in estimator.history_:
        phases[entry["phase"]] = phases.get(entry["phase"], 0.0) + entry["seconds"]
    N, (V, D), L = len(data.train), estimator.model_.encoder.vectors.shape, data.n_labels
    k, config = estimator.model_.config.k, estimator.model_.config
    matrices = sum(a.nbytes for s in data.splits.values() for m in (s.X, s.Y) for a in (m.data, m.indices, m.indptr))
    # Word vectors and classifier with their running means and the copy of the best epoch; embeddings, shortlists.
    phases["arrays MB"] = (3 * 4 * (V * D + L * (D + 1)) + 2 * 4 * N * D + 4 * N * min(k, L) + 2 * matrices) / 1e6
    phases["pairs"] = float(N * (k + config.random_negatives) * config.e_model)
    before = time.perf_counter()
    ranked, _ = estimator.rank(data.test.X, 5)
    phases["ms/query"] = 1000 * (time.perf_counter() - before) / len(data.test)
    return seconds, ranked, phases


def train_parabel(folder: Path) -> tuple[float, Any, dict[str, float]]:
    import omikuji

    start = time.perf_counter()
    model = omikuji.Model.train_on_data(str(folder / "train.txt"), n_threads=os.cpu_count())
    seconds = time.perf_counter() - start
    data: Any = load(folder)
    X = data.test.X
    before = time.perf_counter()
    rows = []
    for i in range(X.shape[0]):
        part = slice(X.indptr[i], X.indptr[i + 1])
        pairs = list(zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True))
        rows.append([label for label, _ in model.predict(pairs, top_k=5)])
    return seconds, rows, {"ms/query": 1000 * (time.perf_counter() - before) / len(rows)}


def child(method: str, folder: Path, settings: list[str]) -> None:
    seconds, ranked, phases = train_lightdxml(folder, settings) if method == "lightdxml" else train_parabel(folder)
    data: Any = load(folder)
    figures = evaluate(data.test.Y, ranked, (1, 3, 5), inverse_propensity(data.train.Y))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps({"seconds": seconds, "peak": peak, "phases": phases, **{m: figures[m] for m in MEASURES}}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("LIGHTDXML_DATA", str(Path(__file__).parents[2] / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=Path(default) / "eurlex57k")
    parser.add_argument("--ngrams", type=int, choices=[1, 2], default=2, help="words, or words and pairs of words")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="a setting of LightDXML, name=value")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child[0], Path(arguments.child[1]), arguments.set)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "xc"
        vectorize(arguments.data, folder, arguments.ngrams)
        results: dict[str, list[dict[str, Any]]] = {"lightdxml": [], "parabel": []}
        for _ in range(arguments.repeat):
            for method, runs in results.items():
                options = [option for setting in arguments.set for option in ("--set", setting)]
                command = [sys.executable, __file__, "--child", method, str(folder), *options]
                runs.append(
                    json.loads(subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL).splitlines()[-1])
                )
    print(f"{'':10} {'seconds':>8} {'peak MB':>8} {'ms/query':>9} " + " ".join(f"{m:>7}" for m in MEASURES))
    for method, runs in results.items():
        seconds = statistics.median(run["seconds"] for run in runs)
        cells = " ".join(f"{np.mean([run[m] for run in runs]):7.2f}" for m in MEASURES)
        print(f"{method:10} {seconds:8.1f} {runs[0]['peak']:8.0f} {runs[0]['phases'].pop('ms/query'):9.2f} {cells}")
    print("goals for lightdxml: " + ", ".join(f"{name} ≥ {value}" for name, value in GOALS.items()))
    times = [statistics.median(run["seconds"] for run in results[method]) for method in ("lightdxml", "parabel")]
    print(f"lightdxml takes {times[0] / times[1]:.2f} times Parabel's time")
    phases = results["lightdxml"][0]["phases"]
    arrays, pairs = phases.pop("arrays MB"), phases.pop("pairs")
    print(
        f"lightdxml's arrays need {arrays:.0f} MB; {pairs / phases['classifier'] / 1e6:.1f} M pairs/s with the features"
    )
    print("lightdxml by phase: " + ", ".join(f"{k} {v:.1f} s" for k, v in phases.items()))


if __name__ == "__main__":
    main()
