"""Explanations add up to the score."""

from __future__ import annotations

from typing import Any

import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.data import Dataset
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
