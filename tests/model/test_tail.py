"""`tail`: from precision to rare labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lightdxml import LightDXML, Predictor, load
from lightdxml.metrics import evaluate
from lightdxml.model.blend import TailShift, rarity
from lightdxml.propensity import inverse_propensity_of
from lightdxml.training.choose import STRENGTHS, TAILS, mean_precision
from tests.support.configs import PAPER, SMALL
from tests.support.data import noisy_topics, topics
from tests.support.forging import change_manifest


@pytest.fixture(scope="module", params=[SMALL, PAPER], ids=["logistic", "paper"])
def trained(request: pytest.FixtureRequest) -> LightDXML:
    settings = request.param | {"beta": 0.8, "epochs": 20}
    return LightDXML(options=settings).fit(*noisy_topics(400, seed=0), dev=noisy_topics(600, seed=1))


def curve_of(trained: LightDXML) -> list[tuple[float, dict[str, float]]]:
    (entry,) = (entry for entry in trained.history_ if entry["phase"] == "tail")
    return list(entry["curve"])


def without_shift(trained: LightDXML) -> Predictor:
    return Predictor(replace(trained.model_, shift=TailShift(0.0, trained.model_.shift.highest)))


def test_the_strength_is_the_best_for_rare_labels_on_validation_documents(trained: LightDXML) -> None:
    shift = trained.model_.shift
    assert {shift.lowest, shift.highest} <= set(STRENGTHS)
    assert 0 <= shift.lowest <= shift.highest
    curve = curve_of(trained)
    assert [tail for tail, _ in curve] == list(TAILS)
    assert {name: trained.model_.metrics[name] for name in curve[0][1]} == curve[0][1]
    X, Y = noisy_topics(600, seed=1)
    q = inverse_propensity_of(trained.model_.label_frequency, trained.model_.n_documents)
    plain = evaluate(Y, without_shift(trained).rank(X, 5)[0], (1, 3, 5), q)
    assert mean_precision(curve[-1][1], "PSP") > mean_precision(plain, "PSP")
    # At 0 next to nothing is paid for rare labels.
    assert mean_precision(curve[0][1]) >= mean_precision(plain) - 0.02 - 1e-9
    assert all(curve[0][1][f"P@{k}"] >= plain[f"P@{k}"] - 0.1 - 1e-9 for k in (1, 3, 5))


def test_the_curve_in_the_history_is_what_predictions_give(trained: LightDXML) -> None:
    X, Y = noisy_topics(600, seed=1)
    q = inverse_propensity_of(trained.model_.label_frequency, trained.model_.n_documents)
    for tail, metrics in curve_of(trained)[::5]:
        assert evaluate(Y, trained.rank(X, 5, tail=tail)[0], (1, 3, 5), q) == pytest.approx(metrics)


def test_a_higher_tail_ranks_rarer_labels_first(trained: LightDXML) -> None:
    X, _ = noisy_topics(200, seed=3)
    frequency = trained.model_.label_frequency
    means = [frequency[without_shift(trained).rank(X, 3, tail=tail)[0]].mean() for tail in TAILS]
    assert means == sorted(means, reverse=True)
    assert means[-1] < means[0]


def test_tail_changes_the_order_and_no_probability(trained: LightDXML) -> None:
    X, _ = noisy_topics(50, seed=4)
    before, after = (trained.scores(X, trained.model_.n_labels, tail=tail).toarray() for tail in (0, 1))
    np.testing.assert_array_equal(before, after)
    assert (trained.rank(X, 3)[0] != trained.rank(X, 3, tail=1)[0]).any()


def test_labels_with_one_document_or_none_are_the_rarest() -> None:
    rare = rarity(np.array([0, 1, 2, 50, 100], dtype=np.int32), 100)
    assert rare[:2].tolist() == [0, 0]
    assert (np.diff(rare[1:]) < 0).all()


def test_one_document_at_a_time_gets_the_same_scores(trained: LightDXML) -> None:
    X, _ = noisy_topics(30, seed=5)
    labels, scores = trained.rank(X, 5, tail=0.7)
    for i in range(30):
        one, score = trained.rank(X[i], 5, tail=0.7)
        np.testing.assert_array_equal(one[0], labels[i])
        np.testing.assert_array_equal(score[0], scores[i])


def test_a_stored_model_gives_the_same_scores(tmp_path: Path, trained: LightDXML) -> None:
    X, _ = noisy_topics(50, seed=6)
    trained.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.model_.shift == trained.model_.shift
    for before, after in zip(trained.rank(X, 5, tail=0.5), again.rank(X, 5, tail=0.5), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("settings", [SMALL, PAPER], ids=["logistic", "paper"])
def test_with_few_validation_documents_the_strength_has_its_default(settings: dict[str, Any]) -> None:
    model = LightDXML(options=settings).fit(*topics(60)).model_
    options = model.config.blend
    default = options.default_paper_tail if settings is PAPER else options.default_tail
    assert model.shift == TailShift(0.0, default)


@pytest.mark.parametrize("value", [-1, 1e9, float("nan"), "1", True, None])
def test_a_forged_strength_is_refused(tmp_path: Path, trained: LightDXML, value: Any) -> None:
    trained.save(tmp_path / "model")
    change_manifest(tmp_path / "model", lambda manifest: manifest["tail"].update(highest=value))
    with pytest.raises(ValueError, match=r"is damaged .*tail of strength"):
        load(tmp_path / "model")


@pytest.mark.parametrize("tail", [-1, 2, float("nan"), "0.5", True, None])
def test_other_values_are_refused(trained: LightDXML, tail: Any) -> None:
    X, _ = noisy_topics(1, seed=0)
    for method in (trained.predict, trained.rank, trained.scores, trained.explain):
        with pytest.raises(ValueError, match=r"tail is .*: it must be a number from 0, for precision, to 1"):
            method(X, tail=tail)


def test_explanations_are_in_the_order_of_tail_and_add_up(trained: LightDXML) -> None:
    X, _ = noisy_topics(5, seed=7)
    for row, explanations in zip(trained.predict(X, 3, tail=1), trained.explain(X, 3, tail=1), strict=True):
        assert [one.label for one in explanations] == row
        for one in explanations:
            assert one.base + sum(value for _, value in one.parts) == pytest.approx(one.score, abs=1e-5)
