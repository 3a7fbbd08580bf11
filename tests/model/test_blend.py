"""How the scores of views are combined, shifted towards rare labels, and ranked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lightdxml.model.blend import (
    LogLinearBlend,
    PaperBlend,
    restore_blend,
    sigmoid,
    top_k,
    weighted_sum,
)
from lightdxml.views.base import Contributions

RNG = np.random.default_rng(0)
LOG_SCORES = {name: -RNG.random((4, 6), dtype=np.float32) for name in ("nearness", "classifier", "linear", "tree")}


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_the_papers_blend_is_its_formula(beta: float) -> None:
    logits, cosines = RNG.normal(size=(2, 4, 6))
    log_scores = {"classifier": -np.logaddexp(0, -logits), "nearness": cosines - 1}
    expected = beta / (1 + np.exp(-logits)) + (1 - beta) / (1 + np.exp(-cosines))
    np.testing.assert_allclose(PaperBlend(beta).combine(log_scores), expected, rtol=1e-5)


def test_the_papers_blend_needs_no_classifier_of_weight_0() -> None:
    assert PaperBlend(0.0).combine({"nearness": LOG_SCORES["nearness"]}).shape == (4, 6)


def test_the_log_linear_blend_is_a_product_of_powers() -> None:
    weights = {"nearness": 0.2, "linear": 0.5, "tree": 0.1}
    expected = np.exp(sum(weight * LOG_SCORES[name].astype(np.float64) for name, weight in weights.items()))
    found = LogLinearBlend(weights).combine(LOG_SCORES)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert ((found > 0) & (found <= 1)).all()


def test_views_of_weight_0_need_no_scores() -> None:
    scores = weighted_sum({"linear": LOG_SCORES["linear"]}, {"classifier": 0.0, "linear": 1.0})
    np.testing.assert_array_equal(scores, LOG_SCORES["linear"])


@pytest.mark.parametrize("blend", [PaperBlend(0.4), LogLinearBlend({"classifier": 0.4, "nearness": 0.6})])
def test_explanations_add_up_to_the_score(blend: Any) -> None:
    parts = {name: Contributions(-RNG.random(), -0.1 * RNG.random(5)) for name in ("classifier", "nearness")}
    log_scores = {name: np.array([[one.base + one.features.sum()]]) for name, one in parts.items()}
    total = blend.explain(parts)
    assert total.base + total.features.sum() == pytest.approx(float(blend.combine(log_scores)[0, 0]), abs=1e-6)
    nothing = {name: Contributions(one.base, np.zeros(5)) for name, one in parts.items()}
    assert blend.explain(nothing).base == pytest.approx(total.base)
    assert not blend.explain(nothing).features.any()


@pytest.mark.parametrize("blend", [PaperBlend(0.25), LogLinearBlend({"linear": 0.5, "mine": 0.1})])
def test_a_stored_blend_is_restored(blend: Any) -> None:
    assert restore_blend({"kind": blend.kind, "weights": blend.weights}) == blend


@pytest.mark.parametrize(
    "content",
    [
        {"kind": "mine", "weights": {"linear": 1}},
        {"kind": "log-linear", "weights": {}},
        {"kind": "log-linear", "weights": {"linear": -0.1}},
        {"kind": "log-linear", "weights": {"linear": 11}},
        {"kind": "paper", "weights": {"classifier": 1.5, "nearness": 0}},
        {"kind": "log-linear", "weights": {"linear": float("nan")}},
        {"kind": "log-linear", "weights": {"linear": "1"}},
        {"kind": "log-linear", "weights": {"linear": True}},
        {"kind": "paper", "weights": {"classifier": 0.5}},
        {"kind": "paper", "weights": {"classifier": 0.5, "nearness": 0.5, "linear": 0}},
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
