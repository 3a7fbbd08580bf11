"""LightDXML among scikit-learn's tools."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, TunedThresholdClassifierCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from lightdxml import LightDXML, Predictor, load
from lightdxml.data import Dataset
from lightdxml.model.blend import TailShift
from tests.support.data import NAMES, TEXTS
from tests.support.forging import change_manifest

TINY: dict[str, Any] = {"dim": 8, "shortlist_size": 8, "epochs": 4}


def checks() -> list[Any]:
    """Return the checks of scikit-learn; those that cannot hold are expected to fail, with the reason."""
    repeated = "repeated documents are held out and shuffled one by one, and the paper's views know no weights"
    expected = dict.fromkeys(
        ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"], repeated
    )
    estimator = LightDXML(dim=4, epochs=1, shortlist_size=4)
    return list(estimator_checks_generator(estimator, expected_failed_checks=expected, mark="xfail"))


# Not `parametrize_with_checks`: that of scikit-learn 1.7 gives an iterator, about which pytest 9 warns.
@pytest.mark.parametrize(("estimator", "check"), checks(), ids=lambda one: getattr(one, "func", type(one)).__name__)
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
    # Given a number of folds, scikit-learn looks at y, and does not know lists of labels.
    search = GridSearchCV(LightDXML(**TINY), {"epochs": [1, 2]}, cv=KFold(2)).fit(TEXTS, NAMES)
    assert search.best_params_["epochs"] in (1, 2)
    scores = cross_val_score(LightDXML(**TINY), TEXTS, NAMES, cv=KFold(2))
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


@pytest.fixture(scope="module", name="news")
def documents_of_topics() -> tuple[list[str], Any]:
    """Documents about one or two of four topics, and the names of these."""
    rng = np.random.default_rng(0)
    topics = {
        "sport": "goal match team",
        "money": "bank price loan",
        "food": "bread soup salt",
        "sea": "ship wave fish",
    }
    names = sorted(topics)
    noise = [f"noise{i}" for i in range(50)]
    texts, labels = [], []
    for _ in range(400):
        chosen = [names[i] for i in rng.choice(4, rng.integers(1, 3), replace=False)]
        words = [word for name in chosen for word in rng.choice(topics[name].split(), 2)]
        texts.append(" ".join([*words, *rng.choice(noise, 6)]))
        labels.append(chosen)
    return texts, labels


FAST: dict[str, Any] = {"preset": "fast", "random_state": 0}


def test_predictions_of_a_matrix_are_a_matrix_and_go_back_to_names(news: Any) -> None:
    binarizer = MultiLabelBinarizer()
    Y = binarizer.fit_transform(news[1])
    trained = LightDXML(**FAST).fit(news[0][:300], Y[:300])
    found = trained.predict(news[0][300:])
    assert found.shape == (100, 4)
    assert found.dtype.kind == "i"
    assert f1_score(Y[300:], found, average="micro") > 0.95
    assert [set(one) for one in binarizer.inverse_transform(found)][:20] == [set(one) for one in news[1][300:320]]
    assert trained.classes_.tolist() == [0, 1, 2, 3]
    sparse = LightDXML(**FAST).fit(news[0][:300], csr_matrix(Y[:300])).predict(news[0][300:])
    assert issparse(sparse)
    np.testing.assert_array_equal(sparse.toarray(), found)


def test_predictions_agree_with_probabilities_and_decisions(news: Any) -> None:
    Y = MultiLabelBinarizer().fit_transform(news[1])
    trained = LightDXML(**FAST).fit(news[0], Y)
    shares, log_odds = trained.predict_proba(news[0][:50]), trained.decision_function(news[0][:50])
    np.testing.assert_array_equal(trained.predict(news[0][:50]), shares >= 0.5)
    np.testing.assert_array_equal(log_odds >= 0, shares >= 0.5)
    assert issparse(trained.predict_proba(news[0][:50], dense=False))
    assert issparse(trained.decision_function(news[0][:50], dense=False))
    assert roc_auc_score(Y[:50], shares, average="micro") > 0.95
    assert average_precision_score(Y[:50], log_odds, average="micro") > 0.9


def test_matrices_are_cross_validated_by_micro_f1(news: Any) -> None:
    Y = MultiLabelBinarizer().fit_transform(news[1])
    found = cross_val_predict(LightDXML(**FAST), news[0], Y, cv=3)
    assert f1_score(Y, found, average="micro") > 0.9
    shares = cross_val_predict(LightDXML(**FAST), news[0], Y, cv=3, method="predict_proba")
    assert shares.shape == Y.shape
    search = GridSearchCV(LightDXML(**FAST), {"threshold": [0.999, 0.5, "auto"]}, scoring="f1_micro", cv=2)
    assert search.fit(news[0], Y).best_params_["threshold"] != 0.999


def test_one_class_per_document_is_predicted_as_such(news: Any) -> None:
    first = np.array([labels[0] for labels in news[1]])
    trained = LightDXML(**FAST).fit(news[0], first)
    assert trained.classes_.tolist() == sorted(set(first))
    assert trained.predict(news[0][:9]).dtype.kind == "U"
    np.testing.assert_allclose(trained.predict_proba(news[0]).sum(axis=1), 1)
    assert trained.score(news[0], first) == accuracy_score(first, trained.predict(news[0]))
    unknown = trained.predict(["xyzzy"])
    assert unknown == first[0:0].dtype.type(max(set(first), key=first.tolist().count)), "the most frequent class"


def test_classes_are_calibrated_and_thresholds_tuned(news: Any) -> None:
    is_sea = np.array(["sea" in labels for labels in news[1]]).astype(int)
    calibrated = CalibratedClassifierCV(LightDXML(**FAST), cv=2).fit(news[0], is_sea)
    assert calibrated.predict_proba(news[0][:5]).shape == (5, 2)
    tuned = TunedThresholdClassifierCV(LightDXML(**FAST), cv=2, scoring="f1").fit(news[0], is_sea)
    assert f1_score(is_sea, tuned.predict(news[0])) > 0.9
    assert LightDXML(**FAST).fit(news[0], is_sea).decision_function(news[0]).shape == (400,)


def test_embeddings_may_be_negative(news: Any) -> None:
    Y = MultiLabelBinarizer().fit_transform(news[1])
    X = TruncatedSVD(20, random_state=0).fit_transform(TfidfVectorizer().fit_transform(news[0]))
    assert (X < 0).any()
    pipeline = make_pipeline(StandardScaler(), LightDXML(**FAST)).set_output(transform="pandas")
    pipeline.fit(X[:300], Y[:300])
    assert f1_score(Y[300:], pipeline.predict(X[300:]), average="micro") > 0.8


def test_a_document_of_weight_0_is_left_out_and_others_count_by_their_weight(news: Any) -> None:
    texts, labels = news
    weights = np.ones(400)
    weights[200:] = 0
    few = LightDXML(**FAST).fit(texts[:200], labels[:200])
    weighted = LightDXML(**FAST).fit(texts, labels, sample_weight=weights)
    for one, other in zip(few.rank(texts[300:]), weighted.rank(texts[300:]), strict=True):
        np.testing.assert_array_equal(one, other)
    # The same text with two labels: the one of more weight wins.
    doubtful, both = ["apple banana", "apple banana"] * 50, [["left"], ["right"]] * 50
    for better, each in (("left", [9.0, 1.0]), ("right", [1.0, 9.0])):
        trained = LightDXML(**FAST, names=False).fit(doubtful, both, sample_weight=each * 50)
        assert trained.predict("apple banana", k=1) == [better]


@pytest.mark.parametrize(
    ("weights", "message"),
    [([1.0], "sample_weight has shape"), ([-1.0] * 400, "negative, infinite or only zero"), ([0.0] * 400, "only zero")],
)
def test_wrong_weights_are_refused(news: Any, weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LightDXML(**FAST).fit(*news, sample_weight=weights)


def test_the_form_of_predictions_is_stored(news: Any, tmp_path: Path) -> None:
    Y = MultiLabelBinarizer().fit_transform(news[1])
    LightDXML(**FAST).fit(news[0], Y).save(tmp_path / "model")
    assert load(tmp_path / "model").predict(news[0][:3]).shape == (3, 4)
    change_manifest(tmp_path / "model", lambda manifest: manifest.update(output="code"))
    with pytest.raises(ValueError, match="its manifest has an output 'code'"):
        load(tmp_path / "model")


def test_classes_may_be_negative(news: Any, tmp_path: Path) -> None:
    """A model of classes -1 and 1 could once be saved, and not be loaded."""
    signs = np.array([1 if "sea" in labels else -1 for labels in news[1]])
    trained = LightDXML(**FAST).fit(news[0], signs)
    trained.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(news[0][:9]), trained.predict(news[0][:9]))
    assert set(trained.predict(news[0])) == {-1, 1}


def test_the_threshold_is_stored(news: Any, tmp_path: Path) -> None:
    Y = MultiLabelBinarizer().fit_transform(news[1])
    trained = LightDXML(**FAST, threshold=0.05).fit(news[0], Y)
    trained.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.threshold == 0.05
    for other in (again, Predictor.load(tmp_path / "model")):
        np.testing.assert_array_equal(other.predict(news[0][:50]), trained.predict(news[0][:50]))
    assert trained.predict(news[0][0]) == trained.predict(news[0][:1], k=5)[0], "a text alone has a list of labels"
    change_manifest(tmp_path / "model", lambda manifest: manifest.update(threshold="f1"))
    with pytest.raises(ValueError, match="its manifest has a threshold 'f1'"):
        load(tmp_path / "model")
    with pytest.raises(ValueError, match="threshold is 'f1'"):
        LightDXML(**FAST, threshold="f1").fit(news[0], Y)


def test_scores_take_labels_in_the_form_of_training(news: Any) -> None:
    first, names = [sorted(labels)[0] for labels in news[1]], ["food", "money", "sea", "sport"]
    numbers = [names.index(name) for name in first]
    trained = LightDXML(**FAST).fit(news[0], numbers, label_names=names)
    assert trained.score(news[0], numbers) == trained.score(news[0], [[number] for number in numbers]) > 0.5
    rows = MultiLabelBinarizer().fit_transform(news[1]).tolist()
    matrix = LightDXML(**FAST).fit(news[0], rows)
    assert matrix.score(news[0], rows) == matrix.score(news[0], np.array(rows)) > 0.9


def test_predictions_of_classes_are_the_most_likely_ones(news: Any) -> None:
    first = np.array([labels[0] for labels in news[1]])
    trained = LightDXML(**FAST).fit(news[0], first)
    trained.model_ = replace(trained.model_, shift=TailShift(2.0, 3.0))
    shares = trained.predict_proba(news[0])
    np.testing.assert_array_equal(trained.predict(news[0]), trained.classes_[shares.argmax(axis=1)])
    sparse = trained.predict_proba(news[0], dense=False)
    assert issparse(sparse)
    np.testing.assert_allclose(sparse.toarray(), shares, atol=1e-6)


def test_weights_of_0_leave_out_rows_of_frames(news: Any) -> None:
    frame = pd.DataFrame({"text": news[0]}, index=range(1000, 1400))
    weights = np.ones(400)
    weights[::2] = 0
    found = LightDXML(**FAST).fit(frame, news[1], sample_weight=weights, ids=pd.Series(range(400)).astype(str))
    expected = LightDXML(**FAST).fit(news[0][1::2], news[1][1::2])
    np.testing.assert_array_equal(found.rank(news[0][:9])[1], expected.rank(news[0][:9])[1])


def test_optuna_searches_over_its_parameters() -> None:
    integration = pytest.importorskip("optuna_integration")
    distributions = pytest.importorskip("optuna.distributions")
    space = {
        "ngrams": distributions.CategoricalDistribution([1, 2]),
        "title_weight": distributions.FloatDistribution(0.5, 2),
    }
    with warnings.catch_warnings():
        # The search is experimental, and uses parts of Optuna that will be removed.
        warnings.simplefilter("ignore")
        search = integration.OptunaSearchCV(LightDXML("fast"), space, cv=KFold(2), n_trials=2, random_state=0)
        search.fit(TEXTS, NAMES)
    assert set(search.best_params_) == set(space)
    assert search.best_estimator_.predict(["a purring cat"], k=1) == [["cat"]]
