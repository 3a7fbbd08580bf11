"""How the scores of views are combined, shifted towards rare labels, and ranked."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from lightdxml.model.blend import (
    GROUP_NAMES,
    N_GROUPS,
    LogisticBlend,
    PaperBlend,
    Slopes,
    frequency_groups,
    restore_blend,
    sigmoid,
    top_k,
)
from lightdxml.views.base import Contributions

RNG = np.random.default_rng(0)
LOG_SCORES = {name: -RNG.random((4, 6), dtype=np.float32) for name in ("nearness", "classifier", "linear", "tree")}
FREQUENCY = RNG.integers(0, 200, (4, 6))
NO_GROUPS = np.zeros((4, 6), dtype=np.uint8)


def logistic(**weights: float) -> LogisticBlend:
    """Return a blend whose weights are the same for all labels."""
    slopes = {name: Slopes((weight,) * N_GROUPS, (2 * weight,) * N_GROUPS) for name, weight in weights.items()}
    return LogisticBlend(slopes, (0.5,) * N_GROUPS)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_the_papers_blend_is_its_formula(beta: float) -> None:
    logits, cosines = RNG.normal(size=(2, 4, 6))
    log_scores = {"classifier": -np.logaddexp(0, -logits), "nearness": cosines - 1}
    expected = beta / (1 + np.exp(-logits)) + (1 - beta) / (1 + np.exp(-cosines))
    np.testing.assert_allclose(sigmoid(PaperBlend(beta).log_odds(log_scores, NO_GROUPS)), expected, rtol=1e-5)


def test_the_papers_blend_needs_no_classifier_of_weight_0() -> None:
    assert PaperBlend(0.0).log_odds({"nearness": LOG_SCORES["nearness"]}, NO_GROUPS).shape == (4, 6)


def test_the_logistic_blend_weighs_views_by_the_frequency_of_the_label() -> None:
    slopes = {name: Slopes(*map(tuple, RNG.random((2, N_GROUPS)))) for name in ("linear", "tree")}
    blend, groups = LogisticBlend(slopes, tuple(RNG.normal(size=N_GROUPS))), frequency_groups(FREQUENCY)
    for i, j in np.ndindex(4, 6):
        g = int(groups[i, j])
        log_odds = blend.biases[g]
        for name, (low, high) in slopes.items():
            p = np.exp(float(LOG_SCORES[name][i, j]))
            log_odds += low[g] * np.log(p) - high[g] * np.log(1 - p)
        assert blend.log_odds(LOG_SCORES, groups)[i, j] == pytest.approx(log_odds, rel=1e-5)


def test_labels_of_about_the_same_frequency_share_a_group() -> None:
    assert frequency_groups(np.array([0, 1, 2, 3, 4, 8, 9, 20, 21, 100, 101])).tolist() == [
        *(0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6)
    ]
    assert len(GROUP_NAMES) == N_GROUPS


@pytest.mark.parametrize("blend", [PaperBlend(0.4), logistic(classifier=0.4, nearness=0.6)])
def test_explanations_add_up_to_the_log_odds(blend: Any) -> None:
    parts = {name: Contributions(-RNG.random(), -0.1 * RNG.random(5)) for name in ("classifier", "nearness")}
    log_scores = {name: np.array([[one.base + one.features.sum()]]) for name, one in parts.items()}
    total = blend.explain(parts, 0)
    log_odds = float(blend.log_odds(log_scores, NO_GROUPS[:1, :1])[0, 0])
    assert total.base + total.features.sum() == pytest.approx(log_odds, abs=1e-6)
    nothing = {name: Contributions(one.base, np.zeros(5)) for name, one in parts.items()}
    assert blend.explain(nothing, 0).base == pytest.approx(total.base)
    assert not blend.explain(nothing, 0).features.any()


@pytest.mark.parametrize("blend", [PaperBlend(0.25), logistic(linear=0.5, mine=0.1)])
def test_a_stored_blend_is_restored(blend: Any) -> None:
    assert restore_blend(json.loads(json.dumps(blend.to_json()))) == blend


@pytest.mark.parametrize(
    "content",
    [
        {"kind": "mine", "beta": 1},
        {"kind": "paper", "beta": 1.5},
        {"kind": "paper", "beta": True},
        {"kind": "logistic", "slopes": {}, "biases": [0.0] * N_GROUPS},
        {"kind": "logistic", "slopes": {"linear": [[1.0]] * 2}, "biases": [0.0] * N_GROUPS},
        {"kind": "logistic", "slopes": {"linear": [[1.0] * N_GROUPS] * 2}, "biases": [0.0]},
        {"kind": "logistic", "slopes": {"linear": [[-0.1] * N_GROUPS] * 2}, "biases": [0.0] * N_GROUPS},
        {"kind": "logistic", "slopes": {"linear": [[1e9] * N_GROUPS] * 2}, "biases": [0.0] * N_GROUPS},
        {"kind": "logistic", "slopes": {"linear": [[float("nan")] * N_GROUPS] * 2}, "biases": [0.0] * N_GROUPS},
        {"kind": "logistic", "slopes": {"linear": [["1"] * N_GROUPS] * 2}, "biases": [0.0] * N_GROUPS},
        {"kind": "logistic", "slopes": {"linear": [[1.0] * N_GROUPS] * 2}, "biases": "0" * N_GROUPS},
    ],
    ids=str,
)
def test_a_forged_blend_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="its manifest has a blend"):
        restore_blend(content)


def test_equal_scores_are_ranked_by_label() -> None:
    labels = np.array([[9, 4, 7, -1, 2]], dtype=np.int32)
    scores = np.array([[0.5, 0.5, 0.9, 1.0, 0.5]], dtype=np.float32)
    best, values = top_k(labels, scores, 6)
    assert best.tolist() == [[7, 2, 4, 9, -1, -1]]
    np.testing.assert_array_equal(values[0, :4], np.array([0.9, 0.5, 0.5, 0.5], dtype=np.float32))
    assert (values[0, 4:] == 0).all()


def test_sigmoid_does_not_overflow() -> None:
    assert sigmoid(np.array([-1e30, 1e30], dtype=np.float32)).tolist() == [0, 1]
