from __future__ import annotations

import pytest

from lightdxml.text import tfidf
from lightdxml.text.languages import base_forms, check_language
from lightdxml.text.tfidf import TextOptions

pytest.importorskip("simplemma")


def test_words_are_reduced_to_their_base_form_and_the_rest_stays() -> None:
    assert base_forms("fi", "Kirjastosta, 3 kirjastoja!") == "kirjasto, 3 kirjasto!"


def test_documents_and_names_share_base_forms() -> None:
    vectorizer, X = tfidf.fit(["Two cats", "a CAT"], TextOptions(language="en"), names=["dogs"])
    assert vectorizer.vocabulary == ["cat", "dog"]
    assert X.toarray()[:, 0].tolist() == [1, 1]


def test_a_language_without_base_forms_is_refused() -> None:
    with pytest.raises(ValueError, match="there are no base forms of words for language 'tlh'"):
        TextOptions(language="tlh")
    check_language("yi")
