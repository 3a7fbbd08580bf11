"""Another vocabulary for a trained model: labels that are renamed, retired, restored and added."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lightdxml import LightDXML, Predictor, Vocabulary
from lightdxml.data.vocabulary import Concept
from lightdxml.learning.documents import documents_for
from lightdxml.learning.kept import restore_kept
from lightdxml.learning.learn import Learner, learn
from lightdxml.model.model import Model
from lightdxml.vocabulary_update import update_learner, update_vocabulary
from tests.support.configs import SMALL

ANIMALS = ["cat", "dog", "cow", "horse", "sheep", "goat"]
# No training document has them.
OTHERS = [f"plant{i}" for i in range(30)]


def concept(name: str, *others: str) -> Concept:
    return Concept(f"urn:{name}", {"en": (others or (name,))})


OLD = [concept(name) for name in [*ANIMALS, *OTHERS]]


def fitted(vocabulary: Vocabulary | None, prefix: str = "urn:", **options: object) -> Model:
    rng = np.random.default_rng(2)
    pairs = [rng.choice(6, 2, replace=False) for _ in range(100)]
    noise = [f"noise{i}" for i in range(20)]
    texts = [" ".join(["the", *(ANIMALS[i] for i in pair), *rng.choice(noise, 3)]) for pair in pairs]
    labels = [[prefix + ANIMALS[i] for i in pair] for pair in pairs]
    return LightDXML("fast", **options).fit(texts, labels, vocabulary=vocabulary).model_  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def model() -> Model:
    return fitted(Vocabulary(OLD))


def test_ids_stay_new_concepts_come_last_and_are_found_by_their_names(model: Model) -> None:
    concepts = [concept("tractor", "big tractor"), *OLD, concept("noise3")]
    updated, changes = update_vocabulary(model, Vocabulary(concepts))
    assert updated.label_names == [*(model.label_names or []), "urn:tractor", "urn:noise3"]
    assert changes.added == ["urn:tractor", "urn:noise3"]
    assert (changes.renamed, changes.retired, changes.unchanged) == ([], [], 36)
    assert changes.new_words == 1, "the documents have noise3"
    assert updated.label_frequency.tolist() == [*model.label_frequency.tolist(), 0, 0]
    predictor = Predictor(updated)
    assert predictor.predict("a big tractor", k=1) == ["urn:tractor"]
    assert predictor.predict("noise3", k=1) == ["urn:noise3"]
    assert predictor.explain("a big tractor", k=1)[0].parts[0][0] in ("big", "tractor")
    assert updated.label(36).name == "big tractor"


def test_new_words_change_no_prediction_of_texts_without_them(model: Model) -> None:
    updated, _ = update_vocabulary(model, Vocabulary([*OLD, concept("tractor")]))
    texts = ["the cat noise1", "cow and horse", "plant3"]
    before, after = (Predictor(one).rank(texts, 3) for one in (model, updated))
    for found, expected in zip(after, before, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_labels_that_are_gone_are_retired_and_can_come_back(model: Model) -> None:
    without, changes = update_vocabulary(model, Vocabulary([one for one in OLD if one.uri != "urn:plant3"]))
    assert changes.retired == ["urn:plant3"]
    assert without.retired.tolist() == [9]
    assert without.label_names == model.label_names
    assert without.label(9).name == "plant3"
    assert Predictor(model).predict("plant3", k=1) == ["urn:plant3"]
    assert "urn:plant3" not in Predictor(without).predict("plant3", k=36)
    same, unchanged = update_vocabulary(without, Vocabulary([one for one in OLD if one.uri != "urn:plant3"]))
    assert same.retired.tolist() == [9]
    assert unchanged.retired == []
    back, changes = update_vocabulary(without, Vocabulary(OLD))
    assert changes.restored == ["urn:plant3"]
    for found, expected in zip(Predictor(back).rank(["plant3"], 3), Predictor(model).rank(["plant3"], 3), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_labels_with_documents_are_retired_only_if_that_is_allowed(model: Model) -> None:
    fewer = Vocabulary([one for one in OLD if one.uri not in ("urn:cat", "urn:dog")])
    expected = r"2 labels with training documents would be retired, such as urn:cat \(cat\): allow it with --retire"
    with pytest.raises(ValueError, match=expected):
        update_vocabulary(model, fewer)
    updated, changes = update_vocabulary(model, fewer, retire=True)
    assert changes.retired == ["urn:cat", "urn:dog"]
    assert not {"urn:cat", "urn:dog"} & set(Predictor(updated).predict("a cat and a dog", k=36))
    # What is retired already is no reason to refuse the next update.
    assert update_vocabulary(updated, fewer)[1].retired == []


def test_renamed_labels_are_found_by_their_new_names(model: Model) -> None:
    names = {"urn:plant3": "tulip", "urn:cat": "feline"}
    concepts = [replace(one, names={"en": (names[one.uri],)}) if one.uri in names else one for one in OLD]
    updated, changes = update_vocabulary(model, Vocabulary(concepts))
    assert sorted(changes.renamed) == ["urn:cat", "urn:plant3"]
    assert changes.added == []
    predictor = Predictor(updated)
    assert predictor.predict("a tulip", k=1) == ["urn:plant3"]
    assert predictor.predict("plant3", k=1) != ["urn:plant3"], "its weights came from its old name"
    assert predictor.predict("the cat", k=1) == ["urn:cat"], "its weights came from documents"
    assert updated.label(0).name == "feline"


@pytest.mark.parametrize("prefix", ["urn:", ""])
def test_a_model_without_a_vocabulary_gets_one_by_uris_or_names(prefix: str) -> None:
    model = fitted(None, prefix)
    updated, changes = update_vocabulary(model, Vocabulary([*OLD[1:], concept("tractor")]))
    cat = f"{prefix}cat"
    expected = [name if name == cat else f"urn:{name.removeprefix('urn:')}" for name in model.label_names or []]
    assert (updated.label_names or [])[:6] == expected
    assert changes.outside == 1
    assert changes.retired == []
    predictor = Predictor(updated)
    assert predictor.predict("the cat", k=1) == [cat]
    assert predictor.predict("the dog", k=1) == ["urn:dog"]
    assert predictor.predict("my tractor", k=1) == ["urn:tractor"]


def test_a_label_is_no_concept_if_another_label_has_its_uri() -> None:
    texts, labels = ["a cat", "a dog", "a tomcat"] * 20, [["cat"], ["dog"], ["urn:cat"]] * 20
    trained = LightDXML("fast").fit(texts, labels).model_
    updated, _ = update_vocabulary(trained, Vocabulary([concept("cat"), concept("dog")]))
    assert updated.label_names == ["cat", "urn:dog", "urn:cat"]


def test_a_model_with_dense_views_grows() -> None:
    model = fitted(Vocabulary(OLD), options=SMALL | {"dense": "always", "epochs": 2})
    assert {"nearness", "linear"} <= set(model.views)
    updated, _ = update_vocabulary(model, Vocabulary([*OLD, concept("tractor"), concept("noise3")]))
    ranked, scores = Predictor(updated).rank(["the tractor", "noise3 cat"], 38)
    assert 36 in ranked[0]
    assert 37 in ranked[1]
    assert ((scores >= 0) & (scores <= 1)).all()


def test_a_vocabulary_of_something_else_is_refused(model: Model, paper_model: LightDXML) -> None:
    with pytest.raises(ValueError, match="the vocabulary has none of the labels of the model, such as 'urn:cat'"):
        update_vocabulary(model, Vocabulary([concept("other")]))
    with pytest.raises(ValueError, match="the vocabulary has no names in fi, the language of the model"):
        update_vocabulary(replace(model, language="fi"), Vocabulary(OLD))
    with pytest.raises(ValueError, match="a vocabulary needs a model of texts whose labels have names"):
        update_vocabulary(paper_model.model_, Vocabulary(OLD))


@pytest.mark.parametrize("hard_negatives", [False, True])
def test_training_data_get_the_words_names_and_labels_of_the_new_vocabulary(hard_negatives: bool) -> None:
    texts = [f"the {name} noise{i % 7}" for i in range(20) for name in ANIMALS]
    texts[3] += " tractor"
    labels = [[f"urn:{name}"] for _ in range(20) for name in ANIMALS]
    options = {"linear.work": 0, "linear.min_clusters": 2, "tree.branching": 2} if hard_negatives else {}
    trained = LightDXML("fast", options=options)
    trained.fit(texts, labels, vocabulary=Vocabulary(OLD), keep_training_data=True)
    before = trained._learner.kept
    assert before is not None
    assert (before.clusters is not None) == hard_negatives
    assert "tractor" in before.rare.words
    concepts = [concept("tractor"), concept("plant0", "tulip"), *(one for one in OLD if one.uri != "urn:plant0")]
    learner, _ = update_learner(trained._learner, Vocabulary(concepts))
    kept, model = learner.kept, learner.model
    assert kept is not None
    assert model.vectorizer is not None
    words = model.vectorizer.vocabulary
    assert kept.X.shape == (120, model.n_features)
    assert kept.Y.shape == (120, model.n_labels)
    assert kept.X[:, words.index("tractor")].nonzero()[0].tolist() == [3]
    assert "tractor" not in kept.rare.words
    assert kept.names is not None
    called = kept.names.terms[kept.names.labels == (model.label_names or []).index("urn:plant0")].indices
    assert [words[one] for one in called] == ["tulip"]
    # It is stored and learned as any other.
    restored = restore_kept(kept.arrays(), kept.facts(), model.n_features, model.n_labels)
    documents = documents_for(model, ["a red tractor"] * 5, [["urn:tractor"]] * 5)
    after, learned = learn(replace(learner, kept=restored), documents)
    assert learned.new_labels == 0
    assert Predictor(after.model).predict("my tractor", k=1) == ["urn:tractor"]


def test_names_stay_unused_where_they_are(model: Model) -> None:
    trained = LightDXML("fast", names=False)
    trained.fit(["a cat", "a dog"] * 20, [["urn:cat"], ["urn:dog"]] * 20, keep_training_data=True)
    learner, _ = update_learner(trained._learner, Vocabulary(OLD))
    assert learner.kept is not None
    assert learner.kept.names is None
    assert update_learner(Learner(model), Vocabulary(OLD))[0].kept is None
