"""Explanations add up to the score."""

from __future__ import annotations

from typing import Any

import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.data import Dataset
from lightdxml.data.vocabulary import Concept, Vocabulary
from tests.support.configs import PAPER, SMALL
from tests.support.data import topics

SETTINGS: list[dict[str, Any]] = [
    PAPER,
    PAPER | {"dense.relu": True},
    PAPER | {"dense.relu": True, "dense.residual": True},
    PAPER | {"beta": 0.0},
    PAPER | {"beta": 1.0},
    SMALL | {"dense": "always", "linear.work": 0},
    {"dense": "never"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_base_and_parts_add_up_to_the_score(see_also: Dataset, settings: dict[str, Any]) -> None:
    texts = see_also.train.texts
    assert texts is not None
    trained = LightDXML(options=settings).fit(texts[:300], see_also.train.Y[:300], label_names=see_also.label_names)
    for document, explanations in zip(list(texts[:5]), trained.explain(list(texts[:5]), k=3), strict=True):
        assert [one.label for one in explanations] == trained.predict(document, k=3)
        for one in explanations:
            assert one.base + sum(value for _, value in one.parts) == pytest.approx(one.score, abs=5e-5)


def test_four_views_add_up_to_the_score(four_views: LightDXML, documents: tuple[csr_matrix, csr_matrix]) -> None:
    assert {"linear", "tree"} <= set(four_views.model_.views)
    for one in (one for row in four_views.explain(documents[0][:10], k=3) for one in row):
        assert one.base + sum(value for _, value in one.parts) == pytest.approx(one.score, abs=5e-5)


def test_the_feature_of_a_label_contributes_most() -> None:
    X, Y = topics()
    trained = LightDXML(options=PAPER | {"epochs": 30}).fit(X, Y)
    right = [rows[0].parts[0][0] == rows[0].label for rows in trained.explain(X[:50], k=1)]
    assert sum(right) > 40


def test_a_text_without_known_words_has_no_explanations() -> None:
    trained = LightDXML(options=PAPER).fit(["a cat", "a dog", "the cat", "the dog"], [["c"], ["d"], ["c"], ["d"]])
    assert trained.explain("xyzzy") == []
    assert trained.predict("xyzzy") == []


FINNISH = ["Kissat nukkuvat talossa", "Koirat haukkuvat pihalla"] * 10
ANIMALS = Vocabulary(
    [
        Concept("urn:cat", {"fi": ("kissa", "kissat talossa")}, "C1"),
        Concept("urn:dog", {"fi": ("koirat",)}),
        Concept("urn:horse", {"fi": ("hevoset",)}),
    ]
)


@pytest.fixture(scope="module")
def finnish() -> LightDXML:
    """A model with a language and a vocabulary."""
    pytest.importorskip("simplemma")
    labels = [["urn:cat"], ["urn:dog"]] * 10
    return LightDXML(ngrams=2, dim=8, epochs=2, language="fi").fit(FINNISH, labels, vocabulary=ANIMALS)


def test_words_are_shown_as_they_are_written(finnish: LightDXML) -> None:
    (one,) = finnish.explain("Kissojen talosta, kissa taloon", k=1)
    words = {word for word, _ in one.parts}
    assert words == {"kissojen", "talosta"}
    assert one.base + sum(value for _, value in one.parts) == pytest.approx(one.score, abs=2e-6)


def test_pairs_of_words_are_shown_as_they_are_written(finnish: LightDXML) -> None:
    (one,) = finnish.explain("KISSAN nukkuvat", k=1)
    assert "kissan nukkuvat" in {word for word, _ in one.parts}


def test_an_explanation_says_what_the_label_is_called(finnish: LightDXML) -> None:
    (one,) = finnish.explain("kissa", k=1)
    assert (one.label, one.name, one.notation) == ("urn:cat", "kissa", "C1")


def test_an_explanation_says_which_name_of_the_label_occurs_in_the_text(finnish: LightDXML) -> None:
    texts = ["Kissoja oli", "talossa kissat", "talossa haukkuvat", "hevosilla, kissat"]
    matches = [{one.label: one.name_match for one in row} for row in finnish.explain(texts, k=3)]
    assert [row["urn:cat"] for row in matches] == ["kissa", "kissat talossa", None, "kissa"]
    assert matches[3]["urn:horse"] == "hevoset"
    assert matches[0]["urn:dog"] is None


def test_explanations_of_allowed_labels_show_words_as_written_and_names(finnish: LightDXML) -> None:
    (one,) = finnish.explain("Kissojen talosta, hevosilla", k=1, exclude="urn:cat", include=["urn:cat", "urn:horse"])
    assert (one.label, one.name_match) == ("urn:horse", "hevoset")
    assert {"kissojen", "talosta"} <= {word for word, _ in one.parts}
    assert one.base + sum(value for _, value in one.parts) == pytest.approx(one.score, abs=2e-6)


def test_names_that_took_no_part_in_training_do_not_match() -> None:
    trained = LightDXML(dim=8, epochs=2, names=False).fit(["red rose", "white wine"] * 10, [["rose"], ["wine"]] * 10)
    assert trained.explain("a rose", k=1)[0].name_match is None
    assert trained.explain("a rose", k=1)[0].name == "rose"
