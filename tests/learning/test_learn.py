"""Learning new documents, labels and words, with and without the documents of training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML, ModelFolder, Vocabulary, load
from lightdxml.data.dataset import Texts
from lightdxml.data.vocabulary import Concept
from lightdxml.kernels import parallel
from lightdxml.learning.measured import ENOUGH
from lightdxml.model import fingerprints
from lightdxml.validation import check_features
from lightdxml.vocabulary_update import update_vocabulary
from tests.support.configs import FOUR_VIEWS
from tests.support.data import topics, words

ANIMALS = ["cat", "dog", "cow", "horse", "sheep", "goat"]
MEMORY = pytest.mark.parametrize("remembers", [True, False])


def zoo(n: int, animals: Sequence[str] = ANIMALS, seed: int = 2) -> tuple[list[str], list[list[str]]]:
    """Return texts about two animals each, among noise, and the animals."""
    rng = np.random.default_rng(seed)
    pairs = [[str(one) for one in rng.choice(animals, 2, replace=False)] for _ in range(n)]
    noise = [f"noise{i}" for i in range(20)]
    return [" ".join(["the", *pair, *rng.choice(noise, 3)]) for pair in pairs], pairs


def trained(remembers: bool = True, **options: object) -> LightDXML:
    texts, labels = zoo(100)
    ids = [f"d{i}" for i in range(100)]
    return LightDXML("fast", **options).fit(texts, labels, ids=ids, keep_training_data=remembers)  # type: ignore[arg-type]


@MEMORY
def test_a_new_label_is_found_by_its_words_and_others_still_are(remembers: bool) -> None:
    model = trained(remembers)
    texts, labels = zoo(12, ["cat", "zebra"])
    model.learn(texts, labels)
    assert model.model_.label_names == [*dict.fromkeys(one for row in zoo(100)[1] for one in row), "zebra"]
    assert model.predict("a zebra", k=1) == ["zebra"]
    for animal in ANIMALS:
        assert model.predict(f"the {animal} noise1", k=1) == [animal]
    assert model.model_.n_documents == 112
    assert model.model_.label_frequency[6] == 12


@MEMORY
def test_a_known_label_learns_what_else_it_is_called(remembers: bool) -> None:
    model = trained(remembers)
    before = model.scores(["a tomcat"], k=6).toarray()[0]
    model.learn(["the tomcat noise1", "my tomcat noise2", "a tomcat noise3"], [["cat"]] * 3)
    after = model.scores(["a tomcat"], k=6).toarray()[0]
    cat = (model.model_.label_names or []).index("cat")
    assert after[cat] > before[cat]
    assert model.predict("a tomcat", k=1) == ["cat"]


def test_learning_comes_near_to_training_on_everything() -> None:
    texts, labels = zoo(300, seed=4)
    test, truth = zoo(200, seed=5)
    model = LightDXML("fast").fit(texts[:200], labels[:200], keep_training_data=True)
    for start in range(200, 300, 20):
        model.learn(texts[start : start + 20], labels[start : start + 20])
    whole = LightDXML("fast").fit(texts, labels)
    found, expected = (one.score(test, truth) for one in (model, whole))
    assert found >= expected - 0.01


def test_a_new_label_is_found_by_its_name_even_if_no_document_has_these_words() -> None:
    model = trained()
    model.learn(["a striped animal of the forest"], [["okapi"]])
    vectorizer = model.model_.vectorizer
    assert vectorizer is not None
    assert "okapi" in vectorizer.vocabulary
    assert "forest" not in vectorizer.vocabulary, "only one document has it, and no name"
    assert model.predict("an okapi", k=1) == ["okapi"]


def test_words_join_the_vocabulary_once_enough_documents_have_them() -> None:
    model = trained()
    vectorizer = model.model_.vectorizer
    assert vectorizer is not None
    n = len(vectorizer.vocabulary)
    model.learn(["a cat with whiskers"], [["cat"]])
    vectorizer = model.model_.vectorizer
    assert vectorizer is not None
    assert "whiskers" not in vectorizer.vocabulary, "only one document has it"
    model.learn(["a dog with whiskers"], [["dog"]])
    vectorizer = model.model_.vectorizer
    assert vectorizer is not None
    assert vectorizer.vocabulary[n:] == ["whiskers", "with"]
    assert vectorizer.idf[n] == pytest.approx(np.log(103 / 3) + 1), "of 102 documents, two have it"
    kept = model._learner.kept
    assert kept is not None
    rows = kept.X[[100, 101]].toarray()
    assert (rows[:, n] > 0).all(), "also the document that came first has the word now"
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-3)
    expected = model._predictor()._features(["a cat with whiskers"])
    np.testing.assert_allclose(rows[0][expected.indices], expected.data, atol=2e-3)


def test_a_document_with_a_known_id_replaces_the_earlier_one() -> None:
    model = trained()
    labels = zoo(100)[1][7]
    before = model.model_.label_frequency.copy()
    names = list(model.model_.label_names or [])
    model.learn(["the goat and the zebra"], [["goat", "zebra"]], ids=["d7"])
    after = model.model_.label_frequency
    assert model.model_.n_documents == 100
    for name in names:
        change = (name == "goat") - (name in labels)
        assert after[names.index(name)] == before[names.index(name)] + change
    assert model._journal.entries[-1].figures["corrected"] == 1


def test_corrected_documents_tell_nothing_about_new_ones() -> None:
    model = trained()
    texts, labels = zoo(100)
    calibration = model.model_.calibration
    for _ in range(-(-ENOUGH // 100)):
        model.learn(texts, [["goat"]] * 100, ids=[f"d{i}" for i in range(100)])
    assert model.model_.calibration is calibration
    assert model.drift_.documents == 0
    assert not model.drift_.is_due
    model.learn([texts[0], *zoo(3, seed=5)[0]], [labels[0], *zoo(3, seed=5)[1]], ids=["d0", "n0", "n1", "n2"])
    assert model._journal.entries[-1].figures["measured"]["documents"] == 3
    assert model._learner.recent.since == 3


def test_a_forgotten_document_counts_no_more() -> None:
    model = trained()
    same = trained().learn(["the zebra noise1"] * 3, [["zebra"]] * 3, ids=["z1", "z2", "z3"])
    model.learn(["the zebra noise1"] * 3, [["zebra"]] * 3, ids=["z1", "z2", "z3"])
    model.forget(["z1", "z2", "z3", "d0"])
    assert model.model_.n_documents == 99
    zebra = (model.model_.label_names or []).index("zebra")
    assert model.model_.label_frequency[zebra] == 0
    assert model.scores(["noise1"], k=7)[0, zebra] < same.scores(["noise1"], k=7)[0, zebra]
    assert same.predict("a zebra", k=1) == ["zebra"]
    with pytest.raises(ValueError, match="no document that the model has learned has the id 'z1'"):
        model.forget(["z1"])


@pytest.mark.parametrize("options", [{}, FOUR_VIEWS], ids=["fast", "four views"])
def test_a_label_is_forgotten_with_its_last_document(options: dict[str, object]) -> None:
    texts, labels = zoo(100)
    model = LightDXML("fast", options={**options, "names": False}).fit(texts, labels, keep_training_data=True)
    model.learn(["a yak neighs"] * 3, [["yak"]] * 3, ids=["y1", "y2", "y3"])
    assert model.predict("the yak neighs", k=1) == ["yak"]
    model.forget(["y1", "y2", "y3"])
    assert model.predict("the yak neighs noise1", k=1) != ["yak"]
    assert model.scores(["the yak neighs"], k=7)[0, model.model_.label_ids["yak"]] < 0.2
    model.learn(["a yak neighs"] * 3, [["yak"]] * 3)
    assert model.predict("the yak neighs", k=1) == ["yak"]


@MEMORY
def test_documents_without_known_words_do_not_raise_their_label(remembers: bool) -> None:
    model = trained(remembers)
    model.learn([f"unknown{i}" for i in range(200)], [["dog"]] * 200)
    test, truth = zoo(50, seed=8)
    assert model.score(test, truth) == 1


def test_without_training_data_probabilities_stay_as_training_fitted_them() -> None:
    model = trained(remembers=False)
    before = model.model_
    model.learn(*zoo(ENOUGH + 10, ["cat", "zebra"], seed=6))
    assert model.model_.calibration is before.calibration
    assert model.model_.blend is before.blend


def test_forgetting_needs_the_training_data() -> None:
    with pytest.raises(ValueError, match="does not keep its training data: train it with --keep-training-data"):
        trained(remembers=False).forget(["d1"])


@MEMORY
def test_a_retired_label_is_never_suggested_and_ids_stay(remembers: bool) -> None:
    model = trained(remembers)
    names = list(model.model_.label_names or [])
    model.retire(["cat"])
    assert model.model_.label_names == names
    assert "cat" not in model.predict("the cat", k=6)
    with pytest.raises(ValueError, match="the model has no label 'unicorn'"):
        model.retire(["unicorn"])
    with pytest.raises(ValueError, match="no label would be left"):
        model.retire(names)


@MEMORY
def test_a_merged_label_lives_on_in_the_other_one(remembers: bool) -> None:
    model = trained(remembers)
    model.merge("goat", "sheep")
    assert model.predict("a goat", k=1) == ["sheep"]
    assert model.predict("a sheep", k=1) == ["sheep"]
    names = list(model.model_.label_names or [])
    labels = zoo(100)[1]
    expected = sum("goat" in row or "sheep" in row for row in labels)
    if remembers:
        assert model.model_.label_frequency[names.index("sheep")] == expected, "documents of both count once"
    assert model.model_.label_frequency[names.index("goat")] == 0
    model.learn(["a goat that gives milk"], [["goat"]])
    assert model.model_.label_frequency[names.index("goat")] == 0, "later documents have the other label, too"
    model.merge("sheep", "cow")
    before = model.model_.label_frequency[names.index("cow")]
    model.learn(["a goat that gives milk"], [["goat"]])
    assert model.model_.label_frequency[names.index("cow")] == before + 1
    with pytest.raises(ValueError, match="cannot be merged with itself"):
        model.merge("cat", "cat")
    with pytest.raises(ValueError, match="goat is retired"):
        model.merge("cat", "goat")
    with pytest.raises(ValueError, match="goat is one with sheep already: merge that one"):
        model.merge("goat", "cat")


def test_the_number_of_threads_changes_no_bit() -> None:
    found = []
    for threads in (1, 4):
        with parallel.use_threads(threads):
            model = trained(n_jobs=threads, options={**FOUR_VIEWS, "linear.work": 0, "linear.min_clusters": 2})
            model.learn(*zoo(30, ["cat", "zebra", "dog"], seed=9))
        found.append(model.model_.arrays())
    assert list(found[0]) == list(found[1])
    for name, array in found[0].items():
        np.testing.assert_array_equal(array, found[1][name], err_msg=name)


def test_all_views_learn_features_and_labels_of_a_matrix() -> None:
    X, Y = topics(400)
    names, features = words(13), words(X.shape[1])
    old = csr_matrix(Y[:, :11])
    model = LightDXML(options=FOUR_VIEWS).fit(
        X[:300], old[:300], label_names=names[:11], feature_names=features, keep_training_data=True
    )
    assert len(model.model_.views) == 5
    for start in range(300, 400, 50):
        rows = slice(start, start + 50)
        model.learn(X[rows], Y[rows], label_names=names[:12])
    assert model.model_.label_names == names[:12]
    test_X, test_Y = topics(100, seed=8)
    assert model.score(test_X, test_Y) > 0.95
    only_new = np.zeros((1, X.shape[1]), dtype=np.float32)
    only_new[0, 11] = 1
    assert model.rank(only_new, 1)[0][0, 0] == 11


def test_labels_without_names_get_the_next_columns() -> None:
    X, Y = topics(200)
    model = LightDXML("fast").fit(X, csr_matrix(Y[:, :11]), keep_training_data=True)
    model.learn(X[:50], Y[:50])
    assert model.model_.n_labels == 12
    assert model.predict(X[:5]).shape == (5, 12)


def test_partial_fit_trains_first_and_learns_then() -> None:
    texts, labels = zoo(120)
    model = LightDXML("fast").partial_fit(texts[:100], labels[:100]).partial_fit(texts[100:], labels[100:])
    assert model.model_.n_documents == 120
    assert model.predict("the cow", k=1) == ["cow"]


def test_titles_of_documents_that_are_labels_become_their_names() -> None:
    rng = np.random.default_rng(1)
    n = 120
    subjects = [f"topic{i}" for i in range(n)]
    links = [[f"p{j}" for j in rng.choice(n, 2, replace=False) if j != i] for i in range(n)]
    bodies = [" ".join(subjects[int(one[1:])] for one in row) for row in links]
    ids = [f"p{i}" for i in range(n)]
    texts = Texts(bodies, titles=subjects)
    model = LightDXML("fast", min_df=1).fit(texts[:100], links[:100], ids=ids[:100], keep_training_data=True)
    assert model.model_.never_own
    kept = model._learner.kept
    assert kept is not None
    assert kept.titles is not None
    before = 0 if kept.names is None else len(kept.names.labels)
    model.learn(texts[100:], links[100:], ids=ids[100:])
    kept = model._learner.kept
    assert kept is not None
    assert kept.names is not None
    assert len(kept.names.labels) > before
    known, n_names = model.model_.label_ids, len(kept.names.labels)
    model.learn(texts[100:], links[100:], ids=ids[100:])
    assert model._learner.kept is not None
    assert model._learner.kept.names is not None
    assert len(model._learner.kept.names.labels) == n_names, "a title that comes again is no further name"
    assert kept.own is not None
    assert kept.own.tolist() == [known.get(one, -1) for one in ids], "also documents whose label came later"


def test_weights_and_probabilities_are_fitted_again_after_enough_documents() -> None:
    model = trained()
    before = model.model_.calibration
    model.learn(*zoo(ENOUGH - 1, seed=6))
    assert model.model_.calibration is before
    model.learn(*zoo(1, seed=7))
    assert model.model_.calibration is not before
    assert model._journal.entries[-1].figures["recalibrated"]


def test_drift_tells_when_to_train_again() -> None:
    model = trained()
    assert not model.drift_.is_due
    model.learn(*zoo(120, ["zebra", "lion", "tiger", "bear"], seed=3))
    reasons = " ".join(model.drift_.reasons)
    assert "55% of the documents were learned after training" in reasons
    assert "of the labels are new since training" in reasons
    assert "P@1 of new documents is 0.0" in reasons


def test_bad_lessons_are_refused_and_change_nothing() -> None:
    model = trained()
    before = model.model_
    for X, y, message in (
        ([], [], "there are no documents to learn"),
        (["a cat"], [["cat"], ["dog"]], "X and y have 1 and 2 rows"),
        (np.ones((1, 3)), [["cat"]], "the model was trained on texts, not on features: give texts"),
    ):
        with pytest.raises(ValueError, match=message):
            model.learn(X, y)
    with pytest.raises(ValueError, match="ids and y"):
        model.learn(["a cat"], [["cat"]], ids=["1", "2"])
    with pytest.raises(ValueError, match="ids occur twice, such as '1': give each document once"):
        model.learn(["a cat", "a dog"], [["cat"], ["dog"]], ids=["1", "1"])
    assert model.model_ is before


def test_documents_without_labels_or_known_words_are_learned_too() -> None:
    model = trained()
    model.learn(["", "the cat", "qqq"], [["cat"], [], ["dog"]])
    assert model.model_.n_documents == 103
    assert model.predict("the cat", k=1) == ["cat"]


@MEMORY
def test_a_label_that_was_suggested_wrongly_learns_that(remembers: bool) -> None:
    model = trained(remembers)
    text = "the cat noise1 noise2 puppet"
    cat = (model.model_.label_names or []).index("cat")
    before = model.scores([text], k=6)[0, cat]
    assert before > 0.5
    model.learn([f"the cat noise1 noise2 puppet show {i}" for i in range(5)], [["toy"]] * 5)
    assert model.predict(text, k=1) == ["toy"]
    assert model.scores([text], k=7)[0, cat] < before
    assert model.predict("the cat noise3", k=1) == ["cat"]


@MEMORY
def test_a_rejected_label_is_trained_again_however_unlikely_it_was(remembers: bool) -> None:
    model, same = trained(remembers), trained(remembers)
    text = "the cat noise1 puppet noise2"
    dog = (model.model_.label_names or []).index("dog")
    model.learn([text] * 3, [["cat"]] * 3, rejected=["dog", "dog"])
    same.learn([text] * 3, [["cat"]] * 3)
    assert model._journal.entries[-1].figures["labels"] == same._journal.entries[-1].figures["labels"] + 1
    assert model.scores([text], k=6)[0, dog] <= same.scores([text], k=6)[0, dog]


def test_a_word_of_a_document_that_is_corrected_is_not_counted_twice() -> None:
    model = trained()
    for _ in range(2):
        model.learn(["a cat with whiskers"], [["cat"]], ids=["w"])
    assert model.model_.vectorizer is not None
    assert "whiskers" not in model.model_.vectorizer.vocabulary


def test_a_model_with_more_clusters_than_labels_can_be_saved(tmp_path: Path) -> None:
    texts, labels = zoo(100)
    options = {"linear.work": 0, "linear.min_clusters": 2}
    model = LightDXML("fast", options=options).fit(texts, labels, keep_training_data=True)
    model.save(tmp_path / "zoo")
    again = load(tmp_path / "zoo").learn(*zoo(10, ["cat", "zebra"]))
    assert again.predict("a zebra", k=1) == ["zebra"]


@pytest.mark.parametrize(
    ("rejected", "message"),
    [
        ("dog", "rejected is the single label 'dog': give a list"),
        (["yak"], "has no label 'yak' that could be rejected"),
    ],
)
def test_rejected_labels_are_checked(rejected: object, message: str) -> None:
    model = trained()
    with pytest.raises(ValueError, match=message):
        model.learn(["a cat"], [["cat"]], rejected=rejected)  # type: ignore[arg-type]


def test_a_mistyped_number_of_a_label_is_refused() -> None:
    X, Y = topics(100)
    model = LightDXML("fast").fit(X, Y, keep_training_data=True)
    with pytest.raises(ValueError, match="label 2000000000 is far beyond the 12 labels of the model"):
        model.learn(X[:1], [[2_000_000_000]])


@pytest.mark.parametrize("options", [{}, {"linear.work": 0, "linear.min_clusters": 2}])
def test_a_label_without_documents_takes_those_of_another_one(options: dict[str, object]) -> None:
    texts, labels = zoo(100)
    concepts = Vocabulary([Concept(f"urn:{one}", {"en": (one,)}) for one in [*ANIMALS, "zebra"]])
    uris = [[f"urn:{one}" for one in row] for row in labels]
    model = LightDXML("fast", options=options).fit(texts, uris, vocabulary=concepts, keep_training_data=True)
    model.merge("urn:goat", "urn:zebra")
    assert model.predict("a goat", k=1) == ["urn:zebra"]
    kept, zebra = model._learner.kept, model.model_.label_ids["urn:zebra"]
    assert kept is not None
    assert kept.clusters is None or kept.clusters.of_label[zebra] >= 0, "it has the cluster of the label that went"


def test_a_model_with_another_vocabulary_learns_and_is_saved(tmp_path: Path) -> None:
    texts, labels = zoo(100)
    concepts = [Concept(f"urn:{one}", {"en": (one,)}) for one in [*ANIMALS, "zebra", "lion"]]
    uris = [[f"urn:{one}" for one in row] for row in labels]
    options = {"linear.work": 0, "linear.min_clusters": 2}
    model = LightDXML("fast", options=options).fit(
        texts, uris, vocabulary=Vocabulary(concepts[:-1]), keep_training_data=True
    )
    model.model_, _ = update_vocabulary(model.model_, Vocabulary(concepts))
    model.save(tmp_path / "zoo")
    again = load(tmp_path / "zoo").learn(["a lion noise1", "the lion noise2"], [["urn:lion"]] * 2)
    assert again.predict("a lion", k=1) == ["urn:lion"]


def test_clusters_of_documents_are_their_own_whatever_is_held_out() -> None:
    X, Y = topics(300)
    options = FOUR_VIEWS | {"dense.train": "auto"}
    model = LightDXML(options=options).fit(X, Y, keep_training_data=True)
    kept = model._learner.kept
    assert kept is not None
    assert kept.clusters is not None
    of_label, of_document = kept.clusters.of_label, kept.clusters.of_document
    rows = [Y[i].indices for i in range(300)]
    hits = [np.isin(of_label[row], of_document[i]).mean() for i, row in enumerate(rows)]
    assert np.mean(hits) > 0.8, "the clusters of a document's labels are among those that are nearest to it"


def test_a_model_that_was_changed_since_it_was_loaded_does_not_learn(tmp_path: Path) -> None:
    trained().save(tmp_path / "zoo")
    loaded = load(tmp_path / "zoo")
    ModelFolder(tmp_path / "zoo").learn(["the zebra noise1"] * 2, [["zebra"]] * 2)
    with pytest.raises(ValueError, match="was changed since it was loaded: load it again"):
        loaded.learn(["the lion noise1"], [["lion"]])


def test_features_that_were_learned_are_known_as_seen() -> None:
    X, Y = topics(200)
    model = LightDXML("fast").fit(X[:100], Y[:100], keep_training_data=True).learn(X[100:], Y[100:])
    seen = fingerprints.of_features(check_features(X[100:]))
    assert fingerprints.known_share(model.model_.trained_on, seen) == 1
