"""`tail`: from precision to rare labels."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML, load, model, storage
from lightdxml.metrics import evaluate, inverse_propensity_of
from lightdxml.report.page import _tail
from lightdxml.training import blend
from tests.cli.test_data import run
from tests.training.test_cycle import SMALL, topics

TAILS = tuple(i / 10 for i in range(11))


def skewed(n: int, seed: int) -> tuple[csr_matrix, csr_matrix]:
    """Label j is true of about every (j + 1)th document; its word tells it, but words of other labels are noise."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(12, size=(n, 2), p=(weights := 1 / np.arange(1, 13)) / weights.sum())
    Y = np.zeros((n, 12), dtype=np.float32)
    Y[np.arange(n)[:, None], labels] = 1
    X = Y * (rng.random(Y.shape) < 0.7) + (rng.random(Y.shape) < 0.15)
    return csr_matrix(np.hstack([X, np.ones((n, 1))]), dtype=np.float32), csr_matrix(Y)


@pytest.fixture(scope="module", params=[True, False], ids=["three views", "two views"])
def trained(request: pytest.FixtureRequest) -> LightDXML:
    X, Y = skewed(400, 0)
    return LightDXML(**{**SMALL, "sparse": request.param, "beta": 0.8, "gamma": 0.5, "e_model": 20}).fit(
        X, Y, dev=skewed(600, 1)
    )


def curve_of(trained: LightDXML) -> list[tuple[float, dict[str, float]]]:
    (entry,) = (entry for entry in trained.history_ if entry["phase"] == "tail")
    return list(entry["curve"])


def test_without_it_scores_are_the_blended_ones_to_the_bit(trained: LightDXML) -> None:
    X, _ = skewed(50, 2)
    candidates = model.find_candidates(trained.model_, model.check_features(X))
    m = trained.model_
    blended = model.blend(candidates, m.beta) if m.sparse is None else model.blend_views(candidates, m.beta, m.gamma)
    for before, after in zip(model.top(candidates.labels, blended, 5), trained.rank(X, 5, tail=0), strict=True):
        np.testing.assert_array_equal(before, after)


def test_the_strength_is_the_one_that_serves_rare_labels_best_on_validation_documents(trained: LightDXML) -> None:
    assert trained.model_.tail_strength in blend.STRENGTHS
    assert trained.model_.tail_strength > 0
    curve = curve_of(trained)
    assert [tail for tail, _ in curve] == list(TAILS)
    assert {name: trained.model_.metrics[name] for name in curve[0][1]} == curve[0][1], "0 is what was chosen before"
    assert blend.mean(curve[-1][1], "PSP") > blend.mean(curve[0][1], "PSP")


def test_the_curve_is_what_predictions_give(trained: LightDXML) -> None:
    X, Y = skewed(600, 1)
    q = inverse_propensity_of(trained.model_.label_frequency, trained.model_.n_documents)
    for tail, figures in curve_of(trained)[::5]:
        assert evaluate(Y, trained.rank(X, 5, tail=tail)[0], (1, 3, 5), q) == pytest.approx(figures)


def test_the_more_of_it_the_rarer_the_labels_that_come_first(trained: LightDXML) -> None:
    X, _ = skewed(200, 3)
    frequency = trained.model_.label_frequency
    means = [frequency[trained.rank(X, 1, tail=tail)[0]].mean() for tail in TAILS]
    assert means == sorted(means, reverse=True)
    assert means[-1] < means[0]


def test_two_equal_scores_are_parted_by_rarity() -> None:
    labels, scores = np.array([[0, 1]], dtype=np.int32), np.full((1, 2), 0.5, dtype=np.float32)
    Y, frequency = csr_matrix([[0, 1]]), np.array([50, 2], dtype=np.int32)
    rare, q = model.rarity(frequency, 100), inverse_propensity_of(frequency, 100)
    curve = blend.tail_curve(labels, scores, rare[labels], Y, q, (0.0, 0.1, 1.0))
    assert [figures["PSP@1"] for _, figures in curve] == [0, 100, 100]


def test_scores_stay_between_0_and_1_and_only_fall(trained: LightDXML) -> None:
    X, _ = skewed(50, 4)
    before, after = (trained.scores(X, 12, tail=tail).toarray() for tail in (0, 1))
    assert (after >= 0).all()
    assert (after <= before).all()
    assert (after < before).any()


def test_a_label_with_one_document_keeps_its_score() -> None:
    rare = model.rarity(np.array([0, 1, 2, 50, 100], dtype=np.int32), 100)
    assert rare[:2].tolist() == [0, 0]
    assert (np.diff(rare[1:]) < 0).all()
    assert model.shifted(np.ones(5, dtype=np.float32), rare, 3.0)[1] == 1


def test_a_document_alone_gets_what_it_gets_among_others(trained: LightDXML) -> None:
    X, _ = skewed(30, 5)
    labels, scores = trained.rank(X, 5, tail=0.7)
    for i in range(30):
        one, score = trained.rank(X[i], 5, tail=0.7)
        np.testing.assert_array_equal(one[0], labels[i])
        np.testing.assert_array_equal(score[0], scores[i])


def test_a_stored_model_shifts_the_same(tmp_path: Path, trained: LightDXML) -> None:
    X, _ = skewed(50, 6)
    trained.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.model_.tail_strength == trained.model_.tail_strength
    for before, after in zip(trained.rank(X, 5, tail=0.5), again.rank(X, 5, tail=0.5), strict=True):
        np.testing.assert_array_equal(before, after)


def test_a_model_of_before_and_one_of_few_documents_have_the_usual_strength() -> None:
    old = load(Path(__file__).parent / "models" / "format-2-features")
    assert old.model_.tail_strength == model.USUAL_STRENGTH
    X = csr_matrix(np.eye(3, old.model_.n_features), dtype=np.float32)
    assert (old.scores(X, 3, tail=1).data <= 1).all()
    for sparse, usual in ((False, model.USUAL_STRENGTH), (True, model.USUAL_STRENGTH_OF_THREE)):
        assert LightDXML(**{**SMALL, "sparse": sparse}).fit(*topics(60)).model_.tail_strength == usual


def test_a_model_of_three_views_without_a_strength_gets_that_of_three(tmp_path: Path) -> None:
    LightDXML(**{**SMALL, "sparse": True}).fit(*topics(60)).save(tmp_path / "model")
    path = tmp_path / "model" / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["sha256"], manifest["tail_strength"]
    path.write_text(json.dumps(manifest | {"sha256": storage._checksum(manifest)}))
    assert load(tmp_path / "model").model_.tail_strength == model.USUAL_STRENGTH_OF_THREE


@pytest.mark.parametrize("value", [-1, 1e9, float("nan"), "1", True, None])
def test_a_forged_strength_is_refused(tmp_path: Path, trained: LightDXML, value: Any) -> None:
    trained.save(tmp_path / "model")
    path = tmp_path / "model" / "manifest.json"
    manifest = json.loads(path.read_text()) | {"tail_strength": value}
    manifest.pop("sha256")
    path.write_text(json.dumps(manifest | {"sha256": storage._checksum(manifest)}))
    with pytest.raises(ValueError, match=r"is damaged .*tail_strength"):
        load(tmp_path / "model")


@pytest.mark.parametrize("tail", [-1, 2, float("nan"), "0.5", True, None])
def test_other_values_are_said(trained: LightDXML, tail: Any) -> None:
    X, _ = skewed(1, 0)
    for ask in (trained.predict, trained.rank, trained.scores, trained.explain):
        with pytest.raises(ValueError, match=r"tail is .*: it must be a number from 0, for precision, to 1"):
            ask(X, tail=tail)


def test_explanations_add_up_with_what_being_frequent_costs(trained: LightDXML) -> None:
    X, _ = skewed(5, 7)
    for row, explanations in zip(trained.predict(X, 3, tail=1), trained.explain(X, 3, tail=1), strict=True):
        assert [one.label for one in explanations] == row
        for one in explanations:
            assert one.tail < 0
            assert one.base + sum(value for _, value in one.parts) + one.tail == pytest.approx(one.score, abs=1e-5)
    assert {one.tail for row in trained.explain(X, 3) for one in row} == {0.0}


@pytest.fixture(scope="module")
def pets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of texts and a file of them; most pets are cats."""
    folder = tmp_path_factory.mktemp("tail")
    texts = ["a purring cat"] * 30 + ["a cat and a dog"] * 10
    labels = [["cat"]] * 30 + [["cat", "dog"]] * 10
    LightDXML(**(SMALL | {"e_model": 10, "batch_size": 8})).fit(texts, labels).save(folder / "model")
    lines = [json.dumps({"text": text, "labels": names}) for text, names in zip(texts, labels, strict=True)]
    (folder / "pets.jsonl").write_text("\n".join(lines))
    return folder


def test_the_commands_take_it(pets: Path) -> None:
    trained = load(pets / "model")
    (pets / "one.txt").write_text("a cat and a dog\n")
    found = json.loads(run("predict", pets / "model", pets / "one.txt", "--json", "--tail", "1"))
    (labels, scores) = trained.predict("a cat and a dog", tail=1), trained.rank(["a cat and a dog"], 2, tail=1)[1][0]
    assert [one["label"] for one in found["labels"]] == labels
    assert [one["score"] for one in found["labels"]] == pytest.approx(scores.tolist(), abs=1e-6)
    assert "P@1" in json.loads(run("evaluate", pets / "model", pets / "pets.jsonl", "--tail", "1", "--json"))
    (best,) = json.loads(run("explain", pets / "model", "a cat", "-k", "1", "--tail", "1", "--json"))
    adds = [best["base"], best["tail"], *(word["adds"] for word in best["words"])]
    assert sum(adds) == pytest.approx(best["score"], abs=1e-5)
    assert "(being frequent)" in run("explain", pets / "model", "a cat", "--tail", "1")
    assert "(being frequent)" not in run("explain", pets / "model", "a cat")
    assert json.loads(run("info", pets / "model", "--json"))["tail_strength"] == model.USUAL_STRENGTH


@pytest.mark.parametrize("tail", ["-1", "2", "nan"])
def test_the_commands_say_what_is_wrong_before_they_read_anything(tmp_path: Path, tail: str) -> None:
    from typer.testing import CliRunner

    from lightdxml.cli import app

    for command in ("predict", "evaluate", "explain"):
        result = CliRunner().invoke(app, [command, str(tmp_path / "none"), "-", f"--tail={tail}"])
        assert isinstance(result.exception, ValueError)
        assert str(result.exception).startswith("tail is ")


def test_the_report_draws_the_curve(trained: LightDXML) -> None:
    shown = _tail(SimpleNamespace(estimator=trained))  # type: ignore[arg-type]
    assert "tail: 0 for precision, 1 for rare labels" in shown
    for name in ("P@1", "P@5", "PSP@1", "PSP@5"):
        assert f">{name}<" in shown
    for _, figures in curve_of(trained):
        assert f"{figures['PSP@3']:.2f}" in shown


def test_a_report_says_where_it_changes_nothing(trained: LightDXML) -> None:
    curve = [(tail, curve_of(trained)[0][1]) for tail in TAILS]
    estimator = SimpleNamespace(history_=[{"phase": "tail", "curve": curve}])
    assert "changed nothing" in _tail(SimpleNamespace(estimator=estimator))  # type: ignore[arg-type]


@pytest.mark.parametrize("entry", [{}, {"curve": 5}, {"curve": [[0, {"P@1": 1}], [1, {"P@1": 1}]]}])
def test_a_report_of_a_model_without_a_curve_says_so(entry: dict[str, Any]) -> None:
    estimator = SimpleNamespace(history_=[{"phase": "tail", **entry}] if entry else [])
    assert "no record of what" in _tail(SimpleNamespace(estimator=estimator))  # type: ignore[arg-type]
