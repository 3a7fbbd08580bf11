"""LightDXML among scikit-learn's tools."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from lightdxml import LightDXML
from lightdxml.data import Dataset

TINY: dict[str, Any] = {"D": 8, "k": 8, "e_model": 4}
TEXTS = ["a purring cat", "a barking dog", "a cat and a dog", "no pet"] * 8
NAMES = [["cat"], ["dog"], ["cat", "dog"], []] * 8


def reasons(estimator: LightDXML) -> dict[str, str]:
    """Return the checks that cannot hold, each with its reason."""
    lists = "predict returns a list of labels for each document, which has no shape"
    return {
        "check_n_features_in_after_fitting": "score is called with y=…, and the labels' matrix is called Y here",
        "check_complex_data": "the labels of this check are complex numbers, and are refused before X is looked at",
        "check_estimators_nan_inf": "the labels of this check are floats, and are refused before X is looked at",
        "check_estimator_sparse_array": lists,
        "check_estimator_sparse_matrix": lists,
    }


@parametrize_with_checks([LightDXML(D=4, e_model=1, k=4)], expected_failed_checks=reasons, xfail_strict=True)  # type: ignore[untyped-decorator]
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_a_clone_has_the_settings_and_not_the_model() -> None:
    trained = LightDXML(**TINY, ngrams=2).fit(TEXTS, NAMES)
    copy = clone(trained)
    assert copy.get_params() == trained.get_params()
    assert not hasattr(copy, "model_")


def test_it_ends_a_pipeline_and_is_searched_over_and_cross_validated() -> None:
    pipeline = make_pipeline(TfidfVectorizer(), LightDXML(**TINY))
    assert pipeline.fit(TEXTS, NAMES).predict(["a purring cat"], k=1) == [["cat"]]
    search = GridSearchCV(LightDXML(**TINY), {"beta": [0.2, 0.8]}, cv=2).fit(TEXTS, NAMES)
    assert search.best_params_["beta"] in (0.2, 0.8)
    scores = cross_val_score(LightDXML(**TINY), TEXTS, NAMES, cv=2)
    assert ((scores >= 0) & (scores <= 1)).all()


def test_settings_of_the_texts_reach_the_features(see_also: Dataset) -> None:
    texts, Y = see_also.train.texts, see_also.train.Y
    assert texts is not None
    trained = LightDXML(D=4, e_model=1, k=4, ngrams=2, min_df=5, max_features=100).fit(texts[:200], Y[:200])
    vectorizer = trained.model_.vectorizer
    assert vectorizer is not None
    assert len(vectorizer.vocabulary) == 100
    assert any(" " in term for term in vectorizer.vocabulary)
    with pytest.raises(ValueError, match="ngrams is 3"):
        LightDXML(ngrams=3).fit(TEXTS, NAMES)
