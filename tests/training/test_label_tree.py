from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, vstack

from lightdxml import LightDXML, label_tree, load
from lightdxml.config import Config
from lightdxml.kernels import parallel
from lightdxml.label_tree import LabelTree
from lightdxml.model import blend_views, find_candidates
from lightdxml.progress import Progress
from lightdxml.training import blend
from lightdxml.training import label_tree as training
from tests.training.test_cycle import SMALL, topics
from tests.training.test_sparse_view import check_alone_as_among_others, forged

QUIET = Progress(show=False)
SETTINGS: dict[str, Any] = {**SMALL, "sparse": True}


@pytest.fixture(autouse=True)
def _small_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three levels of clusters for a dozen labels."""
    monkeypatch.setattr(training, "_FEWEST_LABELS", 4)
    monkeypatch.setattr(training, "_MOST_DOCUMENTS_PER_LABEL", 1000)
    monkeypatch.setattr(training, "_TOP", 2)
    monkeypatch.setattr(training, "_SMALLEST", 2)


@pytest.fixture
def data() -> tuple[csr_matrix, csr_matrix]:
    return topics(300)


@pytest.fixture
def trained(data: tuple[csr_matrix, csr_matrix]) -> LightDXML:
    return LightDXML(**SETTINGS).fit(*data)


def tree_of(X: csr_matrix, Y: csr_matrix, **settings: Any) -> LabelTree:
    config = Config(**settings)
    grown = training.grow(X, Y, config, QUIET)
    assert grown is not None
    return training.together([grown], X.shape[1], config)


def everything(X: csr_matrix, Y: csr_matrix) -> Any:
    return np.tile(np.arange(Y.shape[1], dtype=np.int32), (X.shape[0], 1))


def test_it_doubts_the_right_labels_least(data: tuple[csr_matrix, csr_matrix]) -> None:
    X, Y = data
    doubts = label_tree.doubts(tree_of(X, Y), X, everything(X, Y))
    assert Y[np.arange(300), doubts.argmin(axis=1)].mean() > 0.9


def test_clusters_are_nested_and_every_label_has_its_own_node(data: tuple[csr_matrix, csr_matrix]) -> None:
    X, Y = data
    paths = tree_of(X, Y).paths
    assert training.levels(12) == (2, 4, 8)
    assert paths.shape == (12, 4)
    assert paths[:, 0].tolist() == list(range(12))
    for level in (1, 2):
        above = dict(zip(paths[:, level].tolist(), paths[:, level + 1].tolist(), strict=True))
        assert [above[node] for node in paths[:, level].tolist()] == paths[:, level + 1].tolist()


def test_several_trees_doubt_as_much_as_all_of_them(data: tuple[csr_matrix, csr_matrix]) -> None:
    X, Y = data
    config = Config()
    grown = [tree for number in range(3) if (tree := training.grow(X, Y, config, QUIET, number)) is not None]
    assert not np.array_equal(grown[0].paths, grown[1].paths), "each has clusters of its own"
    together = training.together(grown, X.shape[1], config)
    assert together.paths.shape == (12, 12)
    alone = sum(label_tree.doubts(training.together([tree], X.shape[1], config), X, everything(X, Y)) for tree in grown)
    np.testing.assert_allclose(label_tree.doubts(together, X, everything(X, Y)), alone, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("fewest", "trees"), [(1, 3), (10**6, 1)])
def test_there_are_more_trees_where_labels_have_documents_enough(
    data: tuple[csr_matrix, csr_matrix], monkeypatch: pytest.MonkeyPatch, fewest: int, trees: int
) -> None:
    monkeypatch.setattr(blend, "WORTH_A_TREE", -100.0)
    monkeypatch.setattr(training, "_DOCUMENTS_PER_LABEL", fewest)
    found = LightDXML(**{**SETTINGS, "e_model": 1, "gamma": 0.5}).fit(*data, dev=topics(600, seed=1))
    assert found.model_.tree is not None
    assert found.model_.tree.paths.shape == (12, 4 * trees)
    assert sum(entry["phase"] == "label tree" for entry in found.history_) == trees, "none is grown twice"


def test_a_label_without_documents_is_in_no_cluster(data: tuple[csr_matrix, csr_matrix]) -> None:
    X, Y = data
    tree = tree_of(X, csr_matrix(Y.toarray() * (np.arange(12) != 5)))
    assert (tree.paths[5] == -1).all()
    assert (np.delete(tree.paths, 5, axis=0) >= 0).all()
    assert (label_tree.doubts(tree, X, np.full((300, 1), 5, dtype=np.int32)) == 0).all()


@pytest.mark.parametrize(("bound", "value"), [("_FEWEST_LABELS", 13), ("_MOST_DOCUMENTS_PER_LABEL", 2)])
def test_few_labels_or_such_of_many_documents_get_no_tree(
    data: tuple[csr_matrix, csr_matrix], monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    monkeypatch.setattr(training, bound, value)
    found = LightDXML(**{**SETTINGS, "e_model": 1, "gamma": 0.5}).fit(*data)
    assert not any(entry["phase"] == "label tree" for entry in found.history_)
    assert found.model_.tree is None


def test_the_tree_does_not_depend_on_threads(data: tuple[csr_matrix, csr_matrix]) -> None:
    found = []
    for threads in (1, 3):
        with parallel.use_threads(threads):
            found.append(tree_of(*data))
    for name, array in vars(found[0]).items():
        np.testing.assert_array_equal(array, getattr(found[1], name))


def test_doubts_lower_the_score_by_their_share(trained: LightDXML, data: Any) -> None:
    candidates = find_candidates(trained.model_, data[0][:20])
    assert candidates.doubts is not None
    assert candidates.margins is not None
    there = candidates.labels >= 0
    s, z, c, t = (
        part[there].astype(np.float64)
        for part in (candidates.margins, candidates.logits, candidates.cosines, candidates.doubts)
    )
    dense = 0.3 * np.log(1 / (1 + np.exp(-z))) + 0.7 * (c - 1)
    words = np.maximum(0, 1 - s) ** 2 + 0.25 * t
    found = blend_views(candidates, 0.3, 0.6, 0.25)[there]
    np.testing.assert_allclose(found, np.exp(0.4 * dense - 0.6 * words), rtol=1e-4)


def test_words_and_base_add_up_to_the_score(trained: LightDXML, data: Any) -> None:
    for explanations in trained.explain(data[0][:5], 3):
        for one in explanations:
            assert one.base + sum(part for _, part in one.parts) == pytest.approx(one.score, abs=1e-5)


def test_words_and_base_add_up_for_a_label_that_came_too_late(data: tuple[csr_matrix, csr_matrix]) -> None:
    held = int(np.random.default_rng(0).permutation(300)[0])
    X, Y = with_a_label_of_one_document(*data, held)
    explanations = LightDXML(**SETTINGS).fit(X, Y).explain(X[held], 4)[0]
    assert 12 in [one.label for one in explanations]
    for one in explanations:
        assert one.base + sum(part for _, part in one.parts) == pytest.approx(one.score, abs=1e-5)


def test_its_share_is_chosen_on_validation_documents(data: tuple[csr_matrix, csr_matrix]) -> None:
    found = LightDXML(**{**SETTINGS, "e_model": 1, "gamma": 0.5}).fit(*data, dev=topics(600, seed=1))
    entries = [entry for entry in found.history_ if entry["phase"] == "tree share"]
    assert entries
    for entry in entries:
        assert [share for share, _ in entry["curve"]] == list(blend.TREE_SHARES)
        if entry["share"]:
            most = max(blend.mean(figures, "P") for _, figures in entry["curve"])
            assert blend.mean(entry, "P") >= most - 0.3
    (kept,) = (entry["share"] for entry in entries)
    number = training.most(12, data[1].nnz)
    assert found.model_.tree_share == blend.share_of_trees(kept, number)
    assert (found.model_.tree is None) == (kept == 0)


def test_no_tree_is_grown_for_a_sparse_view_that_does_not_count(data: tuple[csr_matrix, csr_matrix]) -> None:
    found = LightDXML(**{**SETTINGS, "e_model": 1, "gamma": 0.0}).fit(*data)
    assert not any(entry["phase"] == "label tree" for entry in found.history_)
    assert found.model_.tree is None


def test_a_label_that_only_a_document_set_aside_has_joins_every_tree(
    data: tuple[csr_matrix, csr_matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blend, "WORTH_A_TREE", -100.0)
    monkeypatch.setattr(training, "_TREES", 2)
    monkeypatch.setattr(blend, "FEWEST_TO_CHOOSE", 5)
    held = int(np.random.default_rng(0).permutation(300)[0])
    X, Y = with_a_label_of_one_document(*data, held)
    found = LightDXML(**SETTINGS, gamma=0.5).fit(X, Y)
    assert found.model_.tree is not None
    assert found.model_.tree.paths.shape == (13, 8)
    assert (found.model_.tree.paths[12] >= 0).all()
    assert len(set(found.model_.tree.paths[:, 0]) & set(found.model_.tree.paths[:, 4])) == 0
    assert 12 in found.rank(X[held], 4)[0]


def test_a_tree_that_does_not_help_is_dropped(
    data: tuple[csr_matrix, csr_matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blend, "WORTH_A_TREE", 100.0)
    found = LightDXML(**{**SETTINGS, "e_model": 1}).fit(*data, dev=topics(600, seed=1))
    assert found.model_.tree is None
    assert found.model_.tree_share == 0


def test_a_document_alone_gets_what_it_gets_among_others(trained: LightDXML, data: Any) -> None:
    check_alone_as_among_others(trained, data[0][:30])


def test_a_stored_model_answers_the_same(tmp_path: Path, trained: LightDXML, data: Any) -> None:
    trained.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.model_.tree is not None
    for before, after in zip(trained.rank(data[0], 5), again.rank(data[0], 5), strict=True):
        np.testing.assert_array_equal(before, after)


def drop(content: dict[str, Any]) -> None:
    del content["tree_paths"]


def beyond(content: dict[str, Any]) -> None:
    content["tree_paths"][0, 1] = len(content["tree_biases"])


def below(content: dict[str, Any]) -> None:
    content["tree_paths"][0, 1] = -2


def odd_node(content: dict[str, Any]) -> None:
    content["tree_nodes"][0] = len(content["tree_biases"])


def backwards(content: dict[str, Any]) -> None:
    content["tree_pointers"][1] = 10**9


def flat(content: dict[str, Any]) -> None:
    content["tree_paths"] = content["tree_paths"][:, 0].copy()


def no_axis(content: dict[str, Any]) -> None:
    content["tree_paths"] = np.array(3, dtype=np.int32)


@pytest.mark.parametrize("change", [drop, beyond, below, odd_node, backwards, flat, no_axis])
def test_a_forged_tree_is_refused(tmp_path: Path, trained: LightDXML, change: Any) -> None:
    trained.save(tmp_path / "model")
    forged(tmp_path / "model", change)
    with pytest.raises(ValueError, match="is damaged"):
        load(tmp_path / "model")


def test_a_label_without_a_path_is_explained_as_it_is_scored(tmp_path: Path, trained: LightDXML, data: Any) -> None:
    def lose_paths(content: dict[str, Any]) -> None:
        content["tree_paths"][:] = -1

    trained.save(tmp_path / "model")
    forged(tmp_path / "model", lose_paths)
    for one in load(tmp_path / "model").explain(data[0][:1], 3)[0]:
        assert one.base + sum(part for _, part in one.parts) == pytest.approx(one.score, abs=1e-5)


def test_models_of_the_format_before_have_none() -> None:
    model = load(Path(__file__).parent.parent / "models" / "format-3-features").model_
    assert model.sparse is not None
    assert model.tree is None
    assert model.config.label_tree is False


def with_a_label_of_one_document(X: csr_matrix, Y: csr_matrix, at: int) -> tuple[csr_matrix, csr_matrix]:
    """Give one document, by a word of its own, a label that no other has."""
    word = csr_matrix((np.array([3.0], dtype=np.float32), ([at], [0])), shape=(X.shape[0], 1))
    label = csr_matrix((np.ones(1, dtype=np.float32), ([at], [0])), shape=(X.shape[0], 1))
    return csr_matrix(np.hstack([X.toarray(), word.toarray()])), csr_matrix(np.hstack([Y.toarray(), label.toarray()]))


def test_a_label_that_only_a_document_set_aside_has_is_learnt(data: tuple[csr_matrix, csr_matrix]) -> None:
    held = int(np.random.default_rng(0).permutation(300)[0])
    X, Y = with_a_label_of_one_document(*data, held)
    found = LightDXML(**SETTINGS).fit(X, Y)
    assert 12 in found.model_.shortlist.labels
    assert found.model_.tree is not None
    assert (found.model_.tree.paths[12] >= 0).all()
    assert 12 in found.rank(X[held], 4)[0]


def test_a_dev_part_is_not_learnt(data: tuple[csr_matrix, csr_matrix]) -> None:
    X, Y = with_a_label_of_one_document(*data, 0)
    found = LightDXML(**SETTINGS).fit(X[1:], Y[1:], dev=(vstack([X[:1]] * 5).tocsr(), vstack([Y[:1]] * 5).tocsr()))
    assert 12 not in found.model_.shortlist.labels
    assert 12 not in found.rank(X[0], 13)[0]


def test_documents_set_aside_can_be_left_alone(data: tuple[csr_matrix, csr_matrix]) -> None:
    held = int(np.random.default_rng(0).permutation(300)[0])
    X, Y = with_a_label_of_one_document(*data, held)
    found = LightDXML(**SETTINGS, learn_validation=False).fit(X, Y)
    assert 12 not in found.model_.shortlist.labels
    assert not any(entry["phase"] == "documents set aside" for entry in found.history_)
