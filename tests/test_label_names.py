"""What labels are called, as training takes it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.data.dataset import Texts
from lightdxml.label_names import name_forms, own_labels_of, with_titles
from lightdxml.survey import survey
from lightdxml.text import tfidf
from lightdxml.text.tfidf import TextOptions

PAGES = [f"page {i}" for i in range(40)]
OTHERS = csr_matrix(np.roll(np.eye(40, dtype=np.float32), 1, axis=1))
THEMSELVES = csr_matrix(np.eye(40, dtype=np.float32))


@pytest.mark.parametrize(
    ("rule", "Y", "found"),
    [
        ("auto", OTHERS, True),
        ("auto", THEMSELVES, False),
        ("never", THEMSELVES, True),
        ("allowed", OTHERS, False),
    ],
)
def test_the_setting_says_whether_documents_may_have_themselves(rule: str, Y: csr_matrix, found: bool) -> None:
    assert (own_labels_of(PAGES, PAGES, Y, None, rule) is not None) == found


def test_titles_of_documents_are_names_of_the_labels_that_they_are() -> None:
    texts = Texts(["a feline", "a canine", "nothing"], titles=["Cat", "Dog", " "])
    own = np.array([2, -1, 0], dtype=np.int32)
    assert with_titles([["bird"], [], ["felis"]], 3, survey(texts, own=own).titles) == [["bird"], [], ["felis", "Cat"]]
    assert with_titles(None, 3, survey(list(texts), own=own).titles) is None, "texts without titles"
    assert with_titles(None, 3, survey(texts).titles) is None, "documents that are no labels"


def test_words_of_a_name_count_in_any_order() -> None:
    vectorizer, _ = tfidf.fit(["black cat", "black cat"], TextOptions(ngrams=2))
    assert "black cat" in vectorizer.vocabulary
    one, other = name_forms(vectorizer, [["black cat"], ["cat, black"]]).terms
    np.testing.assert_array_equal(one.toarray(), other.toarray())


def test_labels_with_opaque_ids_are_found_by_the_titles_of_their_documents() -> None:
    """Only the titles say what `n7` is."""
    things = [
        f"{a}{b}" for a in ("red", "blue", "old", "new", "big") for b in ("cat", "dog", "bird", "fish", "horse", "tree")
    ]
    ids = [f"n{i}x" for i in range(len(things))]
    texts = Texts([f"see also {things[(i + 1) % 30]}" for i in range(30)], titles=things)
    labels = [[ids[(i + 1) % 30]] for i in range(30)]
    model = LightDXML(min_df=1, options={"validation_fraction": 0.0}).fit(texts, labels, ids=ids)
    assert model.model_.never_own
    assert model.predict(["see also redcat"], k=1) == [["n0x"]]
