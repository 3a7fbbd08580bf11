"""The scikit-learn estimator: what it takes for X and Y, and what it says when it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from lightdxml import LightDXML, load
from lightdxml.config import Config, changed
from tests.support.configs import PAPER, SMALL, TEXT
from tests.support.data import NAMES, TEXTS, rows_of, topics

FAST = PAPER | {"epochs": 1}


def test_parameters_are_settings_and_survive_a_clone() -> None:
    estimator = LightDXML("paper/EURLex-4K", shortlist_size=7, random_state=3, options={"dense.dropout": 0.25})
    assert clone(estimator).get_params() == estimator.get_params()
    config = estimator.set_params(shortlist_size=9).config()
    assert (config.dense.shortlist_size, config.dense.dropout, config.random_state) == (9, 0.25, 3)
    assert config.dense.epochs == 16, "the preset's"


def test_a_loaded_model_has_its_settings_as_parameters(tmp_path: Path) -> None:
    trained = LightDXML(dim=8, epochs=1, ngrams=2, options={"dense.dropout": 0.25}).fit(TEXTS, NAMES)
    trained.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.dim, again.epochs, again.ngrams) == (8, 1, 2)
    assert again.config() == trained.model_.config
    assert clone(again).fit(TEXTS, NAMES).predict(TEXTS) == trained.predict(TEXTS)


def test_names_ids_and_matrices_train_the_same_model() -> None:
    X, Y = topics(80)
    ranked = LightDXML(options=FAST).fit(X, Y).predict(X, k=3)
    assert LightDXML(options=FAST).fit(X, rows_of(Y)).predict(X, k=3) == ranked
    names = [f"n{j}" for j in range(12)]
    by_name = LightDXML(options=FAST).fit(X, [[names[j] for j in row] for row in rows_of(Y)], label_names=names)
    assert by_name.predict(X, k=3) == [[names[j] for j in row] for row in ranked]


def test_ids_with_names_are_ids_in_dev_and_score_too() -> None:
    """They were once taken for names, and all dropped."""
    X, Y = topics(80)
    rows = rows_of(Y)
    trained = LightDXML(options=FAST).fit(X, rows, label_names=list("abcdefghijkl"), dev=(X, rows))
    assert trained.score(X, rows) == trained.score(X, Y) > 0
    assert trained.model_.metrics["P@1"] == pytest.approx(100 * trained.score(X, Y))


def test_too_few_names_are_refused() -> None:
    with pytest.raises(ValueError, match="2 label names, and label 7 in Y"):
        LightDXML(options=FAST).fit(np.eye(3), [[0], [7], [1]], label_names=["a", "b"])
    with pytest.raises(ValueError, match="2 label names for 3 labels"):
        LightDXML(options=FAST).fit(np.eye(3), np.eye(3), label_names=["a", "b"])


def test_the_order_within_sets_of_labels_does_not_matter() -> None:
    """It differs from process to process."""

    class Reversed(frozenset[str]):
        def __iter__(self) -> Iterator[str]:
            return iter(sorted(super().__iter__(), reverse=True))

    rows = [["n3", "n1", "n2"], ["n2", "n4"], ["n5"]] * 8
    X = topics(24)[0]
    one, other = (LightDXML(options=FAST).fit(X, [kind(row) for row in rows]) for kind in (frozenset, Reversed))
    assert one.classes_.tolist() == other.classes_.tolist()
    np.testing.assert_array_equal(one.rank(X)[1], other.rank(X)[1])


@pytest.mark.parametrize(
    "X",
    [TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), (text for text in TEXTS)],
    ids=["list", "tuple", "array", "objects", "generator"],
)
def test_texts_may_come_in_any_sequence(X: Any, text_model: LightDXML) -> None:
    trained = LightDXML(options=TEXT).fit(X, iter(NAMES))
    assert trained.predict(TEXTS[:4]) == text_model.predict(TEXTS[:4])
    assert trained.predict([]) == []


def test_a_single_text_gets_its_labels_and_explanations(text_model: LightDXML) -> None:
    assert text_model.predict("a purring cat", k=1) == text_model.predict(["a purring cat"], k=1)[0] == ["cat"]
    (best, *_) = text_model.explain("a purring cat", k=1)
    assert best.label == "cat"
    assert {"cat", "purring"} <= {word for word, _ in best.parts}


def test_columns_of_scores_are_the_classes(text_model: LightDXML) -> None:
    scores = text_model.scores(["a purring cat", "xyzzy"], k=1)
    assert scores.shape == (2, 2)
    assert text_model.classes_[scores[0].indices[0]] == "cat"
    assert scores[1].nnz == 0


def test_numpy_numbers_are_numbers() -> None:
    X, Y = topics(60)
    trained = LightDXML(dim=np.int64(16), options=FAST | {"dim": np.int64(8)}).fit(X, Y)
    assert len(trained.predict(X, k=np.int64(2))[0]) == 2


def test_no_more_labels_are_ranked_than_there_are(paper_model: LightDXML) -> None:
    assert paper_model.rank(topics(1)[0], 10**12)[0].shape == (1, 12)


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
def test_k_must_be_a_positive_integer(paper_model: LightDXML, k: Any) -> None:
    for method in (paper_model.predict, paper_model.rank, paper_model.scores, paper_model.explain):
        with pytest.raises(ValueError, match=r"k is .*: it must be an integer of at least 1"):
            method(topics(1)[0], k)


@pytest.mark.parametrize("n_jobs", [0, -2, True, 1.5, "2"])
def test_n_jobs_must_be_a_positive_integer_or_minus_1(n_jobs: Any) -> None:
    with pytest.raises(ValueError, match=r"n_jobs is .*: it must be an integer of at least 1, or -1 for all cores"):
        LightDXML(n_jobs=n_jobs, options=FAST).fit(*topics(30))


def test_the_number_of_threads_changes_nothing() -> None:
    X, Y = topics(60)
    expected = LightDXML(options=FAST).fit(X, Y).rank(X)
    for n_jobs in (1, 3, -1):
        found = LightDXML(n_jobs=n_jobs, options=FAST).fit(X, Y).rank(X)
        np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ("one text", [["a"]], "X is a single text: give a list of texts"),
        (["one", "two"], ["a", "b"], "the labels of document 0 are 'a': give a list of them"),
        (["one", "two"], [[0], [-1]], "document 1 has label -1: label ids go from 0"),
        (["one", "two"], [[0], [2**63]], "document 1 has label 9223372036854775808"),
        (["one one", "one"], [["a"]], "2 and 1 rows"),
        (["one", "one"], None, "requires y to be passed, but the target y is None"),
        ([None] * 4, [["a"]] * 4, "document 0 is None among texts"),
        (["a", 5], [["a"]] * 2, "document 1 is 5 among texts"),
        ([], [], "no rows"),
        (["a cat"] * 2, [[1], ["a"]], "document 0 has label 1 among names: labels must be all names or all ids"),
        (["a cat"] * 2, [[("a", 1)], ["a"]], "labels must be all names or all ids"),
        (["a cat"] * 2, [[], []], "Y has no labels at all"),
    ],
    ids=str,
)
def test_bad_documents_and_labels_are_named(X: Any, Y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LightDXML(options=FAST).fit(X, Y)


def test_integer_labels_are_ids_and_not_numbers_of_columns(tmp_path: Path) -> None:
    """50 ids below a million once made a million labels."""
    rows = [[7], [999_999], [7, 2**40]] * 10
    trained = LightDXML(options=TEXT).fit(TEXTS[:30], rows, dev=(TEXTS[:6], rows[:6]))
    assert trained.model_.n_labels == 3
    assert trained.classes_.tolist() == [7, 999_999, 2**40]
    assert trained.model_.metrics["P@1"] == pytest.approx(100 * trained.score(TEXTS[:6], rows[:6]))
    trained.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for model in (trained, again):
        predicted = model.predict(TEXTS[:3], k=3)
        assert {label for row in predicted for label in row} == {7, 999_999, 2**40}
        assert all(type(label) is int for row in predicted for label in row)
        assert model.explain(TEXTS[0], k=1)[0].label == predicted[0][0]
        assert model.predict(TEXTS[0], exclude=7) == [label for label in predicted[0] if label != 7]
        assert model.score(TEXTS[:2], [[7, 5], [5]]) <= 0.5, "an unknown id is no label"
        with pytest.raises(ValueError, match="there is no label 1 to exclude"):
            model.predict(TEXTS[0], exclude=1)


def test_plain_integers_are_ids_too() -> None:
    X = np.eye(4)
    trained = LightDXML(options=FAST).fit(X, np.array([30, 10, 30, 20]))
    assert trained.classes_.tolist() == [10, 20, 30]
    assert trained.scores(X).shape == (4, 3)


def test_a_matrix_keeps_its_columns() -> None:
    Y = np.zeros((4, 9))
    Y[:, [2, 8]] = 1
    assert LightDXML(options=FAST).fit(np.eye(4), Y).classes_.tolist() == list(range(9))


def test_an_untrained_estimator_says_so() -> None:
    for call in (
        lambda: LightDXML().predict(["a"]),
        lambda: LightDXML().score(["a"], [["b"]]),
        lambda: LightDXML().save("nowhere"),
        lambda: LightDXML().classes_,
    ):
        with pytest.raises(NotFittedError, match="not trained yet: call fit first, or load a model"):
            call()


def test_features_of_another_kind_are_refused(paper_model: LightDXML, text_model: LightDXML) -> None:
    with pytest.raises(ValueError, match="trained on features, not on texts: give a matrix"):
        paper_model.predict(["text"])
    with pytest.raises(ValueError, match="X has 5 features, but LightDXML is expecting 42"):
        paper_model.predict(csr_matrix((1, 5)))
    with pytest.raises(ValueError, match="X has one dimension"):
        paper_model.predict(np.ones(42))
    with pytest.raises(ValueError, match="labels are names here, and were ids in training"):
        paper_model.score(topics(1)[0], [["a"]])
    assert text_model.predict(["xyzzy"]) == [[]]


def test_a_stored_zero_is_not_a_feature(paper_model: LightDXML) -> None:
    zero = csr_matrix(([0.0], ([0], [3])), shape=(1, 42))
    assert paper_model.predict(zero, k=5) == [[]]


def test_labels_that_training_has_not_seen_count_as_missed(text_model: LightDXML) -> None:
    assert text_model.score(["a purring cat"], [["cat", "lion"]]) == 1
    assert text_model.score(["a purring cat"], [["lion"]]) == 0


def test_settings_are_checked_before_any_work() -> None:
    with pytest.raises(ValueError, match="dim is 0"):
        LightDXML(dim=0).fit(object(), object())
    with pytest.raises(ValueError, match="resume needs the folder of the checkpoint"):
        LightDXML().fit(object(), object(), resume=True)
    with pytest.raises(ValueError, match="checkpoint_every is '5m'"):
        LightDXML().fit(object(), object(), checkpoint="x", checkpoint_every="5m")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'much' is not a size"):
        LightDXML().fit(object(), object(), memory_limit="much")


def test_word_vectors_need_texts_or_an_array() -> None:
    with pytest.raises(ValueError, match="word_vectors need texts, and X is a matrix"):
        LightDXML(word_vectors="train", options=FAST).fit(*topics(30))
    trained = LightDXML(word_vectors=np.ones((42, 16), dtype=np.float32), options=FAST).fit(*topics(30))
    assert trained.model_.word_vectors == "array"


def test_a_dev_part_of_texts_chooses_the_weights() -> None:
    trained = LightDXML(options=SMALL | {"epochs": 1}).fit(TEXTS, NAMES, dev=(TEXTS[:4], NAMES[:4]))
    assert trained.model_.n_documents == len(TEXTS)
    assert not any(entry["phase"].startswith("refit") for entry in trained.history_)
    assert 0 <= trained.model_.metrics["P@1"] <= 100


def test_options_take_short_and_full_names() -> None:
    assert LightDXML(options=SMALL).config() == changed(Config(), SMALL | {"dense": "always"})


def test_a_setting_of_the_dense_views_asks_for_them() -> None:
    assert LightDXML().config().dense.train == "auto"
    assert LightDXML(epochs=3).config().dense.train == "always"
    assert LightDXML(epochs=3, dense="never").config().dense.train == "never"
    with pytest.raises(ValueError, match="one of them must be trained"):
        LightDXML(dense="never", linear=False).fit(TEXTS, NAMES)
    with pytest.raises(ValueError, match="word vectors are for the dense views"):
        LightDXML(preset="fast", word_vectors=np.ones((42, 192), dtype=np.float32)).fit(*topics(30))


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ValueError, match=r"there is no setting 'dense\.epoch': did you mean dense\.epochs"):
        LightDXML(options={"dense.epoch": 3}).config()
