"""Probabilities: what a score says about how often a label is right."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lightdxml import LightDXML, Predictor, load
from lightdxml.model.blend import TailShift
from lightdxml.model.calibration import Calibration, ranked_among, restore_calibration
from lightdxml.training import calibrate
from lightdxml.training.calibrate import Ranked
from tests.support.configs import PAPER, SMALL
from tests.support.data import noisy_topics
from tests.support.forging import change_manifest

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module", params=[SMALL, PAPER], ids=["logistic", "paper"])
def trained(request: pytest.FixtureRequest) -> LightDXML:
    return LightDXML(options=request.param | {"epochs": 20}).fit(
        *noisy_topics(400, seed=0), dev=noisy_topics(600, seed=1)
    )


def calibration_error(probability: Any, is_right: Any, bins: int = 10) -> float:
    at = np.minimum((probability * bins).astype(int), bins - 1)
    return float(np.abs(np.bincount(at, probability) - np.bincount(at, is_right)).sum() / len(probability))


def test_probabilities_of_new_documents_are_as_often_right_as_they_say(trained: LightDXML) -> None:
    X, Y = noisy_topics(1500, seed=2)
    labels, scores = trained.rank(X, 5)
    is_right = np.take_along_axis(Y.toarray(), labels.astype(np.int64), axis=1) > 0
    assert calibration_error(scores.ravel(), is_right.ravel()) < 0.04


def test_the_rank_by_probability_is_the_rank_of_the_blend(trained: LightDXML) -> None:
    X, _ = noisy_topics(50, seed=3)
    without_shift = Predictor(replace(trained.model_, shift=TailShift(0.0, 1.0)))
    assert (np.diff(without_shift.rank(X, 5)[1], axis=1) <= 0).all()


def test_fewer_labels_have_the_probabilities_of_more(trained: LightDXML) -> None:
    X, _ = noisy_topics(50, seed=3)
    (few, few_scores), (many, many_scores) = trained.rank(X, 2), trained.rank(X, 8)
    np.testing.assert_array_equal(few, many[:, :2])
    np.testing.assert_array_equal(few_scores, many_scores[:, :2])


def test_a_map_never_falls_and_ranks_only_take_away() -> None:
    log_odds = np.sort(RNG.normal(size=(500, 6)))[:, ::-1]
    # The other way round: the least likely are right.
    wrong = calibrate.fit(Ranked(np.zeros((500, 6), np.int32), log_odds, log_odds < 0))
    assert min(np.diff(wrong.values)) >= 0
    assert wrong.rank >= 0


def test_a_few_documents_change_little() -> None:
    log_odds = np.array([[2.0, 0.0, -2.0]])
    found = calibrate.fit(Ranked(np.zeros((1, 3), np.int32), log_odds, np.array([[False, True, False]])))
    assert found.probability(2.0, 0) == pytest.approx(1 / (1 + np.exp(-2)), abs=0.2)


@pytest.mark.parametrize("log_odds", [np.zeros((4, 3)), np.zeros((4, 0))])
def test_equal_log_odds_or_none_leave_probabilities_as_they_are(log_odds: Any) -> None:
    labels = np.zeros(log_odds.shape, np.int32)
    assert calibrate.fit(Ranked(labels, log_odds, labels > 0)) == Calibration()


def test_beyond_the_knots_the_slope_goes_on() -> None:
    found = Calibration((0.0, 1.0, 2.0), (0.0, 3.0, 4.0))
    assert found.log_odds(np.array([-2.0, 0.5, 5.0]), 0).tolist() == [-6.0, 1.5, 7.0]


def test_ranks_are_those_of_a_plain_sort() -> None:
    labels = np.array([RNG.permutation(20)[:8] for _ in range(30)], dtype=np.int32)
    labels[:, 3] = -1
    log_odds = RNG.integers(0, 4, (30, 8)).astype(np.float64)
    found, ranks = ranked_among(labels, log_odds, labels)
    for row, values, own, places in zip(labels, log_odds, found, ranks, strict=True):
        order = sorted((-value, label) for value, label in zip(values, row, strict=True) if label >= 0)
        for label, value, score, rank in zip(row, values, own, places, strict=True):
            if label >= 0:
                assert score == value
                assert order[rank] == (-value, label)


def test_a_stored_map_is_restored(tmp_path: Path, trained: LightDXML) -> None:
    trained.save(tmp_path / "model")
    assert load(tmp_path / "model").model_.calibration == trained.model_.calibration


@pytest.mark.parametrize(
    "content",
    [
        {"knots": [0.0], "values": [0.0], "rank": 0.0},
        {"knots": [0.0, 1.0], "values": [0.0], "rank": 0.0},
        {"knots": [1.0, 0.0], "values": [0.0, 1.0], "rank": 0.0},
        {"knots": [0.0, 1.0], "values": [1.0, 0.0], "rank": 0.0},
        {"knots": [0.0, 1.0], "values": [0.0, 1.0], "rank": -1.0},
        {"knots": [0.0, float("nan")], "values": [0.0, 1.0], "rank": 0.0},
        {"knots": [0.0, 1e99], "values": [0.0, 1.0], "rank": 0.0},
        {"knots": ["0", "1"], "values": [0.0, 1.0], "rank": 0.0},
        {"knots": [0.0, 1.0], "values": [0.0, 1.0], "rank": True},
    ],
    ids=str,
)
def test_a_forged_map_is_refused(tmp_path: Path, trained: LightDXML, content: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="its manifest has a calibration"):
        restore_calibration(json.loads(json.dumps(content)))
    trained.save(tmp_path / "model")
    change_manifest(tmp_path / "model", lambda manifest: manifest.update(calibration=content))
    with pytest.raises(ValueError, match="is damaged"):
        load(tmp_path / "model")
