"""The fit of the logistic blend."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lightdxml.model.blend import N_GROUPS, sigmoid
from lightdxml.training import logistic
from lightdxml.training.logistic import Judged

RNG = np.random.default_rng(0)


def judged(n: int = 4000, *, useless: bool = False) -> Judged:
    """Return candidates that are right by chance: log-odds are 2 log p + a bias of 1, and 3 for labels of group 0."""
    log_scores: NDArray[np.float32] = -3 * RNG.random((n, 5), dtype=np.float32)
    groups = RNG.integers(0, N_GROUPS, (n, 5)).astype(np.uint8)
    log_odds = 2 * log_scores + np.where(groups == 0, 3, 1)
    is_right = RNG.random((n, 5)) < 1 / (1 + np.exp(-log_odds))
    scores = {"linear": log_scores}
    if useless:
        scores["tree"] = -RNG.random((n, 5), dtype=np.float32) - is_right
    return Judged(scores, groups, np.ones((n, 5), dtype=np.bool_), is_right)


def test_the_fit_finds_the_weights_that_made_the_data() -> None:
    blend = logistic.fit(judged(40_000), ["linear"])
    np.testing.assert_allclose(blend.slopes["linear"].low, 2, atol=0.3)
    assert blend.biases[0] == pytest.approx(3, abs=0.3)
    np.testing.assert_allclose(blend.biases[1:], 1, atol=0.3)


def test_the_probabilities_are_calibrated() -> None:
    data = judged(40_000)
    found = sigmoid(logistic.fit(data, ["linear"]).log_odds(data.log_scores, data.groups))
    for low in (0.1, 0.3, 0.5, 0.7):
        near = (found > low) & (found < low + 0.1)
        assert data.is_right[near].mean() == pytest.approx(found[near].mean(), abs=0.02)


def test_no_documents_leave_the_usual_weights() -> None:
    nothing = judged(0)
    assert logistic.fit(nothing, ["linear"]) == logistic.usual(["linear"])


def test_a_group_without_candidates_has_the_weights_of_the_others() -> None:
    data = judged(20_000)
    some = Judged(data.log_scores, data.groups, data.groups > 0, data.is_right)
    blend = logistic.fit(some, ["linear"])
    low = blend.slopes["linear"].low
    assert low[0] == pytest.approx(np.mean(low[1:]), abs=0.1)


def test_a_view_that_speaks_against_right_labels_gets_no_weight() -> None:
    blend = logistic.fit(judged(useless=True), ["linear", "tree"])
    assert set(blend.slopes) == {"linear"}
    assert blend.weights["linear"] > 0


def test_places_without_a_candidate_do_not_count() -> None:
    data = judged(2000)
    wrong = Judged(
        {"linear": np.where(np.arange(5) == 4, np.float32(-1), data.log_scores["linear"])},
        data.groups,
        np.broadcast_to(np.arange(5) < 4, data.groups.shape),
        data.is_right,
    )
    right = Judged(
        {"linear": data.log_scores["linear"][:, :4]}, data.groups[:, :4], data.is_candidate[:, :4], data.is_right[:, :4]
    )
    assert logistic.fit(wrong, ["linear"]) == logistic.fit(right, ["linear"])


def test_cross_fitted_scores_come_from_the_other_half() -> None:
    data = judged(1000)
    found = logistic.cross_fitted(data, ["linear"])
    odd = data.rows(slice(1, None, 2))
    even = data.rows(slice(0, None, 2))
    expected = logistic.fit(odd, ["linear"]).log_odds(even.log_scores, even.groups)
    np.testing.assert_array_equal(found[::2], expected)


def test_the_fit_converges_with_scores_near_impossible() -> None:
    """Newton's method without halved steps once ran in circles here, and left weights at 0."""
    n = 600
    is_right = np.zeros((n, 10), dtype=np.bool_)
    is_right[:, 0] = True
    log_scores = np.where(is_right, np.float32(-9), np.float32(-14)) - RNG.random((n, 10), dtype=np.float32)
    groups = np.full((n, 10), 3, dtype=np.uint8)
    data = Judged({"linear": log_scores}, groups, np.ones((n, 10), dtype=np.bool_), is_right)
    found = sigmoid(logistic.fit(data, ["linear"]).log_odds(data.log_scores, groups))
    assert found[is_right].min() > 0.5
    assert found[~is_right].max() < 0.5


def test_views_that_tell_nothing_keep_the_usual_weights() -> None:
    """A blend without weights could be saved, and not be loaded."""
    data = judged(2000)
    against = Judged({"linear": -1 - data.is_right.astype(np.float32)}, data.groups, data.is_candidate, data.is_right)
    assert logistic.fit(against, ["linear"]) == logistic.usual(["linear"])
