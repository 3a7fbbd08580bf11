"""TF-IDF against scikit-learn's: `python benchmarks/vectorize.py [--data FOLDER] [--repeat 1]`.

Both fit the bodies of the same training texts (EURLEX57K by default) with the same settings: min_df 2, at most 50,000
terms, sublinear. Every run is a new process. Reading texts and compiling are not timed. Peak memory is the growth of
the process while it fits. That both compute the same matrix is tested in `tests/text`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from measure import alone, timed, timed_with_peak

TERMS = 50_000
RUNS = [
    (method, ngrams, threads)
    for ngrams in (1, 2)
    for method, threads in (("scikit-learn", 1), ("lightdxml", 1), ("lightdxml", 2))
]
Figures = dict[str, float]


def fit_sklearn(texts: Any, few: Any, ngrams: int) -> Figures:
    from sklearn.feature_extraction.text import TfidfVectorizer

    learner = TfidfVectorizer(
        ngram_range=(1, ngrams), min_df=2, max_features=TERMS, sublinear_tf=True, dtype=np.float32
    )
    start = time.process_time()
    _, seconds, peak = timed_with_peak(learner.fit_transform, texts)
    cpu = time.process_time() - start
    return {"seconds": seconds, "cpu": cpu, "peak": peak, "transform": timed(learner.transform, few)[1]}


def fit_lightdxml(texts: Any, few: Any, ngrams: int) -> Figures:
    from lightdxml.text import tfidf

    options = tfidf.TextOptions(ngrams=ngrams, max_features=TERMS)
    tfidf.fit(["compile é it", "compile é it"], options)
    start = time.process_time()
    (vectorizer, _), seconds, peak = timed_with_peak(tfidf.fit, texts, options)
    cpu, transform = time.process_time() - start, timed(tfidf.transform, vectorizer, few)[1]
    return {"seconds": seconds, "cpu": cpu, "peak": peak, "transform": transform}


def measure(folder: Path, method: str, ngrams: int, threads: int) -> Figures:
    from lightdxml.data import load
    from lightdxml.kernels import parallel

    data: Any = load(folder)
    texts = data.train.texts.bodies
    few = texts[: len(texts) // 5]
    with parallel.use_threads(threads):
        figures = (fit_lightdxml if method == "lightdxml" else fit_sklearn)(texts, few, ngrams)
    return {**figures, "transform": len(few) / figures["transform"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("LIGHTDXML_DATA", str(Path(__file__).parents[2] / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=Path(default) / "eurlex57k")
    parser.add_argument("--repeat", type=int, default=1)
    arguments = parser.parse_args()
    print(f"{'ngrams':6} {'':12} {'threads':>7} {'fit s':>7} {'speedup':>7} {'CPU s':>7} {'peak MB':>8} {'docs/s':>9}")
    reference = 0.0
    for method, ngrams, threads in RUNS:
        runs = [alone(measure, arguments.data, method, ngrams, threads) for _ in range(arguments.repeat)]
        seconds, cpu, peak, speed = (statistics.median(run[key] for run in runs) for key in runs[0])
        reference = seconds if method == "scikit-learn" else reference
        cells = f"{seconds:7.2f} {reference / seconds:7.1f} {cpu:7.2f} {peak:8.0f} {speed:9,.0f}"
        print(f"{ngrams:6} {method:12} {threads:7} {cells}", flush=True)


if __name__ == "__main__":
    main()
