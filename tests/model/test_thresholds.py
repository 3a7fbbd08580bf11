"""How many labels: thresholds for a measure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.metrics import f1_score, precision_score

from lightdxml import LightDXML, load
from lightdxml.model.blend import N_GROUPS
from lightdxml.model.thresholds import LEVELS, ThresholdTable, thresholds_of
from tests.support.configs import SMALL
from tests.support.data import noisy_topics

AVERAGES = {"micro-f1": "micro", "macro-f1": "macro", "samples-f1": "samples"}


@pytest.fixture(scope="module")
def trained() -> LightDXML:
    # Without a refit, the model predicts validation documents as it did when thresholds were chosen.
    options = SMALL | {"epochs": 20, "refit": False}
    return LightDXML(options=options).fit(*noisy_topics(400, seed=0), dev=noisy_topics(600, seed=1))


def table_of(trained: LightDXML) -> ThresholdTable:
    table = trained.model_.thresholds
    assert table is not None
    return table


def decided(trained: LightDXML, X: Any, **options: Any) -> Any:
    labels, _ = trained.rank(X, 12, **options)
    rows, places = np.nonzero(labels >= 0)
    shape = labels.shape[0], trained.model_.n_labels
    return csr_matrix((np.ones(len(rows)), (rows, labels[rows, places])), shape=shape).toarray()


@pytest.mark.parametrize("objective", AVERAGES)
def test_a_threshold_is_the_best_for_its_measure_on_validation_documents(trained: LightDXML, objective: str) -> None:
    X, Y = noisy_topics(600, seed=1)
    true = (Y.toarray() > 0).astype(int)

    def measured(threshold: float | str) -> float:
        found = decided(trained, X, threshold=threshold)
        return float(f1_score(true, found, average=AVERAGES[objective], zero_division=0))

    best = measured(objective)
    assert best >= max(measured(float(level)) for level in LEVELS[9::20]) - 0.005


def test_auto_is_micro_f1(trained: LightDXML) -> None:
    table = table_of(trained)
    np.testing.assert_array_equal(table.choose("auto"), table.choose("micro-f1"))


def test_a_wanted_precision_is_reached_on_new_documents(trained: LightDXML) -> None:
    X, Y = noisy_topics(1500, seed=2)
    true = (Y.toarray() > 0).astype(int)
    found = decided(trained, X, threshold="precision=0.8")
    assert found.sum() > 100
    assert precision_score(true, found, average="micro") == pytest.approx(0.8, abs=0.06)
    assert precision_score(true, found, average="micro") >= 0.75


def test_labels_below_the_threshold_are_left_out_and_all_others_kept(trained: LightDXML) -> None:
    X, _ = noisy_topics(50, seed=3)
    labels, scores = trained.rank(X, 12)
    kept, kept_scores = trained.rank(X, threshold=0.3)
    for row, values, few, few_values in zip(labels, scores, kept, kept_scores, strict=True):
        expected = [(j, p) for j, p in zip(row, values, strict=True) if j >= 0 and p >= np.float32(0.3)]
        assert [(j, p) for j, p in zip(few, few_values, strict=True) if j >= 0] == expected
    assert max(map(len, trained.predict(X, k=1, threshold=0.01))) == 1
    assert trained.predict(X[:2], k=5, threshold=1.0) == [[], []]
    assert trained.predict(X[:2], threshold=1.0).nnz == 0


def test_thresholds_by_frequency_are_those_of_each_group() -> None:
    counts = np.zeros((N_GROUPS, len(LEVELS)), dtype=np.int32)
    predicted, right = counts.copy(), counts.copy()
    # Group 5 is precise from 0.3 on, group 6 from 0.8 on; the others have no labels.
    for group, level in ((5, 0.3), (6, 0.8)):
        predicted[group] = np.where(level <= LEVELS, 100, 1000)
        right[group] = 90
    positives = np.array([0, 0, 0, 0, 0, 100, 100], dtype=np.int32)
    table = ThresholdTable(predicted, right, positives, right.astype(np.float32), right[5].astype(np.float32))
    chosen = table.choose("precision=0.9", by_frequency=True)
    assert chosen[5:].tolist() == [0.3, 0.8]
    assert set(chosen[:5].tolist()) == {0.8}, "the threshold of all labels"
    assert 0.3 <= table.choose("micro-f1", by_frequency=True)[5] < 1
    with pytest.raises(ValueError, match=r"no threshold has a precision of 0\.99 .* the best is 0\.900"):
        table.choose("precision=0.99")
    with pytest.raises(ValueError, match="samples-f1 has one threshold for all labels"):
        table.choose("samples-f1", by_frequency=True)


def test_without_validation_documents_auto_is_one_half(tmp_path: Path) -> None:
    trained = LightDXML(dim=8, epochs=2).fit(["red rose", "white wine"] * 5, [["rose"], ["wine"]] * 5)
    assert trained.model_.thresholds is None
    assert trained.predict("red rose", threshold="auto") == trained.predict("red rose", threshold=0.5)
    with pytest.raises(ValueError, match="needs validation documents, and the model had none"):
        trained.predict("red rose", threshold="macro-f1")
    trained.save(tmp_path / "model")
    assert load(tmp_path / "model").model_.thresholds is None


def test_a_stored_table_is_restored(tmp_path: Path, trained: LightDXML) -> None:
    trained.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for objective in (*AVERAGES, "precision=0.7"):
        np.testing.assert_array_equal(table_of(again).choose(objective), table_of(trained).choose(objective))


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan"), True, "f1", "precision", "precision=2", "precision=x"])
def test_other_thresholds_are_refused(trained: LightDXML, threshold: Any) -> None:
    with pytest.raises(ValueError, match=r"^threshold is "):
        trained.predict(noisy_topics(1)[0], threshold=threshold)


def test_thresholds_by_frequency_need_a_measure(trained: LightDXML) -> None:
    X = noisy_topics(1)[0]
    with pytest.raises(ValueError, match="by_frequency needs a threshold"):
        trained.rank(X, by_frequency=True)
    with pytest.raises(ValueError, match=r"threshold 0\.3 is the same for all labels"):
        trained.predict(X, threshold=0.3, by_frequency=True)


def test_the_threshold_of_a_number_is_that_number() -> None:
    assert set(thresholds_of(None, 0, False)) == {0.0}
