"""Fingerprints of training documents."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import LightDXML, load
from lightdxml.model import fingerprints
from lightdxml.validation import check_features
from tests.support.configs import SMALL
from tests.support.data import NAMES, TEXTS, topics
from tests.support.forging import change_arrays


def test_fingerprints_are_the_same_in_every_process_and_version() -> None:
    assert fingerprints.of_texts(["a purring cat"]).tolist() == [2855418009865042681]


def test_white_space_and_empty_documents_do_not_count() -> None:
    assert len(fingerprints.of_texts(["", " \n"])) == 0
    assert len(fingerprints.of_features(csr_matrix((2, 3), dtype=np.float32))) == 0
    title, joined = fingerprints.of_texts(["Cat\npurrs", " Cat purrs "]).tolist()
    assert title == joined


def test_a_large_set_keeps_a_sample_that_estimates_the_share() -> None:
    seen = fingerprints.of_texts(f"document {i}" for i in range(50_000))
    kept = fingerprints.kept(seen)
    assert len(kept) == fingerprints.LIMIT
    assert kept.nbytes <= 160_000
    # A quarter of these documents were seen.
    others = fingerprints.of_texts(f"document {i}" for i in range(45_000, 65_000))
    assert fingerprints.known_share(kept, others) == pytest.approx(0.25, abs=0.02)
    assert fingerprints.known_share(kept, seen) == 1


def test_without_fingerprints_the_share_is_not_known() -> None:
    nothing = np.empty(0, dtype=np.int64)
    some = fingerprints.of_texts(["a"])
    assert fingerprints.known_share(nothing, some) is None
    assert fingerprints.known_share(some, nothing) is None


def test_a_model_knows_its_training_documents_held_out_ones_too_but_not_those_of_dev(tmp_path: Path) -> None:
    X, Y = topics(60)
    LightDXML(options=SMALL).fit(X[:40], Y[:40], dev=(X[40:], Y[40:])).save(tmp_path / "model")
    kept = load(tmp_path / "model").model_.trained_on
    rows = check_features(X)
    assert fingerprints.known_share(kept, fingerprints.of_features(rows[:40])) == 1
    assert fingerprints.known_share(kept, fingerprints.of_features(rows[40:])) == 0
    held_out = LightDXML(options=SMALL).fit(X, Y).model_.trained_on
    assert fingerprints.known_share(held_out, fingerprints.of_features(rows)) == 1


def test_a_model_of_texts_knows_them() -> None:
    kept = LightDXML(options=SMALL).fit(TEXTS, NAMES).model_.trained_on
    assert len(kept) == len(set(TEXTS))
    assert fingerprints.known_share(kept, fingerprints.of_texts([TEXTS[0], "another text"])) == 0.5


@pytest.mark.parametrize(
    "forged",
    [
        np.array([2, 1], dtype=np.int64),
        np.array([1.0], dtype=np.float32),
        np.arange(fingerprints.LIMIT + 1, dtype=np.int64),
    ],
)
def test_forged_fingerprints_are_refused(tmp_path: Path, text_model: LightDXML, forged: NDArray[np.generic]) -> None:
    text_model.save(tmp_path / "model")
    change_arrays(tmp_path / "model", lambda arrays: arrays.update(trained_on=forged))
    with pytest.raises(ValueError, match="is damaged"):
        load(tmp_path / "model")


def test_a_model_without_fingerprints_can_be_loaded(tmp_path: Path, text_model: LightDXML) -> None:
    text_model.save(tmp_path / "model")
    shutil.copytree(tmp_path / "model", tmp_path / "old")
    change_arrays(tmp_path / "old", lambda arrays: arrays.pop("trained_on"))
    assert len(load(tmp_path / "old").model_.trained_on) == 0
    assert len(load(tmp_path / "model").model_.trained_on) > 0
