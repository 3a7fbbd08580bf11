"""Smaller models: a byte a number, nearly the same answers."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML, load, shortlist
from lightdxml.compression import compressed
from lightdxml.encoder import encode, unit_rows
from lightdxml.kernels import clusters, half, ova
from lightdxml.kernels.precision import quantize_int8, as_bits, dequantize, dequantize_classifier
from lightdxml.metrics import evaluate
from tests.cli.test_data import run
from tests.processor import kept
from tests.training.test_cycle import SMALL, topics
from tests.training.test_sparse_view import check_alone_as_among_others, forged

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def data() -> tuple[csr_matrix, csr_matrix]:
    return topics(300)


@pytest.fixture(scope="module", params=kept("exact", "sketch", "ivf", "hnsw"))
def trained(request: pytest.FixtureRequest, data: tuple[csr_matrix, csr_matrix]) -> LightDXML:
    return LightDXML(**{**SMALL, "sparse": True, "index": request.param}).fit(*data)


def small(trained: LightDXML, folder: Path, **how: Any) -> LightDXML:
    """Return the model after it was made smaller, stored and read."""
    trained.save(folder)
    other = load(folder)
    other.model_ = compressed(trained.model_, **how)
    other.save(folder)
    return load(folder)


def test_numbers_are_off_by_half_a_step_at_most() -> None:
    rows = RNG.normal(size=(20, 33)).astype(np.float32)
    steps = np.abs(rows).max(axis=1, keepdims=True) / 127
    assert (np.abs(dequantize(quantize_int8(rows)) - rows) <= 0.5001 * steps).all()
    both = dequantize_classifier(quantize_int8(rows, np.arange(20, dtype=np.float32)))
    np.testing.assert_array_equal(both[:, :-1], dequantize(quantize_int8(rows)))
    np.testing.assert_array_equal(both[:, -1], np.arange(20))


def test_rows_of_zeros_stay_zeros() -> None:
    assert not dequantize(quantize_int8(np.zeros((2, 3), dtype=np.float32))).any()


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
def test_kernels_read_all_kinds_of_numbers(kind: str) -> None:
    rows, biases = RNG.normal(size=(9, 16)).astype(np.float32), RNG.normal(size=9).astype(np.float32)
    whole = np.concatenate([rows, biases[:, None]], axis=1)
    vectors = quantize_int8(rows) if kind == "int8" else rows.astype(kind)
    classifier = quantize_int8(rows, biases) if kind == "int8" else whole.astype(kind)
    x = RNG.normal(size=(2, 16)).astype(np.float32)
    places = np.arange(9, dtype=np.int32)
    scanned, scored = np.empty(9, dtype=np.float32), np.empty((2, 9), dtype=np.float32)
    widened = np.empty((9, 16), dtype=np.float32)
    ova.scan(0, 9, x[0], as_bits(vectors), scanned)
    ova.scores(0, 2, x, as_bits(classifier), np.tile(places, (2, 1)), scored)
    clusters.widen_rows(as_bits(vectors), places, widened)
    np.testing.assert_allclose(scanned, dequantize(vectors) @ x[0], rtol=1e-4, atol=1e-5)
    both = dequantize_classifier(classifier)
    np.testing.assert_allclose(scored, x @ both[:, :-1].T + both[:, -1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(widened, dequantize(vectors), rtol=1e-6)


def test_python_and_compiled_code_read_the_same_scale() -> None:
    row = quantize_int8(RNG.normal(size=(1, 5)).astype(np.float32), np.array([-4.5]))[0]
    assert half.row_scale(row, 5) == half.float_of_bytes(row, 5)
    assert half.row_bias(row, 5) == half.float_of_bytes(row, 9) == np.float32(-4.5)


def test_it_is_about_as_right_and_smaller(tmp_path: Path, trained: LightDXML) -> None:
    X, Y = topics(300, seed=1)
    other = small(trained, tmp_path / "model")
    assert other.model_.classifier.dtype == other.model_.encoder.vectors.dtype == np.int8
    assert other.model_.shortlist.vectors.dtype == np.int8
    before, after = (evaluate(Y, model.rank(X, 5)[0], k=(1, 3)) for model in (trained, other))
    assert after["P@1"] == pytest.approx(before["P@1"], abs=2)
    assert after["P@3"] == pytest.approx(before["P@3"], abs=2)
    arrays = ("classifier", "encoder.vectors", "shortlist.vectors")
    assert trained.model_.classifier.dtype == np.float16, f"{arrays} of the model itself stay as they are"


def test_a_document_alone_gets_what_it_gets_among_others(tmp_path: Path, trained: LightDXML, data: Any) -> None:
    if trained.model_.shortlist.kind == "hnsw":
        pytest.skip("the graph of another size of batch finds other labels, whatever its numbers")
    check_alone_as_among_others(small(trained, tmp_path / "model"), data[0][:30])


def test_words_and_base_add_up_to_the_score(tmp_path: Path, trained: LightDXML, data: Any) -> None:
    for explanations in small(trained, tmp_path / "model").explain(data[0][:5], 3):
        for one in explanations:
            assert one.base + sum(part for _, part in one.parts) == pytest.approx(one.score, abs=1e-5)


@pytest.mark.parametrize("index", kept("sketch", "ivf"))
def test_the_index_can_be_another_one(tmp_path: Path, trained: LightDXML, data: Any, index: str) -> None:
    directions = unit_rows(encode(trained.model_.encoder, data[0]))
    other = small(trained, tmp_path / "model", index=index, queries=directions[:100])
    assert other.model_.shortlist.kind == index
    assert shortlist.recall_of_exact(other.model_.shortlist, directions[100:], 8) >= 0.9


@pytest.mark.parametrize("index", kept("sketch", "ivf"))
def test_an_index_is_not_made_blindly(data: tuple[csr_matrix, csr_matrix], index: Any) -> None:
    model = LightDXML(**{**SMALL, "index": "exact"}).fit(*data).model_
    with pytest.raises(ValueError, match="needs documents such as will be searched for"):
        compressed(model, index=index)


def test_it_answers_the_same_before_and_after_it_is_stored(tmp_path: Path, trained: LightDXML, data: Any) -> None:
    trained.save(tmp_path / "model")
    other = load(tmp_path / "model")
    other.model_ = compressed(trained.model_)
    before = other.rank(data[0], 5)
    other.save(tmp_path / "model")
    for one, two in zip(before, load(tmp_path / "model").rank(data[0], 5), strict=True):
        np.testing.assert_array_equal(one, two)


def test_what_is_small_already_is_said_to_be(trained: LightDXML) -> None:
    once = compressed(trained.model_)
    for precision in ("int8", "float16"):
        with pytest.raises(
            ValueError,
            match=f"one of int8 already, which {precision} makes no smaller: choose another precision, or",
        ):
            compressed(once, precision)


def test_numbers_that_float16_cannot_hold_stay_float32(data: tuple[csr_matrix, csr_matrix]) -> None:
    model = LightDXML(**{**SMALL, "precision": "float32"}).fit(*data).model_
    model.classifier[0, 0] = 1e6
    found = compressed(model, "float16")
    assert found.classifier.dtype == np.float32
    assert found.encoder.vectors.dtype == np.float16


def test_the_smallest_numbers_do_not_turn_round() -> None:
    rows = np.array([[3e-45, -3e-45, 1e-44]], dtype=np.float32)
    assert (dequantize(quantize_int8(rows)) * rows >= 0).all()


def test_models_can_be_copied_before_and_after_a_search(trained: LightDXML, data: Any) -> None:
    for _ in range(2):
        for other in (pickle.loads(pickle.dumps(trained)), copy.deepcopy(trained)):
            np.testing.assert_array_equal(other.rank(data[0][:9], 3)[0], trained.rank(data[0][:9], 3)[0])


def test_float32_becomes_float16(data: tuple[csr_matrix, csr_matrix]) -> None:
    model = LightDXML(**{**SMALL, "precision": "float32"}).fit(*data).model_
    other = compressed(model, "float16")
    assert model.classifier.dtype == np.float32
    assert other.classifier.dtype == other.encoder.vectors.dtype == other.shortlist.vectors.dtype == np.float16


def scale_of_nothing(content: dict[str, Any]) -> None:
    content["classifier"][0, -8:-4] = np.array([np.nan], dtype=np.float32).view(np.int8)


def bias_of_nothing(content: dict[str, Any]) -> None:
    content["classifier"][0, -4:] = np.array([np.inf], dtype=np.float32).view(np.int8)


def no_scale(content: dict[str, Any]) -> None:
    content["word_vectors"] = content["word_vectors"][:, :-4].copy()


def no_bias(content: dict[str, Any]) -> None:
    content["classifier"] = content["classifier"][:, :-4].copy()


def narrow_weights(content: dict[str, Any]) -> None:
    content["sparse_weights"] = content["sparse_weights"].astype(np.int8)


@pytest.mark.parametrize("change", [scale_of_nothing, bias_of_nothing, no_scale, no_bias, narrow_weights])
def test_a_forged_model_is_refused(tmp_path: Path, trained: LightDXML, change: Any) -> None:
    small(trained, tmp_path / "model")
    forged(tmp_path / "model", change)
    with pytest.raises(ValueError, match="is damaged"):
        load(tmp_path / "model")


def test_the_command_says_what_it_costs(tmp_path: Path, trained: LightDXML, data: Any) -> None:
    from lightdxml.data import Dataset, Split, save

    save(Dataset("tiny", Split(X=data[0], Y=data[1])), tmp_path / "data", "npz")
    trained.save(tmp_path / "model")
    said = run("compress", tmp_path / "model", tmp_path / "small", "--data", tmp_path / "data")
    assert "megabytes" in said
    assert "P@1" in said
    assert load(tmp_path / "small").model_.classifier.dtype == np.int8


def test_the_model_itself_is_not_replaced(tmp_path: Path, trained: LightDXML) -> None:
    trained.save(tmp_path / "model")
    with pytest.raises(ValueError, match="is the model itself, which is kept"):
        run("compress", tmp_path / "model", tmp_path / "." / "model")


def test_an_inverted_file_by_command_needs_data(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--index ivf needs documents"):
        run("compress", tmp_path / "model", tmp_path / "small", "--index", "ivf")


def test_info_says_that_figures_are_from_before(tmp_path: Path, trained: LightDXML) -> None:
    trained.save(tmp_path / "model")
    run("compress", tmp_path / "model", tmp_path / "small")
    said = run("info", tmp_path / "small")
    assert "float16 costs" in said
    assert "after these figures were measured" in said


@pytest.mark.parametrize(("option", "value"), [("--precision", "int4"), ("--index", "tree")])
def test_what_the_command_does_not_know_it_says(tmp_path: Path, option: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"{option} {value} is not known: it must be"):
        run("compress", tmp_path, tmp_path / "small", option, value)
