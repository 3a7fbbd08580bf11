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
from tests.support.data import NAMES, TEXTS

TINY: dict[str, Any] = {"dim": 8, "shortlist_size": 8, "epochs": 4}


def expected_failures(estimator: LightDXML) -> dict[str, str]:
    """Return the checks that cannot hold, each with its reason."""
    lists = "predict returns a list of labels per document, which has no shape"
    return {
        "check_n_features_in_after_fitting": "score is called with y=…, and the label matrix is called Y here",
        "check_complex_data": "the labels of this check are complex numbers, and are refused before X is checked",
        "check_estimators_nan_inf": "the labels of this check are floats, and are refused before X is checked",
        "check_estimator_sparse_array": lists,
        "check_estimator_sparse_matrix": lists,
    }


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [LightDXML(dim=4, epochs=1, shortlist_size=4)], expected_failed_checks=expected_failures, xfail_strict=True
)
def test_it_passes_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_a_clone_has_the_settings_and_not_the_model(text_model: LightDXML) -> None:
    copy = clone(text_model)
    assert copy.get_params() == text_model.get_params()
    assert not hasattr(copy, "model_")


def test_it_is_the_last_step_of_a_pipeline() -> None:
    pipeline = make_pipeline(TfidfVectorizer(), LightDXML(**TINY))
    assert pipeline.fit(TEXTS, NAMES).predict(["a purring cat"], k=1) == [["cat"]]


def test_it_is_cross_validated_and_searched_over() -> None:
    search = GridSearchCV(LightDXML(**TINY), {"epochs": [1, 2]}, cv=2).fit(TEXTS, NAMES)
    assert search.best_params_["epochs"] in (1, 2)
    scores = cross_val_score(LightDXML(**TINY), TEXTS, NAMES, cv=2)
    assert ((scores >= 0) & (scores <= 1)).all()


def test_settings_of_texts_reach_the_features(see_also: Dataset) -> None:
    texts, Y = see_also.train.texts, see_also.train.Y
    assert texts is not None
    settings: dict[str, Any] = {"dim": 4, "epochs": 1, "linear": False, "ngrams": 2, "min_df": 5, "max_features": 100}
    vectorizer = LightDXML(**settings).fit(texts[:200], Y[:200]).model_.vectorizer
    assert vectorizer is not None
    assert len(vectorizer.vocabulary) == 100
    assert any(" " in term for term in vectorizer.vocabulary)
    with pytest.raises(ValueError, match="ngrams is 3"):
        LightDXML(ngrams=3).fit(TEXTS, NAMES)
