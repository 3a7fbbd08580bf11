"""Calibration: bins and their error as worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lightdxml.metrics import expected_calibration_error, reliability


def test_scores_that_are_the_share_of_right_labels_have_no_error() -> None:
    scores = np.repeat([0.25, 0.75], 100)
    right = np.concatenate([np.arange(100) < 25, np.arange(100) < 75])
    assert expected_calibration_error(scores, right) == 0


def test_overconfident_scores_have_their_excess_as_error() -> None:
    right = np.arange(100) < 60
    assert expected_calibration_error(np.full(100, 0.9), right) == pytest.approx(0.3)


def test_bins_count_by_their_number_of_predictions() -> None:
    # Three predictions of 0.1, all wrong; one of 0.9, which is right.
    assert expected_calibration_error([0.1, 0.1, 0.1, 0.9], [0, 0, 0, 1]) == pytest.approx((3 * 0.1 + 0.1) / 4)


def test_scores_of_0_and_1_and_on_edges_have_a_bin() -> None:
    found = reliability([0.0, 0.5, 1.0], [False, True, True], bins=2)
    assert found.count.tolist() == [1, 2]
    assert found.score.tolist() == [0, 0.75]


def test_empty_bins_are_in_the_middle_and_do_not_count() -> None:
    found = reliability([0.9], [True], bins=4)
    assert found.score.tolist() == pytest.approx([0.125, 0.375, 0.625, 0.9])
    assert found.error == pytest.approx(0.1)
    assert reliability([], []).error == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([0.5], [True, False]), "1 scores and 2 answers"),
        (([1.5], [True]), "not from 0 to 1"),
        (([np.nan], [True]), "not from 0 to 1"),
        (([0.5], [True], 0), "at least one"),
    ],
)
def test_invalid_input_is_rejected(arguments: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        reliability(*arguments)
