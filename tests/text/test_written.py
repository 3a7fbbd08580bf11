"""Terms as they are written."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lightdxml.data import Texts
from lightdxml.text import tokenizer
from lightdxml.text.languages import base_forms
from lightdxml.text.tfidf import TextOptions
from lightdxml.text.written import words_of, written_terms

pytest.importorskip("simplemma")
FINNISH = TextOptions(language="fi")


def test_every_term_has_the_first_form_that_is_written() -> None:
    (forms,) = written_terms(["Kirjastosta kirjoja, KIRJASTOSSA kirja"], FINNISH)
    assert forms["kirjasto"] == "kirjastosta"
    assert forms["kirja"] == "kirjoja"
    assert forms["kirjasto kirja"] == "kirjastosta kirjoja"
    assert forms["kirja kirjasto"] == "kirjoja kirjastossa"


def test_titles_come_first_and_no_pair_spans_both() -> None:
    texts = Texts(["kirjoja"], ["Kirjastossa"])
    assert written_terms(texts, FINNISH) == [{"kirjasto": "kirjastossa", "kirja": "kirjoja"}]
    assert written_terms(texts, TextOptions(language="fi", title_weight=0)) == [{"kirja": "kirjoja"}]


def test_without_a_language_terms_are_as_they_were() -> None:
    (forms,) = written_terms(["Two Cats, ΣΟΦΟΣ İz cafe\u0301"], TextOptions())
    assert all(term == written for term, written in forms.items())
    assert {"two cats", "σοφος", "café"} <= forms.keys()


def test_a_base_form_of_several_words_is_shown_as_the_word_that_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lightdxml.text.written.base_forms", lambda _, text: text.replace("zum", "zu dem"))
    (forms,) = written_terms(["zum Haus"], TextOptions(language="de"))
    assert (forms["zu"], forms["dem"], forms["dem haus"]) == ("zum", "zum", "zum haus")


@given(st.text(alphabet="abgehrs ABÄö\u0308\u0338=-'_.1٣カ漢ΣσςİIक्ष\u200d\ufe0f한\u1100\u1161", max_size=40))
@example("kirjastoista3 l'école ka\u0308si =\u0338abc")
def test_words_are_those_that_features_are_made_of(text: str) -> None:
    for language in ("", "fi", "en"):
        whole = base_forms(language, text) if language else text
        assert words_of(text, language) == tokenizer.words_in(tokenizer.normalize(whole))
