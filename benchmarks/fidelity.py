"""Our versions of published methods beside their published rows: `python benchmarks/fidelity.py [METHOD ...]`.

Each method is trained with its authors' settings on bibtex and delicious, on the features of the XC repository: as they
are for FastXML and PfastreXML, whose penalty depends on their scale, and in rows of length 1 for the others.
`--seeds` takes means. `--splits` draws that many other splits of the same sizes, because published rows of delicious
may be means over several. `--set` changes settings. The folder given by `--data` holds one folder per data set.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from measure import alone, timed
from scipy.sparse import csr_matrix, vstack

from lightdxml.data import load
from lightdxml.experiments.baselines import method
from lightdxml.experiments.bench import published
from lightdxml.experiments.bench.published import plain
from lightdxml.kernels import parallel
from lightdxml.metrics import evaluate, inverse_propensity
from lightdxml.validation import check_features

METHODS = ("fastxml", "pfastrexml", "craftml", "sleec", "annexml", "dismec", "ppdsparse", "slice")
SETS = ("bibtex", "delicious")
# Methods whose published row has another name.
PUBLISHED_AS = {"dismec": "1vsall"}
CUTS = (1, 3, 5)


def measured(name: str, data: str, folder: Path, settings: dict[str, Any], seed: int, split: int) -> dict[str, float]:
    """Train and evaluate one method; a split above 0 is drawn at random."""
    loaded = load(folder / data)
    assert loaded.test is not None
    X = csr_matrix(vstack([loaded.train.X, loaded.test.X]))
    Y = csr_matrix(vstack([loaded.train.Y, loaded.test.Y]))
    X = check_features(X) if method(name).unit_rows else X
    rows, n = np.arange(X.shape[0]), len(loaded.train)
    if split:
        rows = np.random.default_rng(split).permutation(len(rows))
    train, test = np.sort(rows[:n]), np.sort(rows[n:])
    learner = method(name)(**settings)
    threads = parallel.thread_count()
    _, seconds = timed(lambda: learner.fit(X[train], Y[train], seed=seed, threads=threads))
    ranked = learner.rank(X[test], max(CUTS))[0]
    found = evaluate(Y[test], ranked, k=CUTS, inv_propensity=inverse_propensity(Y[train]))
    return {**found, "seconds": seconds - learner.phases.get("compile", 0.0)}


def cells(found: dict[str, float], known: dict[str, float]) -> list[str]:
    """Return measures, and their differences from published ones."""
    parts = []
    for measure in ("P", "PSP"):
        names = [f"{measure}@{k}" for k in CUTS]
        parts.append(" / ".join(f"{found[name]:.2f}" for name in names))
        is_known = all(name in known for name in names)
        parts.append(" / ".join(f"{found[name] - known[name]:+.2f}" for name in names) if is_known else "–")
    return [*parts, f"{found['seconds']:.1f} s"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", default=METHODS)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LIGHTDXML_DATA", "../shared/data")))
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--splits", type=int, default=0)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    given = parser.parse_args()
    settings = {key: json.loads(value) for key, value in (pair.split("=") for pair in given.set)}
    print("| Data set | Method | P@1 / 3 / 5 | beside published | PSP@1 / 3 / 5 | beside published | Training |")
    print("|---|---|--:|--:|--:|--:|--:|", flush=True)
    for data in given.sets:
        rows = {plain(row.method): row.values for row in published.rows(data)}
        for name in given.methods:
            known = rows.get(PUBLISHED_AS.get(name, name), {})
            runs = [(seed, split) for seed in range(given.seeds) for split in range(1, given.splits + 1) or (0,)]
            all_found = [alone(measured, name, data, given.data, settings, *run) for run in runs]
            found = {key: float(np.mean([one[key] for one in all_found])) for key in all_found[0]}
            print(f"| {data} | {name} | {' | '.join(cells(found, known))} |", flush=True)


if __name__ == "__main__":
    main()
