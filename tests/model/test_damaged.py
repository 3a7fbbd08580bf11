"""Models that are valid in form, with values that no training gives; `tests.fuzz_models` found them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lightdxml import LightDXML, load
from lightdxml.model import store
from tests.support.data import NAMES, TEXTS
from tests.support.forging import Arrays, change_arrays


@pytest.fixture(params=["float32", "int8"])
def model(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    trained = LightDXML(dim=8, epochs=1, precision="float32").fit(TEXTS, NAMES).model_
    trained = trained.quantize("int8") if request.param == "int8" else trained
    store.save(trained, tmp_path / "model", "1", [])
    return tmp_path / "model"


def test_word_vectors_that_would_overflow_are_refused(model: Path) -> None:
    def damage(arrays: Arrays) -> None:
        vectors = arrays["encoder.vectors"]
        # In int8 a row ends with its scale.
        vectors[0, -4:] = 3e38 if vectors.dtype == np.float32 else np.array([3e38], dtype=np.float32).view(np.int8)

    change_arrays(model, damage)
    with pytest.raises(ValueError, match=r"encoder\.vectors holds NaN, infinite or too large values"):
        load(model)


def test_label_embeddings_that_are_too_long_give_scores_of_at_most_1(model: Path) -> None:
    def damage(arrays: Arrays) -> None:
        vectors = arrays["nearness.vectors"]
        if vectors.dtype == np.int8:
            vectors[:, -4:] = np.array([0.05], dtype=np.float32).view(np.int8)
        else:
            vectors *= 10

    change_arrays(model, damage)
    _, scores = load(model).rank(TEXTS[:3], 2)
    assert 0 < scores.max() <= 1
    assert scores.min() >= 0


@pytest.mark.parametrize("retired", [[2], [-1], [1, 0], [1, 1], [[0]], [0.0]])
def test_retired_labels_that_do_not_fit_are_refused(model: Path, retired: list[Any]) -> None:
    kind = np.float32 if isinstance(retired[0], float) else np.int32
    change_arrays(model, lambda arrays: arrays.update(retired=np.array(retired, dtype=kind)))
    with pytest.raises(ValueError, match=r"is damaged \(its (retired labels|array retired)"):
        load(model)


def test_retired_labels_are_stored(model: Path) -> None:
    assert "retired" not in store.load(model).model.arrays()
    change_arrays(model, lambda arrays: arrays.update(retired=np.array([1], dtype=np.int32)))
    stored = store.load(model)
    assert stored.model.retired.tolist() == [1]
    store.save(stored.model, model, "1", stored.history)
    assert load(model).predict("a cat and a dog", k=2) == ["cat"]
