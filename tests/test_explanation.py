"""Words and base add up to the score."""

from __future__ import annotations

from typing import Any

import pytest

from lightdxml import LightDXML
from lightdxml.data import Dataset
from tests.training.test_cycle import SMALL, topics

SETTINGS: list[dict[str, Any]] = [{}, {"relu": True}, {"relu": True, "residual": True}, {"beta": 0.0}, {"beta": 1.0}]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_base_and_parts_add_up_to_the_score(see_also: Dataset, settings: dict[str, Any]) -> None:
    texts = see_also.train.texts
    assert texts is not None
    trained = LightDXML(**(SMALL | settings)).fit(texts[:300], see_also.train.Y[:300], label_names=see_also.label_names)
    for document, explanations in zip(list(texts[:5]), trained.explain(list(texts[:5]), k=3), strict=True):
        assert [one.label for one in explanations] == trained.predict(document, k=3)
        for one in explanations:
            assert one.base + sum(value for _, value in one.parts) == pytest.approx(one.score, abs=2e-6)


def test_the_word_that_gives_a_label_away_speaks_for_it_most() -> None:
    X, Y = topics()
    trained = LightDXML(**(SMALL | {"e_model": 30})).fit(X, Y)
    right = [rows[0].parts[0][0] == rows[0].label for rows in trained.explain(X[:50], k=1)]
    assert sum(right) > 40


def test_a_text_without_known_words_has_nothing_to_explain() -> None:
    trained = LightDXML(**SMALL).fit(["a cat", "a dog", "the cat", "the dog"], [["c"], ["d"], ["c"], ["d"]])
    assert trained.explain("xyzzy") == []
    assert trained.predict("xyzzy") == []
