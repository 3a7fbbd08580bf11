"""What word vectors change: `python benchmarks/vectors.py --data FOLDER --vectors FILE [--share 0.3]`.

A tenth of the training documents is held out. On the others LightDXML trains with its default settings from the same
TF-IDF matrix, beginning with random vectors, with those of the file, and with fastText's trained on these documents.
Choices (how vectors are scaled, say) are made on the held-out documents; the test part is only reported.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.config import configure
from lightdxml.data import load
from lightdxml.metrics import evaluate, inverse_propensity
from lightdxml.model import predict
from lightdxml.text import tfidf, vectors
from lightdxml.training.fit import fit

MEASURES = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of texts with train and test")
    parser.add_argument("--vectors", type=Path, required=True, help="a file of word vectors")
    parser.add_argument("--share", type=float, default=1.0, help="train on this share of the documents only")
    parser.add_argument("--dimensions", type=int, default=100, help="those of the vectors that are trained")
    parser.add_argument("--only", nargs="+", choices=("random", "file", "trained"), default=None)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    data: Any = load(arguments.data)
    order = np.random.default_rng(arguments.seed).permutation(len(data.train))
    tenth = len(order) // 10
    held = data.train.take(np.sort(order[:tenth]))
    kept = data.train.take(np.sort(order[tenth : tenth + round(arguments.share * (len(order) - tenth))]))
    vectorizer, X = tfidf.fit(kept.texts)
    vocabulary = vectorizer.vocabulary
    parts = {"held out": held, "test": data.test}
    features = {name: tfidf.transform(vectorizer, split.texts) for name, split in parts.items()}
    weights = inverse_propensity(data.train.Y)
    config = configure("default", len(kept), seed=arguments.seed)
    print(f"{len(kept):,} documents, {data.n_labels:,} labels, {len(vocabulary):,} terms, D = {config.D}")

    def start(found: vectors.WordVectors) -> NDArray[np.float32]:
        print(f"{found.known.mean():.1%} of the terms have vectors of {found.matrix.shape[1]} dimensions", flush=True)
        return vectors.starting_vectors(found, config.D, np.random.default_rng(arguments.seed))

    methods: dict[str, Callable[[], NDArray[np.float32] | None]] = {
        "random": lambda: None,
        "file": lambda: start(vectors.read(arguments.vectors, vocabulary)),
        "trained": lambda: start(vectors.train(kept.texts, vocabulary, arguments.dimensions, arguments.seed)),
    }
    lines = []
    for method in arguments.only or methods:
        before = time.perf_counter()
        given = methods[method]()
        between = time.perf_counter()
        trained = fit(X, kept.Y, config, vectors=given).model
        seconds = between - before, time.perf_counter() - between
        for name, split in parts.items():
            figures = evaluate(split.Y, predict(trained, features[name], 5)[0], (1, 3, 5), weights)
            cells = " ".join(f"{figures[measure]:6.2f}" for measure in MEASURES)
            lines.append(f"{method:8} {name:9} {seconds[0]:8.1f} {seconds[1]:8.1f} {cells}")
            print(lines[-1], flush=True)
    print(f"\n{'vectors':8} {'on':9} {'s before':>8} {'s train':>8} " + " ".join(f"{name:>6}" for name in MEASURES))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
