"""The tree view: clusters, paths, ensembles, and labels that come late."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from lightdxml import LightDXML
from lightdxml.kernels import parallel
from lightdxml.validation import check_features
from lightdxml.views.base import Batch
from lightdxml.views.tree.matcher import levels
from lightdxml.views.tree.model import TreeView
from tests.support.configs import FOUR_VIEWS
from tests.support.data import topics, with_rare_label

ONE_TREE = FOUR_VIEWS | {"epochs": 1, "tree.max_trees": 1}


def tree_of(model: LightDXML) -> TreeView:
    view = model.model_.views["tree"]
    assert isinstance(view, TreeView)
    return view


def every_label(X: csr_matrix, n_labels: int = 12) -> NDArray[np.int32]:
    return np.tile(np.arange(n_labels, dtype=np.int32), (X.shape[0], 1))


def held_out_document(n: int) -> int:
    """Return a document that training holds out for validation."""
    return int(np.random.default_rng(0).permutation(n)[0])


def test_it_ranks_right_labels_first(four_views: LightDXML) -> None:
    X, Y = topics(100, seed=1)
    best = tree_of(four_views).log_score(Batch(check_features(X)), every_label(X)).argmax(axis=1)
    assert Y[np.arange(100), best].mean() > 0.9


def test_clusters_are_nested(four_views: LightDXML) -> None:
    options = four_views.model_.config.tree
    assert levels(12, options) == (2, 4, 8)
    assert len(tree_of(four_views).trees) == 2
    for paths in (tree.paths for tree in tree_of(four_views).trees):
        assert paths.shape == (12, 3)
        for level in (0, 1):
            above = dict(zip(paths[:, level].tolist(), paths[:, level + 1].tolist(), strict=True))
            assert [above[node] for node in paths[:, level].tolist()] == paths[:, level + 1].tolist()


def test_trees_of_an_ensemble_differ_and_their_log_scores_are_averaged(four_views: LightDXML) -> None:
    both = tree_of(four_views)
    X = check_features(topics(30, seed=3)[0])
    groups = [
        {frozenset(np.flatnonzero(tree.paths[:, 1] == node)) for node in np.unique(tree.paths[:, 1])}
        for tree in both.trees
    ]
    assert groups[0] != groups[1]
    apart = [TreeView((tree,)) for tree in both.trees]
    mean = sum(tree.log_score(Batch(X), every_label(X)) for tree in apart) / 2
    np.testing.assert_allclose(both.log_score(Batch(X), every_label(X)), mean, rtol=1e-5)


def test_trees_do_not_depend_on_the_number_of_threads(documents: tuple[csr_matrix, csr_matrix]) -> None:
    found = []
    for threads in (1, 3):
        with parallel.use_threads(threads):
            found.append(tree_of(LightDXML(options=ONE_TREE).fit(*documents)).arrays())
    for name, array in found[0].items():
        np.testing.assert_array_equal(array, found[1][name])


@pytest.mark.parametrize(
    ("settings", "trees"),
    [
        ({"tree.max_trees": 3}, 3),
        ({"tree.max_trees": 1}, 1),
        # All labels can be trained on all documents.
        ({"linear.work": 10**9}, 0),
        ({"tree": False}, 0),
        # With few validation documents there is no choice between numbers of trees.
        ({"blend.min_documents": 500, "tree.max_trees": 3}, 1),
    ],
    ids=str,
)
def test_the_number_of_trees_depends_on_data_and_settings(
    documents: tuple[csr_matrix, csr_matrix], settings: dict[str, Any], trees: int
) -> None:
    model = LightDXML(options=FOUR_VIEWS | {"epochs": 1} | settings).fit(*documents)
    found = model.model_.views.get("tree")
    assert (len(found.trees) if isinstance(found, TreeView) else 0) == trees
    grown = [entry for entry in model.history_ if entry["phase"] == "label tree"]
    # Clusters, three levels and the labels of each tree; none is grown twice. The linear view needs a matcher.
    matcher = 4 if trees == 0 and "linear.work" not in settings else 0
    assert len(grown) == 5 * trees + matcher


def test_a_label_without_documents_is_in_no_tree(documents: tuple[csr_matrix, csr_matrix]) -> None:
    X, Y = documents
    view = tree_of(LightDXML(options=ONE_TREE).fit(X, csr_matrix(Y.toarray() * (np.arange(12) != 5))))
    paths = view.trees[0].paths
    assert (paths[5] == -1).all()
    assert (np.delete(paths, 5, axis=0) >= 0).all()
    X = check_features(X)
    # It scores as if all margins were 0, and not better than labels that fit.
    expected = -np.log(2) * (paths.shape[1] + 1)
    np.testing.assert_allclose(view.log_score(Batch(X), np.full((300, 1), 5, dtype=np.int32)), expected, rtol=1e-6)
    parts = view.contributions(Batch(X[0]), 5)
    assert parts.base == pytest.approx(expected)
    assert not parts.features.any()


def test_a_label_that_only_a_held_out_document_has_joins_every_tree(documents: tuple[csr_matrix, csr_matrix]) -> None:
    held = held_out_document(300)
    X, Y = with_rare_label(*documents, held)
    model = LightDXML(options=FOUR_VIEWS | {"epochs": 1}).fit(X, Y)
    for tree in tree_of(model).trees:
        assert tree.paths.shape == (13, 3)
        assert (tree.paths[12] >= 0).all()
    assert 12 in model.rank(X[held], 4)[0]
    for one in model.explain(X[held], 4)[0]:
        assert one.base + sum(value for _, value in one.parts) == pytest.approx(one.score, abs=1e-5)


def test_documents_of_a_dev_part_are_not_learned(documents: tuple[csr_matrix, csr_matrix]) -> None:
    X, Y = with_rare_label(*documents, 0)
    dev = vstack([X[:1]] * 12).tocsr(), vstack([Y[:1]] * 12).tocsr()
    model = LightDXML(options=ONE_TREE).fit(X[1:], Y[1:], dev=dev)
    assert 12 not in model.rank(X[0], 13)[0]
