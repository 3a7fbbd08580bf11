"""TF-IDF beside scikit-learn's: `python benchmarks/vectorize.py --data FOLDER [--repeat 1]`, EURLEX57K by default.

Both learn from the bodies of the same training texts with the same settings (min_df 2, at most 50,000 terms,
sublinear), each in a process of its own, in turns. Reading the texts and compiling are not timed. Memory is what the
process holds at most while it learns, less what it held before, the texts among it.

The matrices are compared without the cap, at which scikit-learn chooses among terms of equal counts as it happens, and
without the texts for which the two have different rules: those with marks or with scripts that have no spaces.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

from lightdxml.data import load
from lightdxml.kernels import parallel, words
from lightdxml.text import tfidf, tokenizer
from lightdxml.text.tfidf import TextOptions

RUNS = [
    (method, ngrams, threads)
    for ngrams in (1, 2)
    for method, threads in (("scikit-learn", 1), ("lightdxml", 1), ("lightdxml", 2))
]


def resident() -> int:
    """Return this process's resident memory in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measured(function: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Call the function; return its result with seconds, processor seconds of all threads and the peak of memory."""
    before = peak = resident()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    start, processor = time.perf_counter(), time.process_time()
    result = function()
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    done.set()
    watcher.join()
    return result, {"seconds": seconds, "processor": processor, "peak": max(peak, resident()) - before}


def sklearn_vectorizer(settings: TextOptions) -> TfidfVectorizer:
    return TfidfVectorizer(
        ngram_range=(1, settings.ngrams),
        min_df=settings.min_df,
        max_features=settings.max_features,
        sublinear_tf=True,
        dtype=np.float32,
    )


def sklearn_fit(texts: Sequence[str], ngrams: int) -> dict[str, float]:
    learner = sklearn_vectorizer(TextOptions(ngrams=ngrams))
    _, figures = measured(lambda: learner.fit_transform(texts))
    start = time.perf_counter()
    learner.transform(texts[: len(texts) // 5])
    figures["transform"] = (len(texts) // 5) / (time.perf_counter() - start)
    return figures


def is_plain(text: str) -> bool:
    """Return whether scikit-learn's rules and ours are the same for this text."""
    entries = tokenizer.characters()[tokenizer.code_points(text)]
    return not ((entries & words.AWKWARD != 0) | (entries >> words.KIND & 3 >= words.SIGN)).any()


def compare(texts: Sequence[str], ngrams: int) -> dict[str, float]:
    settings = TextOptions(ngrams=ngrams, max_features=2**31 - 1)
    plain = [text for text in texts if text.isascii() or is_plain(text)]
    learner = sklearn_vectorizer(settings)
    expected = csr_matrix(learner.fit_transform(plain))
    vectorizer, X = tfidf.fit(plain, settings)
    if vectorizer.vocabulary != learner.get_feature_names_out().tolist():
        raise SystemExit("the vocabularies differ")
    return {"compared": len(plain), "terms": X.shape[1], "difference": float(abs(X - expected).max())}


def lightdxml_fit(texts: Sequence[str], ngrams: int, threads: int) -> dict[str, float]:
    settings = TextOptions(ngrams=ngrams)
    with parallel.use_threads(threads):
        tfidf.fit(["compile é it", "compile é it"], settings)
        (vectorizer, X), figures = measured(lambda: tfidf.fit(texts, settings))
        figures["matrix"] = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        start = time.perf_counter()
        tfidf.transform(vectorizer, texts[: len(texts) // 5])
        figures["transform"] = (len(texts) // 5) / (time.perf_counter() - start)
    return figures


def child(folder: str, method: str, ngrams: int, threads: int) -> None:
    data: Any = load(folder)
    texts = data.train.texts.bodies
    if method == "lightdxml":
        figures = lightdxml_fit(texts, ngrams, threads)
    else:
        figures = (compare if method == "compare" else sklearn_fit)(texts, ngrams)
    figures["documents"], figures["corpus"] = len(texts), sum(map(sys.getsizeof, texts))
    print(json.dumps(figures))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("LIGHTDXML_DATA", str(Path(__file__).parents[2] / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=Path(default) / "eurlex57k")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        method, ngrams, threads = arguments.child
        child(str(arguments.data), method, int(ngrams), int(threads))
        return
    results: dict[tuple[str, int, int], list[dict[str, float]]] = {run: [] for run in RUNS}
    for _ in range(arguments.repeat):
        for run, figures in results.items():
            figures.append(in_process(arguments.data, *run))
    report({run: {k: statistics.median(f[k] for f in runs) for k in runs[0]} for run, runs in results.items()})
    for ngrams in (1, 2):
        same = in_process(arguments.data, "compare", ngrams, 2)
        print(
            f"ngrams {ngrams}: largest difference {same['difference']:.1e} in {same['compared']:,.0f} documents and "
            f"{same['terms']:,.0f} terms; {same['documents'] - same['compared']:,.0f} documents have other rules"
        )


def in_process(data: Path, method: str, ngrams: int, threads: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--data", str(data), "--child", method, str(ngrams), str(threads)]
    figures: dict[str, float] = json.loads(subprocess.check_output(command, text=True).splitlines()[-1])
    return figures


def report(medians: dict[tuple[str, int, int], dict[str, float]]) -> None:
    first = medians[RUNS[0]]
    print(f"{first['documents']:,.0f} documents, {first['corpus'] / 1e6:.0f} MB as strings")
    print(
        f"{'ngrams':6} {'':12} {'threads':>7} {'fit s':>7} {'times as fast':>13} {'processor s':>11} {'peak MB':>8} "
        f"{'matrix MB':>9} {'transform docs/s':>16}"
    )
    for (method, ngrams, threads), row in medians.items():
        ratio = medians["scikit-learn", ngrams, 1]["seconds"] / row["seconds"]
        matrix = medians["lightdxml", ngrams, 1]["matrix"]
        print(
            f"{ngrams:6} {method:12} {threads:7} {row['seconds']:7.2f} {ratio:13.1f} {row['processor']:11.2f} "
            f"{row['peak'] / 1e6:8.0f} {matrix / 1e6:9.0f} {row['transform']:16,.0f}"
        )


if __name__ == "__main__":
    main()
