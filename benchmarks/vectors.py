"""What word vectors change: `python benchmarks/vectors.py --data FOLDER --vectors FILE [--share 0.3]`.

A tenth of the training documents is held out. LightDXML trains on the others with its default settings, from the same
TF-IDF matrix, and starts from random vectors, from those of the file, and from vectors trained on these documents.
Decisions are made on the held-out documents. The test part is only reported.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measure import timed
from numpy.typing import NDArray

from lightdxml.config import configure
from lightdxml.data import load
from lightdxml.metrics import evaluate, inverse_propensity
from lightdxml.model.model import predict
from lightdxml.text import tfidf, vectors
from lightdxml.training.fit import prepare, train

METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of texts with train and test")
    parser.add_argument("--vectors", type=Path, required=True, help="a file of word vectors")
    parser.add_argument("--share", type=float, default=1.0, help="train on this share of the documents only")
    parser.add_argument("--dim", type=int, default=100, help="dimensions of the vectors that are trained")
    parser.add_argument("--only", nargs="+", choices=("random", "file", "trained"), default=None)
    parser.add_argument("--random-state", type=int, default=0)
    arguments = parser.parse_args()

    seed, data = arguments.random_state, load(arguments.data)
    order = np.random.default_rng(seed).permutation(len(data.train))
    tenth = len(order) // 10
    kept = data.train.take(np.sort(order[tenth : tenth + round(arguments.share * (len(order) - tenth))]))
    parts: dict[str, Any] = {"held out": data.train.take(np.sort(order[:tenth])), "test": data.test}
    assert kept.texts is not None
    vectorizer, X = tfidf.fit(kept.texts)
    vocabulary, inv = vectorizer.vocabulary, inverse_propensity(data.train.Y)
    features = {name: tfidf.transform(vectorizer, part.texts) for name, part in parts.items()}
    config = configure("default", len(kept), {"random_state": seed})
    print(f"{len(kept):,} documents, {data.n_labels:,} labels, {len(vocabulary):,} terms, D = {config.dense.dim}")

    def start(found: vectors.WordVectors) -> NDArray[np.float32]:
        print(f"{found.known.mean():.1%} of the terms have vectors of {found.matrix.shape[1]} dimensions", flush=True)
        return vectors.starting_vectors(found, config.dense.dim, np.random.default_rng(seed))

    methods: dict[str, Callable[[], NDArray[np.float32] | None]] = {
        "random": lambda: None,
        "file": lambda: start(vectors.read(arguments.vectors, vocabulary)),
        "trained": lambda: start(vectors.train(kept.texts or (), vocabulary, arguments.dim, seed)),
    }
    lines = [f"{'vectors':8} {'on':9} {'vectors s':>9} {'train s':>8} " + " ".join(f"{name:>6}" for name in METRICS)]
    for method in arguments.only or methods:
        given, before = timed(methods[method])
        prepared = prepare(X, kept.Y, config, vectors=given)
        (model, _), seconds = timed(train, prepared, config)
        for name, part in parts.items():
            found = evaluate(part.Y, predict(model, features[name], 5)[0], (1, 3, 5), inv)
            cells = " ".join(f"{found[metric]:6.2f}" for metric in METRICS)
            lines.append(f"{method:8} {name:9} {before:9.1f} {seconds:8.1f} {cells}")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
