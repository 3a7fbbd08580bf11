from __future__ import annotations

from pathlib import Path

import numpy as np

from lightdxml.data import load
from lightdxml.experiments.baselines.craftml import CRAFTML
from lightdxml.metrics import evaluate
from lightdxml.validation import check_features, check_labels
from tests.support.bench import documents


def test_the_forest_does_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    X, Y = documents(np.random.default_rng(0), 150)
    for threads in (1, 2):
        method = CRAFTML(trees=5, sample=100)
        method.fit(X, Y, seed=4, threads=threads)
        folder = tmp_path / str(threads)
        folder.mkdir()
        method.save(folder)
    for path in (tmp_path / "1").iterdir():
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes()


def test_another_seed_gives_other_trees() -> None:
    X, Y = documents(np.random.default_rng(0), 150)
    one, other = CRAFTML(trees=2), CRAFTML(trees=2)
    one.fit(X, Y, seed=0, threads=1)
    other.fit(X, Y, seed=1, threads=1)
    assert (one.rank(X, 5)[1] != other.rank(X, 5)[1]).any()


def test_few_trees_come_near_the_published_precision_on_bibtex(shared_data: Path) -> None:
    """Published with 50 trees: 61.47 (README of craftml-rs)."""
    data = load(shared_data / "bibtex")
    assert data.test is not None
    method = CRAFTML(trees=10)
    method.fit(check_features(data.train.X), check_labels(data.train.Y), seed=0, threads=2)
    ranked, _ = method.rank(check_features(data.test.X), 1)
    assert evaluate(check_labels(data.test.Y), ranked, k=(1,))["P@1"] > 55
