"""Smaller models: int8 and float16 give nearly the same answers."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML, load
from lightdxml.metrics import evaluate
from lightdxml.views.dense.classifier import ClassifierView
from lightdxml.views.dense.nearness import NearnessView
from tests.support.configs import FOUR_VIEWS
from tests.support.data import topics
from tests.support.forging import Arrays, change_arrays
from tests.support.indexes import KINDS


@pytest.fixture(scope="module", params=KINDS)
def trained(request: pytest.FixtureRequest, documents: tuple[csr_matrix, csr_matrix]) -> LightDXML:
    settings = {"index": request.param, "precision": "float32"}
    return LightDXML(options=FOUR_VIEWS | settings).fit(*documents)


def quantized(trained: LightDXML, precision: str = "int8") -> LightDXML:
    other = copy.copy(trained)
    other.model_ = trained.model_.quantize(precision)
    return other


def dense_arrays(model: LightDXML) -> list[Any]:
    classifier, nearness = model.model_.views["classifier"], model.model_.views["nearness"]
    assert isinstance(classifier, ClassifierView)
    assert isinstance(nearness, NearnessView)
    return [classifier.W, classifier.encoder.vectors, nearness.encoder.vectors, nearness.index.vectors]


def size_of(folder: Path) -> int:
    return (folder / "arrays.safetensors").stat().st_size


@pytest.mark.parametrize("precision", ["int8", "float16"])
def test_a_smaller_model_is_about_as_good(trained: LightDXML, tmp_path: Path, precision: str) -> None:
    X, Y = topics(300, seed=1)
    other = quantized(trained, precision)
    before, after = (evaluate(Y, model.rank(X, 5)[0], k=(1, 3)) for model in (trained, other))
    assert after["P@1"] == pytest.approx(before["P@1"], abs=2)
    assert after["P@3"] == pytest.approx(before["P@3"], abs=2)
    trained.save(tmp_path / "large")
    other.save(tmp_path / "small")
    assert size_of(tmp_path / "small") < size_of(tmp_path / "large")
    assert {array.dtype for array in dense_arrays(other)} == {np.dtype(precision)}
    assert {array.dtype for array in dense_arrays(trained)} == {np.dtype(np.float32)}, "the model itself stays"


@pytest.mark.parametrize("precision", ["int8", "float16"])
def test_a_smaller_model_answers_the_same_after_it_is_stored(
    trained: LightDXML, tmp_path: Path, precision: str
) -> None:
    X, _ = topics(50, seed=1)
    other = quantized(trained, precision)
    other.save(tmp_path / "model")
    for before, after in zip(other.rank(X, 5), load(tmp_path / "model").rank(X, 5), strict=True):
        np.testing.assert_array_equal(before, after)


def test_one_document_at_a_time_gets_the_bits_of_a_batch(trained: LightDXML) -> None:
    X, _ = topics(20, seed=1)
    other = quantized(trained)
    labels, scores = other.rank(X, 5)
    for i in range(20):
        one, score = other.rank(X[i], 5)
        np.testing.assert_array_equal(one[0], labels[i])
        np.testing.assert_array_equal(score[0], scores[i])


def test_explanations_add_up(trained: LightDXML) -> None:
    for explanations in quantized(trained).explain(topics(5, seed=1)[0], 3):
        for one in explanations:
            assert one.base + sum(value for _, value in one.parts) == pytest.approx(one.score, abs=1e-5)


def test_quantizing_twice_changes_nothing(trained: LightDXML) -> None:
    once = quantized(trained)
    for precision in ("int8", "float16"):
        for before, after in zip(dense_arrays(once), dense_arrays(quantized(once, precision)), strict=True):
            assert after is before


def test_numbers_that_float16_cannot_hold_stay_float32(trained: LightDXML) -> None:
    other = copy.deepcopy(trained)
    W = dense_arrays(other)[0]
    W[0, 0] = 1e6
    found = dense_arrays(quantized(other, "float16"))
    assert [array.dtype for array in found] == [np.float32, np.float16, np.float16, np.float16]


def test_models_can_be_copied_and_pickled(trained: LightDXML) -> None:
    X, _ = topics(9, seed=1)
    for model in (trained, quantized(trained)):
        expected = model.rank(X, 3)[0]
        for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            np.testing.assert_array_equal(other.rank(X, 3)[0], expected)


def set_tail(name: str, first: int, last: int | None, value: float) -> Any:
    """Return a change of the bytes that hold scale or bias of the first int8 row."""

    def change(arrays: Arrays) -> None:
        arrays[name][0, first:last] = np.array([value], dtype=np.float32).view(np.int8)

    return change


@pytest.mark.parametrize(
    "change",
    [
        set_tail("classifier.W", -8, -4, np.nan),
        set_tail("classifier.W", -4, None, np.inf),
        set_tail("encoder.vectors", -4, None, np.nan),
        set_tail("nearness.vectors", -4, None, -np.inf),
        lambda arrays: arrays.update({"encoder.vectors": arrays["encoder.vectors"][:, :-4].copy()}),
        lambda arrays: arrays.update({"classifier.W": arrays["classifier.W"][:, :-4].copy()}),
    ],
    ids=["scale of NaN", "infinite bias", "NaN in word vectors", "infinite label vectors", "no scales", "no biases"],
)
def test_a_forged_quantized_model_is_refused(trained: LightDXML, tmp_path: Path, change: Any) -> None:
    quantized(trained).save(tmp_path / "model")
    change_arrays(tmp_path / "model", change)
    with pytest.raises(ValueError, match=r"is damaged \(.*\): copy or train it again"):
        load(tmp_path / "model")
