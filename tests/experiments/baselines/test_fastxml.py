from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml.data import load
from lightdxml.experiments.baselines.fastxml import FastXML, PfastreXML, blended
from lightdxml.metrics import evaluate, inverse_propensity
from lightdxml.propensity import inverse_propensity_of
from tests.support.bench import documents


@pytest.fixture(scope="module")
def data() -> tuple[csr_matrix, csr_matrix, csr_matrix]:
    rng = np.random.default_rng(0)
    (X, Y), (X_test, _) = documents(rng, 150), documents(rng, 40)
    dense = X_test.toarray()
    dense[3] = 0
    return X, Y, csr_matrix(dense)


def test_labels_count_by_the_best_ndcg_of_their_document() -> None:
    Y = csr_matrix(np.array([[1, 1, 0], [0, 0, 0], [0, 1, 0]], dtype=np.float32))
    worth, gains = FastXML()._worth(Y)
    ideal = 1 + 1 / np.log2(3)
    np.testing.assert_array_equal(worth, 1)
    np.testing.assert_allclose(gains, [1 / ideal, 1 / ideal, 1])


def test_labels_of_pfastrexml_count_by_inverse_propensity() -> None:
    Y = csr_matrix(np.array([[1, 1], [0, 1], [0, 1]], dtype=np.float32))
    worth, gains = PfastreXML(A=0.6, B=2.6)._worth(Y)
    rare, frequent = inverse_propensity_of(np.array([1, 3]), 3, 0.6, 2.6)
    np.testing.assert_allclose(worth, [rare, frequent, frequent, frequent])
    np.testing.assert_array_equal(gains, worth)


def test_scores_of_trees_and_centroids_are_multiplied() -> None:
    trees, distances = np.array([0.3, 0.02, 0.0], dtype=np.float32), np.array([0.5, 0.1, 0.2])
    expected = trees.astype(float) ** 0.8 * (1 / (1 + np.exp(30 * distances))) ** 0.2
    np.testing.assert_allclose(blended(trees, distances, 0.8, 30), expected, rtol=1e-6)


def test_a_large_gamma_does_not_overflow() -> None:
    scores = blended(np.array([0.5], dtype=np.float32), np.array([2.0]), 0.8, 1e4)
    assert scores.tolist() == [0]


def test_pfastrexml_ranks_by_trees_and_the_distance_to_the_mean_document(
    data: tuple[csr_matrix, csr_matrix, csr_matrix],
) -> None:
    X, Y, X_test = data
    method = PfastreXML(trees=4)
    method.fit(X * 3.0, Y, seed=0, threads=1)
    labels, scores = method.rank(X_test, Y.shape[1])
    trees = np.zeros(Y.shape)[: len(labels)]
    for row, (found, mean) in enumerate(zip(*method._best(X_test, Y.shape[1]), strict=True)):
        trees[row, found[found >= 0]] = mean[found >= 0]
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    means = (Y.T @ X).toarray() / np.maximum(counts, 1)[:, None]
    distances = (means**2).sum(axis=1) + 1 - 2 * X_test.toarray() @ means.T
    expected = trees**0.8 * (1 + np.exp(30 * distances)) ** -0.2
    for row in range(len(labels)):
        known = labels[row] >= 0
        assert known.sum() == (trees[row] > 0).sum()
        np.testing.assert_allclose(scores[row, known], expected[row, labels[row, known]], rtol=1e-4)


@pytest.mark.parametrize("kind", [FastXML, PfastreXML])
def test_only_the_best_labels_of_the_trees_are_ranked_again(
    kind: type[FastXML], data: tuple[csr_matrix, csr_matrix, csr_matrix]
) -> None:
    X, Y, X_test = data
    method = kind(trees=3)
    method.fit(X, Y, seed=0, threads=1)
    if "candidates" in method.settings:
        method.settings["candidates"] = 2
        assert (method.rank(X_test, 5)[0][:, 2:] == -1).all()
    assert (method.rank(X_test, 5)[0][:, 0] >= 0).all()


@pytest.mark.parametrize("kind", [FastXML, PfastreXML])
def test_the_forest_does_not_depend_on_the_number_of_threads(
    kind: type[FastXML], data: tuple[csr_matrix, csr_matrix, csr_matrix], tmp_path: Path
) -> None:
    X, Y, _ = data
    for threads in (1, 2):
        method = kind(trees=5)
        method.fit(X, Y, seed=4, threads=threads)
        folder = tmp_path / str(threads)
        folder.mkdir()
        method.save(folder)
    for path in (tmp_path / "1").iterdir():
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes()


def test_another_seed_gives_other_trees(data: tuple[csr_matrix, csr_matrix, csr_matrix]) -> None:
    X, Y, X_test = data
    methods = [FastXML(trees=2), FastXML(trees=2)]
    for seed, method in enumerate(methods):
        method.fit(X, Y, seed=seed, threads=2)
    assert (methods[0].rank(X_test, 5)[1] != methods[1].rank(X_test, 5)[1]).any()


def test_few_trees_come_near_the_published_precision_on_bibtex(shared_data: Path) -> None:
    """Published with 50 trees: 63.42 and 63.46, and PSP@1 48.54 and 52.28 (Extreme Classification repository)."""
    data = load(shared_data / "bibtex")
    assert data.test is not None
    propensity = inverse_propensity(data.train.Y)
    for kind, least in ((FastXML, (56, 43)), (PfastreXML, (54, 44))):
        method = kind(trees=5)
        method.fit(csr_matrix(data.train.X), data.train.Y, seed=0, threads=2)
        values = evaluate(data.test.Y, method.rank(csr_matrix(data.test.X), 5)[0], k=(1,), inv_propensity=propensity)
        assert values["P@1"] > least[0]
        assert values["PSP@1"] > least[1]
